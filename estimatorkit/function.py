"""`tf.function`: functions as operations (`Defun`)."""

from __future__ import annotations

from estimatorkit.compat.ops.control.defun import Defun
from estimatorkit.lazy import listing

__all__ = ["Defun"]
__dir__ = listing(__name__)
