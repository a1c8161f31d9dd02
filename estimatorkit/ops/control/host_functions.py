"""Functions run on the host: each body has its own plan and device segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import resource
from estimatorkit.core.function_graph import GraphFunction
from estimatorkit.runtime.executor import PlanRunner
from estimatorkit.runtime.plan import make_plan
from estimatorkit.runtime.state import ProcessState

ELEMENT = -1
"""In `positions`: a function's input that is no input of the operation (an element of a scan)."""


class HostFunction:
    """A function's body as a runnable plan; it shares the session state's tables, queues and
    iterators.
    """

    def __init__(self, function: GraphFunction, state: ProcessState) -> None:
        self._function = function
        self._state = state.for_function(function.graph)
        tensors = [tensor for tensor in function.inputs if tensor.dtype is not resource]
        outputs = list(dict.fromkeys(function.outputs))
        self._order = [outputs.index(tensor) for tensor in function.outputs]
        self._updated = [at in function.updated for at in range(len(function.inputs))]
        plan = make_plan(function.graph, outputs, [], tensors, state.placer)
        self._runner = PlanRunner(plan, self._state)
        # Variables live in the body's own state: one run at a time. Other functions may block and
        # wait for each other.
        has_variables = any(tensor.dtype is resource for tensor in function.inputs)
        self._alone: AbstractContextManager[Any] = (
            self._state.lock if has_variables else nullcontext()
        )

    def __call__(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Runs the body.

        `inputs` holds variables' values in place of their handles. Returns the new values of the
        assigned variables, and the outputs.
        """
        function = self._function
        feeds = []
        with self._alone:
            for tensor, value, updated in zip(function.inputs, inputs, self._updated, strict=True):
                if tensor.dtype is resource:
                    # A copy, as running the body may donate the buffer, unless nobody changes it.
                    is_kept = type(value) is np.ndarray and not updated
                    self._state.values[tensor.op.name] = value if is_kept else np.array(value)
                else:
                    feeds.append(np.asarray(value, tensor.dtype.numpy_dtype))
            results = self._runner.run(feeds)
            names = [function.inputs[at].op.name for at in function.updated]
            changed = [self._state.values[name] for name in names]
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
