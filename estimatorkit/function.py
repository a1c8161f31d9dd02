"""`tf.function`: functions as operations (`Defun`)."""

from __future__ import annotations

from estimatorkit.core.defun import Defun
from estimatorkit.lazy import listing

__all__ = ["Defun"]
__dir__ = listing(__name__)
