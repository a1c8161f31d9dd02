"""Ops that check and print values, or call Python functions."""
