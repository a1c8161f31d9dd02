"""Functions of elements, mapped over blocks of them: what datasets do with `map` and `filter`.

`trace` runs a Python function on placeholders, in a graph of its own, and gives a `MappedFunction`.
(Functions that are parts of a graph are in `function_graph`.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.executor import PlanRunner, State
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.lower import segment_function, state_names
from estimatorkit.core.ops.array import placeholder
from estimatorkit.core.plan import make_plan
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.x64 import x64


class MappedFunction:
    """A function as a graph.

    Attributes:
        graph: its own graph.
        inputs: placeholders.
        outputs: tensors, the leaves of what the function returned.
        structure: what it returned, tensors in place of leaves.
    """

    def __init__(self, graph: Graph, inputs: Sequence[Tensor], structure: Any) -> None:
        self.graph = graph
        self.inputs = tuple(inputs)
        self.structure = structure
        self.outputs: tuple[Tensor, ...] = tuple(nest.flatten(structure, lists_are_leaves=True))
        self.plan = make_plan(graph, self.outputs, [], self.inputs)
        self._state = State(graph)
        self._runner = PlanRunner(self.plan, self._state)
        self._mapped = self._make_mapped()

    def _make_mapped(self) -> Callable[[list[Any]], list[Any]] | None:
        """The function over a leading axis as one XLA call.

        None where host work or randomness forbids it.
        """
        if len(self.plan.segments) != 1:
            return None
        (segment,) = self.plan.segments
        if segment.place == "host" or state_names(segment) or segment.static_inputs:
            return None
        function = segment_function(segment, {})
        order = [self.inputs.index(tensor) for tensor in segment.inputs if tensor in self.inputs]
        if len(order) != len(segment.inputs):  # a large constant: run element by element
            return None

        def of_one(*inputs: Any) -> list[Any]:
            return function(inputs, ())[0]

        mapped = jax.jit(jax.vmap(of_one))
        results = self.plan.results
        places = [segment.outputs.index(t) if t in segment.outputs else None for t in results]
        if None in places:  # an output that is an input or a constant
            return None

        def call(columns: list[Any]) -> list[Any]:
            with x64():
                results = mapped(*(columns[position] for position in order))
                return [np.asarray(results[place]) for place in places]

        return call if order else None

    def map(self, columns: Sequence[NDArray[Any]], count: int) -> list[NDArray[Any]]:
        """Applies the function to `count` elements at once.

        Args:
            columns: for each input the values of all elements, `(count, ...)`.
            count: the number of elements. Counts are rounded up to powers of two (by repeating the
                last element), so that XLA compiles a function for at most a few of them.

        Returns:
            For each output `(count, ...)`.
        """
        if self._mapped is None:
            rows = [
                self._runner.run([column[row, ...] for column in columns]) for row in range(count)
            ]
            return [
                np.stack([np.asarray(row[position], tensor.dtype.numpy_dtype) for row in rows])
                for position, tensor in enumerate(self.outputs)
            ]
        size = 1 << (count - 1).bit_length()
        padded = [
            column
            if size == count
            else np.concatenate([column, np.repeat(column[-1:], size - count, 0)])
            for column in columns
        ]
        return [result[:count] for result in self._mapped(padded)]


def trace(function: Callable[[Any], Any], structure: Any) -> MappedFunction:
    """Runs `function` once on placeholders.

    Args:
        function: takes one nested structure of tensors and returns another (of tensors, or values
            that become constants).
        structure: the nested `Spec`s (or anything with `dtype` and `shape`) of its argument.

    Raises:
        ValueError: the function uses a tensor of another graph.
    """
    outer = get_default_graph()
    graph = Graph()
    graph.seed = outer.seed
    with graph.as_default():
        specs = nest.flatten(structure, lists_are_leaves=True)
        inputs = [placeholder(spec.dtype, spec.shape, f"arg{i}") for i, spec in enumerate(specs)]
        returned = function(nest.pack_sequence_as(structure, inputs, lists_are_leaves=True))
        result = nest.map_structure(convert_to_tensor, returned, lists_are_leaves=True)
    return MappedFunction(graph, inputs, result)
