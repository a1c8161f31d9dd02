"""Readers: records of files whose names come from a queue.

A reader is a handle in the graph; its current file and position live in the session
(`HostReader`). `read` returns the next record, and dequeues the next name at the end of a file;
the records end when the queue does. One generator per kind of reader splits a file into records.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int64, string
from estimatorkit.core.errors import InvalidArgumentError, OpError, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Spec, apply, fixed, no_outputs, register, register_handle
from estimatorkit.core.shapes import SCALAR, TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.queues.queue_resource import Blocking
from estimatorkit.ops.queues.queues import QueueBase, host_queue
from estimatorkit.storage.filesystem import file_errors, open_file
from estimatorkit.storage.records import TFRecordOptions, records_with_offsets

Record = tuple[bytes, bytes]
"""A key and a value."""


# -- records of a file


def _whole_file(name: bytes) -> Iterator[Record]:
    yield name, _content(name)


def _content(name: bytes, coding: str = "") -> bytes:
    path = os.fsdecode(name)
    with open_file(path, compression=coding) as file, file_errors("read", path):
        content: bytes = file.read()
    return content


def _text_lines(name: bytes, skip_header_lines: int = 0) -> Iterator[Record]:
    path = os.fsdecode(name)
    with open_file(path) as file, file_errors("read", path):
        for number, line in enumerate(file, 1):
            if number > skip_header_lines:
                yield b"%s:%d" % (name, number), line.rstrip(b"\n").replace(b"\r", b"")


def _fixed_length(
    name: bytes,
    record_bytes: int,
    header_bytes: int,
    footer_bytes: int,
    hop_bytes: int,
    coding: str,
) -> Iterator[Record]:
    data = _content(name, coding)
    data = data[header_bytes : len(data) - footer_bytes]
    starts = range(0, len(data) - record_bytes + 1, hop_bytes or record_bytes)
    for number, start in enumerate(starts):
        yield b"%s:%d" % (name, number), data[start : start + record_bytes]


def _tf_records(name: bytes, compression: str) -> Iterator[Record]:
    start = 0
    for end, record in records_with_offsets(name, compression):
        yield b"%s:%d" % (name, start), record
        start = end


def _identity(name: bytes) -> Iterator[Record]:
    yield name, name


_KINDS: dict[str, Callable[..., Iterator[Record]]] = {
    "WholeFileReader": _whole_file,
    "TextLineReader": _text_lines,
    "FixedLengthRecordReader": _fixed_length,
    "TFRecordReader": _tf_records,
    "IdentityReader": _identity,
}


# -- a reader's state in a session


class HostReader(Blocking):
    """The position of a reader."""

    def __init__(self, kind: str, attrs: Mapping[str, Any]) -> None:
        super().__init__()
        self._kind = kind
        self._attrs = attrs
        self._forget()

    def _forget(self) -> None:
        self._file: Iterator[Record] | None = None
        self._name = b""
        self._in_file = 0
        self.produced = 0
        self.completed = 0

    def read(self, queue: str, count: int, context: Any) -> list[Record]:
        """The next records: at least one and at most `count`, from one file.

        Raises:
            OpError: the file cannot be read; the subclass indicates the cause.
            OutOfRangeError: the queue of names is closed and empty.
        """
        with self.alone(context, "Read operation was cancelled"):
            while True:
                if self._file is None:
                    ((name,),) = host_queue(context, queue).dequeue(1, context)
                    self._start(name.item())
                records = self._take(count)
                if records:
                    return records

    def _start(self, name: bytes, skip: int = 0) -> None:
        self._file = itertools.islice(_KINDS[self._kind](name, **self._attrs), skip, None)
        self._name, self._in_file = name, skip

    def _take(self, count: int) -> list[Record]:
        file = self._file or iter(())
        try:
            records = list(itertools.islice(file, count))
        except OpError:
            self._file = None  # the next read starts the next file
            raise
        if len(records) < count:
            self._file = None
            self.completed += 1
        self._in_file += len(records)
        self.produced += len(records)
        return records

    def reset(self, context: Any) -> None:
        """Forgets the file and resets the counters."""
        with self.alone(context, "Reset operation was cancelled"):
            self._forget()

    def state(self, context: Any) -> bytes:
        """The serialized position, for `restore`."""
        with self.alone(context, "Serialize operation was cancelled"):
            state = {
                "kind": self._kind,
                "file": None
                if self._file is None
                else self._name.decode("utf-8", "surrogateescape"),
                "in_file": self._in_file,
                "produced": self.produced,
                "completed": self.completed,
            }
        return json.dumps(state).encode()

    def restore(self, data: bytes, context: Any) -> None:
        """Restores a position from `state`; raises InvalidArgumentError if it is invalid."""
        try:
            state = json.loads(data)
            kind, file = state["kind"], state["file"]
            counts = [state[name] for name in ("in_file", "produced", "completed")]
            if not (file is None or isinstance(file, str)) or not all(map(_is_count, counts)):
                raise ValueError("a value of another type")
            name = None if file is None else file.encode("utf-8", "surrogateescape")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidArgumentError.explained(
                "Could not parse state of a reader",
                expected="the result of serialize_state()",
                received=repr(data)[:200],
            ) from error
        if kind != self._kind:
            raise InvalidArgumentError.explained(
                "the state is that of another kind of reader", expected=self._kind, received=kind
            )
        with self.alone(context, "Restore operation was cancelled"):
            self._forget()
            if name is not None:
                self._start(name, counts[0])
            self.produced, self.completed = counts[1:]


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def host_reader(context: Any, name: str) -> HostReader:
    """The position of the reader whose handle has this name, in a session."""
    op: Operation = context.graph.get_operation_by_name(name)
    kind = op.type.removesuffix("V2")
    held: HostReader = context.resource(name, lambda: HostReader(kind, op.attrs))
    return held


# -- operations


def _read(*, reader: str, queue: str, context: Any) -> list[Any]:
    ((key, value),) = host_reader(context, reader).read(queue, 1, context)
    return [np.array(key, object), np.array(value, object)]


def _read_up_to(count: Any, *, reader: str, queue: str, context: Any) -> list[Any]:
    records = host_reader(context, reader).read(queue, int(count), context)
    return [np.array(column, object) for column in zip(*records, strict=True)]


def _restore(state: Any, *, reader: str, context: Any) -> list[Any]:
    host_reader(context, reader).restore(np.asarray(state).item(), context)
    return []


def _reset(*, reader: str, context: Any) -> list[Any]:
    host_reader(context, reader).reset(context)
    return []


for _kind in _KINDS:
    register_handle(f"{_kind}V2", "a reader")

_VECTOR = TensorShape([None])
for _type, _kernel, _infer in (
    ("ReaderReadV2", _read, lambda inputs, attrs: [Spec(string, SCALAR)] * 2),
    ("ReaderReadUpToV2", _read_up_to, lambda inputs, attrs: [Spec(string, _VECTOR)] * 2),
    (
        "ReaderNumRecordsProducedV2",
        lambda *, reader, context: np.asarray(host_reader(context, reader).produced, np.int64),
        fixed(int64),
    ),
    (
        "ReaderNumWorkUnitsCompletedV2",
        lambda *, reader, context: np.asarray(host_reader(context, reader).completed, np.int64),
        fixed(int64),
    ),
    (
        "ReaderSerializeStateV2",
        lambda *, reader, context: np.array(host_reader(context, reader).state(context), object),
        fixed(string),
    ),
    ("ReaderRestoreStateV2", _restore, no_outputs),
    ("ReaderResetV2", _reset, no_outputs),
):
    register(
        _type,
        _kernel,
        infer=_infer,
        gradient=None,
        where="host",
        context=True,
        pure=False,
        holder="reader",
        effects="files" if _type in ("ReaderReadV2", "ReaderReadUpToV2") else "",
    )


class ReaderBase:
    """Base class of readers; keys and values are strings."""

    def __init__(self, kind: str, attrs: dict[str, Any], name: str | None) -> None:
        with get_default_graph().init_scope():
            self._handle = apply(f"{kind}V2", (), attrs, name or f"{kind}V2")

    @property
    def reader_ref(self) -> Operation:
        """The handle, an operation."""
        return self._handle

    @property
    def supports_serialize(self) -> bool:
        """Whether `serialize_state` works: True."""
        return True

    def _op(
        self, op_type: str, name: str | None, inputs: Sequence[Tensor] = (), **attrs: Any
    ) -> Operation:
        attrs = {"reader": self._handle.name, **attrs}
        return apply(op_type, inputs, attrs, name or op_type)

    def read(self, queue: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Key and value of the next record: string scalars.

        At run time, raises `OutOfRangeError` if the queue is closed and empty.

        Args:
            queue: the queue of file names (a `QueueBase` of one string component, or its handle).
        """
        op = self._op("ReaderReadV2", name, queue=_name_of(queue))
        return op.outputs[0], op.outputs[1]

    def read_up_to(
        self, queue: Any, num_records: Any, name: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of up to `num_records` records, at least one: string vectors.

        Args:
            queue: see `read`.
            num_records: an int or an int64 scalar; fewer records are returned at the end of a file.
        """
        count = convert_to_tensor(num_records, dtype_hint=int64)
        op = self._op("ReaderReadUpToV2", name, [count], queue=_name_of(queue))
        return op.outputs[0], op.outputs[1]

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """The number of records read, an int64."""
        return self._op("ReaderNumRecordsProducedV2", name).outputs[0]

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """The number of files read completely, an int64."""
        return self._op("ReaderNumWorkUnitsCompletedV2", name).outputs[0]

    def serialize_state(self, name: str | None = None) -> Tensor:
        """The serialized position, a string for `restore_state`."""
        return self._op("ReaderSerializeStateV2", name).outputs[0]

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """An operation that restores the position from `state`."""
        return self._op("ReaderRestoreStateV2", name, [convert_to_tensor(state, string)])

    def reset(self, name: str | None = None) -> Operation:
        """An operation that resets the reader; it continues with the next name of its queue."""
        return self._op("ReaderResetV2", name)


def _name_of(queue: Any) -> str:
    name: str = (queue.queue_ref if isinstance(queue, QueueBase) else queue).name
    return name


class WholeFileReader(ReaderBase):
    """Reads whole files: the key is the file name, the value its content."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__("WholeFileReader", {}, name)


class TextLineReader(ReaderBase):
    """Reads lines without line endings; the key is 'name:line', counted from 1.

    Args:
        skip_header_lines: the number of lines to skip in each file.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__("TextLineReader", {"skip_header_lines": skip_header_lines or 0}, name)


class FixedLengthRecordReader(ReaderBase):
    """Reads records of fixed length; the key is 'name:record', counted from 0.

    Args:
        record_bytes: the length of a record.
        header_bytes, footer_bytes: the bytes to skip at the beginning and end of a file.
        hop_bytes: the distance between the starts of records; `record_bytes` by default.
        encoding: None, 'GZIP' or 'ZLIB'.

    Raises:
        ValueError: a length is out of range, or the encoding is invalid.
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        lengths = [header_bytes or 0, footer_bytes or 0, hop_bytes or 0]
        if record_bytes <= 0 or min(lengths) < 0 or (encoding or "") not in ("", "GZIP", "ZLIB"):
            raise value_error(
                "FixedLengthRecordReader: an argument is out of range",
                expected="record_bytes > 0, the other lengths >= 0, encoding 'GZIP' or 'ZLIB'",
                received=(record_bytes, *lengths, encoding),
            )
        attrs = {
            "record_bytes": record_bytes,
            "header_bytes": lengths[0],
            "footer_bytes": lengths[1],
            "hop_bytes": lengths[2],
            "coding": encoding or "",
        }
        super().__init__("FixedLengthRecordReader", attrs, name)


class TFRecordReader(ReaderBase):
    """Reads TFRecord files; the key is 'name:offset'.

    At run time, raises `DataLossError` if a file is corrupt.

    Args:
        options: a `TFRecordOptions`, or the name or number of a compression type.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        compression = TFRecordOptions.get_compression_type_string(options)
        super().__init__("TFRecordReader", {"compression": compression}, name)


class IdentityReader(ReaderBase):
    """Returns the queue's strings as both keys and values."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__("IdentityReader", {}, name)
