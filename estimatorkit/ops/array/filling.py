"""Ops that create or repeat values: fill, zeros, ones, their `_like`, range, tile and pad.

Values that determine a result's shape (`fill`'s dims, `tile`'s multiples, `range`'s bounds) are
`static` inputs or attributes (constant paddings of `pad`): XLA needs them at compile time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core import nest
from estimatorkit.core.conversion import as_array, as_index_tensor, convert_to_tensor, make
from estimatorkit.core.dtypes import DType, as_dtype, float32, float64, int32, int64
from estimatorkit.core.errors import InvalidArgumentError, type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    Spec,
    constant_value,
    constant_value_as_shape,
    fixed_value,
    register,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.sizes import dims_of, is_symbolic
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.array import reshape
from estimatorkit.ops.math.axes import ints_of

_SAMPLE = np.arange(6, dtype=np.float32).reshape(2, 3) - np.float32(2.5)


def _infer_fill(inputs: Any, attrs: Any) -> list[Spec]:
    for tensor, rank in zip(inputs, (1, 0), strict=True):
        if tensor.shape.rank not in (rank, None):
            raise value_error(
                f"fill: Shape must be rank {rank} but is rank {tensor.shape.rank}",
                received=tensor,
                made_at=tensor.op.source,
            )
    dims = constant_value(inputs[0])
    if dims is not None and (dims < 0).any():
        raise ValueError(f"Fill dimensions must be >= 0, got {dims.tolist()}.")
    return [Spec(inputs[1].dtype, constant_value_as_shape(inputs[0]))]


register(
    "Fill",
    lambda dims, value: jnp.full(dims_of(dims), value),
    moves=True,
    infer=_infer_fill,
    numpy_kernel=lambda dims, value: np.full(dims, value),
    static=(0,),
    cases=lambda: [Case((np.array([2, 3], np.int32), np.float32(7)))],
    accepts=("x",),
)


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of shape `dims` filled with `value`."""
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
        if value and dtype.on_host:
            raise TypeError("Expected string, but got 1 of type 'int'. Use fill(shape, '1').")
        one = b"" if dtype.on_host else dtype.numpy_dtype.type(value)
        dims = as_index_tensor(shape, "shape_as_tensor")
        return make(
            "Fill",
            {
                "dims": reshape(dims, [-1]) if dims.shape.rank == 0 else dims,  # zeros(3)
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
        moves=True,
        gradient=None,
        numpy_kernel=lambda x, dtype, function=_np_like: (
            np.full(x.shape, b"", object) if dtype.on_host else function(x, dtype=dtype.numpy_dtype)
        ),
        cases=lambda: [Case((_SAMPLE,), {"dtype": int32})],
    )


def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Zeros with the shape of `tensor` (which may be sparse) and its dtype, or `dtype`."""
    if isinstance(tensor, SparseTensor):
        return zeros(tensor.dense_shape, tensor.dtype if dtype is None else dtype, name)
    return _like_op("ZerosLike", tensor, dtype, name or "zeros_like")


def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Ones with the shape of `tensor` and its dtype, or `dtype`.

    Raises:
        TypeError: the dtype is string.
    """
    return _like_op("OnesLike", tensor, dtype, name or "ones_like")


def _like_op(op_type: str, value: Any, dtype: Any, name: str) -> Tensor:
    tensor = convert_to_tensor(value, name="tensor")
    chosen = tensor.dtype if dtype is None else as_dtype(dtype)
    if op_type == "OnesLike" and chosen.on_host:
        raise type_error("Expected string, but got 1 of type 'int'", hint="use fill(shape(x), '1')")
    return make(op_type, {"x": tensor}, {"dtype": chosen}, name)


def _infer_range(inputs: Any, attrs: Any) -> list[Spec]:
    for tensor, what in zip(inputs, ("start", "limit", "delta"), strict=True):
        if tensor.shape.rank not in (None, 0):
            raise value_error(
                f"Shape must be rank 0 but is rank {tensor.shape.rank} for '{what}' of range",
                received=tensor,
            )
    values = [value for each in inputs if (value := constant_value(each)) is not None]
    if len(values) < len(inputs):
        return [Spec(inputs[0].dtype, TensorShape([None]))]
    start, limit, delta = (each.item() for each in values)
    if not delta:
        raise value_error("range: Requires delta != 0: 0", made_at=inputs[2].op.source)
    length = math.ceil((limit - start) / delta)
    if length < _LONG_RANGE:
        length = len(_range(*values))
    return [Spec(inputs[0].dtype, TensorShape([length]))]


_LONG_RANGE = 1 << 24
"""Ranges of this length are not built to count their elements; shorter ones are, since NumPy
rounds lengths of floats."""


def _range(start: Any, limit: Any, delta: Any) -> Any:
    if delta == 0:
        raise InvalidArgumentError.explained("Requires delta != 0: 0")
    if (limit - start) * np.sign(delta) < 0:
        order = "<=" if delta > 0 else ">="
        raise ValueError(
            f"Requires start {order} limit when delta {'>' if delta > 0 else '<'} 0: "
            f"{start}/{limit}"
        )
    if any(map(is_symbolic, (start, limit, delta))):
        return jnp.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)
    return np.arange(start, limit, delta, dtype=start.dtype)


