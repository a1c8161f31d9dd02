"""Decoding of bytes: raw numbers, serialized tensors, JSON (for CSV see `csv_records`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import constant, make
from estimatorkit.core.dtypes import DType, as_dtype, string
from estimatorkit.core.errors import InvalidArgumentError, type_error, value_error
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Case, Spec, fixed, register
from estimatorkit.core.shapes import UNKNOWN
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.text.strings import mapped, register_string_op, string_array
from estimatorkit.runtime.steps.columns import RaggedColumn
from estimatorkit.storage.tensor_proto import tensor_proto, tensor_value

# -- raw numbers


def _decode_raw(value: Any, out_type: DType, little_endian: bool) -> NDArray[Any]:
    array = string_array(value)
    texts = array.reshape(-1).tolist()
    size = len(texts[0]) if texts else 0
    odd = next((place for place, text in enumerate(texts) if len(text) != size), None)
    if odd is not None:
        raise InvalidArgumentError.explained(
            "DecodeRaw requires input strings to all be the same size, but element "
            f"{odd} has size {size} != {len(texts[odd])}"
        )
    native = out_type.numpy_dtype
    if size % native.itemsize:
        raise InvalidArgumentError.explained(
            f"Input to DecodeRaw has length {size} that is not a multiple of "
            f"{native.itemsize}, the size of {out_type.name}"
        )
    data = np.frombuffer(b"".join(texts), native)
    # bfloat16 has no byte order of its own; byteswap works on any two-byte items.
    ordered = data if little_endian else data.byteswap()
    return ordered.reshape(*array.shape, size // native.itemsize).copy()


def _decode_raw_block(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Any] | None:
    """Decodes a block of strings, which may differ in length, into one row each."""
    if not isinstance(inputs[0], np.ndarray) or inputs[0].ndim > 1:
        return None
    texts = inputs[0].tolist()
    sizes = np.array([len(text) for text in texts], np.int64)
    item = attrs["out_type"].numpy_dtype.itemsize
    if (sizes == sizes[0]).all() or (sizes % item).any():
        return [_decode_raw(inputs[0], **attrs)]
    whole = np.empty(1, object)
    whole[0] = b"".join(texts)
    return [RaggedColumn(_decode_raw(whole, **attrs)[0], (sizes // item)[:, None])]


def _infer_decode_raw(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(attrs["out_type"], inputs[0].shape.concatenate([None]))]


register_string_op(
    "DecodeRaw",
    _decode_raw,
    lambda: [
        Case(
            (np.array([b"\1\0\2\0"], object),),
            {"out_type": as_dtype("int16"), "little_endian": little},
            np.array([expected], np.int16),
        )
        for little, expected in ((True, [1, 2]), (False, [256, 512]))
    ],
    _infer_decode_raw,
    on_block=_decode_raw_block,
)


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """Reinterprets the bytes of strings as numbers, along a new last dimension.

    Args:
        input_bytes: strings of equal length.
        out_type: the dtype of the numbers.
        little_endian: the byte order.
        bytes: deprecated alias of `input_bytes`.
    """
    if out_type is None:
        raise value_error("decode_raw: out_type is missing", expected="a dtype")
    dtype = as_dtype(out_type)
    if dtype.size == 0:
        raise type_error("decode_raw: out_type must be a numeric dtype", received=dtype.name)
    attrs = {"out_type": dtype, "little_endian": bool(little_endian)}
    value = bytes if input_bytes is None else input_bytes
    return make("DecodeRaw", {"bytes": value}, attrs, name, dtypes={"bytes": string})


# -- tensors


def _serialize(value: Any) -> NDArray[Any]:
    array = np.asarray(value)
    proto = tensor_proto(string_array(array) if array.dtype.kind == "S" else array)
    return string_array(proto.SerializeToString())


register(
    "SerializeTensor",
    _serialize,
    infer=fixed(string),
    gradient=None,
    where="host",
    cases=lambda: [
        Case(
            (np.array([1, 2], np.uint8),),
            {},
            np.array(b'\x08\x04\x12\x04\x12\x02\x08\x02"\x02\x01\x02', object),
        )
    ],
)


def _parse_tensor(serialized: Any, out_type: DType) -> NDArray[Any]:
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    data = string_array(serialized)[()]
    try:
        proto = TensorProto.FromString(data)
        value = tensor_value(proto)
    except (DecodeError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise InvalidArgumentError.explained(
            "Could not parse `serialized` as TensorProto",
            expected="the result of serialize_tensor",
            received=f"{data[:100]!r} ({error})",
        ) from error
    found = as_dtype(value.dtype)
    if found is not out_type:
        raise InvalidArgumentError.explained(
            f"Type mismatch between parsed tensor ({found.name}) and dtype ({out_type.name})",
            expected=out_type.name,
            received=f"{found.name} {value.shape}",
        )
    return value


register_string_op(
    "ParseTensor",
    _parse_tensor,
    lambda: [
        Case(
            (np.array(b'\x08\x04\x12\x04\x12\x02\x08\x02"\x02\x01\x02', object),),
            {"out_type": as_dtype("uint8")},
            np.array([1, 2], np.uint8),
        )
    ],
    lambda inputs, attrs: [Spec(attrs["out_type"], UNKNOWN)],
)


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """Serializes a tensor as a `TensorProto`: a scalar string."""
    return make("SerializeTensor", {"tensor": tensor}, {}, name)


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """Parses a serialized `TensorProto` into a tensor of unknown shape.

    Args:
        serialized: a scalar string.
        out_type: the tensor's dtype.

    Raises:
        InvalidArgumentError: at run time, it is not a valid proto or has another dtype.
    """
    attrs = {"out_type": as_dtype(out_type)}
    inputs = {"serialized": serialized}
    return make("ParseTensor", inputs, attrs, name, dtypes={"serialized": string})


def make_tensor_proto(
    values: Any,
    dtype: Any = None,
    shape: Any = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> Any:
    """Makes a `TensorProto`, with the conversion rules of `constant`.

    Args:
        values: numbers, strings or bools, nested in lists to any depth, or an array.
        dtype: by default that of `constant`.
        shape: the shape; if `values` has fewer elements, the last one is repeated.
        verify_shape: whether to reject values that do not already have this shape.
        allow_broadcast: accepted for compatibility only.
    """
    with Graph().as_default():  # scratch graph: applies the rules of `constant`
        made = constant(values, dtype, shape, verify_shape=verify_shape)
    return tensor_proto(made.op.attrs["value"])


def make_ndarray(tensor: Any) -> NDArray[Any]:
    """Converts a `TensorProto` to an array.

    Raises:
        ValueError: the content does not fit the shape.
    """
    return tensor_value(tensor)


# -- JSON


def _json_to_example(text: bytes) -> bytes:
    from google.protobuf import json_format

    from estimatorkit.storage.example_proto import Example

    try:
        example = json_format.Parse(text.decode(), Example())
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidArgumentError.explained(
            f"Error while parsing JSON: {error}",
            expected="an Example in protobuf's JSON form",
            received=repr(text[:200]),
        ) from error
    serialized: bytes = example.SerializeToString(deterministic=True)
    return serialized


register_string_op(
    "DecodeJSONExample",
    lambda value: mapped(_json_to_example, value),
    lambda: [
        Case(
            (
                np.array(
                    [b'{"features": {"feature": {"a": {"int64List": {"value": [3]}}}}}'], object
                ),
            ),
            {},
            np.array([b"\n\x0c\n\n\n\x01a\x12\x05\x1a\x03\n\x01\x03"], object),
        )
    ],
)


def decode_json_example(json_examples: Any, name: str | None = None) -> Tensor:
    """Converts `Example`s from protobuf's JSON format to serialized ones: strings of the same
    shape.
    """
    inputs = {"json_examples": json_examples}
    return make("DecodeJSONExample", inputs, {}, name, dtypes={"json_examples": string})


__all__ = [
    "decode_json_example",
    "decode_raw",
    "make_ndarray",
    "make_tensor_proto",
    "parse_tensor",
    "serialize_tensor",
]
