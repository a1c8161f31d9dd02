"""User functions traced to graphs: those of `map`, `filter`, `flat_map` and `reduce`.

A function receives an element as tensors, sparse tensors and datasets, may use tensors, tables and
variables of the outer graph, and returns such values; a dataset becomes a scalar `variant` that
holds its plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from estimatorkit.core import nest, registry
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import resource, variant
from estimatorkit.core.errors import FailedPreconditionError, value_error
from estimatorkit.core.function_graph import GraphFunction
from estimatorkit.core.registry import Spec, register
from estimatorkit.core.shapes import SCALAR
from estimatorkit.core.sparse_tensor import SparseTensor, SparseTensorValue
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.buffers import Columns
from estimatorkit.data.execution.iterators import BlockCall, StartFunction
from estimatorkit.data.execution.randomness import Seeds
from estimatorkit.data.parameters import Pending
from estimatorkit.data.plan import Plan
from estimatorkit.data.spec import (
    DatasetSpec,
    SparseTensorSpec,
    TensorSpec,
    flatten,
    map_leaves,
    pack,
)
from estimatorkit.runtime.steps.batched_executor import BlockRunner, trace
from estimatorkit.runtime.steps.columns import SparseColumn, parts_of


def specs_of(element_spec: Any) -> tuple[Spec, ...]:
    """The tensor specs of an element: one per dense leaf, three per sparse one."""
    parts: list[TensorSpec] = []
    for leaf in flatten(element_spec):
        parts.extend([leaf] if isinstance(leaf, TensorSpec) else leaf.parts)
    return tuple(Spec(part.dtype, part.shape) for part in parts)


def of_tensors(element_spec: Any, tensors: Sequence[Tensor]) -> Any:
    """Packs the tensors of all leaves into an element."""
    from estimatorkit.data.execution.nesting import Nested

    rest = iter(tensors)
    leaves: list[Any] = []
    for spec in flatten(element_spec):
        if isinstance(spec, SparseTensorSpec):
            sparse = SparseTensor(next(rest), next(rest), next(rest))
            sparse.set_shape(spec.shape)
            leaves.append(sparse)
        elif isinstance(spec, DatasetSpec) and spec.shape.rank == 0:
            handle = Pending((next(rest),), lambda value: np.asarray(value, object).item())
            leaves.append(Dataset(Nested(handle, spec.element_spec)))
        else:
            leaves.append(next(rest))
    return pack(element_spec, leaves)


def join_columns(element_spec: Any, columns: Columns) -> Columns:
    """Converts columns of tensors to columns of leaves."""
    rest = iter(columns)
    return [
        SparseColumn.of_parts(next(rest), next(rest), next(rest))
        if isinstance(spec, SparseTensorSpec)
        else next(rest)
        for spec in flatten(element_spec)
    ]


@dataclass(frozen=True, eq=False)
class _DatasetValue:
    """A dataset returned by a function, as the tensor that holds its plan."""

    tensor: Tensor
    element_spec: Any

    def _components(self) -> tuple[Tensor, ...]:
        return (self.tensor,)

    def _with_components(self, tensors: Sequence[Tensor]) -> _DatasetValue:
        return _DatasetValue(tensors[0], self.element_spec)


def _hold_plan(*values: Any, plan: Plan) -> Any:
    held = np.empty((), object)
    held[()] = plan.bind(dict(zip(plan.tensors(), values, strict=True)))
    return held


register(
    "DatasetVariant",
    _hold_plan,
    infer=lambda inputs, attrs: [Spec(variant, SCALAR)],
    gradient=None,
    where="host",
    pure=False,
)


def _to_leaf(value: Any) -> Any:
    plan = getattr(value, "_plan", None)
    if isinstance(plan, Plan):  # of a dataset
        tensor = registry.output("DatasetVariant", plan.tensors(), {"plan": plan}, "Dataset")
        return _DatasetValue(tensor, plan.element_spec)
    if isinstance(value, SparseTensor):
        return value
    return convert_to_tensor(value)


def _to_leaves(returned: Any) -> Any:
    if isinstance(returned, SparseTensorValue):
        return SparseTensor.from_value(returned)
    if isinstance(returned, Mapping):
        return type(returned)((key, _to_leaves(each)) for key, each in returned.items())  # type: ignore[call-arg]
    if nest.is_namedtuple(returned):
        return type(returned)(*map(_to_leaves, returned))
    if isinstance(returned, tuple):
        return tuple(map(_to_leaves, returned))
    return None if returned is None else _to_leaf(returned)


def _spec_of(leaf: Any) -> Any:
    if isinstance(leaf, _DatasetValue):
        return DatasetSpec(leaf.element_spec)
    if isinstance(leaf, SparseTensor):
        return SparseTensorSpec(leaf.shape, leaf.dtype)
    return TensorSpec(leaf.shape, leaf.dtype)


@dataclass(frozen=True, eq=False)
class DatasetFunction:
    """A traced function of an element (`data.plan.TracedFunction`).

    Attributes:
        function: its graph.
        captured: the values of `function.captured`, if known.
    """

    function: GraphFunction
    input_spec: Any
    output_spec: Any
    captured: tuple[Any, ...] | None = None

    def tensors(self) -> list[Tensor]:
        """The captured tensors whose values are unknown."""
        if self.captured is not None:
            return []
        return [
            tensor
            for tensor in self.function.captured
            if tensor.dtype is resource or registry.constant_value(tensor) is None
        ]

    def bind(self, values: Mapping[Tensor, Any]) -> DatasetFunction:
        """The function with the values of captured tensors."""
        if self.captured is not None:
            return self
        captured = tuple(
            values[tensor] if tensor in values else registry.fixed_value(tensor)
            for tensor in self.function.captured
        )
        return replace(self, captured=captured)

    def start(self, seeds: Seeds) -> StartFunction:
        """Returns the function that prepares this one to run on blocks of columns."""
        captured = self.bind({}).captured or ()

        def start(key: str) -> BlockCall:
            runner = BlockRunner(self.function, captured, seeds.state, key)

            def call(columns: Columns, count: int, first: int, epoch: int) -> Columns:
                results = runner(parts_of(columns), count, first, epoch)
                return join_columns(self.output_spec, results)

            return call

        return start


def dataset_function(function: Callable[[Any], Any], element_spec: Any) -> DatasetFunction:
    """Traces `function`, which takes one argument: the element."""

    def of_inputs(inputs: Sequence[Tensor]) -> Any:
        returned = function(of_tensors(element_spec, inputs))
        # Operations with several outputs return lists: several values, as in tf.data.
        return tuple(returned) if isinstance(returned, list) else returned

    traced = trace(of_inputs, specs_of(element_spec), _to_leaves)
    if not traced.outputs:
        raise value_error(
            "None values not supported.", received="a function that returns no tensor"
        )
    spec = map_leaves(_spec_of, traced.structure)
    return DatasetFunction(traced, element_spec, spec)


def value_of(tensor: Tensor, state: Any) -> Any:
    """The value of a captured tensor for a dataset that is iterated without an initializer.

    Raises:
        FailedPreconditionError: there is no session to compute it.
    """
    if state is None:
        raise FailedPreconditionError.explained(
            "the dataset depends on a tensor whose value is not known",
            received=tensor,
            made_at=tensor.op.source,
            hint="iterate inside `with Session():`, or use make_initializable_iterator()",
            op=tensor.op,
        )
    if tensor.dtype is resource:
        return state.read([tensor.op.name])[0]
    from estimatorkit.runtime.executor import PlanRunner
    from estimatorkit.runtime.plan import make_plan

    return PlanRunner(make_plan(state.graph, [tensor], [], []), state).run([])[0]


def bound(plan: Plan, state: Any) -> Plan:
    """The plan bound to the values that its tensors have in a session's state."""
    return plan.bind({tensor: value_of(tensor, state) for tensor in plan.tensors()})
