"""Data sets that come with the package, one module each."""

from __future__ import annotations

from estimatorkit.data.datasets import iris
from estimatorkit.lazy import listing

__all__ = ["iris"]
__dir__ = listing(__name__)
