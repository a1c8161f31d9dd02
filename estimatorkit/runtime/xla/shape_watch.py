"""Recompilations: warns about many, and moves operations of varying shapes to the host.

XLA compiles a segment for each set of shapes. `ShapeWatch` warns when a segment has been compiled
many times. `VaryingShapes` finds operations on the input whose shapes, or the values that determine
them, differ between runs (such as images of any size before `resize_images`): NumPy runs these, so
that the rest is compiled once. Operations that depend on variables stay on the device.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import registry
from estimatorkit.core.dtypes import resource
from estimatorkit.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from estimatorkit.runtime.plan import Segment

logger = logging.getLogger("estimatorkit")

WARN_LIMIT = 20
"""So many shapes are no sign of a fault yet: the lengths of sentences, say."""


class ShapeWatch:
    """Counts the compilations of a segment, and warns once at `WARN_LIMIT`.

    Args:
        inputs: tensors whose shapes are compiled in.
        static: tensors whose values are compiled in.
    """

    def __init__(self, inputs: Sequence[Tensor], static: Sequence[Tensor]) -> None:
        self._tensors = [(tensor, "shapes") for tensor in inputs]
        self._tensors += [(tensor, "values") for tensor in static]
        self._seen: list[list[Any]] = []

    def add(self, inputs: Sequence[Any], static: Sequence[NDArray[Any]]) -> None:
        """Records a compilation for these inputs."""
        if len(self._seen) < WARN_LIMIT:
            shapes = [str(list(np.shape(value))) for value in inputs]
            self._seen.append([*shapes, *(str(value.tolist()) for value in static)])
            if len(self._seen) == WARN_LIMIT:
                self._warn()

    def _warn(self) -> None:
        lines = []
        for (tensor, what), seen in zip(self._tensors, zip(*self._seen, strict=True), strict=True):
            different = list(dict.fromkeys(seen))
            if len(different) > 1:
                some = ", ".join(different[:4])
                lines.append(
                    f"  {tensor.name} had {len(different)} {what} ({some}, ...), "
                    f"made at {tensor.op.source}"
                )
        if lines:
            logger.warning(
                "A part of the graph was compiled %d times:\n%s\n"
                "  try: keep shapes fixed (pad batches, Dataset.batch(drop_remainder=True), "
                "multiply by a mask instead of tf.boolean_mask)",
                WARN_LIMIT,
                "\n".join(lines),
            )


HOST_LIMIT = 4
"""So many sets of shapes are compiled before operations go to the host."""


class VaryingShapes:
    """Finds varying shapes from the compilations of a segment."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._first: dict[Tensor, Any] = {}
        self._varying: set[Tensor] = set()
        self._compilations = 0
        self._judged = HOST_LIMIT
        self._static = set(segment.static_inputs)

    def seen(self, values: Mapping[Tensor, Any]) -> dict[Tensor, Any]:
        """What to record of a compilation: shapes, and the values compiled in."""
        static = self._static
        return {
            tensor: value.tolist() if tensor in static else np.shape(value)
            for tensor, value in values.items()
        }

    def add(self, seen: Mapping[Tensor, Any]) -> None:
        """Records a compilation (see `seen`)."""
        self._compilations += 1
        for tensor, value in seen.items():
            if self._first.setdefault(tensor, value) != value:
                self._varying.add(tensor)

    def for_host(self) -> set[Operation]:
        """The operations to move to the host; usually none."""
        if self._compilations <= self._judged:
            return set()
        self._judged = self._compilations
        found = self._operations()
        return found if all(map(_has_twin, found)) else set()

    def _operations(self) -> set[Operation]:
        """The operations that depend on varying values; empty if one depends on variables."""
        found: set[Operation] = set()
        values: set[Tensor] = self._static & self._varying
        of_variables: set[Operation] = set()
        for op in self._segment.ops:
            inputs = [self._segment.rewriting.resolve(tensor) for tensor in op.inputs]
            row = registry.lookup(op.type)
            if any(each.dtype is resource or each.op in of_variables for each in inputs):
                of_variables.add(op)
            shapes_vary = any(each in self._varying - self._static for each in inputs)
            compiled_in = [inputs[at] for at in row.semantics.static_positions(op.attrs)]
            if shapes_vary or any(each in values or each.op in found for each in compiled_in):
                found.add(op)
            elif row.foldable and any(each in values for each in inputs):
                values.update(op.outputs)
        return set() if found & of_variables else found


def _has_twin(op: Operation) -> bool:
    return registry.lookup(op.type).foldable and "functions" not in op.attrs
