"""Arrays, dtypes and shapes as `TensorProto`, `DataType` and `TensorShapeProto`, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import ALL, DType, as_dtype
from estimatorkit.core.errors import value_error
from estimatorkit.core.shapes import TensorShape, as_shape

_MOST_REPEATED = 1 << 27
"""Elements; a file of a few bytes must not take more memory than that."""

_BY_ENUM = {dtype.as_datatype_enum: dtype for dtype in ALL.values()}


def dtype_of(enum: int) -> DType:
    """The dtype of this number in `types.proto`; reference dtypes (above 100) are their base's.

    Raises:
        ValueError: there is no such dtype here.
    """
    found = _BY_ENUM.get(enum - 100 if enum > 100 else enum)
    if found is None:
        raise value_error(
            f"DataType {enum} does not exist here",
            expected=", ".join(f"{dtype.as_datatype_enum} {name}" for name, dtype in ALL.items()),
        )
    return found


def shape_value(proto: Any) -> TensorShape:
    """The shape that a `TensorShapeProto` holds."""
    return TensorShape(None if proto.unknown_rank else [dim.size for dim in proto.dim])


def tensor_proto(array: NDArray[Any]) -> Any:
    """The `TensorProto` of an array: its bytes, or its strings."""
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
"""The field that lists a dtype's values, by its name."""


def compact_tensor_proto(values: NDArray[Any], shape: tuple[int, ...]) -> Any:
    """The `TensorProto` of a shape whose elements are few values, the last of them repeated."""
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
    """The array that a `TensorProto` holds; where it lists fewer values, the last one is repeated.

    Raises:
        ValueError: the content does not fit the shape.
    """
    dtype = dtype_of(proto.dtype)
    shape = tuple(shape_value(proto.tensor_shape).as_list())
    count = int(np.prod(shape, dtype=np.int64))  # type: ignore[arg-type]
    if proto.tensor_content:
        flat = np.frombuffer(proto.tensor_content, dtype.numpy_dtype.newbyteorder("<"))
        flat = flat.astype(dtype.numpy_dtype)
    else:
        flat = _listed(proto, dtype)
    if flat.size > count or (flat.size == 0 and count and dtype.kind == "r"):
        raise ValueError(f"a tensor of shape {shape} holds {flat.size} values.")
    if count > max(flat.size, _MOST_REPEATED):
        raise ValueError(f"a tensor of shape {shape} lists {flat.size} values only.")
    if flat.size < count:  # nothing listed means zeros
        last = flat[-1:] if flat.size else np.array([b"" if dtype.kind == "s" else 0], flat.dtype)
        flat = np.concatenate([flat, np.repeat(last, count - flat.size)])
    return flat.reshape(shape)  # type: ignore[arg-type]


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
