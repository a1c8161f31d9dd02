"""`TaskChannel`: an ordered request stream to a task; `TaskConnection` pools them."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.errors import (
    CANCELLED,
    AbortedError,
    CancelledError,
    OpError,
    UnauthenticatedError,
    UnavailableError,
    exception_type_from_error_code,
)
from estimatorkit.distribute.tasks.array_messages import LARGE, SCHEMA, BrokenMessage, receive, send
from estimatorkit.distribute.tasks.arrow import flight, pa
from estimatorkit.distribute.tasks.serialized_partition import SerializedPartition
from estimatorkit.distribute.tasks.shared_memory import SharedMemory, aligned
from estimatorkit.distribute.tasks.task_program import part_header, program_name
from estimatorkit.distribute.tasks.task_service import AUTHORIZATION, RECONNECT_SECS
from estimatorkit.distribute.tls import check_encrypted, identity

_BROKEN = (
    flight.FlightUnavailableError,
    flight.FlightInternalError,
    flight.FlightCancelledError,
    flight.FlightTimedOutError,
    pa.ArrowException,
    BrokenMessage,
    OSError,  # a write to a stream that the server has ended
    StopIteration,
)
"""What a connection that is gone raises."""

_ATTEMPTS = 20
"""How often a question is asked again: the last ten times a second lies between."""

_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A host that is gone without a word is noticed; a process that is stopped for a minute is not.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 90_000),
]


class TaskChannel:
    """A stream of requests to a task, one at a time, retried if the connection breaks.

    Args:
        connection: the connection to the task.
    """

    def __init__(self, connection: TaskConnection) -> None:
        self.connection = connection
        self._name = uuid.uuid4().bytes
        self._numbers = itertools.count(1)
        self._asked: tuple[dict[str, Any], Sequence[Any]] = ({}, ())
        self._broken: Exception | None = None
        self._is_closed = False
        self._may_share = True
        self._open()

    def _open(self) -> None:
        self._outbox: SharedMemory | None = None
        self._inbox: SharedMemory | None = None
        self._room = [0, 0]  # bytes of arrays that the two hold
        descriptor = flight.FlightDescriptor.for_command(self._name)
        self._writer, self._reader = self.connection.exchange(descriptor)
        try:
            with contextlib.suppress(OSError):  # the server has ended the stream: reading says why
                self._writer.begin(SCHEMA)
            self.about, _ = receive(self._reader.read_chunk)
        except _BROKEN:
            self.end()  # else Arrow would complain of it by itself
            raise

    def ask(
        self,
        question: str,
        header: dict[str, Any],
        arrays: Sequence[Any] = (),
        borrowed: bool = False,
    ) -> None:
        """Sends a request (see `task_protocols.Channel`)."""
        self._asked = {**header, "ask": question, "number": next(self._numbers)}, arrays
        if borrowed:
            self._asked[0]["borrowed"] = True
        try:
            send(self._writer, *self._asked, area=self._outbox if borrowed else None)
        except _BROKEN as error:
            self._broken = error  # `answer` takes it up

    def _share(self, sent: Sequence[Any], received: Sequence[Any]) -> None:
        """Allocates shared memory for messages like these, if both processes can share memory."""
        sizes = [sum(_area_size(each) for each in arrays) for arrays in (sent, received)]
        if sizes[0] <= self._room[0] and sizes[1] <= self._room[1]:
            return
        self._may_share = False
        sizes = list(map(max, sizes, self._room))
        areas: list[SharedMemory] = []
        try:
            for size in sizes:
                areas.append(SharedMemory.make(max(size, 1)))
            self.ask("share", {"areas": [(each.name, each.secret) for each in areas]})
            (is_open,) = self.answer()
        except OSError:  # no room in memory: by TCP, then
            return
        finally:
            for area in areas:
                area.unlink()
        if is_open.all():
            self._outbox, self._inbox = areas
            self._room, self._may_share = sizes, True

    def answer(self, raise_if_over: Callable[[], None] | None = None) -> list[Any]:
        """Waits for the reply (see `task_protocols.Channel`)."""
        was_broken: Exception | None = None
        for attempt in itertools.count():
            if self._broken is not None:
                was_broken, self._broken = self._broken, None
                if attempt > _ATTEMPTS:  # it is not the connection
                    self.connection.drop()
                    raise self.connection.unavailable(was_broken) from was_broken
                self._take_up(was_broken, raise_if_over)
                time.sleep(min(1.0, 0.01 * (attempt - 1) ** 2))
            try:
                header, arrays = receive(self._reader.read_chunk, self._inbox)
                break
            except _BROKEN as error:
                self._broken = error
        asked, self._asked = self._asked, ({}, ())
        if "error" not in header:
            if self._may_share and asked[0].get("borrowed"):
                self._share(asked[1], arrays)
            return arrays
        code, message, name = header["error"]
        if header.get("is_lost"):
            self.connection.drop()
        if code == CANCELLED and was_broken is not None:  # the wait has ended with the stream
            raise self.connection.unavailable(was_broken) from was_broken
        raise exception_type_from_error_code(code)(None, name, message)

    def program(
        self,
        graph: SerializedPartition,
        fresh: Sequence[str] = (),
        raise_if_over: Callable[[], None] | None = None,
    ) -> str:
        """Sends a graph to the task (see `task_protocols.Channel`)."""
        name = program_name(graph)
        header = {"program": name, "part": part_header(graph), "fresh": list(fresh)}
        self.ask("program", header, [np.frombuffer(graph.graph_def, np.uint8)])
        self.answer(raise_if_over)
        return name

    def _take_up(self, error: Exception, raise_if_over: Callable[[], None] | None) -> None:
        """Reconnects to the same process, and sends the request again.

        Raises:
            AbortedError: the process was restarted, so the task's state is lost.
            CancelledError: the channel is closed.
            UnavailableError: the task is unreachable, or has dropped this channel.
        """
        before = self.about["incarnation"]
        deadline = time.monotonic() + RECONNECT_SECS
        while True:
            try:
                self._raise_if_over(raise_if_over)
                with contextlib.suppress(*_BROKEN):
                    self._writer.close()
                self._open()
                self._raise_if_over(raise_if_over)  # whoever closed it may have closed the old one
                if self.about["incarnation"] != before:
                    raise self.connection.lost() from error
                if not self.about["is_known"]:
                    break
                send(self._writer, *self._asked)
                return
            except _BROKEN:
                self.connection.raise_if_over()
                if time.monotonic() > deadline:
                    break
            time.sleep(0.1)
        self.connection.drop()
        raise self.connection.unavailable(error) from error

    def _raise_if_over(self, raise_if_over: Callable[[], None] | None) -> None:
        if raise_if_over is not None:
            raise_if_over()
        if self._is_closed:
            self._reader.cancel()
            raise CancelledError(None, None, "Step was cancelled.")

    def close(self) -> None:
        """Closes the channel, and cancels its current request."""
        self._is_closed = True
        self._reader.cancel()
        with contextlib.suppress(*_BROKEN):
            self._writer.close()

    def end(self) -> None:
        """Closes an idle channel normally."""
        with contextlib.suppress(*_BROKEN):
            self._writer.close()


def _area_size(array: Any) -> int:
    """The size of an array in shared memory, in bytes."""
    size = getattr(array, "nbytes", 0)
    return aligned(size) if size >= LARGE else 0


class TaskConnection:
    """A connection to a task, and its pool of idle channels.

    Args:
        address: `host:port`.
        task: the task's name, for messages.
        token: the cluster's token.
        drop: called when the task is unreachable, or has lost its state.
        raise_if_over: called between reconnection attempts; may raise to cancel.
    """

    def __init__(
        self,
        address: str,
        task: str,
        token: str,
        drop: Callable[[], None] = lambda: None,
        raise_if_over: Callable[[], None] = lambda: None,
    ) -> None:
        self.task = task
        self.drop = drop
        self.raise_if_over = raise_if_over
        self._address = address
        found = identity()
        check_encrypted(address, task, found is not None)
        if found is None:
            self._client = flight.FlightClient(f"grpc://{address}", generic_options=_OPTIONS)
        else:
            self._client = flight.FlightClient(
                f"grpc+tls://{address}",
                cert_chain=found.certificate,
                private_key=found.key,
                tls_root_certs=found.authority,
                generic_options=_OPTIONS,
            )
        header = (AUTHORIZATION.encode(), f"Bearer {token}".encode())
        self._options = flight.FlightCallOptions(headers=[header])
        self._incarnation: str | None = None
        self._free: list[TaskChannel] = []
        self._lock = threading.Lock()
        _connections.add(self)

    def exchange(self, descriptor: Any) -> Any:
        """Opens a stream."""
        return self._client.do_exchange(descriptor, self._options)

    def channel(self) -> TaskChannel:
        """Acquires a channel for exclusive use.

        Raises:
            UnavailableError: the task is unreachable.
            UnauthenticatedError: it has another token.
        """
        with self._lock:
            if self._free:
                return self._free.pop()
        try:
            opened = TaskChannel(self)
        except flight.FlightUnauthenticatedError as error:
            raise UnauthenticatedError(
                None, None, f"{self.task} at {self._address}: {error}"
            ) from None
        except _BROKEN as error:
            raise self.unavailable(error) from error
        incarnation = opened.about["incarnation"]
        self._incarnation = self._incarnation or incarnation
        if incarnation != self._incarnation:
            opened.end()
            raise self.lost()
        return opened

    def give_back(self, channel: TaskChannel) -> None:
        """Returns a channel to the pool."""
        with self._lock:
            self._free.append(channel)

    def lost(self) -> OpError:
        """The error for a task that is reachable but has lost its state."""
        self.drop()
        return AbortedError.explained(
            f"{self.task} was restarted: its values are lost",
            hint="create a new session; MonitoredTrainingSession and Supervisor do that themselves",
        )

    def unavailable(self, error: Exception) -> OpError:
        """The error for an unreachable task."""
        why = (str(error) or repr(error)).splitlines()[0]
        return UnavailableError.explained(
            f"{self.task} cannot be reached",
            received=f"{self._address}: {why}",
            hint="is its process running, and is the address correct?",
        )

    def close(self) -> None:
        """Closes all idle channels."""
        with self._lock:
            for channel in self._free:
                channel.end()
            self._free.clear()


_connections: weakref.WeakSet[TaskConnection] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for connection in list(_connections):
        connection.close()
