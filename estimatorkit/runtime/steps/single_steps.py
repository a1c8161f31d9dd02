"""`SingleSteps`: the steps of a block one by one, as runs of their own.

A loop over a block is compiled for the shapes of its elements. Where these change from block to
block, as with batches padded to their longest sequence, compiling takes far longer than the few
steps of each shape: these run as `Session.run` does, by the executors that it has. So do the first
steps of rare shapes, while NumPy takes less time for them than a share of the compilation's: those
of an evaluation, which is mostly one of a few batches, and the shorter last batch of a training's
epochs (compiling it took half a second of a census training of 1,630 steps).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.tensor import Tensor
from estimatorkit.runtime.executor import CompiledSegment
from estimatorkit.runtime.interpreted import NotInterpretable
from estimatorkit.runtime.plan import Segment
from estimatorkit.runtime.state import ProcessState
from estimatorkit.runtime.steps.compiled_loop import Done, ScannableStep
from estimatorkit.runtime.steps.partial_batch import PartialBatches
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
        is_brief: see `StepSpec`.
    """

    def __init__(
        self,
        shape: ScannableStep,
        state: ProcessState,
        elements: Sequence[Tensor],
        every: Sequence[Tensor],
        after: Sequence[Tensor],
        name: str,
        is_brief: bool = False,
    ) -> None:
        self._state = state
        self._elements = elements
        self._fetched = every, after
        self._step = CompiledSegment(shape.step, state, name)
        self._last = None if shape.after is None else CompiledSegment(shape.after, state, name)
        self._in_loops: set[Any] = set()
        is_here = is_cpu(None) and not state.several_devices
        self._begins_in_numpy = is_here and state.executor == "auto"
        self._is_brief = is_brief
        self._long: set[Any] = set()

    def stretch(self, start: int, count: int, two_shapes: PartialBatches | None) -> int:
        """How many of `count` steps to run together: those of a rare shape run apart."""
        if not self._begins_in_numpy or two_shapes is None:
            return count
        if not (self._is_brief or two_shapes.is_in_long_runs):
            return count
        first, end, _ = next(two_shapes.pieces(start, start + count))
        return end - first

    def brief(
        self, columns: Sequence[Any], start: int, count: int, two_shapes: PartialBatches | None
    ) -> Done | None:
        """Runs the first steps of a rare shape in NumPy, up to one that would take too long.

        Args:
            columns, start, count, two_shapes: see `__call__`; steps of one shape.

        Returns:
            What was done; None: the loop is to be compiled for this shape.
        """
        shapes = _row_shapes(columns) if two_shapes is None else two_shapes.of(start)
        if not self._is_rare(shapes, two_shapes) or shapes in self._long:
            return None
        made = None
        self._step.compiles = False
        try:
            made = self(columns, start, count, two_shapes)
        except NotInterpretable:
            self._long.add(shapes)
        finally:
            self._step.compiles = True
        return made

    def _is_rare(self, shapes: Any, two_shapes: PartialBatches | None) -> bool:
        """Whether a shape may occur in few steps only: any shape of a brief loop, or that of
        partial batches which run in calls of their own."""
        return self._begins_in_numpy and (
            self._is_brief
            or (two_shapes is not None and two_shapes.is_in_long_runs and shapes != two_shapes.full)
        )

    def takes(self, columns: Sequence[Any], count: int, two_shapes: PartialBatches | None) -> bool:
        """Whether to run a block's steps one by one.

        The first shape is compiled as a loop: mostly, it is the only one.

        Args:
            columns: the block's columns.
            count: the number of its elements.
            two_shapes: the shapes of its rows, if there are two.
        """
        mode = self._state.executor
        if mode == "xla" or not is_cpu(None) or self._state.several_devices:
            return False
        if mode == "auto" and two_shapes is not None:
            return False
        shapes = _row_shapes(columns)
        if mode == "auto" and (count >= FEW or shapes in self._in_loops or not self._in_loops):
            self._in_loops.add(shapes)
            return False
        return True

    def __call__(
        self,
        columns: Sequence[Any],
        start: int,
        count: int,
        two_shapes: PartialBatches | None = None,
    ) -> Done:
        """Runs steps `start` to `start + count` of a block (see `CompiledLoop`)."""
        every, after = self._fetched
        rows: list[list[Any]] = []
        error: InvalidArgumentError | None = None
        for at in range(start, start + count):
            rows_there = [column[at] for column in columns]
            if two_shapes is not None:
                sizes = two_shapes.of(at)
                rows_there = [
                    row[tuple(map(slice, size))]
                    for row, size in zip(rows_there, sizes, strict=True)
                ]
            values: dict[Any, Any] = dict(zip(self._elements, rows_there, strict=True))
            try:
                self._step(values)
            except InvalidArgumentError as found:
                error = found
                break
            except NotInterpretable:
                if not rows:
                    raise
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


def _row_shapes(columns: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(column.shape[1:] for column in columns)


def _from(start: int, rows: Sequence[Any]) -> Any:
    """Values of steps as a column, in which the first is at `start`."""
    column = np.empty((start + len(rows), *rows[0].shape), rows[0].dtype)
    column[start:] = np.stack(rows)
    return column


__all__ = ["FEW", "SingleSteps"]
