"""Ops on the form of arrays: shapes, joining, indexing, sorting, segments."""
