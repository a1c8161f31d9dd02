"""Rules that change a part of their first operand: of a copy, or in place (see `ownership`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from estimatorkit.runtime.interpreter.equations import Function

Target: TypeAlias = Callable[[Any], Any]
"""Gives the array to write to, which is contiguous, for an operand."""


def updating(making: Callable[[Target], Function]) -> Function:
    """A rule's function, whose attribute `overwriting` changes its first operand if it can."""
    function, overwriting = making(_copied), making(_itself)
    function.overwriting = overwriting  # type: ignore[attr-defined]
    return function


def _copied(array: Any) -> Any:
    return np.array(array, order="C")


def _itself(array: Any) -> Any:
    flags = array.flags
    return array if flags.writeable and flags.c_contiguous else _copied(array)


__all__ = ["Target", "updating"]
