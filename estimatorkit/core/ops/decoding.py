"""Operations that read values from text and bytes: CSV records, raw numbers, tensors, JSON."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.attr_values import tensor_proto, tensor_value
from estimatorkit.core.conversion import constant, convert_to_tensor, make
from estimatorkit.core.dtypes import (
    DType,
    as_dtype,
    float32,
    float64,
    int32,
    int64,
    string,
)
from estimatorkit.core.errors import InvalidArgumentError, explain
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.number_text import to_number, to_numbers
from estimatorkit.core.ops.strings import mapped, register_string_op, string_array
from estimatorkit.core.registry import Case, Spec, apply, fixed, register
from estimatorkit.core.shapes import UNKNOWN
from estimatorkit.core.tensor import Tensor

# -- CSV


class _Malformed(Exception):
    """A record that is no CSV."""


def csv_fields(record: bytes, delimiter: bytes, quotes: bool) -> list[bytes]:
    """The fields of a record (RFC 4180; newlines before a field are skipped, as in TensorFlow).

    Raises:
        _Malformed: quotes or newlines stand where they may not.
    """
    if b"\n" not in record and b"\r" not in record and not (quotes and b'"' in record):
        return record.split(delimiter) if record else []
    fields, at, end = [], 0, len(record)
    while at < end:
        if record[at : at + 1] in (b"\n", b"\r"):
            at += 1
            continue
        field, at = (_quoted if quotes and record[at : at + 1] == b'"' else _unquoted)(
            record, at, delimiter, quotes
        )
        fields.append(field)
    if record.endswith(delimiter):
        fields.append(b"")
    return fields


def _unquoted(record: bytes, at: int, delimiter: bytes, quotes: bool) -> tuple[bytes, int]:
    """The field that begins at `at`, and where the next one does."""
    end = record.find(delimiter, at)
    field = record[at:] if end < 0 else record[at:end]
    if b"\n" in field or b"\r" in field or (quotes and b'"' in field):
        raise _Malformed("Unquoted fields cannot have quotes/CRLFs inside")
    return field, at + len(field) + 1


def _quoted(record: bytes, at: int, delimiter: bytes, quotes: bool) -> tuple[bytes, int]:
    parts = []
    begin = at + 1
    while True:
        quote = record.find(b'"', begin)
        if quote < 0:
            raise _Malformed("Quoted field has to end with quote followed by delim or end")
        after = record[quote + 1 : quote + 2]
        if after == b'"':
            parts.append(record[begin : quote + 1])
            begin = quote + 2
        elif after in (b"", delimiter):
            return b"".join((*parts, record[begin:quote])), quote + 2
        else:
            raise _Malformed("Quote inside a string has to be escaped by another quote")


def _decode_csv(
    records: Any,
    *defaults: Any,
    field_delim: str,
    use_quote_delim: bool,
    na_value: str,
    select_cols: tuple[int, ...],
) -> list[NDArray[Any]]:
    array = string_array(records)
    delimiter = field_delim.encode()
    rows = []
    for index, record in enumerate(array.reshape(-1).tolist()):
        try:
            fields = csv_fields(record, delimiter, use_quote_delim)
        except _Malformed as error:
            raise _csv_error(str(error), index, record) from error
        if select_cols:
            fields = [fields[place] for place in select_cols if place < len(fields)]
        if len(fields) != len(defaults):
            problem = f"Expect {len(defaults)} fields but have {len(fields)} in record {index}"
            raise _csv_error(problem, index, record)
        rows.append(fields)
    columns = list(zip(*rows, strict=True)) or [()] * len(defaults)
    return [
        _csv_column(column, position, np.asarray(default), na_value.encode()).reshape(array.shape)
        for position, (column, default) in enumerate(zip(columns, defaults, strict=True))
    ]


def _csv_column(
    column: Sequence[bytes], position: int, default: NDArray[Any], na_value: bytes
) -> NDArray[Any]:
    """One column's values: the default (none where the array is empty) for what is missing."""
    dtype = as_dtype(default.dtype)
    values: Sequence[Any]
    try:
        values = column if dtype is string else to_numbers(column, dtype)
    except ValueError:  # a field is missing, or malformed
        values = _csv_fields(column, position, default, na_value)
    else:
        if b"" in column or na_value in column:
            values = _csv_fields(column, position, default, na_value)
    result = np.empty(len(values), dtype.numpy_dtype)
    result[:] = values
    return result


