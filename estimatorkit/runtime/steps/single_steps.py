"""`SingleSteps`: the steps of a block one by one, as runs of their own.

A loop over a block is compiled for the shapes of its elements. Where these change from block to
block, as with batches padded to their longest sequence, compiling takes far longer than the few
steps of each shape: these run as `Session.run` does, by the executors that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.tensor import Tensor
from estimatorkit.runtime.executor import CompiledSegment
from estimatorkit.runtime.plan import Segment
from estimatorkit.runtime.state import ProcessState
from estimatorkit.runtime.steps.compiled_loop import Done, ScannableStep
from estimatorkit.runtime.xla.placement import is_cpu

FEW = 64
"""Steps: a longer block of elements of one shape is compiled as a loop."""


class SingleSteps:
    """Runs steps of blocks of changing shapes.

    Args:
        shape: the step.
        state: the session's state.
        elements: the tensors of a block's columns.
        every, after: the tensors fetched at every step, and after the last.
        name: the loop's name in `State.compilations`.
    """

    def __init__(
        self,
        shape: ScannableStep,
        state: ProcessState,
        elements: Sequence[Tensor],
        every: Sequence[Tensor],
        after: Sequence[Tensor],
        name: str,
    ) -> None:
        self._state = state
        self._elements = elements
        self._fetched = every, after
        self._step = CompiledSegment(shape.step, state, name)
        self._last = None if shape.after is None else CompiledSegment(shape.after, state, name)
        self._in_loops: set[Any] = set()

    def takes(self, columns: Sequence[Any], count: int) -> bool:
        """Whether to run a block's steps one by one.

        The first shape is compiled as a loop: mostly, it is the only one.

        Args:
            columns: the block's columns.
            count: the number of its elements.
        """
        mode = self._state.executor
        if mode == "xla" or not is_cpu(None) or self._state.several_devices:
            return False
        shapes = tuple(column.shape[1:] for column in columns)
        if mode == "auto" and (count >= FEW or shapes in self._in_loops or not self._in_loops):
            self._in_loops.add(shapes)
            return False
        return True

    def __call__(self, columns: Sequence[Any], start: int, count: int) -> Done:
        """Runs steps `start` to `start + count` of a block (see `CompiledLoop`)."""
        every, after = self._fetched
        rows: list[list[Any]] = []
        error: InvalidArgumentError | None = None
        for at in range(start, start + count):
            values: dict[Any, Any] = {
                tensor: column[at] for tensor, column in zip(self._elements, columns, strict=True)
            }
            try:
                self._step(values)
            except InvalidArgumentError as found:
                error = found
                break
            rows.append([self._value(self._step.segment, tensor, values) for tensor in every])
        last: dict[Any, Any] = {}
        if self._last is not None:
            self._last(last)
        segment = self._step.segment if self._last is None else self._last.segment
        return Done(
            len(rows),
            [_from(start, own) for own in zip(*rows, strict=True)],
            [self._value(segment, tensor, last) for tensor in after],
            error,
        )

    def _value(self, segment: Segment, tensor: Tensor, values: dict[Any, Any]) -> Any:
        if tensor in values:
            return np.asarray(values[tensor])
        known = segment.rewriting.value(tensor)  # constants belong to no segment
        return np.asarray(self._step.segment.rewriting.value(tensor) if known is None else known)


def _from(start: int, rows: Sequence[Any]) -> Any:
    """Values of steps as a column, in which the first is at `start`."""
    column = np.empty((start + len(rows), *rows[0].shape), rows[0].dtype)
    column[start:] = np.stack(rows)
    return column


__all__ = ["FEW", "SingleSteps"]
