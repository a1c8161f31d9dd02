"""The version, in a file of its own so that packaging reads it without importing the package."""

from __future__ import annotations

__version__ = "0.1.0"
