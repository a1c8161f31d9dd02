"""Which operations of a device segment the host runs better: those whose shapes follow from values
that differ from run to run, such as `pad` by fed amounts.

XLA compiles the segment for each set of such values. Where what comes out of these operations has
one shape whatever the values are (a padding that a `slice` takes off again), NumPy runs them at
once, and the rest is compiled once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimatorkit.core import registry
from estimatorkit.core.plan import Segment
from estimatorkit.core.tensor import Operation, Tensor

LIMIT = 4
"""So many sets of values are compiled before operations go to the host."""


class ValueShapes:
    """What the compilations of a segment tell of shapes that follow from values.

    Attributes:
        ops: the operations that must know the values to compile, and those between them.
        movable: whether the host can run `ops`.
    """

    def __init__(self, segment: Segment) -> None:
        self.ops = _region(segment)
        self.movable = bool(self.ops) and all(map(_has_twin, self.ops))
        rest = [op for op in segment.ops if op not in self.ops]
        taken = {segment.rewriting.resolve(tensor) for op in rest for tensor in op.inputs}
        self._taken = [tensor for tensor in taken if tensor.op in self.ops]
        self._seen: set[tuple[Any, ...]] = set()
        self._compilations = 0

    def add(self, values: Mapping[Tensor, Any]) -> None:
        """Notes the shapes of one more compilation."""
        self._seen.add(tuple(values[tensor].shape for tensor in self._taken))
        self._compilations += 1

    @property
    def settled(self) -> bool:
        """Whether compilations would end if the host ran `ops`."""
        return self._compilations > LIMIT and len(self._seen) == 1


def _has_twin(op: Operation) -> bool:
    return registry.lookup(op.type).foldable and "functions" not in op.attrs


def _region(segment: Segment) -> set[Operation]:
    resolve = segment.rewriting.resolve
    known = set(segment.static_inputs)
    found: set[Operation] = set()
    after: set[Operation] = set()
    for op in segment.ops:
        inputs = [resolve(tensor) for tensor in op.inputs]
        row = registry.lookup(op.type)
        if any(inputs[position] in known for position in row.static_positions(op.attrs)):
            found.add(op)
        elif row.foldable and inputs and all(each in known or _is_known(each) for each in inputs):
            known.update(op.outputs)
        if op in found or any(tensor.op in after for tensor in inputs):
            after.add(op)
    before: set[Operation] = set()
    for op in reversed(segment.ops):
        if op in before or op in found:
            before.update(resolve(tensor).op for tensor in op.inputs)
    return found | (after & before)


def _is_known(tensor: Tensor) -> bool:
    return tensor.op.type == "Const"
