"""Reversing, rolling, repeating, broadcasting, sequences and grids; bit and shape casts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import (
    as_index_tensor,
    convert_to_tensor,
    make,
    whole_numbers,
)
from estimatorkit.core.dtypes import DType, as_dtype, complex64, float32, float64, int32, members
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.faults import Fault
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    Spec,
    check_allowed,
    constant_value,
    constant_value_as_shape,
    fixed_value,
    output,
    register,
    same_as_input,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape, differ
from estimatorkit.core.sizes import dims_of, traced_size
from estimatorkit.core.tensor import Operation, Tensor, holds_tensors
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.array.gather_nd import scatter_nd
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.axes import (
    as_tuple,
    axis_of,
    in_range,
    input_attr,
    ints_of,
    register_with_axis,
    unknown_numbers,
)
from estimatorkit.ops.math.broadcasting import broadcast, broadcast_shapes
from estimatorkit.ops.math.checked import checked

_SAMPLE = np.arange(12, dtype=np.float32).reshape(3, 4) - np.float32(4.5)


def _axes_of(axis: Any, rank: int | None, what: str) -> tuple[int, ...]:
    axes = np.atleast_1d(ints_of(axis, what)).tolist()
    return tuple(axes if rank is None else (in_range(each, rank, what) for each in axes))


# -- reversing and rolling

register_with_axis(
    "ReverseV2",
    lambda x, axes: jnp.flip(jnp.asarray(x), _once(axes, x.ndim)),
    moves=True,
    infer=same_as_input(),
    attr="axes",
    read=as_tuple("axes"),
    unknown=same_as_input(),
    numpy_kernel=lambda x, axes: np.flip(x, _once(axes, x.ndim)),
    cases=lambda: [Case((_SAMPLE,), {"axes": (1,)}), Case((_SAMPLE,), {"axes": (0, 1)})],
    accepts=("ficbs", "x"),
)


def _once(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"'axis'[{axis}] is out of valid range [{-rank}, {rank - 1}]")
    found = [axis % rank for axis in axes]
    for axis in found:
        if found.count(axis) > 1:
            raise ValueError(f"axis {axis} specified more than once.")
    return tuple(found)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Reverses a tensor along axes.

    Args:
        tensor: a tensor.
        axis: ints; or bools, one for each dimension, as before TensorFlow 1.0. Each new value
            of a computed tensor causes a compilation.
    """
    x = convert_to_tensor(tensor, name="tensor")
    value = fixed_value(axis) if isinstance(axis, Tensor) else axis
    if value is not None and not holds_tensors([value]) and np.asarray(value).dtype == bool:
        axis = np.flatnonzero(np.asarray(value)).tolist()
    unknown = unknown_numbers(axis, "reverse")
    if unknown is not None:
        return make("ReverseV2", {"tensor": x, "axis": unknown}, {"axes": input_attr(1)}, name)
    found = ints_of(axis, "reverse")
    if found.ndim > 1:
        raise value_error(f"reverse: Shape must be rank 1 but is rank {found.ndim}: the axes")
    axes = tuple(np.atleast_1d(found).tolist())
    axes = axes if x.shape.rank is None else _once(axes, x.shape.rank)
    return make("ReverseV2", {"tensor": x}, {"axes": axes}, name)


def _reverse_sequence(x: Any, lengths: Any, seq: int, batch: int, module: Any = jnp) -> Any:
    x, lengths = module.asarray(x), module.asarray(lengths)
    if differ(lengths.shape, (x.shape[batch],)):  # a single length would be broadcast
        raise ValueError(
            f"Length of seq_lens != input.dims({batch}), ({lengths.shape[0]} vs. {x.shape[batch]})"
        )
    axes = sorted((seq, batch))
    rows = module.moveaxis(x, axes, (0, 1))
    index = [module.arange(rows.shape[0])[:, None], module.arange(rows.shape[1])[None]]
    at = axes.index(seq)
    own = module.expand_dims(lengths.astype(index[at].dtype), at)
    index[at] = module.where(index[at] < own, own - 1 - index[at], index[at])
    return module.moveaxis(rows[tuple(index)], (0, 1), axes)  # whole rows are gathered


