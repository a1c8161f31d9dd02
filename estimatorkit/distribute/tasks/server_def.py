"""`ServerDef`: the proto of one task's server (`tf.train.ServerDef`).

The package `tensorboard`, which has the messages in it, lacks it. Its package name is this
project's, so that TensorFlow may be imported beside it.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorboard.compat.proto import cluster_pb2, config_pb2

_STRING = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
_MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
_FIELDS = (
    ("cluster", 1, _MESSAGE, cluster_pb2.ClusterDef),
    ("job_name", 2, _STRING, None),
    ("task_index", 3, descriptor_pb2.FieldDescriptorProto.TYPE_INT32, None),
    ("default_session_config", 4, _MESSAGE, config_pb2.ConfigProto),
    ("protocol", 5, _STRING, None),
    ("port", 6, descriptor_pb2.FieldDescriptorProto.TYPE_INT32, None),
)


def _make() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="estimatorkit/server.proto",
        package="estimatorkit",
        syntax="proto3",
        dependency=[cluster_pb2.DESCRIPTOR.name, config_pb2.DESCRIPTOR.name],
    )
    message = file.message_type.add(name="ServerDef")
    for name, number, kind, inner in _FIELDS:
        field = message.field.add(
            name=name,
            number=number,
            type=kind,
            label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
        )
        if inner is not None:
            field.type_name = f".{inner.DESCRIPTOR.full_name}"
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("estimatorkit.ServerDef"))


ServerDef: Any = _make()

__all__ = ["ServerDef"]
