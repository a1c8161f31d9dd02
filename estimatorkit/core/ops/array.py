"""Array ops: placeholders, shapes, reshaping, joining, slicing, gathering and filling.

Arguments that decide a shape (`reshape`'s shape, `fill`'s dims, ...) may be tensors, as in
TensorFlow; XLA needs their values when it compiles, so they are `static` inputs, known from
constants, from other tensors' shapes, or from feeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor, make
from estimatorkit.core.dtypes import DType, as_dtype, float32, int32, int64
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import Tensor, get_default_graph, operators
from estimatorkit.core.registry import (
    Case,
    Spec,
    constant_value,
    constant_value_as_shape,
    register,
    same_as_input,
)
from estimatorkit.core.shapes import SCALAR, UNKNOWN, TensorShape, as_shape

_SAMPLE = np.arange(6, dtype=np.float32).reshape(2, 3) - np.float32(2.5)


# -- where values come in


def _no_feed(dtype: DType, shape: TensorShape) -> Any:
    raise AssertionError("a placeholder is fed, never run")


register(
    "Placeholder", _no_feed, infer=registry.from_attrs, gradient=None, where="host", pure=False
)


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor whose value every run must be fed.

    Args:
        dtype: the dtype of what will be fed.
        shape: its shape; None for any, None in a place for any length there.
        name: the operation's name.
    """
    attrs = {"dtype": as_dtype(dtype), "shape": as_shape(shape)}
    return make("Placeholder", {}, attrs, name)


register(
    "PlaceholderWithDefault",
    lambda x, shape: x,
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, attrs["shape"])],
    numpy_kernel=lambda x, shape: x,
    cases=lambda: [Case((_SAMPLE,), {"shape": UNKNOWN})],
    pure=False,
)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that has the value of `input` unless another is fed."""
    return make("PlaceholderWithDefault", {"input": input}, {"shape": as_shape(shape)}, name)


# -- passing on

register(
    "Identity",
    lambda x: x,
    infer=same_as_input(),
    gradient="same",
    numpy_kernel=lambda x: x,
    cases=lambda: [Case((_SAMPLE,))],
)
register(
    "StopGradient",
    lambda x: x,
    infer=same_as_input(),
    gradient=None,
    numpy_kernel=lambda x: x,
    cases=lambda: [Case((_SAMPLE,))],
)
register("NoOp", lambda: (), infer=lambda inputs, attrs: [], gradient=None, pure=False)


def identity(input: Any, name: str | None = None) -> Tensor:
    """A tensor with the value of `input`."""
    return make("Identity", {"input": input}, name=name)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """A tensor with the value of `input`, through which no gradient flows back."""
    return make("StopGradient", {"input": input}, name=name)


def no_op(name: str | None = None) -> Any:
    """An operation that does nothing (but has control inputs)."""
    return registry.apply("NoOp", name=name)


def group(*inputs: Any, name: str | None = None) -> Any:
    """An operation that is done when all of `inputs` (operations, tensors, variables) are."""
    from estimatorkit.core import nest

    with get_default_graph().control_dependencies(nest.flatten(list(inputs))):
        return no_op(name or "group_deps")


def tuple_(tensors: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """The tensors, each available only when all of them are."""
    with get_default_graph().name_scope(name or "tuple"):
        values = [convert_to_tensor(each) for each in tensors]
        with get_default_graph().control_dependencies([value.op for value in values]):
            return [identity(value, "control_dependency") for value in values]


# -- shapes as values

for _type, _function, _jax_value in (
    ("Shape", lambda x: x.shape, None),
    ("Size", lambda x: int(np.prod(x.shape, dtype=np.int64)), None),
    ("Rank", lambda x: len(x.shape), None),
):

    def _value(x: Any, dtype: DType = int32, function: Any = _function) -> Any:
        return np.asarray(function(x), dtype.numpy_dtype)

    def _spec(inputs: Any, attrs: Any, op_type: str = _type) -> list[Spec]:
        return [
            Spec(
                attrs.get("dtype", int32),
                TensorShape([inputs[0].shape.rank]) if op_type == "Shape" else SCALAR,
            )
        ]

    register(
        _type,
        _value,
        infer=_spec,
        numpy_kernel=_value,
        gradient=None,
        known_from_shape=True,
        cases=lambda: [Case((_SAMPLE,), {"dtype": int32})],
    )


def shape(input: Any, name: str | None = None, out_type: Any = int32) -> Tensor:
    """The shape of `input` as a vector of integers, known when the graph runs."""
    return make("Shape", {"input": input}, {"dtype": as_dtype(out_type)}, name)


def size(input: Any, name: str | None = None, out_type: Any = int32) -> Tensor:
    """The number of elements of `input`."""
    return make("Size", {"input": input}, {"dtype": as_dtype(out_type)}, name)


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions of `input`."""
    return make("Rank", {"input": input}, {"dtype": int32}, name)


