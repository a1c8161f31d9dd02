"""`jax_function(fn, *tensors)`: a JAX function as an operation.

Embeds Flax, Equinox, optax or Keras-on-JAX code in a graph; JAX differentiates it and XLA
compiles it with the operations around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from estimatorkit.core import nest, registry
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, string
from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import Case, Spec, inference
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.x64 import x64


class _Function:
    """Adapts a function to flat arrays and keeps the structure that it returned."""

    def __init__(self, function: Callable[..., Any], arguments: Any) -> None:
        self._function = function
        self._arguments = arguments
        self.structure: Any = None

    def __call__(self, *inputs: Any) -> list[Any]:
        returned = self._function(*nest.pack_sequence_as(self._arguments, inputs))
        leaves, self.structure = jax.tree.flatten(returned)
        return leaves


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    function = attrs["function"]

    def evaluate(size: int) -> list[Any]:
        shapes = [
            jax.ShapeDtypeStruct(  # type: ignore[no-untyped-call]
                [size if dim is None else dim for dim in tensor.shape.as_list()],
                tensor.dtype.numpy_dtype,
            )
            for tensor in inputs
        ]
        with x64():
            found: list[Any] = jax.eval_shape(function, *shapes)
        return found

    first, second = evaluate(inference.SIZES[0]), evaluate(inference.SIZES[1])
    return [
        Spec(
            as_dtype(one.dtype),
            TensorShape([a if a == b else None for a, b in zip(one.shape, two.shape, strict=True)]),
        )
        for one, two in zip(first, second, strict=True)
    ]


registry.register(
    "JaxFunction",
    lambda *inputs, function: function(*inputs),
    infer=_infer,
    pure=False,
    effects="python",
    cases=lambda: [
        Case(
            (np.array([1.0, 2.0], np.float32),),
            {"function": _Function(lambda x: x * x, (0,))},
            np.array([1.0, 4.0], np.float32),
        )
    ],
)


def jax_function(fn: Callable[..., Any], *args: Any, name: str | None = None) -> Any:
    """Calls a JAX function on tensors.

    Args:
        fn: a pure function from arrays (in the structure of `args`) to a pytree of arrays. It is
            called during shape inference and XLA compilation, not in each run.
        *args: tensors, variables, values, or nested structures of these, of known rank.
        name: the operation's name; that of the function by default.

    Returns:
        Tensors in the pytree structure that `fn` returns.

    Raises:
        ValueError: the rank of an argument is not known, or it holds strings.
    """
    tensors = [convert_to_tensor(each) for each in nest.flatten(args)]
    for tensor in tensors:
        if tensor.shape.rank is None:
            raise value_error(
                f"jax_function: the rank of {tensor.name} is not known",
                made_at=tensor.op.source,
                hint="give the placeholder a shape, or call set_shape or ensure_shape",
            )
        if tensor.dtype == string:
            raise value_error(
                f"jax_function: {tensor.name} holds strings, which JAX does not have",
                made_at=tensor.op.source,
                hint="use py_func, which calls Python on the host",
            )
    function = _Function(fn, args)
    called = name or getattr(fn, "__name__", "JaxFunction").strip("<>_") or "JaxFunction"
    op = registry.apply("JaxFunction", tensors, {"function": function}, called)
    return jax.tree.unflatten(function.structure, op.outputs)
