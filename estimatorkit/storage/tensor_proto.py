"""Conversion of arrays, dtypes and shapes from and to TensorFlow's protos."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import ALL, DType, as_dtype
from estimatorkit.core.errors import value_error
from estimatorkit.core.shapes import TensorShape, as_shape, numpy_holds

_MOST_REPEATED = 1 << 28
"""The maximum bytes of a repeated value, so that a small file cannot cause a huge allocation."""

_BY_ENUM = {dtype.as_datatype_enum: dtype for dtype in ALL.values()}


def dtype_of(enum: int) -> DType:
    """Returns the dtype of a number in `types.proto`; reference dtypes yield their base.

    Raises ValueError if it is unsupported.
    """
    found = _BY_ENUM.get(enum - 100 if enum > 100 else enum)
    if found is None:
        raise value_error(
            f"DataType {enum} is not supported",
            expected=", ".join(f"{dtype.as_datatype_enum} {name}" for name, dtype in ALL.items()),
        )
    return found


def shape_value(proto: Any) -> TensorShape:
    """Converts a `TensorShapeProto`."""
    return TensorShape(proto)


def tensor_proto(array: NDArray[Any]) -> Any:
    """Converts an array to a `TensorProto` with raw bytes, or strings."""
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    dtype = as_dtype(array.dtype)
    made = TensorProto(dtype=dtype.as_datatype_enum, tensor_shape=as_shape(array.shape).as_proto())
    if array.dtype.hasobject:
        made.string_val.extend(array.reshape(-1).tolist())
    else:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        made.tensor_content = np.ascontiguousarray(little).tobytes()
    return made


FIELDS = {
    **dict.fromkeys(("float16", "bfloat16"), "half_val"),
    "float32": "float_val",
    "float64": "double_val",
    **dict.fromkeys(("int8", "uint8", "int16", "uint16", "int32"), "int_val"),
    "int64": "int64_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
    "bool": "bool_val",
    "string": "string_val",
}
"""The value field of each dtype name."""


def compact_tensor_proto(values: NDArray[Any], shape: tuple[int, ...]) -> Any:
    """Returns the `TensorProto` of a shape with few values, the last of which repeats."""
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    dtype = as_dtype(values.dtype)
    flat = values.reshape(-1)
    if dtype.is_complex:
        flat = flat.view(flat.real.dtype)
    elif FIELDS[dtype.name] == "half_val":
        flat = flat.view(np.uint16)
    made = TensorProto(dtype=dtype.as_datatype_enum, tensor_shape=as_shape(shape).as_proto())
    getattr(made, FIELDS[dtype.name]).extend(flat.tolist())
    return made


def tensor_value(proto: Any) -> NDArray[Any]:
    """Converts a `TensorProto` to an array; the last listed value repeats.

    Raises ValueError if the content does not match the shape.
    """
    dtype = dtype_of(proto.dtype)
    dims = shape_value(proto.tensor_shape).as_list()
    shape = tuple(dim for dim in dims if dim is not None)
    if len(shape) != len(dims) or dtype.name not in FIELDS:
        raise ValueError(f"a tensor of shape {dims} and dtype {dtype.name} has no values.")
    if not numpy_holds(shape, dtype.numpy_dtype.itemsize):
        raise ValueError(f"a tensor of shape {shape} is too large.")
    count = math.prod(shape)
    if proto.tensor_content:
        if len(proto.tensor_content) % dtype.numpy_dtype.itemsize or dtype.kind == "s":
            raise ValueError(f"{len(proto.tensor_content)} bytes hold no {dtype.name} values.")
        flat = np.frombuffer(proto.tensor_content, dtype.numpy_dtype.newbyteorder("<"))
        flat = flat.astype(dtype.numpy_dtype)
    else:
        try:
            flat = _listed(proto, dtype)
        except (OverflowError, ValueError) as error:
            raise ValueError(f"a tensor lists values that are no {dtype.name}: {error}") from error
    if flat.size > count:
        raise ValueError(f"a tensor of shape {shape} holds {flat.size} values.")
    if flat.size < count:
        if count * dtype.numpy_dtype.itemsize > _MOST_REPEATED:
            raise ValueError(f"a tensor of shape {shape} lists {flat.size} values only.")
        whole = np.empty(count, flat.dtype)
        whole[: flat.size] = flat
        # An empty list means zeros.
        whole[flat.size :] = flat[-1] if flat.size else b"" if dtype.kind == "s" else 0
        flat = whole
    return flat.reshape(shape)


def _listed(proto: Any, dtype: DType) -> NDArray[Any]:
    values = list(getattr(proto, FIELDS[dtype.name]))
    if dtype.name in ("float16", "bfloat16"):
        return np.array(values, np.uint16).view(dtype.numpy_dtype)
    if dtype.kind == "c":
        pairs = np.array(values, np.float64).reshape(-1, 2)
        return (pairs[:, 0] + 1j * pairs[:, 1]).astype(dtype.numpy_dtype)
    result = np.empty(len(values), dtype.numpy_dtype)
    result[:] = values
    return result
