"""Ops that the core itself creates: placeholders, identity, no-op and control grouping."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core import nest, registry
from estimatorkit.core.composite import is_composite, with_components
from estimatorkit.core.conversion import make
from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Role, register, same_as_input
from estimatorkit.core.shapes import TensorShape, as_shape
from estimatorkit.core.tensor import Operation, Tensor

_SAMPLE = np.arange(6, dtype=np.float32).reshape(2, 3) - np.float32(2.5)


# -- where values come in


def _no_feed(dtype: DType, shape: TensorShape) -> Any:
    raise AssertionError("placeholders are fed, never executed")


register(
    "Placeholder",
    _no_feed,
    infer=registry.from_attrs,
    gradient=None,
    where="host",
    pure=False,
    role=Role.PLACEHOLDER,
)


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor that must be fed a value in every run that depends on it.

    Args:
        dtype: the dtype of the values to feed.
        shape: their shape; None if unknown, with None for each dimension of unknown size.
        name: the operation's name.
    """
    attrs = {"dtype": as_dtype(dtype), "shape": as_shape(shape)}
    return make("Placeholder", {}, attrs, name)


# -- passing on

IDENTITY = register(
    "Identity",
    lambda x: x,
    moves=True,
    infer=same_as_input(),
    gradient="same",
    numpy_kernel=lambda x: x,
    cases=lambda: [Case((_SAMPLE,))],
)
register(
    "NoOp",
    lambda: (),
    numpy_kernel=lambda: (),
    infer=lambda inputs, attrs: [],
    gradient=None,
    pure=False,
    role=Role.NO_OP,
)


def identity(input: Any, name: str | None = None) -> Tensor:
    """Returns a tensor (or sparse tensor, or `IndexedSlices`) with the value of `input`."""
    if is_composite(input):
        whole: Tensor = with_components(input, [identity(x, name) for x in input._components()])
        return whole
    return make("Identity", {"input": input}, name=name)


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing but wait for its control inputs."""
    return registry.apply("NoOp", name=name)


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that completes once all `inputs` (operations, tensors, variables) have."""
    with get_default_graph().control_dependencies(nest.flatten(list(inputs))):
        return no_op(name or "group_deps")
