"""Inference of dtypes and shapes: from an op's kernel, for rows without `infer`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import value_error
from estimatorkit.core.registry.folding import constant_value
from estimatorkit.core.registry.op_def import Attrs, OpDef, Spec
from estimatorkit.core.registry.table import lookup
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.x64 import x64


def infer(row: OpDef, inputs: Sequence[Tensor], attrs: Attrs) -> Sequence[Spec]:
    """The outputs' specs, by the row's `infer` or from its kernel."""
    return row.infer(inputs, attrs) if row.infer else infer_from_kernel(row, inputs, attrs)


def infer_from_kernel(row: OpDef, inputs: Sequence[Tensor], attrs: Attrs) -> Sequence[Spec]:
    """The outputs' specs by abstract evaluation of the kernel.

    The kernel is evaluated with two different sizes for unknown dimensions: output dimensions that
    agree are static. (`jax.export.symbolic_shape` needs a single evaluation, but rejects
    undecidable comparisons, such as of an unknown dimension with 3, which TensorFlow infers to be
    3.)

    Raises:
        ValueError: the kernel rejects the shapes, all of which are known.
    """
    specs = tuple(Spec(tensor.dtype, tensor.shape) for tensor in inputs)
    static = row.semantics.static_positions(attrs)
    values = tuple(
        _frozen(constant_value(tensor)) if position in static else None
        for position, tensor in enumerate(inputs)
    )
    if any(values[position] is None for position in static):
        return [Spec(spec.dtype, UNKNOWN) for spec in specs[:1]]
    try:
        return _infer(row.type, specs, values, _frozen(dict(attrs)))
    except _Refused as refused:
        cause = refused.cause
        raise value_error(
            f"{row.type} does not accept these inputs: {str(cause).splitlines()[0]}",
            received=", ".join(f"{t.name} {t.shape} {t.dtype.name}" for t in inputs),
            made_at=inputs[0].op.source if inputs else None,
        ) from cause


class _Refused(Exception):
    def __init__(self, cause: Exception) -> None:
        self.cause = cause


# Two sizes with many divisors, so that reshapes and strides by common factors work; never equal to
# a real one.
SIZES = (720720, 1441440)


@functools.lru_cache(maxsize=4096)
def _infer(
    op_type: str, specs: tuple[Spec, ...], values: tuple[Any, ...], frozen_attrs: Any
) -> tuple[Spec, ...]:
    row = lookup(op_type)
    attrs = _thawed(frozen_attrs)
    if any(spec.shape.rank is None for spec in specs):
        return _infer_unknown_rank(row, specs, attrs)

    def kernel(*traced: Any) -> Any:
        rest = iter(traced)
        inputs = [next(rest) if value is None else _thawed(value) for value in values]
        return row.kernel(*inputs, **attrs)

    traced = [spec for spec, value in zip(specs, values, strict=True) if value is None]
    unknown = not all(spec.shape.is_fully_defined() for spec in specs)
    try:
        first = _evaluate(kernel, traced, SIZES[0])
        second = _evaluate(kernel, traced, SIZES[1]) if unknown else first
    except (TypeError, ValueError) as error:
        if unknown:
            return _infer_unknown_rank(row, specs, attrs)
        raise _Refused(error) from error
    return tuple(
        Spec(
            as_dtype(one.dtype),
            TensorShape([a if a == b else None for a, b in zip(one.shape, two.shape, strict=True)]),
        )
        for one, two in zip(first, second, strict=True)
    )


def _evaluate(function: Callable[..., Any], specs: Sequence[Spec], size: int) -> list[Any]:
    """The abstract results for inputs whose unknown dimensions have a size."""
    import jax

    arguments: list[Any] = [
        jax.ShapeDtypeStruct(  # type: ignore[no-untyped-call]
            [size if dim is None else dim for dim in spec.shape], spec.dtype.numpy_dtype
        )
        for spec in specs
    ]
    with x64():
        result = jax.eval_shape(function, *arguments)
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _infer_unknown_rank(row: OpDef, specs: tuple[Spec, ...], attrs: Attrs) -> tuple[Spec, ...]:
    """Infers dtypes only, by trying ranks until the kernel accepts them."""
    for rank in (2, 1, 0, 3, 4, 5):
        guesses = [
            Spec(
                dtype,
                TensorShape([1] * rank if shape.rank is None else [dim or 1 for dim in shape]),
            )
            for dtype, shape in specs
        ]
        try:
            results = _evaluate(functools.partial(row.kernel, **attrs), guesses, 1)
        except (TypeError, ValueError):
            continue
        return tuple(Spec(as_dtype(each.dtype), UNKNOWN) for each in results)
    return (Spec(specs[0].dtype, UNKNOWN),)


class _Frozen(NamedTuple):
    """A hashable array."""

    data: bytes
    dtype: str
    shape: tuple[int, ...]


def as_key(attrs: Attrs) -> Any:
    """Attributes as a hashable value, if their values are hashable."""
    return _frozen(dict(attrs))


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return ("objects", tuple(value.flat), value.shape)
    if isinstance(value, np.ndarray):
        return _Frozen(value.tobytes(), value.dtype.str, value.shape)
    if isinstance(value, dict):
        return ("dict", tuple((key, _frozen(each)) for key, each in sorted(value.items())))
    if isinstance(value, list):
        return ("list", tuple(map(_frozen, value)))
    return value


def _thawed(value: Any) -> Any:
    if isinstance(value, _Frozen):
        return np.frombuffer(value.data, np.dtype(value.dtype)).reshape(value.shape)
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "dict":
        return {key: _thawed(each) for key, each in value[1]}
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "list":
        return list(map(_thawed, value[1]))
    return value