# -- reshaping


def _infer_reshape(inputs: Any, attrs: Any) -> list[Spec]:
    tensor, target = inputs
    wanted = constant_value(target)
    known = constant_value_as_shape(target)
    if wanted is None and known.dims is not None:
        return [Spec(tensor.dtype, known)]
    if wanted is None:
        return [Spec(tensor.dtype, UNKNOWN)]
    dims = [int(dim) for dim in np.atleast_1d(wanted)]
    count = tensor.shape.num_elements()
    if dims.count(-1) > 1:
        raise ValueError(explain("reshape: only one dimension may be -1", received=dims))
    rest = int(np.prod([dim for dim in dims if dim != -1], dtype=np.int64))
    if count is not None:
        fits = (rest > 0 and count % rest == 0) if -1 in dims else count == rest
        if not fits:
            raise ValueError(
                explain(
                    f"Cannot reshape a tensor with {count} elements to shape {dims}",
                    received=tensor,
                    made_at=tensor.op.source,
                )
            )
    if -1 in dims and count is not None:
        dims[dims.index(-1)] = count // rest
    return [Spec(tensor.dtype, TensorShape(dims))]


register(
    "Reshape",
    lambda x, shape: jnp.reshape(x, tuple(int(dim) for dim in np.atleast_1d(shape))),
    infer=_infer_reshape,
    numpy_kernel=lambda x, shape: np.reshape(x, tuple(np.atleast_1d(shape))),
    static=(1,),
    cases=lambda: [Case((_SAMPLE, np.array([3, -1], np.int32)))],
)


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The elements of `tensor` in another shape.

    Args:
        tensor: a tensor.
        shape: the shape, ints or a tensor; one dimension may be -1: what is left.
        name: the operation's name.

    Raises:
        ValueError: the number of elements differs.
    """
    with get_default_graph().name_scope(name or "Reshape") as scope:
        target = as_index_tensor(shape, "shape")
        return make("Reshape", {"tensor": convert_to_tensor(tensor), "shape": target}, name=scope)


def _axis_of(axis: Any, what: str) -> int:
    value = constant_value(axis) if isinstance(axis, Tensor) else axis
    if value is None:
        raise ValueError(
            explain(
                f"{what}: the axis must be known when the graph is built",
                expected="an int or a constant",
                received=axis,
            )
        )
    return int(np.asarray(value))


def _infer_expand_dims(inputs: Any, attrs: Any) -> list[Spec]:
    dims = inputs[0].shape.dims
    if dims is None:
        return [Spec(inputs[0].dtype, UNKNOWN)]
    axis = attrs["axis"]
    if not -len(dims) - 1 <= axis <= len(dims):
        raise ValueError(
            explain(
                "expand_dims: axis out of range",
                expected=f"in [{-len(dims) - 1}, {len(dims)}]",
                received=axis,
            )
        )
    at = axis if axis >= 0 else axis + len(dims) + 1
    return [Spec(inputs[0].dtype, TensorShape((*dims[:at], 1, *dims[at:])))]


register(
    "ExpandDims",
    lambda x, axis: jnp.expand_dims(x, axis),
    infer=_infer_expand_dims,
    numpy_kernel=lambda x, axis: np.expand_dims(x, axis),
    cases=lambda: [Case((_SAMPLE,), {"axis": -1}), Case((_SAMPLE,), {"axis": 0})],
)


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """`input` with a dimension of length 1 put in at `axis` (`dim` is its older name)."""
    chosen = _axis_of(dim if axis is None else axis, "expand_dims")
    return make("ExpandDims", {"input": input}, {"axis": chosen}, name)


def _infer_squeeze(inputs: Any, attrs: Any) -> list[Spec]:
    dims, axis = inputs[0].shape.dims, attrs["axis"]
    if dims is None or (axis is None and None in dims):
        return [Spec(inputs[0].dtype, UNKNOWN)]
    axes = {
        position % max(len(dims), 1)
        for position in (
            axis if axis is not None else [i for i, dim in enumerate(dims) if dim == 1]
        )
    }
    for position in axes:
        if dims[position] not in (1, None):
            raise ValueError(
                explain(
                    f"Can not squeeze dim[{position}], expected a dimension of 1, got "
                    f"{dims[position]}",
                    received=inputs[0],
                    made_at=inputs[0].op.source,
                )
            )
    kept = [dim for position, dim in enumerate(dims) if position not in axes]
    return [Spec(inputs[0].dtype, TensorShape(kept))]


register(
    "Squeeze",
    lambda x, axis: jnp.squeeze(x, axis),
    infer=_infer_squeeze,
    numpy_kernel=lambda x, axis: np.squeeze(x, axis),
    cases=lambda: [
        Case((_SAMPLE[:, None],), {"axis": (1,)}),
        Case((_SAMPLE[None],), {"axis": None}),
    ],
)


def squeeze(
    input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None
) -> Tensor:
    """`input` without its dimensions of length 1, or without those named by `axis`."""
    chosen = squeeze_dims if axis is None else axis
    axes = None if chosen is None else tuple(int(each) for each in np.atleast_1d(chosen))
    return make("Squeeze", {"input": input}, {"axis": axes or None}, name)


def _infer_transpose(inputs: Any, attrs: Any) -> list[Spec]:
    dims, perm = inputs[0].shape.dims, attrs["perm"]
    if dims is None:
        return [Spec(inputs[0].dtype, UNKNOWN if perm is None else TensorShape([None] * len(perm)))]
    order = tuple(reversed(range(len(dims)))) if perm is None else perm
    if sorted(order) != list(range(len(dims))):
        raise ValueError(
            explain(
                "transpose: perm is no permutation of the dimensions",
                expected=f"each of 0..{len(dims) - 1} once",
                received=list(order),
            )
        )
    return [Spec(inputs[0].dtype, TensorShape([dims[position] for position in order]))]


register(
    "Transpose",
    lambda x, perm: jnp.transpose(x, perm),
    infer=_infer_transpose,
    numpy_kernel=lambda x, perm: np.transpose(x, perm),
    cases=lambda: [Case((_SAMPLE,), {"perm": None}), Case((_SAMPLE[None],), {"perm": (2, 0, 1)})],
)


def transpose(a: Any, perm: Any = None, name: str | None = None) -> Tensor:
    """`a` with its dimensions in another order; reversed by default.

    Args:
        a: a tensor.
        perm: the order, ints or a constant tensor.
        name: the operation's name.
    """
    if isinstance(perm, Tensor):
        perm = constant_value(perm)
    order = None if perm is None else tuple(int(each) for each in perm)
    return make("Transpose", {"x": a}, {"perm": order}, name or "transpose")


# -- joining and splitting


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
    """
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        with get_default_graph().name_scope(name or "concat"):
            return identity(values[0], "concat")
    inputs = {f"values_{index}": value for index, value in enumerate(values)}
    return make(
        "ConcatV2", inputs, {"axis": _axis_of(axis, "concat")}, name or "concat", same_dtype=True
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
    at = _axis_of(axis, "split")
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
            given[given.index(-1)] = length - (builtins_sum(given) + 1)
        fits = length is None or builtins_sum(given) == length
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


builtins_sum = sum


# -- slicing and gathering


def _index(parts: Sequence[Any], dynamic: Sequence[Any]) -> tuple[Any, ...]:
    """The Python index that an `index` attribute stands for (see `_getitem`)."""
    rest = iter(dynamic)
    index: list[Any] = []
    for part in parts:
        if isinstance(part, tuple):
            index.append(slice(*part[1:]))
        elif part == "input":
            index.append(next(rest))
        elif part == "newaxis":
            index.append(None)
        else:
            index.append(Ellipsis if part == "ellipsis" else part)
    return tuple(index)


def _strided_slice(x: Any, *dynamic: Any, index: Sequence[Any]) -> Any:
    # A constant is a NumPy array, which cannot be indexed by a traced one.
    return (jnp.asarray(x) if dynamic else x)[_index(index, dynamic)]


def _infer_strided_slice(inputs: Any, attrs: Any) -> list[Spec]:
    tensor, index = inputs[0], list(attrs["index"])
    dims = tensor.shape.dims
    if dims is None:
        return [Spec(tensor.dtype, UNKNOWN)]
    rest = len(dims) - sum(part not in ("newaxis", "ellipsis") for part in index)
    if rest < 0 or index.count("ellipsis") > 1:
        raise ValueError(
            explain(
                "StridedSlice: the index has more parts than the tensor has dimensions",
                expected=f"at most {len(dims)}, and one ellipsis",
                received=tensor,
                made_at=tensor.op.source,
            )
        )
    at = index.index("ellipsis") if "ellipsis" in index else len(index)
    index[at : at + 1] = [("slice", None, None, None)] * rest
    remaining = iter(enumerate(dims))
    result: list[int | None] = []
    for part in index:
        if part == "newaxis":
            result.append(1)
            continue
        axis, dim = next(remaining)
        if isinstance(part, tuple):
            bounds = slice(*part[1:])
            result.append(None if dim is None else len(range(*bounds.indices(dim))))
        elif part != "input" and dim is not None and not -dim <= part < dim:
            raise ValueError(
                explain(
                    f"StridedSlice: slice index {part} of dimension {axis} out of bounds",
                    expected=f"in [{-dim}, {dim})",
                    received=tensor,
                    made_at=tensor.op.source,
                )
            )
    return [Spec(tensor.dtype, TensorShape(result))]


register(
    "StridedSlice",
    _strided_slice,
    infer=_infer_strided_slice,
    numpy_kernel=lambda x, *dynamic, index: x[_index(index, dynamic)],
    cases=lambda: [
        Case((_SAMPLE,), {"index": (1,)}),
        Case((_SAMPLE,), {"index": (("slice", None, None, -1), ("slice", 0, 2, None))}),
        Case((_SAMPLE,), {"index": ("ellipsis", "newaxis", 0)}),
        Case((_SAMPLE, np.int32(1)), {"index": (("slice", None, None, None), "input")}),
    ],
)


def _getitem(tensor: Tensor, key: Any) -> Tensor:
    """`tensor[key]`: ints, slices, ..., newaxis, and scalar integer tensors in place of ints."""
    parts: list[Any] = []
    dynamic: list[Tensor] = []
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, slice):
            bounds = [
                constant_value(bound) if isinstance(bound, Tensor) else bound
                for bound in (part.start, part.stop, part.step)
            ]
            if any(
                bound is None and given is not None
                for bound, given in zip(bounds, (part.start, part.stop, part.step), strict=True)
            ):
                return _slice_by_tensors(tensor, key)
            parts.append(("slice", *(None if bound is None else int(bound) for bound in bounds)))
        elif part is None:
            parts.append("newaxis")
        elif part is Ellipsis:
            parts.append("ellipsis")
        elif hasattr(part, "_as_tensor") or isinstance(part, Tensor):
            index = convert_to_tensor(part)
            value = constant_value(index)
            if index.shape.rank not in (0, None) or not index.dtype.is_integer:
                raise _no_index(tensor, part)
            if value is not None:
                parts.append(int(value))
            else:
                parts.append("input")
                dynamic.append(index)
        elif isinstance(part, (int, np.integer)) and not isinstance(part, bool):
            parts.append(int(part))
        else:
            raise _no_index(tensor, part)
    return make(
        "StridedSlice",
        {"input": tensor, **{f"index_{i}": each for i, each in enumerate(dynamic)}},
        {"index": tuple(parts)},
        "strided_slice",
    )