def _csv_fields(
    column: Sequence[bytes], position: int, default: NDArray[Any], na_value: bytes
) -> list[Any]:
    """One column's values, one by one."""
    dtype = as_dtype(default.dtype)
    convert: Callable[[bytes], Any] = bytes if dtype is string else to_number(dtype)
    values: list[Any] = []
    for index, field in enumerate(column):
        if not field or field == na_value:
            if not default.size:
                problem = f"Field {position} is required but missing in record {index}!"
                raise _csv_error(problem, index, field)
            values.append(default.reshape(-1)[0])
            continue
        try:
            values.append(convert(field))
        except ValueError as error:
            shown = field.decode("utf-8", "backslashreplace")
            problem = f"Field {position} in record {index} is not a valid {dtype.name}: {shown}"
            raise _csv_error(problem, index, field) from error
    return values


def _csv_error(problem: str, index: int, received: bytes) -> InvalidArgumentError:
    return InvalidArgumentError(
        None, None, explain(problem, received=f"{received[:200]!r} (record {index} of the batch)")
    )


def _infer_csv(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(default.dtype, inputs[0].shape) for default in inputs[1:]]


register_string_op(
    "DecodeCSV",
    _decode_csv,
    lambda: [
        Case(
            (
                np.array([b'1,"a ""b""",x', b",,y"], object),
                np.array([7], np.int32),
                np.array(b"q", object),
            ),
            {
                "field_delim": ",",
                "use_quote_delim": True,
                "na_value": "",
                "select_cols": (0, 1),
            },
            (np.array([1, 7], np.int32), np.array([b'a "b"', b"q"], object)),
        )
    ],
    _infer_csv,
)


def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """The columns of CSV records (RFC 4180): a list of tensors of the shape of `records`.

    Args:
        records: strings, a record each.
        record_defaults: for each column a value, or a list or tensor of one, which gives the
            column's dtype (float32, float64, int32, int64 or string) and stands for missing fields;
            empty where the field must be there.
        field_delim: the character between fields.
        use_quote_delim: whether fields may be quoted.
        name: the operation's name.
        na_value: another text that says that a field is missing.
        select_cols: the columns that are read, rising; all by default.

    Raises:
        InvalidArgumentError: a record does not fit; names record and field (when the graph runs).
        ValueError: the arguments do not fit each other.
    """
    problem = None
    if select_cols is not None:
        if any(one >= two for one, two in itertools.pairwise(select_cols)):
            problem = "select_cols is not strictly increasing"
        elif select_cols and select_cols[0] < 0:
            problem = "select_cols contains negative values"
        elif len(select_cols) != len(record_defaults):
            problem = "Length of select_cols and record_defaults do not match"
    if problem:
        raise ValueError(explain(f"decode_csv: {problem}", received=list(select_cols or ())))
    if len(field_delim.encode()) != 1:
        raise InvalidArgumentError(
            None, None, explain("field_delim should be only 1 char", received=repr(field_delim))
        )
    attrs = {
        "field_delim": field_delim,
        "use_quote_delim": bool(use_quote_delim),
        "na_value": na_value,
        "select_cols": tuple(int(column) for column in select_cols or ()),
    }
    with get_default_graph().name_scope(name or "DecodeCSV") as scope:
        defaults = [
            convert_to_tensor(default, name=f"record_defaults_{position}")
            for position, default in enumerate(record_defaults)
        ]
        for position, default in enumerate(defaults):
            _check_default(default, position)
        values = convert_to_tensor(records, string, "records")
        return list(apply("DecodeCSV", [values, *defaults], attrs, scope).outputs)


def _check_default(default: Tensor, position: int) -> None:
    size = default.shape.num_elements()
    allowed = (float32, float64, int32, int64, string)
    if default.dtype not in allowed or (default.shape.rank or 0) > 1 or (size or 0) > 1:
        raise ValueError(
            explain(
                f"decode_csv: record default {position} cannot be used",
                expected="a scalar, or a vector of at most 1 element, of dtype "
                + ", ".join(dtype.name for dtype in allowed),
                received=default,
                made_at=default.op.source,
            )
        )


