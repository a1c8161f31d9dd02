"""Functions called in a graph: the operation `Call`, which `Defun` makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.function_graph import trace
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.control.function_ops import make_function_op


def called(function: Callable[..., Any], *tensors: Tensor) -> Sequence[Tensor]:
    """The outputs of an operation that calls a function."""
    traced = trace(function, tensors)
    return make_function_op("Call", tensors, [traced], [range(len(tensors))], {}).outputs