def _no_index(tensor: Tensor, part: Any) -> TypeError:
    return TypeError(
        explain(
            "a tensor cannot be indexed by this",
            expected="ints, slices, `...`, None (newaxis) or scalar integer tensors",
            received=repr(part),
            made_at=tensor.op.source,
            hint="use gather() or boolean_mask() for lists and masks",
        )
    )


def _slice_by_tensors(tensor: Tensor, key: Any) -> Tensor:
    raise TypeError(
        explain(
            "the bounds of a slice must be known when the graph is built",
            expected="ints, None or constants",
            received=repr(key),
            made_at=tensor.op.source,
            hint="use slice(x, begin, size), whose begin may be computed",
        )
    )


operators["getitem"] = _getitem


def _infer_slice(inputs: Any, attrs: Any) -> list[Spec]:
    tensor, begin, size = inputs
    lengths = constant_value(size)
    starts = constant_value(begin)
    if lengths is None:
        return [Spec(tensor.dtype, constant_value_as_shape(size))]
    dims: list[int | None] = []
    for position, length in enumerate(lengths.tolist()):
        if length != -1:
            dims.append(length)
        elif tensor.shape.rank is None or starts is None or tensor.shape[position] is None:
            dims.append(None)
        else:
            dims.append(tensor.shape[position] - int(starts[position]))
    return [Spec(tensor.dtype, TensorShape(dims))]


