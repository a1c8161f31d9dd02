"""Lossless conversion of operation attributes to and from `AttrValue` protos.

| Python | AttrValue |
|---|---|
| int (64 bits), bool, str, DType, TensorShape | `i`, `b`, `s`, `type`, `shape` |
| float equal to its shortest decimal in float32 (0.001, 1e-8) | `f` |
| array | `tensor` |
| tuple of one of the above (no arrays), the empty tuple | `list` |
| others: None, bytes, list, dict, slice, other floats and tuples | `s`: `JSON_PREFIX`, JSON |

In the JSON, numbers (floats by `repr`), strings, bools, None and lists stand for themselves, and
`{"tag": name, "value": ...}` for anything else (see `_TAGS`). A string that begins with the prefix
is written as JSON too. Functions are `func`, by name (see `graphdef_functions`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import Spec
from estimatorkit.core.shapes import TensorShape
from estimatorkit.storage.tensor_proto import dtype_of, shape_value, tensor_proto, tensor_value

JSON_PREFIX = "estimatorkit-json:"
_INT64 = range(-(1 << 63), 1 << 63)


class FunctionName(NamedTuple):
    """A reference to a function of the graph's library (see `graphdef_functions`)."""

    name: str


class InMemory(NamedTuple):
    """A description, in a graph file, of a value that only the writing process had."""

    description: str


def encode(value: Any) -> Any:
    """Returns the `AttrValue` of an attribute."""
    from tensorboard.compat.proto.attr_value_pb2 import AttrValue

    if isinstance(value, np.ndarray):
        return AttrValue(tensor=tensor_proto(value))
    plain = _plain(value)
    if plain is not None:
        field, given = plain
        return AttrValue(**{field: given})
    if type(value) is tuple:
        parts = [_plain(each) for each in value]
        fields = {part[0] if part else "" for part in parts}
        if len(fields) <= 1 and "" not in fields:
            made = AttrValue(list=AttrValue.ListValue())
            for part in parts:
                if part is not None:
                    field, given = part
                    getattr(made.list, field).extend([given])
            return made
    return AttrValue(s=(JSON_PREFIX + json.dumps(_to_json(value))).encode())


def _plain(value: Any) -> tuple[str, Any] | None:
    """Returns the proto field and value if the proto has a field for the type, else None."""
    if type(value) is bool:
        return "b", value
    if _is_integer(value) and int(value) in _INT64:  # `in` would scan the range for non-integers
        return "i", int(value)
    if type(value) is float and _fits_float32(value):
        return "f", value
    if type(value) is str and not value.startswith(JSON_PREFIX):
        return "s", value.encode()
    if isinstance(value, DType):
        return "type", value.as_datatype_enum
    if isinstance(value, TensorShape):
        return "shape", value.as_proto()
    if isinstance(value, FunctionName):
        from tensorboard.compat.proto.attr_value_pb2 import NameAttrList

        return "func", NameAttrList(name=value.name)
    return None


def _is_integer(value: Any) -> bool:
    """Returns whether a value is an int or a known dimension."""
    return isinstance(value, int) and not isinstance(value, bool)


def _fits_float32(value: float) -> bool:
    with np.errstate(over="ignore"):
        return value != value or _from_float32(value) == value


def _from_float32(value: float) -> float:
    """Returns the number of the shortest float32 decimal: 0.001, not 0.0010000000474974513."""
    return float(str(np.float32(value)))


def decode(attr: Any) -> Any:
    """Returns the attribute of an `AttrValue`.

    Raises ValueError if it is empty, or not in this package's format.
    """
    field = attr.WhichOneof("value")
    if field == "tensor":
        return tensor_value(attr.tensor)
    if field == "list":
        held = [name for name, _ in attr.list.ListFields()]
        lists = {name.name: getattr(attr.list, name.name) for name in held}
        if len(lists) > 1:
            raise ValueError(f"a list attribute mixes {sorted(lists)}.")
        return tuple(_from_plain(name, each) for name, values in lists.items() for each in values)
    return _from_plain(field, getattr(attr, field) if field else None)


def _from_plain(field: str | None, value: Any) -> Any:
    if field == "s":
        text = value.decode()
        if text.startswith(JSON_PREFIX):
            return _from_json(json.loads(text[len(JSON_PREFIX) :]))
        return text
    if field == "type":
        return dtype_of(value)
    if field == "shape":
        return shape_value(value)
    if field == "f":
        return _from_float32(value)
    if field == "func":
        return FunctionName(value.name)
    if field in ("i", "b"):
        return value
    raise value_error("unsupported kind of attribute", received=field)


class _Tag(NamedTuple):
    """The JSON encoding of a Python type."""

    type: Any
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _write_array(value: NDArray[Any]) -> Any:
    return tensor_proto(value).SerializeToString().hex()


def _read_array(text: str) -> NDArray[Any]:
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    return tensor_value(TensorProto.FromString(bytes.fromhex(text)))


def _write_pairs(value: Mapping[Any, Any]) -> list[Any]:
    return [[_to_json(key), _to_json(each)] for key, each in value.items()]


_TAGS: dict[str, _Tag] = {
    "spec": _Tag(Spec, lambda spec: _items(spec), lambda items: Spec(*map(_from_json, items))),
    "function": _Tag(FunctionName, lambda value: value.name, FunctionName),
    "memory": _Tag(InMemory, lambda value: value.description, InMemory),
    "tuple": _Tag(tuple, lambda value: _items(value), lambda items: tuple(map(_from_json, items))),
    "dict": _Tag(
        dict,
        _write_pairs,
        lambda pairs: {_from_json(key): _from_json(value) for key, value in pairs},
    ),
    "bytes": _Tag(bytes, bytes.hex, bytes.fromhex),
    "complex": _Tag(complex, lambda value: [value.real, value.imag], lambda parts: complex(*parts)),
    "slice": _Tag(
        slice,
        lambda value: _items((value.start, value.stop, value.step)),
        lambda items: slice(*map(_from_json, items)),
    ),
    "ellipsis": _Tag(type(...), lambda _: None, lambda _: ...),
    "dtype": _Tag(DType, lambda value: value.name, as_dtype),
    "shape": _Tag(
        TensorShape, lambda value: None if value.dims is None else list(value.dims), TensorShape
    ),
    "array": _Tag(np.ndarray, _write_array, _read_array),
    "number": _Tag(
        np.generic,
        lambda value: _write_array(np.asarray(value)),
        lambda text: _read_array(text)[()],
    ),
}


def _items(values: Any) -> list[Any]:
    return [_to_json(each) for each in values]


def _to_json(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if _is_integer(value):
        return int(value)
    if type(value) is list:
        return _items(value)
    for name, tag in _TAGS.items():
        exact = type(value) is tag.type or (
            tag.type is np.generic and isinstance(value, np.generic)
        )
        if exact:
            return {"tag": name, "value": tag.write(value)}
    return _to_json(InMemory(repr(value)[:200]))


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_from_json, value))
    if isinstance(value, dict):
        return _TAGS[value["tag"]].read(value["value"])
    return value


def in_memory(value: Any) -> str | None:
    """Describes the in-memory values of an imported attribute; None for plain data."""
    if isinstance(value, InMemory):
        return value.description
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple)):
        return next((found for each in value if (found := in_memory(each))), None)
    return None


def is_plain(value: Any) -> bool:
    """Returns whether an attribute can be restored exactly."""
    return in_memory(decode(encode(value))) is None