# -- raw numbers


def _decode_raw(value: Any, out_type: DType, little_endian: bool) -> NDArray[Any]:
    array = string_array(value)
    texts = array.reshape(-1).tolist()
    size = len(texts[0]) if texts else 0
    odd = next((place for place, text in enumerate(texts) if len(text) != size), None)
    if odd is not None:
        raise InvalidArgumentError(
            None,
            None,
            explain(
                "DecodeRaw requires input strings to all be the same size, but element "
                f"{odd} has size {size} != {len(texts[odd])}"
            ),
        )
    native = out_type.numpy_dtype
    if size % native.itemsize:
        raise InvalidArgumentError(
            None,
            None,
            explain(
                f"Input to DecodeRaw has length {size} that is not a multiple of "
                f"{native.itemsize}, the size of {out_type.name}"
            ),
        )
    data = np.frombuffer(b"".join(texts), native)
    # bfloat16 has no byte order of its own; swapping acts on any item of two bytes.
    ordered = data if little_endian else data.byteswap()
    return ordered.reshape(*array.shape, size // native.itemsize).copy()


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
)


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """The numbers whose bytes strings hold: a tensor with one dimension more.

    Args:
        input_bytes: strings, all equally long.
        out_type: the dtype of the numbers.
        little_endian: the order of the bytes of a number.
        name: the operation's name.
        bytes: the older name of `input_bytes`.
    """
    if out_type is None:
        raise ValueError(explain("decode_raw: out_type is missing", expected="a dtype"))
    dtype = as_dtype(out_type)
    if dtype.size == 0:
        raise TypeError(explain("decode_raw: out_type is no dtype of numbers", received=dtype.name))
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
        raise InvalidArgumentError(
            None,
            None,
            explain(
                "Could not parse `serialized` as TensorProto",
                expected="what serialize_tensor gave",
                received=f"{data[:100]!r} ({error})",
            ),
        ) from error
    found = as_dtype(value.dtype)
    if found is not out_type:
        raise InvalidArgumentError(
            None,
            None,
            explain(
                f"Type mismatch between parsed tensor ({found.name}) and dtype ({out_type.name})",
                expected=out_type.name,
                received=f"{found.name} {value.shape}",
            ),
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
    """A tensor as a serialized `TensorProto`: a scalar string."""
    return make("SerializeTensor", {"tensor": tensor}, {}, name)


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """The tensor that a serialized `TensorProto` holds, of unknown shape.

    Args:
        serialized: a scalar string.
        out_type: the tensor's dtype.
        name: the operation's name.

    Raises:
        InvalidArgumentError: it is none, or of another dtype (when the graph runs).
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
    """A `TensorProto` of values, as `constant` would make a tensor of them.

    Args:
        values: numbers, strings or bools, nested in lists as wished, or an array.
        dtype: the dtype; by default that of `constant`.
        shape: the shape; a value with fewer elements is filled up with its last one.
        verify_shape: refuse a value that does not have `shape` already.
        allow_broadcast: accepted for TensorFlow's signature.
    """
    with Graph().as_default():  # a constant's rules, without leaving one behind
        made = constant(values, dtype, shape, verify_shape=verify_shape)
    return tensor_proto(made.op.attrs["value"])


def make_ndarray(tensor: Any) -> NDArray[Any]:
    """The array that a `TensorProto` holds.

    Raises:
        ValueError: the content does not fit the shape.
    """
    return tensor_value(tensor)


# -- JSON


def _json_to_example(text: bytes) -> bytes:
    from google.protobuf import json_format

    from estimatorkit.core.example_proto import Example

    try:
        example = json_format.Parse(text.decode(), Example())
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidArgumentError(
            None,
            None,
            explain(
                f"Error while parsing JSON: {error}",
                expected="an Example in protobuf's JSON form",
                received=repr(text[:200]),
            ),
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
    """Serialized `Example`s of examples in protobuf's JSON form: strings of the same shape."""
    inputs = {"json_examples": json_examples}
    return make("DecodeJSONExample", inputs, {}, name, dtypes={"json_examples": string})


__all__ = [
    "decode_csv",
    "decode_json_example",
    "decode_raw",
    "make_ndarray",
    "make_tensor_proto",
    "parse_tensor",
    "serialize_tensor",
]
