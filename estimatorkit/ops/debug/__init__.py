"""Ops that check and print values, and call Python."""