def _slice(x: Any, begin: Any, size: Any, to_end: bool) -> Any:
    if isinstance(begin, np.ndarray):
        return x[
            tuple(
                slice(int(at), x.shape[i] if n == -1 else int(at) + int(n))
                for i, (at, n) in enumerate(zip(begin, size, strict=True))
            )
        ]
    return jax.lax.dynamic_slice(x, list(begin), [int(n) for n in size])


register(
    "Slice",
    _slice,
    infer=_infer_slice,
    numpy_kernel=_slice,
    # A length that is counted to the end follows from where the slice begins.
    static=lambda attrs: (1, 2) if attrs["to_end"] else (2,),
    cases=lambda: [
        Case(
            (_SAMPLE, np.array([0, 1], np.int32), np.array([-1, 2], np.int32)),
            {"to_end": True},
            _SAMPLE[:, 1:3],
        ),
        Case(
            (_SAMPLE, np.array([1, 0], np.int32), np.array([1, 2], np.int32)),
            {"to_end": False},
            _SAMPLE[1:2, 0:2],
        ),
    ],
)


def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """The part of `input_` that begins at `begin` and has shape `size` (-1: to the end).

    Args:
        input_: a tensor.
        begin: the first index in each dimension, ints or a tensor.
        size: the length in each dimension, ints or a tensor whose value follows from shapes or
            feeds.
        name: the operation's name.
    """
    inputs = {
        "input": convert_to_tensor(input_, name="input"),
        "begin": as_index_tensor(begin, "begin"),
        "size": as_index_tensor(size, "size"),
    }
    lengths = constant_value(inputs["size"])
    to_end = lengths is None or bool((lengths == -1).any())
    return make("Slice", inputs, {"to_end": to_end}, name)


