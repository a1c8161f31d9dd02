"""`io.decode_proto`: fields of serialized protocol buffers of any message type."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, int32, string
from estimatorkit.core.errors import DataLossError, value_error
from estimatorkit.core.registry import Case, Spec, apply, register
from estimatorkit.core.shapes import UNKNOWN
from estimatorkit.core.tensor import Tensor

# Dtypes into which the fields of each C++ type can be read.
_DTYPES = {
    "INT32": ("int32", "int64"),
    "INT64": ("int64",),
    "UINT32": ("uint32", "uint64"),
    "UINT64": ("uint64",),
    "FLOAT": ("float32", "float64"),
    "DOUBLE": ("float64",),
    "BOOL": ("bool",),
    "ENUM": ("int32",),
    "STRING": ("string",),
    "MESSAGE": ("string",),
}

_NO_FILE = (b"", b"local://", b"bytes://")


@functools.lru_cache(maxsize=64)
def _message_class(message_type: str, source: bytes) -> Any:
    """The class of a message type.

    Raises:
        ValueError: the source cannot be read, or lacks the type.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    if source in (b"", b"local://"):
        from estimatorkit.storage.example_proto import Example

        pools: list[Any] = [descriptor_pool.Default(), Example.DESCRIPTOR.file.pool]
    else:
        pools = [descriptor_pool.DescriptorPool()]
        for each in descriptor_pb2.FileDescriptorSet.FromString(_descriptors(source)).file:
            pools[0].Add(each)
    for pool in pools:
        try:
            return message_factory.GetMessageClass(pool.FindMessageTypeByName(message_type))
        except KeyError:
            pass
    raise ValueError(f"No descriptor found for message type {message_type}")


def _descriptors(source: bytes) -> bytes:
    if source.startswith(b"bytes://"):
        return source[len(b"bytes://") :]
    from estimatorkit.storage.filesystem import open_file

    with open_file(source.decode(), "rb") as file:
        found: bytes = file.read()
    return found


def _fields(message_class: Any, names: Sequence[str], dtypes: Sequence[DType]) -> list[Any]:
    fields = message_class.DESCRIPTOR.fields_by_name
    found = []
    for name, dtype in zip(names, dtypes, strict=True):
        if name not in fields:
            raise ValueError(f"Unknown field: {name} in message {message_class.DESCRIPTOR.name}")
        field = fields[name]
        kind = next(k for k in _DTYPES if getattr(field, f"CPPTYPE_{k}") == field.cpp_type)
        if dtype.name not in _DTYPES[kind]:
            raise ValueError(
                f"Unexpected output type for {field.full_name}: {kind.lower()} to {dtype.name}: "
                f"expected one of {', '.join(_DTYPES[kind])}"
            )
        found.append(field)
    return found


def _values(message: Any, field: Any) -> list[Any]:
    repeated = _is_repeated(field)
    if not repeated and not _is_present(message, field):
        return []
    held = getattr(message, field.name)
    return [_plain(each) for each in (held if repeated else [held])]


def _is_repeated(field: Any) -> bool:
    found: bool | None = getattr(field, "is_repeated", None)  # of newer versions of protobuf
    return field.label == field.LABEL_REPEATED if found is None else found


def _is_present(message: Any, field: Any) -> bool:
    return any(each.number == field.number for each, _ in message.ListFields())


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return value.SerializeToString() if hasattr(value, "SerializeToString") else value


def _default(field: Any) -> Any:
    """What fills up a shorter list: the default of a single field, else zero."""
    if _is_repeated(field) or field.cpp_type == field.CPPTYPE_MESSAGE:
        return b"" if field.cpp_type in (field.CPPTYPE_MESSAGE, field.CPPTYPE_STRING) else 0
    return _plain(field.default_value)


