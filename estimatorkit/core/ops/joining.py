"""Ops that make one tensor of several, or several of one: concat, stack, unstack and split.

How many parts there are, and along which axis, is known when the graph is built: they are
attributes. Lengths that are not known then are left open in the static shapes.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.ops.array import axis_of, identity
from estimatorkit.core.registry import Case, Spec, constant_value, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor

_SAMPLE = np.arange(6, dtype=np.float32).reshape(2, 3) - np.float32(2.5)


def _infer_concat(inputs: Any, attrs: Any) -> list[Spec]:
    merged = UNKNOWN
    axis = attrs["axis"]
    total: int | None = 0
    for tensor in inputs:
        if tensor.shape.rank is None:
            total = None
            continue
        at = axis % max(tensor.shape.rank, 1)
        dims = list(tensor.shape.as_list())
        total = None if total is None or dims[at] is None else total + dims[at]
        dims[at] = None
        try:
            merged = merged.merge_with(dims)
        except ValueError as error:
            raise ValueError(
                explain(
                    f"concat: dimensions other than axis {axis} must be equal",
                    received=", ".join(f"{t.name} {t.shape}" for t in inputs),
                    made_at=tensor.op.source,
                )
            ) from error
    if merged.rank is None:
        return [Spec(inputs[0].dtype, UNKNOWN)]
    dims = merged.as_list()
    dims[axis % len(dims)] = total
    return [Spec(inputs[0].dtype, TensorShape(dims))]


register(
    "ConcatV2",
    lambda *values, axis: jnp.concatenate(values, axis),
    infer=_infer_concat,
    numpy_kernel=lambda *values, axis: np.concatenate(values, axis),
    cases=lambda: [
        Case((_SAMPLE, _SAMPLE * 2), {"axis": 0}),
        Case((_SAMPLE, _SAMPLE[:, :1]), {"axis": -1}),
    ],
)


def concat(values: Any, axis: Any, name: str | None = None) -> Tensor:
    """The tensors one after the other along an axis.

    Args:
        values: tensors of one dtype, equal in all dimensions but `axis`.
        axis: the axis.
        name: the operation's name.

    Raises:
        TypeError: the axis comes first, as it did before TensorFlow 1.0.
        ValueError: the shapes do not fit.
    """
    if isinstance(axis, (list, tuple)):
        raise TypeError(
            explain(
                "concat: the axis must be an int, but is a list",
                expected="concat(values, axis)",
                received=f"concat({values!r:.60}, [...])",
                hint="the tensors come first; before TensorFlow 1.0 the axis did",
            )
        )
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        with get_default_graph().name_scope(name or "concat"):
            return identity(values[0], "concat")
    inputs = {f"values_{index}": value for index, value in enumerate(values)}
    return make(
        "ConcatV2", inputs, {"axis": axis_of(axis, "concat")}, name or "concat", same_dtype=True
    )


def _infer_stack(inputs: Any, attrs: Any) -> list[Spec]:
    merged = UNKNOWN
    for tensor in inputs:
        try:
            merged = merged.merge_with(tensor.shape)
        except ValueError as error:
            raise ValueError(
                explain(
                    "stack: the shapes must be equal",
                    received=", ".join(f"{t.name} {t.shape}" for t in inputs),
                    made_at=tensor.op.source,
                )
            ) from error
    if merged.dims is None:
        return [Spec(inputs[0].dtype, UNKNOWN)]
    at = attrs["axis"] % (len(merged.dims) + 1)
    return [Spec(inputs[0].dtype, TensorShape((*merged.dims[:at], len(inputs), *merged.dims[at:])))]


register(
    "Pack",
    lambda *values, axis: jnp.stack(values, axis),
    infer=_infer_stack,
    numpy_kernel=lambda *values, axis: np.stack(values, axis),
    cases=lambda: [Case((_SAMPLE, _SAMPLE + 1), {"axis": 1})],
)


def stack(values: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """The tensors, all of one shape, along a new axis."""
    inputs = {f"values_{index}": value for index, value in enumerate(values)}
    return make("Pack", inputs, {"axis": axis}, name or "stack", same_dtype=True)


def _infer_unstack(inputs: Any, attrs: Any) -> list[Spec]:
    dims = inputs[0].shape.dims
    if dims is None:
        return [Spec(inputs[0].dtype, UNKNOWN)] * attrs["num"]
    at = attrs["axis"] % len(dims)
    return [Spec(inputs[0].dtype, TensorShape((*dims[:at], *dims[at + 1 :])))] * attrs["num"]


def _unstack(x: Any, num: int, axis: int, module: Any = jnp) -> Any:
    return tuple(module.squeeze(part, axis) for part in module.split(x, num, axis))


register(
    "Unpack",
    _unstack,
    infer=_infer_unstack,
    numpy_kernel=lambda x, num, axis: _unstack(x, num, axis, np),
    cases=lambda: [Case((_SAMPLE,), {"num": 3, "axis": 1})],
)


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"
) -> list[Tensor]:
    """The slices of `value` along an axis, as a list.

    Raises:
        ValueError: `num` is not given and the axis's length is unknown.
    """
    tensor = convert_to_tensor(value)
    if num is None:
        num = None if tensor.shape.rank is None else tensor.shape[axis]
    if num is None:
        raise ValueError(
            explain(
                f"Cannot infer argument `num` from shape {tensor.shape}", made_at=tensor.op.source
            )
        )
    return list(registry.apply("Unpack", [tensor], {"num": num, "axis": axis}, name).outputs)


def _infer_split(inputs: Any, attrs: Any) -> list[Spec]:
    tensor, sizes, axis = inputs[0], attrs["sizes"], attrs["axis"]
    specs = []
    for length in sizes:
        dims = None if tensor.shape.dims is None else list(tensor.shape.dims)
        if dims is not None and dims[axis] is not None and length is None:
            length = dims[axis] // len(sizes)
        if dims is not None:
            dims[axis] = length
        specs.append(Spec(tensor.dtype, TensorShape(dims)))
    return specs


def _split(x: Any, sizes: Any, axis: int, module: Any = jnp) -> Any:
    if sizes[0] is None:
        return tuple(module.split(x, len(sizes), axis))
    return tuple(module.split(x, np.cumsum(sizes)[:-1], axis))


register(
    "Split",
    _split,
    infer=_infer_split,
    numpy_kernel=lambda x, sizes, axis: _split(x, sizes, axis, np),
    cases=lambda: [
        Case((_SAMPLE,), {"sizes": (1, 2), "axis": 1}),
        Case((_SAMPLE,), {"sizes": (None, None), "axis": 0}),
    ],
)


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """`value` cut along an axis.

    Args:
        value: a tensor.
        num_or_size_splits: the number of equal parts, or a list of their lengths (one may be -1).
        axis: the axis.
        num: accepted for TensorFlow's signature.
        name: the operation's name.

    Raises:
        ValueError: the parts do not add up to the axis's length.
    """
    tensor = convert_to_tensor(value)
    at = axis_of(axis, "split")
    length = None if tensor.shape.rank is None else tensor.shape[at]
    if isinstance(num_or_size_splits, Tensor):
        num_or_size_splits = constant_value(num_or_size_splits)
    if np.ndim(num_or_size_splits) == 0:
        count = int(num_or_size_splits)
        fits = length is None or length % count == 0
        sizes: tuple[int | None, ...] = (None if length is None else length // count,) * count
    else:
        given = [int(each) for each in num_or_size_splits]
        if -1 in given and length is not None:
            given[given.index(-1)] = length - (sum(given) + 1)
        fits = length is None or sum(given) == length
        sizes = tuple(given)
    if not fits:
        raise ValueError(
            explain(
                f"split: axis {at} of length {length} cannot be cut into {num_or_size_splits}",
                received=tensor,
                made_at=tensor.op.source,
            )
        )
    return list(registry.apply("Split", [tensor], {"sizes": sizes, "axis": at}, name).outputs)
