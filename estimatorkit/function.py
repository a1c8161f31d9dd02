"""`tf.function`: functions as operations (`Defun`)."""

from __future__ import annotations

from estimatorkit.core.defun import Defun

__all__ = ["Defun"]
