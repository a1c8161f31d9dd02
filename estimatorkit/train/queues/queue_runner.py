"""`QueueRunner`: threads that fill a queue, each running one operation repeatedly.

When all threads have reached the end of their input, the queue is closed: consumers get the rest,
then `OutOfRangeError`. Other exceptions go to a `Coordinator`, whose stop cancels pending enqueues.
`start_queue_runners` starts all runners of a graph's QUEUE_RUNNERS collection.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.errors import (
    CancelledError,
    OpError,
    OutOfRangeError,
    exception_type_from_error_code,
    type_error,
)
from estimatorkit.core.graph import add_to_collection, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.lazy import listing
from estimatorkit.logger import logger
from estimatorkit.ops.queues.queues import QueueBase
from estimatorkit.runtime.xla.at_exit import counted, idle
from estimatorkit.train.queues.enqueue_blocks import EnqueueBlocks
from estimatorkit.train.sessions.coordinator import Coordinator


class QueueRunner:
    """Fills a queue from background threads.

    Args:
        queue: the queue.
        enqueue_ops: the threads' operations, one thread per item; an operation may repeat.
        close_op: closes the queue at the end of the input; `queue.close()` by default.
        cancel_op: closes it at once; `queue.close(cancel_pending_enqueues=True)` by default.
        queue_closed_exception_types: the errors that signal the end of the input;
            `(OutOfRangeError,)` by default.
        queue_runner_def: a `QueueRunnerDef` that replaces the arguments above.
        import_scope: the name scope of the names in it.

    Raises:
        ValueError: there is no queue or no operation, or these are given together with a
            `QueueRunnerDef`.
        KeyError: the graph lacks a name of the `QueueRunnerDef`.
        TypeError: `queue_closed_exception_types` is not a tuple of OpErrors.
    """

    def __init__(
        self,
        queue: QueueBase | None = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: tuple[type[OpError], ...] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._running: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._exceptions: list[Exception] = []
        self._queue: Any
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._read(queue_runner_def, import_scope)
            return
        if queue is None or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        ended = queue_closed_exception_types
        if ended is not None and not (
            isinstance(ended, tuple) and ended and all(issubclass(each, OpError) for each in ended)
        ):
            raise type_error(
                "queue_closed_exception_types, when provided, must be a tuple of errors",
                expected="a tuple of subclasses of OpError",
                received=repr(ended),
            )
        self._queue = queue
        self._enqueue_ops = list(enqueue_ops)
        self._ended = ended or (OutOfRangeError,)
        self._close_op = queue.close() if close_op is None else close_op
        self._cancel_op = (
            queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        )

    def _read(self, proto: Any, scope: str | None) -> None:
        """Sets the attributes from a `QueueRunnerDef`."""
        graph = get_default_graph()

        def named(name: str) -> Any:
            return graph.as_graph_element(f"{scope.rstrip('/')}/{name}" if scope else name)

        self._queue = named(proto.queue_name)
        self._enqueue_ops = [named(each) for each in proto.enqueue_op_name]
        self._close_op = named(proto.close_op_name)
        self._cancel_op = named(proto.cancel_op_name)
        codes = proto.queue_closed_exception_types
        self._ended = tuple(map(exception_type_from_error_code, codes)) or (OutOfRangeError,)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Returns the runner as a `QueueRunnerDef`; None if its queue is not below `export_scope`.

        Args:
            export_scope: a name scope to strip from names.
        """
        from estimatorkit.train.queues.queue_runner_def import QueueRunnerDef

        prefix = f"{export_scope.rstrip('/')}/" if export_scope else ""
        if not self.name.startswith(prefix):
            return None
        return QueueRunnerDef(
            queue_name=self.name.removeprefix(prefix),
            enqueue_op_name=[op.name.removeprefix(prefix) for op in self._enqueue_ops],
            close_op_name=self._close_op.name.removeprefix(prefix),
            cancel_op_name=self._cancel_op.name.removeprefix(prefix),
            queue_closed_exception_types=[each.error_code for each in self._ended],
        )

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """Returns the runner of a `QueueRunnerDef`; its queue must be in the default graph.

        Args:
            import_scope: the name scope of the names in it.

        Raises:
            KeyError: the graph lacks a name.
        """
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)

    @property
    def queue(self) -> Any:
        """The queue; if created from a `QueueRunnerDef`, its handle, an operation."""
        return self._queue

    @property
    def enqueue_ops(self) -> list[Any]:
        """The threads' operations."""
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        """Closes the queue at the end of the input."""
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        """Closes the queue at once."""
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type[OpError], ...]:
        """The errors that signal the end of the input."""
        return self._ended

    @property
    def exceptions_raised(self) -> list[Exception]:
        """Exceptions of threads without a coordinator."""
        return self._exceptions

    @property
    def name(self) -> str:
        """The queue's name."""
        name: str = self._queue.name
        return name

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """Creates the threads; returns [] while earlier threads still run.

        Args:
            coord: receives exceptions, stops the threads and joins them.
            daemon: whether they are daemon threads.
            start: whether to start them.
        """
        with self._lock:
            if self._running.get(sess, 0) > 0:
                return []
            self._running[sess] = len(self._enqueue_ops)
            self._exceptions = []
        name = f"QueueRunnerThread-{self.name}"
        blocks = {op: EnqueueBlocks.of(sess, op) for op in dict.fromkeys(self._enqueue_ops)}
        threads = [
            threading.Thread(
                target=counted(self._run),
                args=(sess, op, blocks[op], coord),
                name=f"{name}-{op.name}",
                daemon=daemon,
            )
            for op in self._enqueue_ops
        ]
        if coord is not None:
            threads.append(
                threading.Thread(
                    target=counted(self._close_on_stop),
                    args=(sess, coord),
                    name=f"{name}-close_on_stop",
                    daemon=daemon,
                )
            )
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def _run(
        self,
        session: Any,
        enqueue_op: Any,
        blocks: EnqueueBlocks | None,
        coord: Coordinator | None,
    ) -> None:
        """The body of a thread."""
        try:
            self._fill(session, blocks or session.make_callable(enqueue_op), coord)
        except self._ended:
            if self._is_last(session):
                _close(session, self._close_op)
        except Exception as error:  # the coordinator raises it in `join`
            self._is_last(session)
            if _is_closed(session):
                return  # the session has ended
            if coord is not None:
                coord.request_stop(error)
            else:
                logger.error("Exception in QueueRunner: %s", error)
                with self._lock:
                    self._exceptions.append(error)
        else:
            self._is_last(session)

    @staticmethod
    def _fill(session: Any, enqueue: Callable[[], Any], coord: Coordinator | None) -> None:
        while coord is None or not coord.should_stop():
            enqueue()

    def _is_last(self, session: Any) -> bool:
        """Records the end of a thread; returns whether it was the session's last."""
        with self._lock:
            self._running[session] -= 1
            return self._running[session] == 0

    def _close_on_stop(self, session: Any, coord: Coordinator) -> None:
        with idle():
            coord.wait_for_stop()
        _close(session, self._cancel_op)


