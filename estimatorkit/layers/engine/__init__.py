"""`Layer` and what it is made of."""