def _decode(
    serialized: Any,
    message_type: str,
    field_names: Sequence[str],
    output_types: Sequence[DType],
    source: bytes,
    text: bool,
) -> tuple[NDArray[Any], ...]:
    from google.protobuf import message, text_format

    message_class = _message_class(message_type, source)
    fields = _fields(message_class, field_names, output_types)
    rows = []
    for each in np.asarray(serialized, object).reshape(-1):
        try:
            read = message_class()
            text_format.Parse(each, read) if text else read.ParseFromString(each)
        except (message.DecodeError, text_format.ParseError) as error:
            raise DataLossError(None, None, f"Unable to parse the message: {error}") from error
        rows.append([_values(read, field) for field in fields])
    shape = np.shape(serialized)
    sizes = np.array([[len(values) for values in row] for row in rows], np.int32)
    columns = []
    for at, (field, dtype) in enumerate(zip(fields, output_types, strict=True)):
        width = max((len(row[at]) for row in rows), default=0)
        width = width if _is_repeated(field) else 1
        filled = [row[at] + [_default(field)] * (width - len(row[at])) for row in rows]
        kind = object if dtype is string else dtype.numpy_dtype
        columns.append(np.array(filled, kind).reshape(*shape, width))
    return sizes.reshape(*shape, len(fields)), *columns


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    shape = inputs[0].shape
    known = shape.dims is not None
    return [
        Spec(int32, shape.concatenate([len(attrs["field_names"])]) if known else UNKNOWN),
        *(Spec(each, shape.concatenate([None])) for each in attrs["output_types"]),
    ]


register(
    "DecodeProtoV2",
    _decode,
    where="host",
    infer=_infer,
    gradient=None,
    accepts="s",
    effects=lambda attrs: "" if attrs["source"][:8] in _NO_FILE else "files",
    cases=lambda: [
        Case(
            (np.array([b"\n\x03abc\x12\x01d", b""], object),),
            {
                "message_type": "google.protobuf.FileDescriptorProto",
                "field_names": ("name", "dependency"),
                "output_types": (string, string),
                "source": b"local://",
                "text": False,
            },
            (
                np.array([[1, 0], [0, 0]], np.int32),
                np.array([[b"abc"], [b""]], object),
                np.array([[], []], object),
            ),
        )
    ],
)


def decode_proto(
    bytes: Any,
    message_type: str,
    field_names: Sequence[str],
    output_types: Sequence[Any],
    descriptor_source: Any = "local://",
    message_format: str = "binary",
    sanitize: bool = False,
    name: str | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """Decodes fields of serialized protocol buffers.

    Args:
        bytes: a string tensor of any shape, one message per element.
        message_type: the full name of the messages' type.
        field_names: the fields.
        output_types: a dtype for each field; messages within are string, serialized.
        descriptor_source: `"local://"` for types that the program has imported (and those of
            `Example`), `b"bytes://"` with a serialized `FileDescriptorSet` behind it, or a file
            of one.
        message_format: "binary" or "text".
        sanitize: accepted for compatibility only.
        name: the operation's name.

    Returns:
        `(sizes, values)`: int32 of the shape of `bytes` and one number for each field, how often
        it occurs; for each field a tensor of the shape of `bytes` and the most occurrences, filled
        up with the default.

    Raises:
        ValueError: the format is unknown, or there are not as many dtypes as fields.
        InvalidArgumentError: at run time, there is no such type or field, or it has another dtype.
        DataLossError: at run time, a message cannot be parsed.
    """
    if message_format not in ("binary", "text"):
        raise value_error(
            "decode_proto: message_format must be 'binary' or 'text'", received=message_format
        )
    names, dtypes = tuple(field_names), tuple(map(as_dtype, output_types))
    if len(names) != len(dtypes):
        raise value_error(
            "decode_proto: field_names and output_types attributes must have the same length",
            received=f"{len(names)} and {len(dtypes)}",
        )
    source = descriptor_source
    attrs = {
        "message_type": message_type,
        "field_names": names,
        "output_types": dtypes,
        "source": source.encode() if isinstance(source, str) else source,
        "text": message_format == "text",
    }
    serialized = convert_to_tensor(bytes, string, name="bytes")
    sizes, *values = apply("DecodeProtoV2", [serialized], attrs, name).outputs
    return sizes, values
