"""`tf.function`: functions as operations (`Defun`)."""

from __future__ import annotations

from estimatorkit.lazy import listing
from estimatorkit.ops.control.defun import Defun

__all__ = ["Defun"]
__dir__ = listing(__name__)
