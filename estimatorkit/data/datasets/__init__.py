"""Data sets that come with the package, one module each."""
