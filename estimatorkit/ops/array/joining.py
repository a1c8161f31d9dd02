"""Joining and splitting: concat, stack, unstack and split.

The number of parts and the axis are attributes, known at graph construction; unknown lengths are
left open in the static shapes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.builtin_ops import identity
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor, make
from estimatorkit.core.dtypes import int32
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.registry import Case, Spec, fixed_value, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.sizes import is_comparable
from estimatorkit.core.tensor import Tensor, holds_tensors
from estimatorkit.core.vjp import vjp
from estimatorkit.ops.array.array import shape
from estimatorkit.ops.array.indexing import slice_, where
from estimatorkit.ops.array.own_rows import length_of, own_slices
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.axes import axis_of, in_range, input_of, register_with_axis, with_axis
from estimatorkit.ops.math.checked import checked

_SAMPLE = np.arange(6, dtype=np.float32).reshape(2, 3) - np.float32(2.5)


def _infer_concat(inputs: Any, attrs: Any) -> list[Spec]:
    merged = UNKNOWN
    axis = attrs["axis"]
    total: int | None = 0
    for tensor in inputs:
        if tensor.shape.rank is None:
            total = None
            continue
        if tensor.shape.rank == 0:
            raise value_error(
                f"Can't concatenate scalars (use tf.stack instead): {tensor.name}",
                received=tensor,
                made_at=tensor.op.source,
            )
        at = in_range(axis, tensor.shape.rank, "concat")
        dims = list(tensor.shape.as_list())
        total = None if total is None or dims[at] is None else total + dims[at]
        dims[at] = None
        try:
            merged = merged.merge_with(dims)
        except ValueError as error:
            raise value_error(
                f"concat: dimensions other than axis {axis} must be equal",
                received=", ".join(f"{t.name} {t.shape}" for t in inputs),
                made_at=tensor.op.source,
            ) from error
    if merged.rank is None:
        return [Spec(inputs[0].dtype, UNKNOWN)]
    dims = merged.as_list()
    dims[axis % len(dims)] = total
    return [Spec(inputs[0].dtype, TensorShape(dims))]


def _check_dimensions(values: Any, axis: int) -> None:
    first = list(values[0].shape)
    at = axis % len(first) if first else 0
    for index, each in enumerate(values):
        shape = list(each.shape)
        if len(shape) != len(first) or shape[:at] + shape[at + 1 :] != first[:at] + first[at + 1 :]:
            raise ValueError(
                f"Dimensions of inputs should match: shape[0] = {first} vs. shape[{index}] = "
                f"{shape}"
            )


def _concatenated(numbers: Any, *values: Any, axis: int) -> Any:
    _check_dimensions(values, axis)
    return numbers.concatenate(values, axis)


def _row_gradient_of_concat(op: Any, slices: IndexedSlices) -> Sequence[Any]:
    """Rows of a concatenation are rows of one of its parts, or lie across all of them."""
    rank = op.outputs[0].shape.rank
    if rank is None or input_of(op.attrs["axis"]) is not None:
        wanted = [at for at, each in enumerate(op.inputs) if each.dtype.is_differentiable]
        dense = dict(zip(wanted, vjp(op, [slices], tuple(wanted)), strict=True))
        return [dense.get(at) for at in range(len(op.inputs))]
    across = in_range(op.attrs["axis"], rank, "concat")
    if across:
        widths = stack([shape(each)[across] for each in op.inputs])
        parts = split(slices.all_values, widths, across, num=len(op.inputs))
        return [
            IndexedSlices(values, slices.all_indices, shape(each))
            for values, each in zip(parts, op.inputs, strict=True)
        ]
    start: Any = 0
    found = []
    for part in op.inputs:
        found.append(own_slices(slices, start, part))
        start += length_of(part, slices.all_indices)
    return found


register_with_axis(
    "ConcatV2",
    partial(_concatenated, jnp),
    moves=True,
    row_gradient=_row_gradient_of_concat,
    infer=_infer_concat,
    numpy_kernel=partial(_concatenated, np),
    cases=lambda: [
        Case((_SAMPLE, _SAMPLE * 2), {"axis": 0}),
        Case((_SAMPLE, _SAMPLE[:, :1]), {"axis": -1}),
    ],
)


def concat(values: Any, axis: Any, name: str | None = None) -> Tensor:
    """Concatenates tensors along an axis.

    Args:
        values: tensors of the same dtype, whose shapes are equal except along `axis`.
        axis: the axis.

    Raises:
        TypeError: the axis is given first, as before TensorFlow 1.0.
        ValueError: the shapes are incompatible.
    """
    if isinstance(axis, (list, tuple)):
        raise type_error(
            "concat: the axis must be an int, but is a list",
            expected="concat(values, axis)",
            received=f"concat({values!r:.60}, [...])",
            hint="the tensors come first; before TensorFlow 1.0 the axis did",
        )
    if not isinstance(values, (list, tuple)):
        values, axis = [values], convert_to_tensor(axis, int32, name="concat_dim")
    if not values:
        raise value_error("List argument 'values' to 'ConcatV2' Op must not be empty")
    if isinstance(axis, Tensor) and axis.shape.rank not in (0, None):
        raise value_error(
            f"concat: Shape must be rank 0 but is rank {axis.shape.rank}", received=axis
        )
    if len(values) == 1:
        with get_default_graph().name_scope(name or "concat"):
            return identity(values[0], "concat")
    inputs = {f"values_{index}": value for index, value in enumerate(values)}
    inputs, attrs = with_axis(inputs, axis, "concat")
    return make("ConcatV2", inputs, attrs, name or "concat", same_dtype=True)


def _infer_stack(inputs: Any, attrs: Any) -> list[Spec]:
    merged = UNKNOWN
    for tensor in inputs:
        try:
            merged = merged.merge_with(tensor.shape)
        except ValueError as error:
            raise value_error(
                "stack: the shapes must be equal",
                received=", ".join(f"{t.name} {t.shape}" for t in inputs),
                made_at=tensor.op.source,
            ) from error
    if merged.dims is None:
        return [Spec(inputs[0].dtype, UNKNOWN)]
    at = _new_axis(attrs["axis"], len(merged.dims) + 1)
    return [Spec(inputs[0].dtype, TensorShape((*merged.dims[:at], len(inputs), *merged.dims[at:])))]


def _new_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise value_error(f"Argument `axis` = {axis} not in range [{-rank}, {rank})")
    return axis % rank


def _stacked(module: Any, *values: Any, axis: int) -> Any:
    for index, value in enumerate(values):
        if value.shape != values[0].shape:
            raise ValueError(
                "Shapes of all inputs must match: values[0].shape = "
                f"{list(values[0].shape)} != values[{index}].shape = {list(value.shape)}"
            )
    return module.stack(values, axis)


register(
    "Pack",
    partial(_stacked, jnp),
    moves=True,
    infer=_infer_stack,
    numpy_kernel=partial(_stacked, np),
    cases=lambda: [Case((_SAMPLE, _SAMPLE + 1), {"axis": 1})],
)


def stack(values: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """Stacks tensors of the same shape along a new axis.

    Raises:
        ValueError: the shapes differ, or the axis is out of range.
        TypeError: the dtypes differ.
    """
    if isinstance(values, (list, tuple)) and not holds_tensors(values) and axis == 0:
        return convert_to_tensor(list(values), name=name or "stack")
    inputs = {f"values_{index}": value for index, value in enumerate(values)}
    if not inputs:
        raise value_error("List argument 'values' to 'Pack' Op must not be empty")
    attrs = {"axis": axis_of(axis, "stack")}
    return make("Pack", inputs, attrs, name or "stack", same_dtype=True)


def _infer_unstack(inputs: Any, attrs: Any) -> list[Spec]:
    dims = inputs[0].shape.dims
    if dims is None:
        return [Spec(inputs[0].dtype, UNKNOWN)] * attrs["num"]
    at = _new_axis(attrs["axis"], len(dims))
    if dims[at] not in (None, attrs["num"]):
        raise value_error(
            f"Dimension must be {attrs['num']} but is {dims[at]}: unstack",
            received=inputs[0],
            made_at=inputs[0].op.source,
        )
    return [Spec(inputs[0].dtype, TensorShape((*dims[:at], *dims[at + 1 :])))] * attrs["num"]


def _unstack(x: Any, num: int, axis: int, module: Any = jnp) -> Any:
    return tuple(module.squeeze(part, axis) for part in module.split(x, num, axis))


register(
    "Unpack",
    _unstack,
    moves=True,
    infer=_infer_unstack,
    numpy_kernel=lambda x, num, axis: _unstack(x, num, axis, np),
    cases=lambda: [Case((_SAMPLE,), {"num": 3, "axis": 1})],
)


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"
) -> list[Tensor]:
    """The slices of `value` along an axis, as a list.

    Raises:
        ValueError: `num` is not given and the length of the axis is unknown, `num` differs from
            that length, or the axis is out of range.
    """
    tensor = convert_to_tensor(value)
    axis = axis_of(axis, "unstack")
    if num is None:
        known = tensor.shape.dims
        num = None if known is None else known[_new_axis(axis, len(known))]
    if num is None:
        raise value_error(
            f"Cannot infer argument `num` from shape {tensor.shape}", made_at=tensor.op.source
        )
    return list(registry.apply("Unpack", [tensor], {"num": num, "axis": axis}, name).outputs)


def _split_by_computed(
    tensor: Tensor, sizes: Tensor, axis: int, num: int | None, name: str
) -> list[Tensor]:
    count = sizes.shape[0] if num is None and sizes.shape.rank == 1 else num
    if count is None:
        raise value_error(
            f"Cannot infer argument `num` from shape {sizes.shape}: give split's `num`"
        )
    rank = tensor.shape.rank
    if rank is None:
        raise value_error("split by computed lengths: the rank must be known")
    with get_default_graph().name_scope(name):
        length_of_axis = tensor.shape[axis]
        if length_of_axis is not None:
            sizes = checked(sizes, "sizes", length_of_axis)
        whole = elementwise.cast(shape(tensor)[axis], sizes.dtype)
        rest = whole - (reduce.reduce_sum(sizes) + 1)
        sizes = where(elementwise.equal(sizes, -1), rest, sizes)
        parts, start = [], convert_to_tensor(0, sizes.dtype)
        for length in unstack(sizes, count):
            begin = [start if position == axis else 0 for position in range(rank)]
            size = [length if position == axis else -1 for position in range(rank)]
            part = slice_(tensor, stack(begin), stack(size))
            dims = tensor.shape.as_list()
            dims[axis] = None
            part.set_shape(dims)
            parts.append(part)
            start = start + length
        return parts


def _infer_split(inputs: Any, attrs: Any) -> list[Spec]:
    tensor, sizes, axis = inputs[0], attrs["sizes"], attrs["axis"]
    specs = []
    for length in sizes:
        dims = None if tensor.shape.dims is None else list(tensor.shape.dims)
        if dims is not None and dims[axis] is not None and length is None:
            length = dims[axis] // len(sizes)
        if dims is not None:
            dims[axis] = None if length == -1 else length
        specs.append(Spec(tensor.dtype, TensorShape(dims)))
    return specs


def _split(x: Any, sizes: Any, axis: int, module: Any = jnp) -> Any:
    length = x.shape[axis]
    is_known = is_comparable(length)  # not in an export of any length
    if sizes[0] is None:
        if is_known and length % len(sizes):
            raise ValueError(
                "Number of ways to split should evenly divide the split dimension, but got "
                f"split_dim {axis} (size = {length}) and num_split {len(sizes)}"
            )
        return tuple(module.split(x, len(sizes), axis))
    total = sum(sizes) + sizes.count(-1)
    if is_known and (total > length if -1 in sizes else total != length):
        raise ValueError(
            "Determined shape must either match input shape along split_dim exactly if fully "
            "specified, or be less than the size of the input along split_dim if not fully "
            f"specified.  Got: {total}"
        )
    ends = itertools.accumulate(length - total if size == -1 else size for size in sizes)
    return tuple(module.split(x, list(ends)[:-1], axis))


register_with_axis(
    "Split",
    _split,
    moves=True,
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
    """Splits `value` along an axis.

    Args:
        value: a tensor.
        num_or_size_splits: the number of equal parts, or a list or a vector of their lengths (one
            may be -1 if they are known when the graph is built).
        axis: the axis.
        num: the number of parts, if the lengths are computed and their number is unknown.

    Raises:
        ValueError: the parts do not add up to the axis's length, or their number is unknown.
    """
    tensor = convert_to_tensor(value)
    inputs, attrs = with_axis({"value": tensor}, axis, "split")
    at, rank = attrs["axis"], tensor.shape.rank
    known_axis = input_of(at) is None
    if rank is not None and known_axis:
        at = attrs["axis"] = in_range(at, rank, "split")
    length = tensor.shape[at] if rank is not None and known_axis else None
    wanted = as_index_tensor(num_or_size_splits, "size_splits")
    found = fixed_value(wanted)
    if wanted.shape.rank == 0 and found is not None:
        count = int(found)
        if count < 1 or (length is not None and length % count):
            raise value_error(
                f"Dimension size must be evenly divisible by {count} but is {length}: axis {at}"
                " of split",
                received=tensor,
                made_at=tensor.op.source,
            )
        sizes: tuple[int | None, ...] = (None if length is None else length // count,) * count
    elif wanted.shape.rank == 0:
        raise value_error(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to split"
        )
    elif found is None:
        at = axis_of(axis, "split by computed lengths")
        return _split_by_computed(tensor, wanted, at, num, name)
    else:
        given = found.reshape(-1).tolist()
        if given.count(-1) > 1:
            raise value_error("split can only have one -1 in the lengths", received=given)
        if -1 in given and length is not None:
            given[given.index(-1)] = length - (sum(given) + 1)
        if -1 not in given and length is not None and sum(given) != length:
            raise value_error(
                f"split: the lengths {given} must sum to the length {length} of axis {at}",
                received=tensor,
                made_at=tensor.op.source,
            )
        if min(given, default=0) < -1:
            raise value_error("split: a length is negative", received=given)
        if num not in (None, len(given)):
            raise value_error(
                "split: Length of size_splits should be equal to num_outputs",
                expected=f"num={len(given)}",
                received=num,
            )
        sizes = tuple(given)
    attrs["sizes"] = sizes
    return list(registry.apply("Split", list(inputs.values()), attrs, name).outputs)
