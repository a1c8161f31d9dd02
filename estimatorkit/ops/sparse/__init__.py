"""Ops on sparse and ragged tensors."""
