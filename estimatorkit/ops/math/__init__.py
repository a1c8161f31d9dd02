"""Ops on numbers: element by element, reductions, products, random draws."""
