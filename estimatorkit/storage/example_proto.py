"""Protobuf classes of `Example` and `SequenceExample`.

TensorFlow's `example.proto` and `feature.proto` are declared here for the `protobuf` runtime, in a
separate descriptor pool, since TensorFlow may be imported in the same process.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FILE = "tensorflow/core/example/example.proto"
_FIELD = descriptor_pb2.FieldDescriptorProto

_LISTS = {
    "BytesList": _FIELD.TYPE_BYTES,
    "FloatList": _FIELD.TYPE_FLOAT,
    "Int64List": _FIELD.TYPE_INT64,
}
_MESSAGES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Feature": (
        ("bytes_list", "one of", "BytesList"),
        ("float_list", "one of", "FloatList"),
        ("int64_list", "one of", "Int64List"),
    ),
    "Features": (("feature", "map", "Feature"),),
    "FeatureList": (("feature", "repeated", "Feature"),),
    "FeatureLists": (("feature_list", "map", "FeatureList"),),
    "Example": (("features", "one", "Features"),),
    "SequenceExample": (("context", "one", "Features"), ("feature_lists", "one", "FeatureLists")),
}
"""Fields by message, numbered from 1: name, cardinality, type."""


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=_FILE, package="tensorflow", syntax="proto3")
    for name, element in _LISTS.items():
        message = file.message_type.add(name=name)
        message.field.add(name="value", number=1, type=element, label=_FIELD.LABEL_REPEATED)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (field, count, kind) in enumerate(fields, start=1):
            _add_field(message, field, number, count, kind)
    return file


def _add_field(message: Any, name: str, number: int, count: str, kind: str) -> None:
    repeated = count in ("map", "repeated")
    made = message.field.add(
        name=name,
        number=number,
        type=_FIELD.TYPE_MESSAGE,
        type_name=f".tensorflow.{kind}",
        label=_FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL,
    )
    if count == "one of":
        if not message.oneof_decl:
            message.oneof_decl.add(name="kind")
        made.oneof_index = 0
    if count == "map":  # on the wire a map is a list of entries
        entry = message.nested_type.add(
            name="".join(word.capitalize() for word in name.split("_")) + "Entry"
        )
        entry.options.map_entry = True
        optional = _FIELD.LABEL_OPTIONAL
        entry.field.add(name="key", number=1, type=_FIELD.TYPE_STRING, label=optional)
        entry.field.add(
            name="value",
            number=2,
            type=_FIELD.TYPE_MESSAGE,
            type_name=made.type_name,
            label=optional,
        )
        made.type_name = f".tensorflow.{message.name}.{entry.name}"


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tensorflow.{name}"))
        for name in (*_LISTS, *_MESSAGES)
    }


_made = _classes()
BytesList: Any = _made["BytesList"]
Example: Any = _made["Example"]
Feature: Any = _made["Feature"]
FeatureList: Any = _made["FeatureList"]
FeatureLists: Any = _made["FeatureLists"]
Features: Any = _made["Features"]
FloatList: Any = _made["FloatList"]
Int64List: Any = _made["Int64List"]
SequenceExample: Any = _made["SequenceExample"]
