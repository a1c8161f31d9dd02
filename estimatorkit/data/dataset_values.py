"""Tensors computed from whole datasets: `Dataset.reduce` and `get_single_element`.

Each is one host operation that traverses the dataset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import apply, register
from estimatorkit.core.sparse_tensor import SparseTensor, SparseTensorValue
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.execution.buffers import count_rows, slice_rows
from estimatorkit.data.execution.grouping import one_row
from estimatorkit.data.execution.randomness import Seeds
from estimatorkit.data.plan import Plan
from estimatorkit.data.spec import SparseTensorSpec, TensorSpec, flatten, pack
from estimatorkit.data.traced_functions import DatasetFunction, of_tensors, specs_of
from estimatorkit.data.tracing import trace_function
from estimatorkit.data.transformations import merged_states
from estimatorkit.runtime.steps.columns import parts_of

if TYPE_CHECKING:
    from estimatorkit.data.dataset import Dataset


class Cardinality(np.int64):
    """A number of elements: a Python integer, and a tensor of the graph it was requested in."""

    _tensor: Tensor | None

    def __new__(cls, count: int) -> Self:
        """Makes the tensor, unless the default graph is finalized."""
        made = super().__new__(cls, count)
        made._tensor = None if get_default_graph().finalized else convert_to_tensor(np.int64(count))
        return made

    def _as_graph_element(self) -> Tensor:
        if self._tensor is None:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        return self._tensor


def _reduce(*inputs: Any, plan: Plan, function: DatasetFunction, context: Any) -> list[Any]:
    tensors = list(dict.fromkeys([*plan.tensors(), *function.tensors()]))
    known = dict(zip(tensors, inputs, strict=False))
    seeds = Seeds(context.graph.seed, context)
    rest = iter(inputs[len(tensors) :])
    leaves = [
        tuple(next(rest) for _ in range(3)) if isinstance(spec, SparseTensorSpec) else next(rest)
        for spec in flatten(function.input_spec[0])
    ]
    start = function.bind(known).start(seeds)
    call = start(seeds.function_stream().key)
    state = one_row(leaves)
    iterator = plan.bind(known).iterator(seeds)
    number = 0
    try:
        while True:
            try:
                rows = iterator.next_block(64)
            except OutOfRangeError:
                return [column[0] for column in parts_of(state)]
            for row in range(count_rows(rows)):
                state = call([*state, *slice_rows(rows, row, row + 1)], 1, number, 0)
                number += 1
    finally:
        iterator.close()


def reduce_dataset(dataset: Dataset, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
    """See `Dataset.reduce`.

    Raises:
        TypeError: the function returns a state of another structure or dtype.
    """
    plan = dataset._plan
    leaves = [_as_leaf(leaf) for leaf in flatten(initial_state)]
    specs: list[Any] = [
        SparseTensorSpec(leaf.shape, leaf.dtype)
        if isinstance(leaf, SparseTensor)
        else TensorSpec(leaf.shape, leaf.dtype)
        for leaf in leaves
    ]
    for _ in range(2):  # retraced with the shapes that cover all states
        state_spec = pack(initial_state, specs)
        traced = trace_function(reduce_func, (state_spec, plan.element_spec), unpack=False)
        specs, wider = merged_states("reduce()", state_spec, traced.output_spec)
        if not wider:
            break
    tensors = list(dict.fromkeys([*plan.tensors(), *traced.tensors()]))
    attrs = {
        "_specs": specs_of(pack(initial_state, specs)),
        "plan": plan,
        "function": traced,
    }
    given = [part for leaf in leaves for part in nest.expand(leaf)[0]]
    op = apply("ReduceDataset", [*tensors, *given], attrs, "ReduceDataset")
    return of_tensors(pack(initial_state, specs), op.outputs)


def _as_leaf(value: Any) -> Any:
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    return value if isinstance(value, SparseTensor) else convert_to_tensor(value)


def _single(*inputs: Any, plan: Plan, context: Any) -> list[Any]:
    plan = plan.bind(dict(zip(plan.tensors(), inputs, strict=True)))
    iterator = plan.iterator(Seeds(context.graph.seed, context))
    try:
        try:
            rows = iterator.next_block(2)
        except OutOfRangeError as error:
            raise InvalidArgumentError.explained(
                "Dataset was empty.", expected="one element"
            ) from error
        if count_rows(rows) > 1:
            raise InvalidArgumentError.explained(
                "Dataset had more than one element.", expected="one element"
            )
        return [column[0] for column in parts_of(rows)]
    finally:
        iterator.close()


for _type, _kernel in (("ReduceDataset", _reduce), ("DatasetToSingleElement", _single)):
    register(
        _type,
        _kernel,
        infer=lambda inputs, attrs: attrs["_specs"],
        gradient=None,
        where="host",
        context=True,
        pure=False,
        client_only=True,
    )


def single_element(dataset: Dataset) -> Any:
    """See `Dataset.get_single_element`."""
    plan = dataset._plan
    attrs = {"_specs": specs_of(plan.element_spec), "plan": plan}
    op = apply("DatasetToSingleElement", plan.tensors(), attrs, "DatasetToSingleElement")
    return of_tensors(plan.element_spec, op.outputs)
