"""Segments in NumPy: those of the host, and initializers.

They run `lower.interpret` on values; nothing is traced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.dtypes import float32
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.x64 import x64
from estimatorkit.runtime.lower import changed_names, interpret
from estimatorkit.runtime.plan import Segment
from estimatorkit.runtime.resource_store import Access, finished
from estimatorkit.runtime.state import ProcessState
from estimatorkit.runtime.xla.host_tuning import use_huge_pages
from estimatorkit.runtime.xla.placement import DEFAULT, device_named


class HostSegment:
    """A host segment: runs operations in order, and releases values after their last use."""

    def __init__(self, segment: Segment, state: ProcessState) -> None:
        self._segment = segment
        self._state = state
        kept = set(segment.outputs) | set(segment.inputs)
        self._last_use: dict[Any, list[Tensor]] = {}
        seen: set[Tensor] = set()
        resolve = segment.rewriting.resolve
        for op in reversed(segment.ops):
            used = (*map(resolve, op.inputs), *op.outputs)
            fresh = [t for t in used if t not in seen and t not in kept]
            seen.update(fresh)
            self._last_use[op] = list(dict.fromkeys(fresh))

    def __call__(self, values: dict[Tensor, Any]) -> None:
        """Runs the segment: reads its inputs from `values` and adds its outputs."""
        local = {tensor: np.asarray(finished(values[tensor])) for tensor in self._segment.inputs}
        state, segment = self._state, self._segment
        variables: dict[str, Any] = dict.fromkeys(segment.reads)  # None if held elsewhere
        if segment.reads:
            names = state.own(segment.reads)
            variables.update(zip(names, state.read(names), strict=True))
        interpret(
            self._segment.ops,
            local,
            variables,
            host=True,
            context=state,
            last_use=self._last_use,
            rewriting=self._segment.rewriting,
        )
        if segment.writes:
            written = Access.of([], [], state.own(segment.writes))
            state.held.begin(written, state.take, state.raise_if_cancelled)
            state.held.end(written, (), [variables[name] for name in written.changed])
        for tensor in segment.outputs:
            values[tensor] = np.asarray(local[tensor], tensor.dtype.numpy_dtype)
        state.raise_if_cancelled()  # Python functions and datasets do not check for themselves


class InitializerSegment:
    """A device segment of initializers, interpreted in NumPy.

    It would be compiled for a single run: initializing 20 convolutions took 1.4 s of XLA's time,
    and takes 0.03 s.
    """

    def __init__(self, segment: Segment, state: ProcessState) -> None:
        self._segment = segment
        self._state = state
        names = changed_names(segment)
        self._access = Access.of([], segment.random, names)
        # Unnamed devices, as for results of executables: arrays put on a named device would be a
        # different kind of argument, for which the step would be compiled again.
        self._device = None if segment.device == DEFAULT else device_named(segment.device)
        ops = [tensor.op for op in segment.ops for tensor in op.inputs]
        self._dtypes = {op.name: op.attrs["dtype"] for op in ops if role_of(op) is Role.VARIABLE}

    def __call__(self, values: dict[Any, Any]) -> None:
        """Runs the segment: reads fed constants from `values` and adds its outputs."""
        segment, state, access = self._segment, self._state, self._access
        local = {
            tensor: np.asarray(finished(values[tensor]))  # a feed takes precedence
            if tensor in values
            else tensor.op.attrs["value"]
            for tensor in segment.inputs
        }
        changed = None
        _, counters = state.held.begin(access, state.take, state.raise_if_cancelled)
        try:
            variables = dict(zip(segment.random, counters, strict=True))
            interpret(segment.ops, local, variables, host=True, rewriting=segment.rewriting)
            with x64():
                changed = [
                    variables[name]
                    if name in segment.random
                    else state.initial(
                        name,
                        np.asarray(variables[name], self._dtypes[name].numpy_dtype),
                        self._device,
                    )
                    for name in access.changed
                ]
            use_huge_pages(changed)
        finally:
            state.held.end(access, (), changed)
        for tensor in segment.outputs:
            values[tensor] = np.asarray(local[tensor], tensor.dtype.numpy_dtype)

    @staticmethod
    def accepts(segment: Segment, largest: int) -> bool:
        """Whether a segment only gives variables values that depend on nothing, and NumPy can."""
        return (
            segment.place == "device"
            and bool(segment.writes)
            and not segment.reads
            and all(role_of(tensor.op) is Role.CONSTANT for tensor in segment.inputs)
            and all(_is_interpretable(op, largest) for op in segment.ops)
        )


def _is_interpretable(op: Operation, largest: int) -> bool:
    """Whether NumPy computes an operation like XLA, and hardly slower."""
    row = registry.lookup(op.type)
    if row.numpy_kernel is None or (row.semantics.random and op.outputs[0].dtype is not float32):
        return False
    if row.placement.context:  # a loop may take any number of steps
        return False
    return all((each.shape.num_elements() or 0) <= largest for each in op.outputs)
