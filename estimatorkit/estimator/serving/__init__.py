"""Exporting models, and running exported ones."""
