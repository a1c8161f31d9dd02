"""Data sets that come with the package, one module each."""

from __future__ import annotations

from estimatorkit.data.datasets import iris

__all__ = ["iris"]