def _close(session: Any, op: Any) -> None:
    """Closes the queue; ignores that it or the session is closed."""
    try:
        session.run(op)
    except CancelledError:
        logger.debug("%s: the queue is closed already", op.name)
    except RuntimeError:
        if not _is_closed(session):
            raise


def _is_closed(session: Any) -> bool:
    return bool(getattr(session, "_closed", False))


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a runner to a collection, for `start_queue_runners`."""
    add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Starts the threads of all queue runners in a graph's collection.

    Args:
        sess: the session; the default session by default.
        coord: the threads' coordinator.
        daemon: whether they are daemon threads.
        start: whether to start them.
        collection: the collection of runners.

    Returns:
        The threads; [] for a monitored session, which has already started the runners.

    Raises:
        ValueError: there is no session.
        TypeError: `sess` is not a session.
    """
    session = sess or get_default_session()
    if session is None:
        raise ValueError(
            "Cannot start queue runners: No default session is registered. Use `with "
            "sess.as_default()` or pass an explicit session to "
            "tf.start_queue_runners(sess=sess)"
        )
    if getattr(session, "has_started_queue_runners", False):
        return []
    if not hasattr(session, "graph"):
        raise TypeError(f"sess must be a `tf.Session` object. Given class: {type(session)}")
    return [
        thread
        for runner in session.graph.get_collection(collection)
        for thread in runner.create_threads(session, coord, daemon, start)
    ]


__dir__ = listing(__name__)
