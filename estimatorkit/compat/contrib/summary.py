"""`tf.contrib.summary` and `tensorflow.python.ops.summary_ops_v2`: operations that write summaries.

A summary created inside `with writer.as_default(), always_record_summaries():` is an operation that
writes to the writer's event file when it runs; `all_summary_ops` lists those of the graph. A writer
opens its file in its `init` operation, which `initialize` runs. Values, tags and steps are those of
`tf.summary`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from estimatorkit.core.builtin_ops import no_op
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.dtypes import bool_, int64
from estimatorkit.core.errors import NotFoundError
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.interop.graphdef import graph_def_of
from estimatorkit.interop.summary_writer import FileWriter
from estimatorkit.lazy import listing
from estimatorkit.ops.debug.py_func import py_func
from estimatorkit.ops.files import summary_values
from estimatorkit.ops.files.summary import summary_scope
from estimatorkit.ops.math.elementwise import cast, equal
from estimatorkit.train.global_steps import get_or_create_global_step

_SUMMARIES = "_SUMMARY_V2"
_INITIALIZERS = "_SUMMARY_WRITER_V2"


class _State(threading.local):
    """Thread-local state: the default writer, and whether summaries are recorded."""

    writer: SummaryWriter | None = None
    recording: Any = False  # a bool, a tensor, or a function that gives one


_state = _State()


# -- writers


class SummaryWriter:
    """Writes summaries to an event file; see `create_file_writer`.

    Args:
        logdir: the directory; None discards everything.
        max_queue: the number of events to buffer.
        flush_millis: flush buffered events after this many milliseconds.
        filename_suffix: appended to the file's name.
    """

    def __init__(
        self, logdir: str | None, max_queue: int, flush_millis: int, filename_suffix: str
    ) -> None:
        self._logdir = logdir
        self._arguments: Mapping[str, Any] = {
            "max_queue": max_queue,
            "flush_secs": flush_millis / 1000.0,
            "filename_suffix": filename_suffix,
        }
        self._file: FileWriter | None = None
        if logdir is not None:
            get_default_graph().add_to_collection(_INITIALIZERS, self.init())

    def init(self) -> Any:
        """An operation that opens the file; running it again has no effect."""
        return self._operation(self._open, "init")

    def flush(self) -> Any:
        """An operation that flushes buffered events to the disk."""
        return self._operation(lambda: self.opened().flush(), "flush")

    def close(self) -> Any:
        """An operation that closes the file."""
        return self._operation(lambda: self.opened().close(), "close")

    def _operation(self, act: Callable[[], None], name: str) -> Any:
        if self._logdir is None:
            return no_op()
        return py_func(act, [], None, name=f"summary_writer/{name}")

    def _open(self) -> None:
        if self._file is None and self._logdir is not None:
            self._file = FileWriter(self._logdir, **self._arguments)

    def opened(self) -> FileWriter:
        """The open file.

        Raises:
            NotFoundError: `init` has not run.
        """
        if self._file is None:
            raise NotFoundError.explained(
                f"the summary writer of {self._logdir!r} is not initialized",
                hint="run summary_writer_initializer_op(), or call contrib.summary.initialize",
            )
        return self._file

    @property
    def writes(self) -> bool:
        """Whether there is a directory to write to."""
        return self._logdir is not None

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """Makes this the default writer within a `with` block."""
        outer, _state.writer = _state.writer, self
        try:
            yield self
        finally:
            _state.writer = outer

    def set_as_default(self, step: Any = None) -> None:
        """Makes this the thread's default writer."""
        _state.writer = self


def create_file_writer(
    logdir: str | os.PathLike[str] | None,
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
) -> SummaryWriter:
    """Returns a writer of an event file, which its `init` operation opens.

    Args:
        logdir: the directory; None discards everything.
        max_queue: the number of events to buffer; 10 by default.
        flush_millis: flush buffered events after this many milliseconds; 120,000 by default.
        filename_suffix: appended to the file's name; '.v2' by default.
        name: accepted for compatibility only.
    """
    return SummaryWriter(
        None if logdir is None else os.fspath(logdir),
        10 if max_queue is None else max_queue,
        2 * 60 * 1000 if flush_millis is None else flush_millis,
        ".v2" if filename_suffix is None else filename_suffix,
    )