def _infer_gather(inputs: Any, attrs: Any) -> list[Spec]:
    params, indices = inputs
    axis = attrs["axis"]
    if params.shape.dims is None or indices.shape.dims is None:
        return [Spec(params.dtype, UNKNOWN)]
    if not -len(params.shape) <= axis < len(params.shape):
        raise ValueError(explain("gather: axis out of range", received=axis))
    axis %= len(params.shape)
    dims = params.shape.dims
    return [Spec(params.dtype, TensorShape((*dims[:axis], *indices.shape.dims, *dims[axis + 1 :])))]


def _gather_gradient(op: Any, dy: Tensor) -> Sequence[Any]:
    from estimatorkit.core.indexed_slices import IndexedSlices

    params, indices = op.inputs
    if op.attrs["axis"] != 0:
        from estimatorkit.core.gradients import vjp

        return [*vjp(op, [dy], (0,)), None]
    row_shape = params.shape[1:]
    if row_shape.is_fully_defined():
        values = reshape(dy, [-1, *row_shape.as_list()])
    else:
        values = reshape(dy, concat([[-1], shape(params)[1:]], 0))
    return [IndexedSlices(values, reshape(indices, [-1]), shape(params)), None]


register(
    "GatherV2",
    # Indices outside the table give NaN-free clamped rows on devices (XLA cannot raise); checked
    # where they are made.
    lambda params, indices, axis: jnp.take(params, indices, axis=axis, mode="clip"),
    infer=_infer_gather,
    gradient=_gather_gradient,
    numpy_kernel=lambda params, indices, axis: np.take(params, indices, axis=axis, mode="clip"),
    cases=lambda: [
        Case((_SAMPLE, np.array([1, 0, 1], np.int32)), {"axis": 0}),
        Case((_SAMPLE, np.array([[2], [0]], np.int64)), {"axis": 1}),
    ],
)


