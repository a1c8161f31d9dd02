"""Segments as functions that JAX traces with symbolic dimensions.

Kernels take the values that determine shapes as NumPy integer arrays. If such a value depends on a
symbolic dimension, it is an object array here: NumPy computes with symbols as with numbers, and
they are passed on to operations that take shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.registry import folding
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.math.elementwise import CAST
from estimatorkit.runtime.lower import interpret
from estimatorkit.runtime.plan import Segment


def polymorphic_function(segment: Segment) -> Callable[[Sequence[Any]], list[Any]]:
    """A stateless segment as a function of its inputs and the variables it reads."""
    instead = _on_symbols(segment)

    def function(taken: Sequence[Any]) -> list[Any]:
        count = len(segment.inputs)
        values: dict[Tensor, Any] = dict(zip(segment.inputs, taken[:count], strict=True))
        state = dict(zip(segment.reads, taken[count:], strict=True))
        interpret(
            segment.ops,
            values,
            state,
            host=False,
            rewriting=segment.rewriting,
            instead=instead,
        )
        return [_traced(values[each], each.dtype.numpy_dtype) for each in segment.outputs]

    return function


def _on_symbols(segment: Segment) -> dict[Operation, Callable[..., Any]]:
    """The implementations of operations that receive shape values."""
    reached: set[Tensor] = set()
    instead: dict[Operation, Callable[..., Any]] = {}
    for op in segment.ops:
        row = registry.lookup(op.type)
        given = [tensor for tensor in op.inputs if segment.rewriting.resolve(tensor) in reached]
        measures = op.type in _MEASURES
        if not (given or measures) or row.semantics.random or len(op.outputs) != 1:
            continue
        instead[op] = partial(_run, op, row)
        if measures or row.foldable:
            reached.update(op.outputs)
    return instead


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


def _run(op: Operation, row: registry.OpDef, *inputs: Any) -> Any:
    """Runs an operation, on symbols if there are any."""
    attrs = op.kernel_attrs
    dtype = op.outputs[0].dtype
    if op.type in _MEASURES:
        measured = np.asarray(_MEASURES[op.type](inputs[0].shape), object)
        concrete = all(isinstance(each, int) for each in measured.flat)
        return measured.astype(dtype.numpy_dtype) if concrete else measured
    known = all(isinstance(each, (np.ndarray, np.generic)) for each in inputs)
    if not any(map(_is_symbolic, inputs)):
        if known and row.foldable:
            return folding.in_numpy(row, inputs, attrs, op.outputs)[0]
        return row.kernel(*inputs, **attrs)
    if op.type in _TAKE_SHAPES:
        return _TAKE_SHAPES[op.type](*inputs, **attrs).astype(dtype.numpy_dtype)
    if CAST.made(op) and dtype.is_integer:
        return inputs[0]
    if known and dtype.is_integer and row.numpy_kernel is not None:
        return np.asarray(row.numpy_kernel(*inputs, **attrs), object)
    numbers = [
        _traced(value, tensor.dtype.numpy_dtype)
        for value, tensor in zip(inputs, op.inputs, strict=True)
    ]
    return row.kernel(*numbers, **attrs)


def _traced(value: Any, dtype: Any) -> Any:
    """A value for JAX: symbols become numbers known at run time."""
    if not _is_symbolic(value):
        return jnp.asarray(value, dtype)
    numbers = [jnp.asarray(each, dtype) for each in value.flat]
    return jnp.stack(numbers).reshape(value.shape)


def _dims(shape: Any) -> tuple[Any, ...]:
    return tuple(map(_dim, np.atleast_1d(shape).tolist()))


def _dim(size: Any) -> Any:
    size = size.item() if isinstance(size, np.ndarray) else size
    return size if jax.export.is_symbolic_dim(size) else int(size)


def _product(shape: Sequence[Any]) -> Any:
    total: Any = 1
    for dim in shape:
        total = total * dim
    return total


_MEASURES: Mapping[str, Callable[[Any], Any]] = {"Shape": list, "Size": _product}
"""The operation's value as a function of an input's shape."""

_TAKE_SHAPES: Mapping[str, Callable[..., Any]] = {
    "Reshape": lambda x, shape: jnp.reshape(x, _dims(shape)),
    "Fill": lambda dims, value: jnp.broadcast_to(value, _dims(dims)),
    "Tile": lambda x, multiples: jnp.tile(x, _dims(multiples)),
    "Range": lambda start, limit, delta: jnp.arange(*map(_dim, (start, limit, delta))),
    "BroadcastTo": lambda x, shape: jnp.broadcast_to(x, _dims(shape)),
}
"""Operations whose inputs determine shapes, as JAX functions, which accept symbols."""

__all__ = ["polymorphic_function"]
