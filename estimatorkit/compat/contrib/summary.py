"""`tf.contrib.summary` and `tensorflow.python.ops.summary_ops_v2`: operations that write summaries.

A summary made inside `with writer.as_default(), always_record_summaries():` is an operation that
writes to the writer's event file when it runs; `all_summary_ops` gives those of the graph. A writer
opens its file in its `init` operation, which `initialize` runs. What is written, its tags and its
steps are those of `tf.summary`.
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
    """What holds in a thread: the writer, and whether summaries are recorded."""

    writer: SummaryWriter | None = None
    recording: Any = False  # a bool, a tensor, or a function that gives one


_state = _State()


# -- writers


class SummaryWriter:
    """Where summaries go; made by `create_file_writer`.

    Args:
        logdir: the folder; None writes nothing.
        max_queue: how many events may wait.
        flush_millis: milliseconds after which what waits is written.
        filename_suffix: put behind the file's name.
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
        """An operation that opens the file, once."""
        return self._operation(self._open, "init")

    def flush(self) -> Any:
        """An operation that writes what waits to the disk."""
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
        """The file.

        Raises:
            NotFoundError: it was not opened.
        """
        if self._file is None:
            raise NotFoundError.explained(
                f"the summary writer of {self._logdir!r} is not initialized",
                hint="run summary_writer_initializer_op(), or call contrib.summary.initialize",
            )
        return self._file

    @property
    def writes(self) -> bool:
        """Whether there is a folder to write to."""
        return self._logdir is not None

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """Makes it the writer of the summaries that are made inside."""
        outer, _state.writer = _state.writer, self
        try:
            yield self
        finally:
            _state.writer = outer

    def set_as_default(self, step: Any = None) -> None:
        """Makes it the writer of the thread's summaries from now on."""
        _state.writer = self


def create_file_writer(
    logdir: str | os.PathLike[str] | None,
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
) -> SummaryWriter:
    """A writer of an event file, opened by its `init` operation.

    Args:
        logdir: the folder; None for a writer that writes nothing.
        max_queue: how many events may wait; 10 by default.
        flush_millis: milliseconds after which what waits is written; two minutes by default.
        filename_suffix: put behind the file's name; '.v2' by default.
        name: accepted for TensorFlow's signature.
    """
    return SummaryWriter(
        None if logdir is None else os.fspath(logdir),
        10 if max_queue is None else max_queue,
        2 * 60 * 1000 if flush_millis is None else flush_millis,
        ".v2" if filename_suffix is None else filename_suffix,
    )


