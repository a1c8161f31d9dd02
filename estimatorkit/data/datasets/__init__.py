"""Data sets, one module each; iris and digits are bundled, the others are downloaded on first use.

Each module has `load_data` and `DATA_SET`, which describes its files, their terms, and where they
may be put by hand (see `files`).
"""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