def _lengths_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    x, lengths = inputs
    axis = attrs["seq"]

    def too_long(index: tuple[int, ...], values: tuple[int, ...]) -> str:
        return f"seq_lens({index[0]}) > input.dims({axis}): {values[0]} > {values[1]}"

    def negative(index: tuple[int, ...], values: tuple[int, ...]) -> str:
        return f"seq_lens({index[0]}) < 0: {values[0]}"

    size = x.shape[axis]
    longest = np.int32(size) if isinstance(size, int) else traced_size(size)
    return [
        Fault(1, lengths < 0, (lengths,), negative),
        Fault(1, lengths > longest, (lengths, longest), too_long),
    ]


def _infer_reverse_sequence(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x, lengths = inputs
    lengths.shape.assert_has_rank(1)
    if x.shape.rank is not None and lengths.shape.rank is not None:
        examples, given = x.shape.as_list()[attrs["batch"]], lengths.shape.as_list()[0]
        if None not in (examples, given) and examples != given:
            raise value_error(
                f"Dimensions must be equal, but are {examples} and {given}",
                expected="a length for each example",
                received=f"{x.name} {x.shape}, {lengths.name} {lengths.shape}",
            )
        dims = x.shape.as_list()
        dims[attrs["batch"]] = given if examples is None else examples
        return [Spec(x.dtype, TensorShape(dims))]
    return [Spec(x.dtype, x.shape)]


def _reverse_sequence_gradient(op: Operation, incoming: Tensor) -> list[Tensor | None]:
    return [output("ReverseSequence", [incoming, op.inputs[1]], dict(op.attrs)), None]


register(
    "ReverseSequence",
    _reverse_sequence,
    fault=_lengths_fault,
    infer=_infer_reverse_sequence,
    numpy_kernel=lambda x, lengths, seq, batch: _reverse_sequence(x, lengths, seq, batch, np),
    gradient=_reverse_sequence_gradient,
    cases=lambda: [
        Case((_SAMPLE, np.array([2, 4, 0], np.int32)), {"seq": 1, "batch": 0}),
        Case((_SAMPLE, np.array([2, 1, 0, 3], np.int32)), {"seq": 0, "batch": 1}),
        Case((_SAMPLE.reshape(2, 3, 2), np.array([0, 2], np.int32)), {"seq": 2, "batch": 0}),
    ],
    accepts=("", "x"),
)


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Reverses the first `seq_lengths[i]` elements of each example i.

    Args:
        input: a tensor.
        seq_lengths: int `(batch,)`.
        seq_axis: the axis to reverse; `seq_dim` is an older name.
        batch_axis: the axis of examples, 0 by default; `batch_dim` is an older name.
    """
    x = convert_to_tensor(input, name="input")
    seq = seq_dim if seq_axis is None else seq_axis
    batch = (batch_dim or 0) if batch_axis is None else batch_axis
    if seq is None:
        raise ValueError("reverse_sequence: seq_axis must be given.")
    rank = x.shape.rank
    for number, what in ((seq, "seq_dim"), (batch, "batch_dim")):
        if rank is not None and number >= rank:
            raise value_error(f"{what} must be < input rank: {number} vs. {rank}", received=x)
    (chosen,) = _axes_of(seq, rank, "reverse_sequence")
    (examples,) = _axes_of(batch, rank, "reverse_sequence")
    inputs = {"input": x, "seq_lengths": seq_lengths}
    return make("ReverseSequence", inputs, {"seq": chosen, "batch": examples}, name)


def _roll(x: Any, shift: Any, axes: tuple[int, ...], module: Any = jnp) -> Any:
    if np.size(shift) != len(axes):
        raise ValueError(
            f"shift and axis must have the same size, got {np.size(shift)} and {len(axes)}"
        )
    return module.roll(module.asarray(x), tuple(module.atleast_1d(shift)), axes)


register_with_axis(
    "Roll",
    _roll,
    infer=same_as_input(),
    attr="axes",
    read=as_tuple("axes"),
    unknown=same_as_input(),
    numpy_kernel=lambda x, shift, axes: _roll(x, shift, axes, np),
    cases=lambda: [Case((_SAMPLE, np.array([1, -2], np.int32)), {"axes": (0, 1)})],
    accepts=("", "x"),
)


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Rolls elements along axes, wrapping around at the ends.

    Args:
        input: a tensor.
        shift: ints, the distance to roll along each axis.
        axis: ints; an axis that is named twice is rolled by the sum of its shifts.

    Raises:
        ValueError: the input is a scalar, or the numbers of shifts and axes differ.
        InvalidArgumentError: an axis is out of range.
    """
    x, moved = convert_to_tensor(input, name="input"), convert_to_tensor(shift, name="shift")
    rank, unknown = x.shape.rank, unknown_numbers(axis, "roll")
    if rank == 0:
        raise ValueError("roll: Shape must be at least rank 1 but is rank 0.")
    if unknown is not None:
        inputs = {"input": x, "shift": moved, "axis": unknown}
        return make("Roll", inputs, {"axes": input_attr(2)}, name)
    axes = tuple(np.atleast_1d(ints_of(axis, "roll")).tolist())
    known = moved.shape.num_elements()
    if known is not None and known != len(axes):
        raise value_error(
            "Dimension 0 in both shapes must be equal: roll takes one shift for each axis",
            expected=f"{len(axes)} shifts, for axes {axes}",
            received=moved,
            made_at=moved.op.source,
        )
    for each in axes:
        if rank is not None and not -rank <= each < rank:
            words = f"axis {each} is out of range [{-rank}, {rank})"
            raise InvalidArgumentError(None, x.op, f"roll: {words} of {x.name} {x.shape}")
    axes = axes if rank is None else tuple(each % rank for each in axes)
    return make("Roll", {"input": x, "shift": moved}, {"axes": axes}, name)


# -- repeating


def _infer_broadcast_to(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x, shape = inputs[0], constant_value_as_shape(inputs[1])
    if x.shape.rank is not None and shape.rank is not None:
        if x.shape.rank > shape.rank:
            raise value_error(
                f"broadcast_to: Shape must be at most rank {shape.rank} but is rank {x.shape.rank}",
                received=x,
                made_at=x.op.source,
            )

        def refusal(one: int, other: int) -> Exception:
            words = f"broadcast_to: Dimensions must be equal, but are {one} and {other}"
            return value_error(words, received=f"{x.shape} to {shape}", made_at=x.op.source)

        if not broadcast_shapes(x.shape, shape, refusal).is_compatible_with(shape):
            raise value_error(
                f"broadcast_to: Incompatible shapes: {x.shape} to {shape}",
                received=x,
                made_at=x.op.source,
            )
    return [Spec(x.dtype, shape)]


register(
    "BroadcastTo",
    lambda x, shape: jnp.broadcast_to(x, dims_of(shape)),
    infer=_infer_broadcast_to,
    numpy_kernel=lambda x, shape: np.broadcast_to(x, tuple(shape)),
    static=(1,),
    cases=lambda: [Case((_SAMPLE[:1], np.array([2, 3, 4], np.int32)))],
    accepts=("", "x"),
)


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Broadcasts a tensor to a shape."""
    inputs = {"input": input, "shape": as_index_tensor(shape, "shape")}
    return make("BroadcastTo", inputs, name=name)


def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Repeats each element (or slice along an axis) consecutively.

    Args:
        input: a tensor.
        repeats: the number of repetitions: an int, or one for each slice (which must then be known
            when the graph is compiled).
        axis: the axis; the flattened tensor by default.
    """
    with get_default_graph().name_scope(name or "Repeat") as scope:
        x = convert_to_tensor(input, name="input")
        if axis is None:
            x, axis = array.reshape(x, [-1]), 0
        (chosen,) = _axes_of(axis, x.shape.rank, "repeat")
        return make(
            "Repeat", {"input": x, "repeats": whole_numbers(repeats)}, {"axis": chosen}, scope
        )


def _infer_repeat(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x, repeats = inputs
    if x.shape.dims is None:
        return [Spec(x.dtype, UNKNOWN)]
    dims = list(x.shape.dims)
    known = constant_value(repeats)
    length = dims[attrs["axis"]]
    if known is None or length is None:
        total = None if known is None or np.size(known) == 1 else int(np.sum(known))
    else:
        total = int(np.sum(np.broadcast_to(known, [length])))
    dims[attrs["axis"]] = total
    return [Spec(x.dtype, TensorShape(dims))]


def _repeat(x: Any, repeats: Any, axis: int, module: Any = jnp) -> Any:
    counts = np.broadcast_to(np.asarray(repeats, np.int64), [x.shape[axis]])
    return module.take(x, np.repeat(np.arange(x.shape[axis]), counts), axis=axis)


register(
    "Repeat",
    _repeat,
    infer=_infer_repeat,
    numpy_kernel=lambda x, repeats, axis: _repeat(x, repeats, axis, np),
    static=(1,),
    accepts=("", "i"),
    cases=lambda: [
        Case((_SAMPLE, np.int32(2)), {"axis": 1}),
        Case((_SAMPLE, np.array([1, 0, 2], np.int32)), {"axis": 0}),
    ],
)


# -- the rest


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """`num` evenly spaced numbers from start to stop, both included.

    Args:
        start, stop: tensors of the same dtype whose shapes broadcast; integers give floats.
        num: the number of values; must be known when the graph is compiled.
        axis: the position in the result of the dimension of length `num`.
    """
    with get_default_graph().name_scope(name or "linspace"):
        first = convert_to_tensor(start, name="start")
        last = convert_to_tensor(stop, first.dtype, "stop")
        if first.dtype.is_integer:
            wide = float32 if first.dtype.size <= 2 else float64
            first, last = elementwise.cast(first, wide), elementwise.cast(last, wide)
        inputs = {"start": first, "stop": last, "num": as_index_tensor(num, "num")}
        return make("LinSpace", inputs, {"axis": axis_of(axis, "linspace")}, "Slice")


def _infer_linspace(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    (ends,) = broadcast()(inputs[:2], {})
    num = constant_value(inputs[2])
    if num is not None and num < 0:
        raise value_error("linspace: Requires num >= 0", received=int(num))
    if ends.shape.dims is None:
        return [ends]
    at = in_range(attrs["axis"], len(ends.shape) + 1, "linspace")
    dims = list(ends.shape.dims)
    dims.insert(at, None if num is None else int(num))
    return [Spec(ends.dtype, TensorShape(dims))]


def _linspace(start: Any, stop: Any, num: Any, axis: int, module: Any = jnp) -> Any:
    """The given ends, even if infinite, and the values in between."""
    first, last = (module.expand_dims(each, axis) for each in module.broadcast_arrays(start, stop))
    steps = max(int(num) - 1, 1)
    at = axis % first.ndim
    dims = [1] * first.ndim
    dims[at] = steps - 1
    with np.errstate(invalid="ignore"):  # of infinities
        delta = (last - first) / np.asarray(steps, first.dtype)
        between = first + delta * np.arange(1, steps).astype(first.dtype).reshape(dims)
    whole = module.concatenate([first, between, last], axis)
    return whole[(slice(None),) * at + (slice(int(num)),)]


register(
    "LinSpace",
    _linspace,
    numpy_kernel=lambda start, stop, num, axis: _linspace(start, stop, num, axis, np),
    infer=_infer_linspace,
    static=(2,),
    accepts=("fc", "fc", "x"),
    cases=lambda: [
        Case((np.float32(1.0), np.float32(2.0), np.int32(5)), {"axis": 0}),
        Case((_SAMPLE, np.float32(2.0), np.int32(3)), {"axis": 1}),
    ],
)


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Coordinate grids, like NumPy's `meshgrid`.

    Args:
        *args: vectors.
        indexing: 'xy' (the first two axes exchanged) or 'ij'.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError("indexing parameter must be either 'xy' or 'ij'")
    with get_default_graph().name_scope(name or "meshgrid"):
        vectors = [array.reshape(convert_to_tensor(each), [-1]) for each in args]
        count = len(vectors)
        order = list(range(count))
        if indexing == "xy" and count > 1:
            order[:2] = [1, 0]
        sizes = [array.shape(vectors[at])[0] for at in order]
        shape = joining.stack(sizes) if sizes else convert_to_tensor([], int32)
        results = []
        for at, vector in enumerate(vectors):
            place = order.index(at)
            dims = [-1 if each == place else 1 for each in range(count)]
            results.append(broadcast_to(array.reshape(vector, dims), shape))
        return results


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The inverse permutation y with y[x[i]] = i, of an int32 or int64 vector x."""
    with get_default_graph().name_scope(name or "InvertPermutation"):
        order = convert_to_tensor(x, name="x")
        check_allowed(order, "x", "invert_permutation", "x")
        if order.shape.rank not in (1, None):
            raise value_error(
                f"invert_permutation: Shape must be rank 1 but is rank {order.shape.rank}",
                received=order,
                made_at=order.op.source,
            )
        order = checked(order, "permutation")
        numbers = elementwise.cast(filling.range_(array.shape(order)[0]), order.dtype)
        return scatter_nd(array.expand_dims(order, 1), numbers, array.shape(order))


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Asserts the shape of x.

    Raises:
        ValueError: it is statically known to have another one. Dimensions that are known only
            when the graph runs are checked when it is compiled.
    """
    with get_default_graph().name_scope(name or "EnsureShape") as scope:
        tensor = convert_to_tensor(x, name="input")
        wanted = TensorShape(shape)
        wanted.assert_is_compatible_with(tensor.shape)
        return make("EnsureShape", {"input": tensor}, {"shape": wanted}, scope)


def _ensure_shape(x: Any, shape: TensorShape) -> Any:
    if shape.dims is not None and differ(x.shape, shape.dims):
        raise ValueError(
            f"Shape of tensor [{','.join(map(str, x.shape))}] is not compatible with expected "
            f"shape {shape}."
        )
    return x


register(
    "EnsureShape",
    _ensure_shape,
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[0].shape.merge_with(attrs["shape"]))],
    numpy_kernel=_ensure_shape,
    gradient="same",
    cases=lambda: [Case((_SAMPLE,), {"shape": TensorShape([None, 4])})],
)


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """Reinterprets bytes as another dtype; adds or drops a last dimension if sizes differ.

    Raises:
        ValueError: the last dimension does not make up one element of the dtype.
    """
    return make("Bitcast", {"input": input}, {"dtype": as_dtype(type)}, name)


def _infer_bitcast(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x, dtype = inputs[0], attrs["dtype"]
    wider = dtype.size // max(x.dtype.size, 1)
    if wider > 1 and x.shape.rank == 0:
        raise value_error("Shape must be at least rank 1 but is rank 0", received=x)
    if wider > 1 and x.shape.dims is not None and x.shape.dims[-1] not in (wider, None):
        raise value_error(
            f"Cannot bitcast from {x.dtype.name} to {dtype.name}: the last dimension must be "
            f"{wider}",
            received=x,
            made_at=x.op.source,
        )
    if x.shape.dims is None or x.dtype.size == dtype.size:
        return [Spec(dtype, x.shape)]
    if x.dtype.size > dtype.size:
        return [Spec(dtype, TensorShape([*x.shape.dims, x.dtype.size // dtype.size]))]
    return [Spec(dtype, TensorShape(x.shape.dims[:-1]))]


def _bitcast(x: Any, dtype: DType) -> Any:
    x, given = jnp.asarray(x), as_dtype(x.dtype)
    if not (given.is_complex or dtype.is_complex):
        return jax.lax.bitcast_convert_type(x, dtype.numpy_dtype)
    shape = x.shape  # XLA does not reinterpret complex numbers, but their parts
    parts = jnp.stack([x.real, x.imag], -1) if given.is_complex else x
    octets = jax.lax.bitcast_convert_type(parts, np.uint8)
    if dtype.size > given.size:
        shape = shape[:-1]
    elif dtype.size < given.size:
        shape = (*shape, given.size // dtype.size)
    if not dtype.is_complex:
        rows = octets.reshape(*shape, dtype.size) if dtype.size > 1 else octets.reshape(shape)
        return jax.lax.bitcast_convert_type(rows, dtype.numpy_dtype)
    part = dtype.real_dtype
    pair = jax.lax.bitcast_convert_type(octets.reshape(*shape, 2, part.size), part.numpy_dtype)
    return jax.lax.complex(pair[..., 0], pair[..., 1])


register(
    "Bitcast",
    _bitcast,
    infer=_infer_bitcast,
    gradient="undefined",
    accepts="fic",
    cases=lambda: [
        Case((_SAMPLE.view(np.int32),), {"dtype": float32}, _SAMPLE),
        Case((np.array([1, 2, 3, 4], np.uint8),), {"dtype": int32}, np.int32(67305985)),
        Case((np.array([2**30]),), {"dtype": complex64}, np.array([2.0], np.complex64)),
        Case((np.array([2j], np.complex64),), {"dtype": int32}, np.array([[0, 2**30]], np.int32)),
    ],
)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Casts like `cast`, but clips values to the dtype's range."""
    wanted = as_dtype(dtype)
    with get_default_graph().name_scope(name or "saturate_cast") as scope:
        x = convert_to_tensor(value, name="value")
        low, high = _limits(x, wanted)
        return elementwise.cast(elementwise.clip_by_value(x, low, high), wanted, name=scope)


def _limits(x: Tensor, wanted: Any) -> tuple[Any, Any]:
    def of(dtype: Any) -> tuple[Any, Any]:
        numpy = dtype.numpy_dtype
        limits: Any = np.iinfo if dtype.is_integer else jnp.finfo
        info = limits(numpy)
        return info.min, info.max

    (low, high), (least, most) = of(wanted), of(x.dtype)
    low, high = max(low, least), min(high, most)
    kind = x.dtype.numpy_dtype.type
    if x.dtype.is_floating and wanted.is_integer:  # the largest float that does not exceed it
        top = kind(high)
        while int(top) > int(high):
            top = np.nextafter(top, kind(0))
        return kind(low), top
    return kind(low), kind(high)


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """`stack` along the first axis."""
    return joining.stack(values, name=name)


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """Returns the tensor unchanged."""
    return builtin_ops.identity(input, name or "GuaranteeConst")


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = bool, name: str | None = None
) -> Tensor:
    """Mask rows that are true at their first `lengths[i]` positions.

    Args:
        lengths: int, of any shape.
        maxlen: the length of the rows; the largest of the lengths by default (which must then be
            known when the graph is compiled, or the mask is computed on the host).
        dtype: bool by default.

    Returns:
        `(lengths' shape, maxlen)`.
    """
    with get_default_graph().name_scope(name or "SequenceMask"):
        counts = convert_to_tensor(lengths, name="lengths")
        if counts.dtype not in members("x"):  # as in TensorFlow, which compares integers
            counts = elementwise.cast(counts, int32)
        if maxlen is None:
            longest: Any = elementwise.maximum(
                reduce.reduce_max(counts), elementwise.cast(convert_to_tensor(0), counts.dtype)
            )
        else:
            longest = convert_to_tensor(maxlen, name="maxlen")
            if longest.shape.rank not in (0, None):
                raise ValueError(f"maxlen must be scalar for sequence_mask, got {longest}.")
        places = filling.range_(0, elementwise.cast(longest, counts.dtype))
        mask = elementwise.less(places, array.expand_dims(counts, -1))
        wanted = as_dtype(dtype)
        return mask if wanted is mask.dtype else elementwise.cast(mask, wanted)
