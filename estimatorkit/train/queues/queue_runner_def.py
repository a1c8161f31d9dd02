"""`QueueRunnerDef`: the protocol buffer of a `QueueRunner`, compatible with TensorFlow's.

The `tensorboard` package lacks it. It has its own descriptor pool, so that TensorFlow may be
imported in the same process.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELDS = (
    ("queue_name", False),
    ("enqueue_op_name", True),
    ("close_op_name", False),
    ("cancel_op_name", False),
    ("queue_closed_exception_types", True),
)
"""Field names by number, and whether they are repeated."""


def _make() -> Any:
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="queue_runner.proto", package="tensorflow", syntax="proto3"
    )
    message = file.message_type.add(name="QueueRunnerDef")
    for number, (name, is_repeated) in enumerate(_FIELDS, 1):
        message.field.add(
            name=name,
            number=number,
            label=kinds.LABEL_REPEATED if is_repeated else kinds.LABEL_OPTIONAL,
            # TensorFlow uses an enum of status codes; the encoding is the same.
            type=kinds.TYPE_INT32 if name.endswith("types") else kinds.TYPE_STRING,
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName("tensorflow.QueueRunnerDef")
    return message_factory.GetMessageClass(found)


QueueRunnerDef: Any = _make()