register(
    "Range",
    _range,
    infer=_infer_range,
    numpy_kernel=_range,
    gradient=None,
    static=(0, 1, 2),
    cases=lambda: [Case((np.int32(1), np.int32(9), np.int32(3)))],
    accepts="fn uint16 uint32",
)


_WIDTH = [int32, int64, float32, float64]


def _widest(values: Sequence[Any]) -> DType | None:
    """The widest dtype of the values; None if none is in `_WIDTH`."""
    dtypes = [
        as_dtype(each.dtype if hasattr(each, "dtype") else as_array(each).dtype) for each in values
    ]
    return max(dtypes, key=_WIDTH.index) if set(dtypes) <= set(_WIDTH) else None


def _of_dtype(value: Any, dtype: DType | None) -> Any:
    """Casts tensors to the dtype; other values are returned unchanged."""
    if dtype is None or not (isinstance(value, Tensor) or hasattr(value, "_as_tensor")):
        return value
    tensor = convert_to_tensor(value)
    return tensor if tensor.dtype is dtype else make("Cast", {"x": tensor}, {"dtype": dtype})


def range_(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> Tensor:
    """The numbers from `start` (0 if only one is given) up to but excluding `limit`, by `delta`.

    Args:
        start, limit, delta: numbers or scalar tensors; converted to the widest of their dtypes.
        dtype: the dtype of the result; that widest dtype by default.
    """
    if limit is None:
        start, limit = 0, start
    wanted = _widest((start, limit, delta)) if dtype is None else as_dtype(dtype)
    values = {"start": start, "limit": limit, "delta": delta}
    return make(
        "Range",
        {key: _of_dtype(value, wanted) for key, value in values.items()},
        name=name,
        same_dtype=True,
        dtypes=dict.fromkeys(values, wanted) if wanted else None,
    )


def _infer_tile(inputs: Any, attrs: Any) -> list[Spec]:
    multiples = constant_value(inputs[1])
    dims = inputs[0].shape.dims
    if multiples is not None and dims is not None and multiples.shape != (len(dims),):
        raise value_error(
            f"tile: the input has {len(dims)} dimensions",
            expected=f"multiples of shape ({len(dims)},)",
            received=multiples.shape,
            made_at=inputs[0].op.source,
        )
    if multiples is None or dims is None or (multiples < 0).any():  # negative ones raise when run
        known = inputs[0].shape.rank
        if known is None and inputs[1].shape.rank == 1:
            known = inputs[1].shape[0]
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


def _tiled(module: Any, x: Any, multiples: Any) -> Any:
    for at, times in enumerate(multiples):
        if times < 0:
            raise ValueError(f"Expected multiples[{at}] >= 0, but got {times}")
    if len(multiples) != x.ndim:  # NumPy would add axes
        raise ValueError(
            f"Expected multiples argument to be a vector of length {x.ndim} but got length "
            f"{len(multiples)}"
        )
    for index, times in enumerate(multiples):
        if times < 0:
            raise ValueError(f"Expected multiples[{index}] >= 0, but got {times}")
    return module.tile(x, dims_of(multiples))


register(
    "Tile",
    functools.partial(_tiled, jnp),
    moves=True,
    infer=_infer_tile,
    numpy_kernel=functools.partial(_tiled, np),
    static=(1,),
    cases=lambda: [Case((_SAMPLE, np.array([2, 1], np.int32)))],
    accepts=("", "x"),
)


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Repeats `input` `multiples[i]` times along each dimension i."""
    inputs = {"input": input, "multiples": as_index_tensor(multiples, "multiples")}
    return make("Tile", inputs, name=name)


register(
    "Pad",
    lambda x, *value, **attrs: _pad(x, *value, **attrs, module=jnp),
    moves=True,
    infer=lambda inputs, attrs: _infer_pad(inputs, attrs),
    numpy_kernel=lambda x, *value, **attrs: _pad(x, *value, **attrs, module=np),
    cases=lambda: [
        Case((_SAMPLE,), {"paddings": ((1, 0), (0, 2)), "mode": "constant", "constant_values": 3}),
        Case((_SAMPLE,), {"paddings": ((1, 1), (2, 0)), "mode": "reflect", "constant_values": 0}),
    ],
)


def _pad(x: Any, *value: Any, paddings: Any, mode: str, constant_values: Any, module: Any) -> Any:
    if not len(paddings):  # of a scalar
        return x
    longest = [size - (mode == "reflect") for size in x.shape]
    for size, widths in zip(longest, paddings, strict=True):
        if mode != "constant" and max(widths) > size:
            words = f"{tuple(widths)} greater than {size}"
            raise InvalidArgumentError(
                None, None, f"paddings must be no greater than the dimension size: {words}"
            )
    filler = value[0] if value else constant_values
    if x.dtype == object:  # NumPy's own strings lose zero bytes at their end
        filler = np.asarray(filler, object)
    keywords = {"constant_values": filler}
    return module.pad(x, paddings, mode=mode, **(keywords if mode == "constant" else {}))


def _pad_computed(x: Any, paddings: Any, *value: Any, module: Any = jnp, **attrs: Any) -> Any:
    for before, after in paddings:
        if before < 0 or after < 0:
            raise ValueError(f"Paddings must be non-negative: {before} {after}")
    widths = tuple(map(tuple, paddings.tolist()))
    return _pad(x, *value, paddings=widths, module=module, **attrs)


def _infer_pad(inputs: Any, attrs: Any) -> list[Spec]:
    dims = inputs[0].shape.dims
    given = attrs.get("paddings")
    widths = constant_value(inputs[1]) if given is None else np.reshape(given, [-1, 2])
    if dims is None:
        rank = inputs[1].shape[0] if widths is None and inputs[1].shape.rank == 2 else None
        rank = rank if widths is None else len(widths)
        return [Spec(inputs[0].dtype, UNKNOWN if rank is None else TensorShape([None] * rank))]
    added = [None] * len(dims) if widths is None else [int(each) for each in widths.sum(1)]
    both = zip(dims, added, strict=True)
    shape = [None if dim is None or more is None else dim + more for dim, more in both]
    return [Spec(inputs[0].dtype, TensorShape(shape))]


register(
    "PadComputed",
    _pad_computed,
    infer=_infer_pad,
    numpy_kernel=lambda *inputs, **attrs: _pad_computed(*inputs, **attrs, module=np),
    static=(1,),
    cases=lambda: [
        Case(
            (_SAMPLE, np.array([[1, 0], [0, 2]], np.int32)),
            {"mode": "constant", "constant_values": 3},
        )
    ],
    accepts=("", "x"),
)


def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:
    """Pads `tensor` before and after along each dimension.

    Args:
        tensor: a tensor.
        paddings: a (before, after) pair of ints for each dimension, or an int tensor of them;
            each new value of a computed tensor causes a compilation.
        mode: "CONSTANT", "REFLECT" or "SYMMETRIC".
        constant_values: the scalar to pad with if `mode` is "CONSTANT"; 0 by default (the empty
            string for strings).

    Raises:
        ValueError: the paddings are not a pair for each dimension, or the mode is invalid.
        TypeError: the paddings are not integers.
    """
    given = convert_to_tensor(tensor, name="tensor")
    if mode.upper() not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ValueError(
            f"Value of argument `mode` expected to be one of CONSTANT, REFLECT, or "
            f"SYMMETRIC. Unknown padding mode: {mode}"
        )
    computed = any(isinstance(each, Tensor) for each in nest.flatten(paddings))
    widths = as_index_tensor(paddings, "paddings") if computed else np.asarray(paddings)
    value = fixed_value(widths) if isinstance(widths, Tensor) else ints_of(widths, "pad")
    rank, shape = given.shape.rank, TensorShape(widths.shape)
    if not shape.is_compatible_with([rank, 2]):
        raise value_error(
            f"pad: the input has {rank} dimensions",
            expected=f"paddings of shape ({rank}, 2)",
            received=shape,
            made_at=given.op.source,
        )
    if value is not None and (value < 0).any():
        raise value_error("pad: Paddings must be non-negative", received=value.tolist())
    if isinstance(constant_values, int) and constant_values == 0:
        constant_values = b"" if given.dtype.on_host else given.dtype.numpy_dtype.type(0)
    filler = None
    if not isinstance(constant_values, Tensor):
        filler = constant_value(convert_to_tensor(constant_values, given.dtype))
    inputs: dict[str, Any] = {"tensor": given}
    attrs = {"mode": mode.lower(), "constant_values": None if filler is None else filler.item()}
    if value is None:
        inputs["paddings"] = widths
    else:
        attrs["paddings"] = tuple((int(before), int(after)) for before, after in value)
    if filler is None:
        inputs["constant_values"] = constant_values
    return make("PadComputed" if value is None else "Pad", inputs, attrs, name or "Pad")
