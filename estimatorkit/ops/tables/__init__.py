"""Lookup tables, vocabularies, and the ids of feature columns."""
