"""Ops on strings, CSV records and audio files."""
