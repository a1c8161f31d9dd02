"""Which operations of a device segment the host runs better: those whose shapes, or the values that
their shapes follow from, differ from run to run.

XLA compiles a segment for each set of shapes. Pictures of any size that `resize_images` brings to
one, or a padding by a fed amount that a `slice` takes off again, would be a compilation each.
NumPy runs such operations at once, and what follows them is compiled once. Operations that depend
on variables (models rather than their input) stay on the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.dtypes import resource
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.runtime.plan import Segment

LIMIT = 4
"""So many sets of shapes are compiled before operations go to the host."""


class VaryingShapes:
    """What the compilations of a segment tell of shapes that differ."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._first: dict[Tensor, Any] = {}
        self._varying: set[Tensor] = set()
        self._compilations = 0
        self._judged = LIMIT
        self._static = set(segment.static_inputs)

    def add(self, values: Mapping[Tensor, Any]) -> None:
        """Notes the shapes of one more compilation, and the values that are compiled in."""
        self._compilations += 1
        for tensor, value in values.items():
            seen = value.tolist() if tensor in self._static else np.shape(value)
            if self._first.setdefault(tensor, seen) != seen:
                self._varying.add(tensor)

    def for_host(self) -> set[Operation]:
        """The operations that the host should run from now on; mostly none."""
        if self._compilations <= self._judged:
            return set()
        self._judged = self._compilations
        found = self._operations()
        return found if all(map(_has_twin, found)) else set()

    def _operations(self) -> set[Operation]:
        """Those that what varies goes into; empty where one of them depends on variables."""
        found: set[Operation] = set()
        values: set[Tensor] = self._static & self._varying
        of_variables: set[Operation] = set()
        for op in self._segment.ops:
            inputs = [self._segment.rewriting.resolve(tensor) for tensor in op.inputs]
            row = registry.lookup(op.type)
            if any(each.dtype is resource or each.op in of_variables for each in inputs):
                of_variables.add(op)
            shapes_vary = any(each in self._varying - self._static for each in inputs)
            compiled_in = [inputs[at] for at in row.static_positions(op.attrs)]
            if shapes_vary or any(each in values or each.op in found for each in compiled_in):
                found.add(op)
            elif row.foldable and any(each in values for each in inputs):
                values.update(op.outputs)
        return set() if found & of_variables else found


def _has_twin(op: Operation) -> bool:
    return registry.lookup(op.type).foldable and "functions" not in op.attrs
