"""`FileWriter`: event files for TensorBoard; `summary_iterator` reads them.

The protos are TensorBoard's (the package `tensorboard`, without TensorFlow), imported when a writer
is opened, since that takes 0.2 s. `events.MetricsWriter` uses a `FileWriter` too.
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

from estimatorkit.core.errors import explain, type_error
from estimatorkit.core.graph import Graph
from estimatorkit.interop.graphdef import graph_def_of
from estimatorkit.storage.gfile import makedirs
from estimatorkit.storage.records import TFRecordWriter


class FileWriter:
    """Writes summaries, graphs and other events to an event file in `logdir`.

    Each writer has its own file, so several may write to one folder. A writer is a context manager.

    Args:
        logdir: the folder; created if missing.
        graph: a graph (or a `GraphDef`), shown on TensorBoard's graph page.
        max_queue: the number of pending events that triggers a flush.
        flush_secs: the maximum time between flushes, in seconds.
        graph_def: an older name of `graph`.
        filename_suffix: appended to the file name.
        session: accepted for compatibility only; must be None.

    Raises:
        NotImplementedError: `session` is given (TensorFlow then writes through the graph).
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        if session is not None:
            raise NotImplementedError(
                explain(
                    "a FileWriter does not write through a session",
                    received="session=...",
                    hint="omit `session`, and pass the result of session.run to `add_summary`",
                )
            )
        self._logdir = os.fspath(logdir)
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._suffix = filename_suffix or ""
        self._events: _EventFile | None = None
        # TensorBoard expects plugin metadata only with the first value of a tag.
        self._described: set[str] = set()
        self._run_tags: set[str] = set()
        self.reopen()
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)

    def get_logdir(self) -> str:
        """Returns the folder."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Writes a summary.

        Args:
            summary: the bytes of a summary operation, or a `Summary` proto.
            global_step: its step.
        """
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        given = Summary()
        if isinstance(summary, Summary):
            given.CopyFrom(summary)
        else:
            given.ParseFromString(_as_bytes(summary))
        for value in given.value:
            if value.HasField("metadata"):
                if value.tag in self._described:
                    value.ClearField("metadata")
                self._described.add(value.tag)
        self._add(Event(summary=given), global_step)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Writes a graph for TensorBoard's graph page.

        Args:
            graph: a `Graph`, or a `GraphDef`.
            global_step: its step.
            graph_def: an older name of `graph`.

        Raises:
            TypeError: it is neither.
            ValueError: both or none are given.
        """
        from tensorboard.compat.proto.event_pb2 import Event

        if (graph is None) == (graph_def is None):
            raise ValueError("Provide only one of: graph, or graph_def.")
        given = graph_def if graph is None else graph
        proto = graph_def_of(given, add_shapes=True) if isinstance(given, Graph) else given
        if not hasattr(proto, "SerializeToString") or not hasattr(proto, "node"):
            raise type_error(
                "The passed graph must be an instance of `Graph` or the deprecated `GraphDef`",
                received=repr(given)[:200],
            )
        self._add(Event(graph_def=proto.SerializeToString()), global_step)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Writes a `MetaGraphDef`.

        Raises:
            TypeError: it is not a `MetaGraphDef`.
        """
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

        if not isinstance(meta_graph_def, MetaGraphDef):
            raise TypeError(f"meta_graph_def must be type MetaGraphDef, saw {type(meta_graph_def)}")
        self._add(Event(meta_graph_def=meta_graph_def.SerializeToString()), global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Writes a `SessionLog` proto: a session started, stopped or saved a checkpoint."""
        from tensorboard.compat.proto.event_pb2 import Event

        self._add(Event(session_log=session_log), global_step)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Writes the measurements of one run (a `RunMetadata` proto) under a unique tag.

        Raises:
            ValueError: the tag is taken.
        """
        from tensorboard.compat.proto.event_pb2 import Event, TaggedRunMetadata

        if tag in self._run_tags:
            raise ValueError("The provided tag was already used for this event type")
        self._run_tags.add(tag)
        tagged = TaggedRunMetadata(tag=tag, run_metadata=run_metadata.SerializeToString())
        self._add(Event(tagged_run_metadata=tagged), global_step)

    def add_event(self, event: Any) -> None:
        """Writes an `Event` proto unchanged."""
        if self._events is None:
            warnings.warn(
                "Attempting to use a closed FileWriter. The operation will be a noop unless the "
                "FileWriter is explicitly reopened.",
                stacklevel=2,
            )
            return
        self._events.add_event(event)

    def _add(self, event: Any, global_step: Any) -> None:
        event.wall_time = time.time()
        if global_step is not None:
            event.step = int(global_step)
        self.add_event(event)

    def flush(self) -> None:
        """Writes pending events to the disk."""
        if self._events is not None:
            self._events.flush()

    def close(self) -> None:
        """Writes pending events and closes the file; may be called again."""
        if self._events is not None:
            self._events.close()
            self._events = None

    def reopen(self) -> None:
        """Opens a new file after `close`; does nothing if one is open."""
        if self._events is None:
            self._events = _EventFile(self._logdir, self._max_queue, self._flush_secs, self._suffix)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _EventFile:
    """An event file: records of serialized `Event` protos, written by one thread at a time."""

    _numbers: ClassVar[Iterator[int]] = itertools.count()

    def __init__(self, folder: str, max_queue: int, flush_secs: float, suffix: str) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SourceMetadata

        makedirs(folder)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
        paths = (os.path.join(folder, f"{name}.{number}{suffix}") for number in self._numbers)
        self._records = TFRecordWriter(next(path for path in paths if not os.path.lexists(path)))
        weakref.finalize(self, self._records.close)  # a writer may be left open
        self._lock = threading.Lock()
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._pending, self._flushed = 0, time.monotonic()
        source = SourceMetadata(writer="estimatorkit.summary.FileWriter")
        self.add_event(
            Event(wall_time=time.time(), file_version="brain.Event:2", source_metadata=source)
        )
        self.flush()

    def add_event(self, event: Any) -> None:
        """Writes an event; flushes if many are pending or the last flush was long ago."""
        data = event.SerializeToString()
        with self._lock:
            self._records.write(data)
            self._pending += 1
            if (
                self._pending >= self._max_queue
                or time.monotonic() - self._flushed >= self._flush_secs
            ):
                self._flush()

    def flush(self) -> None:
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        self._records.flush()
        self._pending, self._flushed = 0, time.monotonic()

    def close(self) -> None:
        with self._lock:
            self._records.close()


def _as_bytes(summary: Any) -> bytes:
    value = summary.item() if hasattr(summary, "item") else summary
    if not isinstance(value, bytes):
        raise type_error(
            "add_summary takes the value of a summary operation",
            expected="bytes or a Summary proto",
            received=repr(value)[:200],
            hint="evaluate the summary: writer.add_summary(session.run(merged), step)",
        )
    return value


class FileWriterCache:
    """One shared `FileWriter` per folder."""

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _writers: ClassVar[dict[str, FileWriter]] = {}

    @classmethod
    def get(cls, logdir: str | os.PathLike[str]) -> FileWriter:
        """Returns the writer of a folder, creating it on first use."""
        name = os.fspath(logdir)
        with cls._lock:
            if name not in cls._writers:
                cls._writers[name] = FileWriter(name)
            return cls._writers[name]

    @classmethod
    def clear(cls) -> None:
        """Closes and removes all writers."""
        with cls._lock:
            for writer in cls._writers.values():
                writer.close()
            cls._writers.clear()


def summary_iterator(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Yields the `Event` protos of an event file, in written order.

    A file that is being written, or whose writer was killed, may end with a partial event: reading
    stops there, with a warning. Records that are not events are skipped, with a warning.

    Raises:
        FileNotFoundError: the file does not exist.
    """
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.tensorflow_stub import errors
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New

    name = os.fspath(path)
    if not os.path.isfile(name):
        raise FileNotFoundError(f"there is no event file {name!r}.")
    reader = PyRecordReader_New(name)
    for number in range(os.path.getsize(name)):
        try:
            reader.GetNext()
        except errors.OutOfRangeError:
            return
        except errors.DataLossError as error:
            logging.getLogger("estimatorkit").warning(
                "%s is damaged or truncated after %d events: %s", name, number, error
            )
            return
        try:
            event = Event.FromString(reader.record())
        except DecodeError as error:
            logging.getLogger("estimatorkit").warning(
                "%s: record %d is no event, and is skipped: %s", name, number, error
            )
            continue
        yield event
