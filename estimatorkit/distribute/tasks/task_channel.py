"""`TaskChannel`: an ordered request stream to a task; `TaskConnection` pools them."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import re
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.errors import (
    CANCELLED,
    AbortedError,
    CancelledError,
    FailedPreconditionError,
    OpError,
    UnauthenticatedError,
    UnavailableError,
)
from estimatorkit.distribute.tasks import rpc
from estimatorkit.distribute.tasks.array_messages import LARGE, SCHEMA, BrokenMessage, receive, send
from estimatorkit.distribute.tasks.arrow import flight, pa
from estimatorkit.distribute.tasks.shared_memory import SharedMemory, aligned
from estimatorkit.distribute.tasks.task_endpoint import AUTHORIZATION, RECONNECT_SECS
from estimatorkit.distribute.tls import VARIABLES, check_encrypted, identity

_BROKEN = (
    flight.FlightUnavailableError,
    flight.FlightInternalError,
    flight.FlightCancelledError,
    flight.FlightTimedOutError,
    pa.ArrowException,
    BrokenMessage,
    rpc.MalformedMessage,
    OSError,  # a write to a stream that the server has ended
    StopIteration,
)
"""Errors of a broken connection."""

_ATTEMPTS = 20
"""How often a request is retried; the last ten times after a second."""

_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A server, whose settings Arrow does not give away, closes a connection without data that is
    # pinged more often than every 5 minutes: a session that rested so long lost its channels.
    # Dead hosts are noticed by unanswered bytes, those of heartbeats say; processes that are
    # stopped for a minute are not.
    ("grpc.keepalive_time_ms", 330_000),
    ("grpc.keepalive_timeout_ms", 90_000),
]


class TaskChannel:
    """A stream of requests to a task, one at a time, retried if the connection breaks.

    Args:
        connection: the connection to the task.

    Attributes:
        handshake: the task's description of itself.
    """

    handshake: rpc.Handshake

    def __init__(self, connection: TaskConnection) -> None:
        self.connection = connection
        self._name = uuid.uuid4().bytes
        self._number = 0
        self._request: rpc.Request[Any] | None = None
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
            with contextlib.suppress(OSError):  # the server has ended the stream: reading tells why
                self._writer.begin(SCHEMA)
            header, arrays, _ = receive(self._reader.read_chunk)
            self.handshake = self._understood(header, arrays)
        except (*_BROKEN, FailedPreconditionError):
            self.end()  # else Arrow logs an error
            raise

    def _understood(self, header: bytes, arrays: Sequence[Any]) -> rpc.Handshake:
        try:
            handshake = rpc.decode(header, arrays, rpc.Handshake)
        except rpc.MalformedMessage:
            handshake = None
        if handshake is None or handshake.version != rpc.VERSION:
            raise FailedPreconditionError.explained(
                f"{self.connection.task} runs another version of this package",
                expected=rpc.VERSION,
                received="unknown" if handshake is None else handshake.version,
                hint="install the same version on every host of the cluster",
            )
        return handshake

    def send(self, request: rpc.Request[Any]) -> None:
        """Sends a request; `receive` must be called before the next."""
        self._request = request
        self._number += 1
        try:
            self._write(request, self._outbox if request.zero_copy else None)
        except _BROKEN as error:
            self._broken = error  # `receive` reconnects

    def _write(self, request: rpc.Request[Any], area: SharedMemory | None = None) -> None:
        send(self._writer, rpc.encode(request), request.arrays, area, self._number)

    def call(
        self, request: rpc.Request[rpc.R], raise_if_cancelled: Callable[[], None] | None = None
    ) -> rpc.R:
        """Sends a request and waits for the reply (see `receive`)."""
        self.send(request)
        reply: rpc.R = self.receive(raise_if_cancelled)
        return reply

    def receive(self, raise_if_cancelled: Callable[[], None] | None = None) -> Any:
        """Waits for the reply, of the class that the request declares.

        Args:
            raise_if_cancelled: called while reconnecting; may raise to cancel.

        Raises:
            OpError: the task's error; `AbortedError` if the task has lost its state,
                `UnavailableError` if it is unreachable.
        """
        request, self._request = self._request, None
        if request is None:
            raise RuntimeError("a reply was awaited, but no request was sent")
        kind: Any = type(request)
        expected = rpc.reply_type(kind), rpc.Failure
        was_broken: Exception | None = None
        for attempt in itertools.count():
            if self._broken is not None:
                was_broken, self._broken = self._broken, None
                if attempt > _ATTEMPTS:  # it is not the connection
                    self.connection.drop()
                    raise self.connection.unavailable(was_broken) from was_broken
                self._reconnect(request, was_broken, raise_if_cancelled)
                time.sleep(min(1.0, 0.01 * (attempt - 1) ** 2))
            try:
                header, arrays, _ = receive(self._reader.read_chunk, self._inbox)
                reply = rpc.decode(header, arrays, *expected)
                break
            except _BROKEN as error:
                self._broken = error
        if not isinstance(reply, rpc.Failure):
            if self._may_share and request.zero_copy:
                self._share_memory(request.arrays, reply.arrays)
            return reply
        if reply.state_lost:
            self.connection.drop()
        if reply.code == CANCELLED and was_broken is not None:  # the wait ended with the stream
            raise self.connection.unavailable(was_broken) from was_broken
        raise reply.error()

    def _share_memory(self, sent: Sequence[Any], received: Sequence[Any]) -> None:
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
            outbox, inbox = areas
            names = (outbox.name, outbox.secret), (inbox.name, inbox.secret)
            is_open = self.call(rpc.OpenSharedMemory(names)).is_open
        except OSError:  # not enough memory: send by TCP
            return
        finally:
            for area in areas:
                area.unlink()
        if is_open:
            self._outbox, self._inbox = outbox, inbox
            self._room, self._may_share = sizes, True

    def _reconnect(
        self,
        request: rpc.Request[Any],
        error: Exception,
        raise_if_cancelled: Callable[[], None] | None,
    ) -> None:
        """Reconnects to the same process, and sends the request again.

        Raises:
            AbortedError: the process was restarted, so the task's state is lost.
            CancelledError: the channel is closed.
            UnavailableError: the task is unreachable, or has dropped this channel.
        """
        before = self.handshake.incarnation
        deadline = time.monotonic() + RECONNECT_SECS
        while True:
            try:
                self._raise_if_cancelled(raise_if_cancelled)
                with contextlib.suppress(*_BROKEN):
                    self._writer.close()
                self._open()
                # Whoever closed the channel may have closed the old stream.
                self._raise_if_cancelled(raise_if_cancelled)
                if self.handshake.incarnation != before:
                    raise self.connection.lost() from error
                if not self.handshake.is_resumed:
                    break
                self._write(request)
                return
            except _BROKEN:
                self.connection.raise_if_cancelled()
                if time.monotonic() > deadline:
                    break
            time.sleep(0.1)
        self.connection.drop()
        raise self.connection.unavailable(error) from error

    def _raise_if_cancelled(self, raise_if_cancelled: Callable[[], None] | None) -> None:
        if raise_if_cancelled is not None:
            raise_if_cancelled()
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


_HANDSHAKE = re.compile(r"Ssl handshake failed .*?SSL routines::(?P<reason>[\w :-]+)")
_TLS = ", ".join(VARIABLES)


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
        raise_if_cancelled: called between reconnection attempts; may raise to cancel.
    """

    def __init__(
        self,
        address: str,
        task: str,
        token: str,
        drop: Callable[[], None] = lambda: None,
        raise_if_cancelled: Callable[[], None] = lambda: None,
    ) -> None:
        self.task = task
        self.drop = drop
        self.raise_if_cancelled = raise_if_cancelled
        self.address = address
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
            UnauthenticatedError: it has another token, or this process refuses its certificate.
        """
        with self._lock:
            if self._free:
                return self._free.pop()
        try:
            opened = TaskChannel(self)
        except flight.FlightUnauthenticatedError as error:
            raise UnauthenticatedError(
                None, None, f"{self.task} at {self.address}: {error}"
            ) from None
        except _BROKEN as error:
            raise self.unavailable(error) from error
        incarnation = opened.handshake.incarnation
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
        if (handshake := _HANDSHAKE.search(why)) is not None:
            return UnauthenticatedError.explained(
                f"{self.task} at {self.address} and this process do not agree on TLS",
                expected=f"certificates of one authority on all tasks ({_TLS})",
                received=handshake["reason"],
                hint="'wrong version number': the task does not use TLS",
            )
        hint = "is its process running, and is the address correct?"
        if "Socket closed" in why:  # what a server does that refuses a certificate
            hint += f" Does it use TLS as this process does, with one authority? ({_TLS})"
        return UnavailableError.explained(
            f"{self.task} cannot be reached", received=f"{self.address}: {why}", hint=hint
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