def create_db_writer(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there are no databases of summaries.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("summaries are not written to databases: use create_file_writer.")


def summary_writer_initializer_op() -> list[Operation]:
    """The operations that open the files of the graph's writers."""
    found: list[Operation] = get_default_graph().get_collection(_INITIALIZERS)
    return found


def initialize(graph: Any = None, session: Any = None) -> None:
    """Opens the files of the graph's writers, where there is a default writer.

    Args:
        graph: a graph that is written for TensorBoard's graph page.
        session: the session; the default session by default.

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
    """An operation that writes what waits of a writer, by default the default one, to the disk."""
    chosen = _state.writer if writer is None else writer
    return no_op() if chosen is None else chosen.flush()


def eval_dir(model_dir: str, name: str | None = None) -> str:
    """The folder of an evaluation's summaries."""
    return os.path.join(model_dir, "eval" if not name else f"eval_{name}")


# -- when they are recorded


@contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """Says when summaries that are made inside are written.

    Args:
        condition: a bool, a boolean tensor, or a function that gives one of these.
    """
    outer, _state.recording = _state.recording, condition
    try:
        yield
    finally:
        _state.recording = outer


def always_record_summaries() -> Any:
    """A context in which summaries are always written."""
    return record_if(True)


def never_record_summaries() -> Any:
    """A context in which summaries are never written."""
    return record_if(False)


def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Any:
    """A context in which summaries are written at each `n`-th step.

    Args:
        n: how many steps.
        global_step: the graph's by default.
    """
    step = get_or_create_global_step() if global_step is None else global_step
    return record_if(lambda: equal(convert_to_tensor(step) % n, 0))


def should_record_summaries() -> Any:
    """A bool, or a boolean tensor: whether summaries are written."""
    found = _state.recording
    return found() if callable(found) else found


# -- summaries


def _summary(
    name: str, tensors: list[Any], family: str | None, step: Any, values: Callable[..., bytes]
) -> Any:
    """An operation that writes a summary where summaries are recorded, and gives whether they are;
    `values` makes it, of the arrays and the tag.
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
    """An operation that calls `write` with the default writer's file, the step and arrays."""
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
    """Writes a number.

    Args:
        name: the summary's name; its tag is that of the operation, under the family.
        tensor: the number, a scalar.
        family: put before the tag.
        step: an int or a scalar; the global step by default.

    Returns:
        An operation, or a tensor that says whether the summary was written.
    """
    return _summary(name, [tensor], family, step, summary_values.scalar)


def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Writes how numbers are distributed; see `scalar`."""
    return _summary(name, [tensor], family, step, summary_values.histogram)


def image(
    name: str,
    tensor: Any,
    bad_color: Any = None,
    max_images: int = 3,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Writes pictures; see `scalar`.

    Args:
        tensor: `(batch, height, width, channels)`.
        bad_color: the color, `(4,)`, uint8, of pixels that are not finite; red by default.
        max_images: how many are written at most.
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
    """Writes sounds; see `scalar`.

    Args:
        tensor: `(batch, frames)` or `(batch, frames, channels)`, from -1 to 1.
        sample_rate: in hertz.
        max_outputs: how many are written at most.
    """

    def values(sounds: Any, rate: Any, tag: str) -> bytes:
        return summary_values.audio(sounds, rate, tag, max_outputs)

    return _summary(name, [tensor, sample_rate], family, step, values)


def generic(
    name: str, tensor: Any, metadata: Any = None, family: str | None = None, step: Any = None
) -> Any:
    """Writes a tensor; see `scalar`.

    Args:
        metadata: a `SummaryMetadata`, or one that is serialized.
    """
    given = metadata.SerializeToString() if hasattr(metadata, "SerializeToString") else metadata

    def values(value: Any, tag: str) -> bytes:
        return summary_values.tensor(value, tag, given or b"")

    return _summary(name, [tensor], family, step, values)


def graph(param: Any, step: Any = None, name: str | None = None) -> Any:
    """Writes a graph for TensorBoard's graph page.

    Args:
        param: a `Graph`, a `GraphDef`, or a tensor of one that is serialized.
        step: see `scalar`.
        name: the operation's name.
    """
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    given = graph_def_of(param, add_shapes=True) if isinstance(param, Graph) else param
    text = given.SerializeToString() if isinstance(given, GraphDef) else given

    def write(file: FileWriter, at: int, data: bytes) -> None:
        file.add_graph(GraphDef.FromString(data), at)

    return _written(write, [text], step, name, True)


def import_event(tensor: Any, name: str | None = None) -> Any:
    """Writes an event.

    Args:
        tensor: a serialized `Event`, a scalar string.
        name: the operation's name.
    """
    from tensorboard.compat.proto.event_pb2 import Event

    def write(file: FileWriter, at: int, data: bytes) -> None:
        file.add_event(Event.FromString(data))

    return _written(write, [tensor], 0, name, True)


def all_summary_ops() -> list[Any]:
    """The operations of the default graph that write summaries."""
    found: list[Any] = get_default_graph().get_collection(_SUMMARIES)
    return found


all_v2_summary_ops = all_summary_ops
create_summary_file_writer = create_file_writer
__dir__ = listing(__name__)
