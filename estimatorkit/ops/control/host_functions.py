"""Functions run on the host: each body has its own plan and device segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import resource
from estimatorkit.core.function_graph import FunctionGraph, GraphFunction
from estimatorkit.core.tensor import Tensor
from estimatorkit.runtime.executor import PlanRunner
from estimatorkit.runtime.plan import make_plan
from estimatorkit.runtime.resource_store import finished
from estimatorkit.runtime.state import ProcessState

ELEMENT = -1
"""In `positions`: a function's input that is no input of the operation (an element of a scan)."""


class HostFunction:
    """A function's body as a runnable plan; it shares the session state's tables, queues and
    iterators.
    """

    def __init__(self, function: GraphFunction, state: ProcessState) -> None:
        self._state = state.for_function(function.graph)
        inputs = list(enumerate(function.inputs))
        fed = [(at, tensor) for at, tensor in inputs if tensor.dtype is not resource]
        outputs = list(dict.fromkeys(function.outputs))
        self._order = [outputs.index(tensor) for tensor in function.outputs]
        self._feeds = [(at, tensor.dtype.numpy_dtype) for at, tensor in fed]
        self._variables = [
            (at, tensor.op.name, at in function.updated)
            for at, tensor in inputs
            if tensor.dtype is resource
        ]
        self._changed = [function.inputs[at].op.name for at in function.updated]
        plan = make_plan(function.graph, outputs, [], [each for _, each in fed], state.placer)
        runner = PlanRunner(plan, self._state)
        # Buffers of variables are donated: what shares them must be copied.
        self._run = runner.run if self._variables else runner.compute
        # Variables live in the body's own state: one run at a time. Other functions may block and
        # wait for each other.
        self._alone: AbstractContextManager[Any] = (
            self._state.lock if self._variables else nullcontext()
        )

    def __call__(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Runs the body.

        `inputs` holds variables' values in place of their handles. Returns the new values of the
        assigned variables, and the outputs.
        """
        with self._alone:
            for at, name, updated in self._variables:
                value = inputs[at]
                # A copy, as running the body may donate the buffer, unless nobody changes it.
                is_kept = type(value) is np.ndarray and not updated
                self._state.values[name] = value if is_kept else np.array(value)
            feeds = [
                value
                if type(value := inputs[at]) is np.ndarray and value.dtype == dtype
                else np.asarray(value, dtype)
                for at, dtype in self._feeds
            ]
            results = [
                value if type(value) is np.ndarray else np.asarray(finished(value))
                for value in self._run(feeds)
            ]
            changed = [self._state.values[name] for name in self._changed]
        return changed, [results[at] for at in self._order]


def host_function(
    context: Any,
) -> Callable[[GraphFunction, Sequence[Any], Any], tuple[list[Any], list[Any]]]:
    """Returns the session's function runner `run(function, inputs, key)`, built once per function.

    The body's own counters supply random numbers; `key` is for the device only.
    """

    def run(function: GraphFunction, inputs: Sequence[Any], key: Any) -> Any:
        body = context.functions.get(function)
        if body is None:
            made = context.body_of(function) or HostFunction(function, context)
            body = context.functions.setdefault(function, made)
        return body(inputs)

    return run


def iteration_of(
    functions: Sequence[GraphFunction], positions: Sequence[Sequence[int]], leading: int
) -> tuple[GraphFunction, tuple[int, ...]]:
    """Joins a loop's body with the condition on its results: one plan for both takes a third less
    time than two, if the operations are small.

    Args:
        functions, positions, leading: of the `While`: condition and body.

    Returns:
        The function, whose last output says whether there is another iteration, and the positions
        of its inputs.
    """
    condition, body = functions
    if body.iteration is None:
        graph = FunctionGraph(body.graph.outer)
        known: dict[int, Tensor] = {}
        for function, own in zip((body, condition), reversed(positions), strict=True):
            for at, tensor in zip(own, function.inputs, strict=True):
                if at not in known:
                    known[at] = graph.add_input(tensor)
        arguments = list(known.values())
        following = body.copied_into(graph, [known[at] for at in positions[1]])
        where = tuple(known)
        known.update(enumerate(following[:leading]))
        holds = condition.copied_into(graph, [known[at] for at in positions[0]])
        body.iteration = GraphFunction(graph, arguments, [*following, *holds], None), where
    return body.iteration