def gather(
    params: Any,
    indices: Any,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: Any = 0,
) -> Tensor:
    """The slices of `params` at `indices` along an axis.

    Args:
        params: a tensor.
        indices: int32 or int64 of any shape, in [0, params.shape[axis]). Others are clamped to it
            (on GPUs TensorFlow gives zeros; on CPUs it raises).
        validate_indices: accepted for TensorFlow's signature.
        name: the operation's name.
        axis: the axis.

    Returns:
        A tensor of shape `params.shape[:axis] + indices.shape + params.shape[axis + 1:]`.
    """
    inputs = {"params": params, "indices": indices}
    return make("GatherV2", inputs, {"axis": _axis_of(axis, "gather")}, name)


def _one_hot(indices: Any, on_value: Any, off_value: Any, depth: int, axis: int) -> Any:
    hot = jnp.expand_dims(indices, axis) == jnp.arange(depth, dtype=indices.dtype).reshape(
        [-1 if position == axis % (indices.ndim + 1) else 1 for position in range(indices.ndim + 1)]
    )
    return jnp.where(hot, on_value, off_value)


def _infer_one_hot(inputs: Any, attrs: Any) -> list[Spec]:
    dims = inputs[0].shape.dims
    if dims is None:
        return [Spec(inputs[1].dtype, UNKNOWN)]
    at = attrs["axis"] % (len(dims) + 1)
    return [Spec(inputs[1].dtype, TensorShape((*dims[:at], attrs["depth"], *dims[at:])))]


register(
    "OneHot",
    _one_hot,
    infer=_infer_one_hot,
    gradient=None,
    cases=lambda: [
        Case(
            (np.array([1, -1, 2], np.int32), np.float32(1), np.float32(0)),
            {"depth": 3, "axis": -1},
            np.array([[0, 1, 0], [0, 0, 0], [0, 0, 1]], np.float32),
        )
    ],
)


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """`on_value` at each index along a new axis of length `depth`, `off_value` elsewhere.

    Args:
        indices: integers; those outside [0, depth) give `off_value` throughout.
        depth: the length of the new axis, an int or a constant.
        on_value, off_value: 1 and 0 by default.
        axis: where the new axis goes; last by default.
        dtype: of the result; that of on_value or off_value by default, float32 without these.
        name: the operation's name.
    """
    given = next((each for each in (on_value, off_value) if each is not None), None)
    if dtype is None and given is not None:
        dtype = convert_to_tensor(given).dtype
    result = float32 if dtype is None else as_dtype(dtype)
    inputs = {
        "indices": indices,
        "on_value": convert_to_tensor(1 if on_value is None else on_value, result),
        "off_value": convert_to_tensor(0 if off_value is None else off_value, result),
    }
    attrs = {"depth": _axis_of(depth, "one_hot (depth)"), "axis": -1 if axis is None else axis}
    return make("OneHot", inputs, attrs, name or "one_hot")


def _infer_where(inputs: Any, attrs: Any) -> list[Spec]:
    return registry.broadcast()(inputs[1:], attrs)  # type: ignore[return-value]


def _select(condition: Any, x: Any, y: Any, module: Any = jnp) -> Any:
    if condition.ndim == 1 and x.ndim > 1 and x.shape == y.shape:
        condition = condition.reshape(condition.shape + (1,) * (x.ndim - 1))
    return module.where(condition, x, y)