def create_db_writer(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: always raises NotImplementedError, as there are no summary databases."""
    raise NotImplementedError("summaries are not written to databases: use create_file_writer.")


def summary_writer_initializer_op() -> list[Operation]:
    """The `init` operations of the graph's writers."""
    found: list[Operation] = get_default_graph().get_collection(_INITIALIZERS)
    return found


def initialize(graph: Any = None, session: Any = None) -> None:
    """Opens the files of the graph's writers, if there is a default writer.

    Args:
        graph: a graph to write for TensorBoard's graph page.
        session: the default session by default.

    Raises:
        ValueError: there is no session.
    """
    if _state.writer is None:
        return
    session = get_default_session() if session is None else session
    if session is None:
        raise ValueError("Argument `session must be passed if no default session exists")
    session.run(summary_writer_initializer_op())
    if graph is not None and _state.writer.writes:
        _state.writer.opened().add_graph(graph, 0)


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> Any:
    """An operation that flushes a writer, by default the default one."""
    chosen = _state.writer if writer is None else writer
    return no_op() if chosen is None else chosen.flush()


def eval_dir(model_dir: str, name: str | None = None) -> str:
    """The directory for an evaluation's summaries."""
    return os.path.join(model_dir, "eval" if not name else f"eval_{name}")


# -- when they are recorded


@contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """Sets the condition under which summaries created within a `with` block are written.

    Args:
        condition: a bool, a boolean tensor, or a function that returns one of these.
    """
    outer, _state.recording = _state.recording, condition
    try:
        yield
    finally:
        _state.recording = outer


def always_record_summaries() -> Any:
    """A context manager in which summaries are always written."""
    return record_if(True)


def never_record_summaries() -> Any:
    """A context manager in which summaries are never written."""
    return record_if(False)


def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Any:
    """A context manager in which summaries are written every `n` steps.

    Args:
        n: the interval in steps.
        global_step: the graph's by default.
    """
    step = get_or_create_global_step() if global_step is None else global_step
    return record_if(lambda: equal(convert_to_tensor(step) % n, 0))


def should_record_summaries() -> Any:
    """Whether summaries are written: a bool or a boolean tensor."""
    found = _state.recording
    return found() if callable(found) else found


# -- summaries


def _summary(
    name: str, tensors: list[Any], family: str | None, step: Any, values: Callable[..., bytes]
) -> Any:
    """An operation that writes a summary if summaries are recorded, and returns whether they are.

    `values` serializes it from the arrays and the tag.
    """
    if _state.writer is None:
        return no_op()
    with summary_scope(name, family) as (tag, scope):

        def write(file: FileWriter, at: int, *arrays: Any) -> None:
            file.add_summary(values(*arrays, tag=tag), at)

        made = _written(write, tensors, step, scope, should_record_summaries())
    made.graph.add_to_collection(_SUMMARIES, made)
    return made


def _written(
    write: Callable[..., None], tensors: list[Any], step: Any, name: str | None, recorded: Any
) -> Any:
    """An operation that calls `write` with the default writer's file, the step and the arrays."""
    writer = _state.writer
    if writer is None or not writer.writes:
        return no_op(name)
    step = get_or_create_global_step() if step is None else step

    def call(recorded: Any, at: Any, *arrays: Any) -> Any:
        if recorded:
            write(writer.opened(), int(at), *arrays)
        return np.bool_(recorded)

    inputs = [convert_to_tensor(recorded, bool_), cast(step, int64), *tensors]
    made: Tensor = py_func(call, inputs, bool_, name=name)
    made.set_shape([])
    return made


def scalar(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Writes a scalar.

    Args:
        name: the summary's name; its tag is the operation's name, prefixed with `family`.
        tensor: a scalar.
        family: a prefix of the tag.
        step: an int or a scalar; the global step by default.

    Returns:
        An operation, or a boolean tensor: whether the summary was written.
    """
    return _summary(name, [tensor], family, step, summary_values.scalar)


def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Writes a histogram; see `scalar`."""
    return _summary(name, [tensor], family, step, summary_values.histogram)


def image(
    name: str,
    tensor: Any,
    bad_color: Any = None,
    max_images: int = 3,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Writes images; see `scalar`.

    Args:
        tensor: `(batch, height, width, channels)`.
        bad_color: the color of non-finite pixels, uint8 `(4,)`; red by default.
        max_images: the maximum number of images to write.
    """
    color = (255, 0, 0, 255) if bad_color is None else tuple(int(each) for each in bad_color)

    def values(pictures: Any, tag: str) -> bytes:
        return summary_values.image(pictures, tag, max_images, color)

    return _summary(name, [tensor], family, step, values)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Writes audio clips; see `scalar`.

    Args:
        tensor: `(batch, frames)` or `(batch, frames, channels)`, in [-1, 1].
        sample_rate: in hertz.
        max_outputs: the maximum number of clips to write.
    """

    def values(sounds: Any, rate: Any, tag: str) -> bytes:
        return summary_values.audio(sounds, rate, tag, max_outputs)

    return _summary(name, [tensor, sample_rate], family, step, values)


def generic(
    name: str, tensor: Any, metadata: Any = None, family: str | None = None, step: Any = None
) -> Any:
    """Writes a tensor; see `scalar`.

    Args:
        metadata: a `SummaryMetadata`, or its serialized form.
    """
    given = metadata.SerializeToString() if hasattr(metadata, "SerializeToString") else metadata

    def values(value: Any, tag: str) -> bytes:
        return summary_values.tensor(value, tag, given or b"")

    return _summary(name, [tensor], family, step, values)


def graph(param: Any, step: Any = None, name: str | None = None) -> Any:
    """Writes a graph for TensorBoard's graph page.

    Args:
        param: a `Graph`, a `GraphDef`, or a tensor of a serialized one.
        step: see `scalar`.
    """
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    given = graph_def_of(param, add_shapes=True) if isinstance(param, Graph) else param
    text = given.SerializeToString() if isinstance(given, GraphDef) else given

    def write(file: FileWriter, at: int, data: bytes) -> None:
        file.add_graph(GraphDef.FromString(data), at)

    return _written(write, [text], step, name, True)


def import_event(tensor: Any, name: str | None = None) -> Any:
    """Writes a serialized `Event`, a scalar string."""
    from tensorboard.compat.proto.event_pb2 import Event

    def write(file: FileWriter, at: int, data: bytes) -> None:
        file.add_event(Event.FromString(data))

    return _written(write, [tensor], 0, name, True)


def all_summary_ops() -> list[Any]:
    """The summary operations of the default graph."""
    found: list[Any] = get_default_graph().get_collection(_SUMMARIES)
    return found


all_v2_summary_ops = all_summary_ops
create_summary_file_writer = create_file_writer
__dir__ = listing(__name__)
