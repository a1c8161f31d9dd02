"""Ops on files and summaries."""
