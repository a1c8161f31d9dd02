"""Iterators: how the transformations of datasets run, block by block."""