register(
    "Select",
    _select,
    infer=_infer_where,
    numpy_kernel=lambda condition, x, y: _select(condition, x, y, np),
    cases=lambda: [
        Case((_SAMPLE > 0, _SAMPLE, _SAMPLE * 2)),
        Case((np.array([True, False]), _SAMPLE, _SAMPLE * 2)),
    ],
)


register(
    "Where",
    lambda condition: np.argwhere(condition).astype(np.int64),
    where="host",  # the number of rows depends on the values
    infer=lambda inputs, attrs: [Spec(int64, TensorShape([None, inputs[0].shape.rank]))],
    gradient=None,
    cases=lambda: [Case((_SAMPLE > 0,), {}, np.argwhere(_SAMPLE > 0))],
)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """x where `condition` is true, y elsewhere; without x and y, the indices where it is true.

    Args:
        condition: bool; of the shape of x and y (or one that broadcasts with them), or a vector
            that chooses rows.
        x, y: tensors of one dtype, or both None.
        name: the operation's name.

    Returns:
        A tensor like x; or int64 `(true elements, rank of condition)`.

    Raises:
        ValueError: only one of x and y is given.
    """
    picked = convert_to_tensor(condition, name="condition")
    if x is None and y is None:
        return make("Where", {"condition": picked}, name=name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    with get_default_graph().name_scope(name or "Select") as scope:
        first = convert_to_tensor(
            x, dtype_hint=y.dtype if isinstance(y, Tensor) else None, name="x"
        )
        second = convert_to_tensor(y, dtype_hint=first.dtype, name="y")
        registry.check_same_dtype("Select", [first, second], name)
        return registry.output("Select", [picked, first, second], name=scope)


# -- filling


def _infer_fill(inputs: Any, attrs: Any) -> list[Spec]:
    return [Spec(inputs[1].dtype, constant_value_as_shape(inputs[0]))]


register(
    "Fill",
    lambda dims, value: jnp.full([int(dim) for dim in dims], value),
    infer=_infer_fill,
    numpy_kernel=lambda dims, value: np.full(dims, value),
    static=(0,),
    cases=lambda: [Case((np.array([2, 3], np.int32), np.float32(7)))],
)


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of shape `dims` that holds `value` everywhere."""
    inputs = {"dims": as_index_tensor(dims, "dims"), "value": value}
    return make("Fill", inputs, name=name)


def zeros(shape: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """A tensor of zeros (of empty strings, of False)."""
    return _constant_fill(shape, as_dtype(dtype), 0, name or "zeros")


def ones(shape: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """A tensor of ones (of True)."""
    return _constant_fill(shape, as_dtype(dtype), 1, name or "ones")


def _constant_fill(shape: Any, dtype: DType, value: int, name: str) -> Tensor:
    with get_default_graph().name_scope(name) as scope:
        one = b"" if dtype.on_host else dtype.numpy_dtype.type(value)
        return make(
            "Fill",
            {
                "dims": as_index_tensor(shape, "shape_as_tensor"),
                "value": convert_to_tensor(one, dtype, name="Const"),
            },
            name=scope,
        )


for _like, _jnp_like, _np_like in (
    ("ZerosLike", jnp.zeros_like, np.zeros_like),
    ("OnesLike", jnp.ones_like, np.ones_like),
):
    register(
        _like,
        lambda x, dtype, function=_jnp_like: function(x, dtype=dtype.numpy_dtype),
        infer=lambda inputs, attrs: [Spec(attrs["dtype"], inputs[0].shape)],
        gradient=None,
        numpy_kernel=lambda x, dtype, function=_np_like: function(x, dtype=dtype.numpy_dtype),
        cases=lambda: [Case((_SAMPLE,), {"dtype": int32})],
    )


def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Zeros in the shape of `tensor`, of its dtype or `dtype`."""
    return _like_op("ZerosLike", tensor, dtype, name or "zeros_like")


def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Ones in the shape of `tensor`, of its dtype or `dtype`."""
    return _like_op("OnesLike", tensor, dtype, name or "ones_like")


def _like_op(op_type: str, value: Any, dtype: Any, name: str) -> Tensor:
    tensor = convert_to_tensor(value, name="tensor")
    chosen = tensor.dtype if dtype is None else as_dtype(dtype)
    return make(op_type, {"x": tensor}, {"dtype": chosen}, name)


def _infer_range(inputs: Any, attrs: Any) -> list[Spec]:
    values = [constant_value(each) for each in inputs]
    if any(value is None for value in values):
        return [Spec(inputs[0].dtype, TensorShape([None]))]
    return [Spec(inputs[0].dtype, TensorShape([len(_range(*values))]))]


def _range(start: Any, limit: Any, delta: Any) -> Any:
    return np.arange(start, limit, delta, dtype=start.dtype)


register(
    "Range",
    _range,
    infer=_infer_range,
    numpy_kernel=_range,
    gradient=None,
    static=(0, 1, 2),
    cases=lambda: [Case((np.int32(1), np.int32(9), np.int32(3)))],
)


def range_(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> Tensor:
    """The numbers from `start` (0 where one number is given) to before `limit` by `delta`."""
    if limit is None:
        start, limit = 0, start
    wanted = None if dtype is None else as_dtype(dtype)
    return make(
        "Range",
        {"start": start, "limit": limit, "delta": delta},
        name=name,
        same_dtype=True,
        dtypes={"start": wanted, "limit": wanted, "delta": wanted} if wanted else None,
    )


def _infer_tile(inputs: Any, attrs: Any) -> list[Spec]:
    multiples = constant_value(inputs[1])
    dims = inputs[0].shape.dims
    if multiples is None or dims is None:
        known = inputs[0].shape.rank
        return [Spec(inputs[0].dtype, UNKNOWN if known is None else TensorShape([None] * known))]
    return [
        Spec(
            inputs[0].dtype,
            TensorShape(
                [
                    None if dim is None else dim * int(times)
                    for dim, times in zip(dims, multiples, strict=True)
                ]
            ),
        )
    ]


register(
    "Tile",
    lambda x, multiples: jnp.tile(x, tuple(int(each) for each in multiples)),
    infer=_infer_tile,
    numpy_kernel=lambda x, multiples: np.tile(x, tuple(multiples)),
    static=(1,),
    cases=lambda: [Case((_SAMPLE, np.array([2, 1], np.int32)))],
)


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """`input` repeated `multiples[i]` times along each dimension i."""
    inputs = {"input": input, "multiples": as_index_tensor(multiples, "multiples")}
    return make("Tile", inputs, name=name)


register(
    "Pad",
    lambda x, paddings, mode, constant_values: _pad(x, paddings, mode, constant_values, jnp),
    numpy_kernel=lambda x, paddings, mode, constant_values: _pad(
        x, paddings, mode, constant_values, np
    ),
    cases=lambda: [
        Case((_SAMPLE,), {"paddings": ((1, 0), (0, 2)), "mode": "constant", "constant_values": 3}),
        Case((_SAMPLE,), {"paddings": ((1, 1), (2, 0)), "mode": "reflect", "constant_values": 0}),
    ],
)


def _pad(x: Any, paddings: Any, mode: str, constant_values: Any, module: Any) -> Any:
    keywords = {"constant_values": constant_values} if mode == "constant" else {}
    return module.pad(x, paddings, mode=mode, **keywords)


def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:
    """`tensor` with values put before and after it along each dimension.

    Args:
        tensor: a tensor.
        paddings: a (before, after) pair of ints for each dimension, or a constant tensor of them.
        mode: "CONSTANT", "REFLECT" or "SYMMETRIC".
        name: the operation's name.
        constant_values: what to put there with "CONSTANT".
    """
    value = constant_value(paddings) if isinstance(paddings, Tensor) else np.asarray(paddings)
    if value is None:
        raise ValueError(
            explain("pad: paddings must be known when the graph is built", received=paddings)
        )
    attrs = {
        "paddings": tuple((int(before), int(after)) for before, after in value),
        "mode": mode.lower(),
        "constant_values": constant_values,
    }
    return make("Pad", {"tensor": tensor}, attrs, name)
