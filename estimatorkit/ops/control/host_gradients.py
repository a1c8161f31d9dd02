"""Gradients of operations that hold functions and run on the host: loops with Python code, growing
arrays, or branches of different shapes.

Each function's gradient graph runs step by step on the values of the forward run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import resource
from estimatorkit.core.function_graph import GraphFunction
from estimatorkit.core.gradients import gradients
from estimatorkit.ops.control.host_functions import ELEMENT, host_function


def gradient_function(function: GraphFunction) -> tuple[GraphFunction, list[int]]:
    """The gradient of a function, traced once into its own graph.

    It maps `function`'s arguments, the gradients of its floating outputs, and its captures to
    gradients of inputs; the second result is these inputs' positions.
    """
    found = function.gradient
    if found is None:
        graph = function.graph
        with graph.as_default():
            floating = [each for each in function.outputs if each.dtype.is_differentiable]
            incoming = [graph.add_input(each) for each in floating]
            positions = [
                at
                for at, tensor in enumerate(function.inputs)
                if tensor.dtype.is_differentiable or tensor.dtype is resource
            ]
            results = gradients(floating, [function.inputs[at] for at in positions], incoming)
            kept = [at for at, result in zip(positions, results, strict=True) if result is not None]
            tensors = [convert_to_tensor(result) for result in results if result is not None]
        arguments = [*function.arguments, *incoming]
        found = GraphFunction(graph, arguments, tensors, None), kept
        function.gradient = found
    return found


class _Backward:
    """Runs the gradients of an operation's functions and accumulates its inputs' gradients."""

    def __init__(self, attrs: Mapping[str, Any], inputs: Sequence[Any], context: Any) -> None:
        self._functions: Sequence[GraphFunction] = attrs["functions"]
        self._positions: Sequence[Sequence[int]] = attrs["positions"]
        self._run = host_function(context)
        self.sums: dict[int, Any] = {}
        self.inputs = list(inputs)

    def values(self, number: int, inputs: Sequence[Any], elements: Sequence[Any]) -> list[Any]:
        rest = iter(elements)
        return [next(rest) if at == ELEMENT else inputs[at] for at in self._positions[number]]

    def forward(
        self, number: int, inputs: Sequence[Any], elements: Sequence[Any] = ()
    ) -> list[Any]:
        """A function's outputs."""
        given = self.values(number, inputs, elements)
        return self._run(self._functions[number], given, None)[1]

    def __call__(
        self,
        number: int,
        inputs: Sequence[Any],
        incoming: Sequence[Any],
        elements: Sequence[Any] = (),
    ) -> list[Any]:
        """The gradients of the function's inputs; None if unconnected."""
        function = self._functions[number]
        backward, kept = gradient_function(function)
        given = dict(zip(function.inputs, self.values(number, inputs, elements), strict=True))
        flowing = [
            gradient
            for gradient, output in zip(incoming, function.outputs, strict=True)
            if output.dtype.is_differentiable
        ]
        arguments = backward.arguments[len(function.arguments) :]
        given.update(zip(arguments, flowing, strict=True))
        _, results = self._run(backward, [given[tensor] for tensor in backward.inputs], None)
        found: list[Any] = [None] * len(function.inputs)
        for at, result in zip(kept, results, strict=True):
            found[at] = result
        return found

    def add(self, number: int, found: Sequence[Any], skip: int) -> None:
        """Adds gradients to the operation's inputs, except the function's first `skip`."""
        for at, gradient in list(zip(self._positions[number], found, strict=True))[skip:]:
            if gradient is not None and at != ELEMENT:
                self.sums[at] = self.sums[at] + gradient if at in self.sums else gradient

    def of_inputs(self, wanted: Sequence[int]) -> list[Any]:
        """The gradients of the operation's inputs."""
        return [
            self.sums.get(at, np.zeros(np.shape(self.inputs[at]), self.inputs[at].dtype))
            for at in wanted
        ]


def _or_zeros(gradient: Any, value: Any) -> Any:
    return np.zeros_like(value) if gradient is None else gradient


def branches(
    attrs: Mapping[str, Any],
    inputs: Sequence[Any],
    incoming: Sequence[Any],
    wanted: Sequence[int],
    context: Any,
) -> list[Any]:
    """The gradients of an `If` or a `Call`."""
    backward = _Backward(attrs, inputs, context)
    number = 0 if len(attrs["functions"]) == 1 or bool(inputs[0]) else 1
    if any(gradient is None for gradient in incoming):
        values = backward.forward(number, inputs)
        incoming = list(map(_or_zeros, incoming, values))
    backward.add(number, backward(number, inputs, incoming), 0)
    return backward.of_inputs(wanted)


def steps(
    attrs: Mapping[str, Any],
    inputs: Sequence[Any],
    incoming: Sequence[Any],
    wanted: Sequence[int],
    context: Any,
) -> list[Any]:
    """The gradients of a `While`: reruns it forward keeping every value, then goes backward."""
    backward = _Backward(attrs, inputs, context)
    leading = attrs["leading"]
    every = list(inputs)
    history = []
    while bool(backward.forward(0, every)[0]):
        history.append(list(every[:leading]))
        every[:leading] = backward.forward(1, every)
    flowing = list(map(_or_zeros, incoming, every[:leading]))
    for values in reversed(history):
        found = backward(1, [*values, *inputs[leading:]], flowing)
        flowing = list(map(_or_zeros, found[:leading], values))
        backward.add(1, found, leading)
    for at, gradient in enumerate(flowing):
        backward.sums[at] = gradient
    return backward.of_inputs(wanted)


def elements(
    attrs: Mapping[str, Any],
    inputs: Sequence[Any],
    incoming: Sequence[Any],
    wanted: Sequence[int],
    context: Any,
) -> list[Any]:
    """The gradients of a `Scan`."""
    backward = _Backward(attrs, inputs, context)
    leading, carried = attrs["leading"], attrs["carried"]
    columns = inputs[carried:leading]
    count = len(columns[0]) if columns else int(attrs["length"] or 0)
    order = list(range(count))[:: -1 if attrs["reverse"] else 1]
    every = list(inputs)
    history, results = {}, {}
    for at in order:
        history[at] = list(every[:carried])
        results[at] = backward.forward(0, every, [column[at] for column in columns])
        every[:carried] = results[at][:carried]
    flowing = list(map(_or_zeros, incoming[:carried], every[:carried]))
    of_columns = [np.zeros(np.shape(column), column.dtype) for column in columns]
    for at in reversed(order):
        stacked = [
            np.zeros_like(value) if gradient is None else gradient[at]
            for gradient, value in zip(incoming[carried:], results[at][carried:], strict=True)
        ]
        row = [column[at] for column in columns]
        values = [*history[at], *inputs[carried:]]
        found = backward(0, values, [*flowing, *stacked], row)
        flowing = list(map(_or_zeros, found[:carried], history[at]))
        for column, gradient in zip(of_columns, found[carried:leading], strict=True):
            if gradient is not None:
                column[at] = gradient
        backward.add(0, found, leading)
    for at, gradient in enumerate([*flowing, *of_columns]):
        backward.sums[at] = gradient
    return backward.of_inputs(wanted)
