"""`TaskEndpoint`: a `TaskService` on the network, by Arrow Flight.

A stream is a channel of alternating requests and replies (`rpc`). Requests are numbered, so
that one retried after a broken connection executes at most once (`ReplyCache`).
"""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, NoReturn

from estimatorkit.core.errors import (
    AbortedError,
    CancelledError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
    UnimplementedError,
    explain,
)
from estimatorkit.distribute.tasks import rpc
from estimatorkit.distribute.tasks.array_messages import SCHEMA, BrokenMessage, receive, send
from estimatorkit.distribute.tasks.arrow import flight
from estimatorkit.distribute.tasks.reply_cache import Channels
from estimatorkit.distribute.tasks.shared_memory import SharedMemory
from estimatorkit.distribute.tasks.task_service import Call, TaskService
from estimatorkit.distribute.tls import Identity
from estimatorkit.runtime.xla.at_exit import counted

AUTHORIZATION = "authorization"
"""The header with the token."""

RECONNECT_SECS = 10.0
"""How long a broken channel can be resumed."""


class TaskEndpoint(flight.FlightServerBase):  # type: ignore[misc]
    """Serves a task to clients.

    Args:
        address: `host:port`, bound exactly as given; port 0 for a free one.
        service: executes the requests.
        addresses: `host:port` of the cluster's tasks, by name.
        token: the token that clients must present.
        identity: for TLS, which clients must use, too; None for unencrypted traffic.

    Raises:
        OSError: the address cannot be bound.
    """

    def __init__(
        self,
        address: str,
        service: TaskService,
        addresses: Mapping[str, str],
        token: str,
        identity: Identity | None = None,
    ) -> None:
        options: dict[str, Any] = {"middleware": {"token": _TokenCheck(token)}}
        if identity is None:
            super().__init__(f"grpc://{address}", **options)
        else:
            super().__init__(
                f"grpc+tls://{address}",
                tls_certificates=[identity[:2]],
                verify_client=True,
                root_certificates=identity.authority,
                **options,
            )
        self.service = service
        self.addresses = dict(addresses)
        self.channels = Channels()
        self.stopping = threading.Event()
        self._sweeper: threading.Timer | None = None
        self._sweeping = threading.Lock()

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Serves a stream until it closes."""
        _Stream(self, context, descriptor.command, reader, writer).serve()

    def channel_broke(self, channel: bytes) -> None:
        """Keeps a channel for a while, so that it can be resumed."""
        self.channels.broke(channel, time.monotonic() + RECONNECT_SECS)
        self._forget_broken()

    def _forget_broken(self, is_timer: bool = False) -> None:
        """Drops broken channels that are not resumed in time."""
        with self._sweeping:
            if is_timer:
                self._sweeper = None
            if self.channels.forget_broken(time.monotonic()) and self._sweeper is None:
                self._sweeper = threading.Timer(RECONNECT_SECS, self._forget_broken, (True,))
                self._sweeper.daemon = True
                self._sweeper.start()

    def stop(self, seconds: float = 60.0) -> bool:
        """Cancels requests and stops serving; returns whether all clients disconnected in time.

        Args:
            seconds: how long to wait for clients to close their channels.
        """
        self.stopping.set()
        stopping = threading.Thread(target=counted(self.shutdown), daemon=True)
        stopping.start()
        stopping.join(seconds)
        return not stopping.is_alive()


class _Stream:
    """A stream of a channel: the first one, or one that resumes it."""

    def __init__(
        self, endpoint: TaskEndpoint, context: Any, channel: bytes, reader: Any, writer: Any
    ) -> None:
        self._endpoint = endpoint
        self._service = endpoint.service
        self._context = context
        self._channel = channel
        self._reader = reader
        self._writer = writer
        self._is_resumed = channel in endpoint.channels
        self._replies = endpoint.channels.opened(channel)
        self._call = Call(self._replies.kept, self._raise_if_cancelled)
        self._incarnation = self._service.incarnation
        self._inbox: SharedMemory | None = None
        self._outbox: SharedMemory | None = None
        self._workers: set[str] = set()
        self._members: set[tuple[str, str]] = set()

    def serve(self) -> None:
        """Answers requests until the stream ends."""
        self._writer.begin(SCHEMA)
        service = self._service
        self._send(
            rpc.Handshake(
                rpc.VERSION,
                service.task,
                self._incarnation,
                self._endpoint.addresses,
                self._is_resumed,
            )
        )
        is_closed = False
        try:
            while not self._endpoint.stopping.is_set():
                try:
                    self._serve_next()
                except StopIteration:
                    # A stream also ends when its connection is cut.
                    is_closed = not self._context.is_cancelled()
                    return
        finally:
            # Others no longer wait for these workers; one that reconnects reads first.
            service.left(self._workers, self._members)
            if is_closed:
                self._endpoint.channels.closed(self._channel)
            else:
                self._endpoint.channel_broke(self._channel)

    def _serve_next(self) -> None:
        try:
            header, arrays, number = receive(self._reader.read_chunk, self._inbox)
            request: rpc.Request[Any] = rpc.decode(header, arrays, rpc.Request)
        except (BrokenMessage, rpc.MalformedMessage) as error:
            if isinstance(error.__cause__, StopIteration):
                raise
            self._send(_malformed(error))
            return
        if isinstance(request, rpc.Heartbeat):
            self._members.add((request.member, request.process))
        elif isinstance(worker := getattr(request, "worker", None), str):
            self._workers.add(worker)
        elif isinstance(request, rpc.OpenSharedMemory):
            self._open_shared_memory(request)
        try:
            reply = self._replies.execute_once(number, partial(self._execute, request))
        except OpError as error:
            reply = rpc.Failure.of(error)
        self._send(reply, self._outbox if request.zero_copy else None)

    def _open_shared_memory(self, request: rpc.OpenSharedMemory) -> None:
        inbox, outbox = (SharedMemory.open(*area) for area in request.areas)
        are_open = inbox is not None and outbox is not None
        self._inbox, self._outbox = (inbox, outbox) if are_open else (None, None)

    def _execute(self, request: rpc.Request[Any]) -> rpc.Message:
        if isinstance(request, rpc.OpenSharedMemory):
            return rpc.SharedMemoryOpened(self._inbox is not None)
        if self._is_lost() and not isinstance(request, rpc.Heartbeat):
            return self._lost()
        reply = self._service.execute(request, self._call)
        # It may have waited for state that was cleared.
        return self._lost() if isinstance(reply, rpc.Failure) and self._is_lost() else reply

    def _is_lost(self) -> bool:
        return self._incarnation != self._service.incarnation

    def _lost(self) -> rpc.Failure:
        problem = f"{self._service.task} was reset: training resumes from the last checkpoint."
        return rpc.Failure.of(AbortedError(None, None, problem), state_lost=True)

    def _raise_if_cancelled(self) -> None:
        if self._context.is_cancelled():
            raise CancelledError(None, None, "Step was cancelled: the session was closed.")
        if self._endpoint.stopping.is_set():
            raise UnavailableError(None, None, f"{self._service.task} is shutting down.")

    def _send(self, reply: rpc.Message, area: SharedMemory | None = None) -> None:
        """Sends a reply; if its arrays are not serializable, sends that error."""
        try:
            send(self._writer, rpc.encode(reply), reply.arrays, area)
        except UnimplementedError as error:
            send(self._writer, rpc.encode(rpc.Failure.of(error)))


def _malformed(error: Exception) -> rpc.Failure:
    return rpc.Failure.of(
        InvalidArgumentError.explained("a request of another task is malformed", received=error)
    )


class _TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Rejects calls without the token."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> None:
        """Checks a call's headers."""
        given = headers.get(AUTHORIZATION, [""])[0]
        if not hmac.compare_digest(given.encode(), self._expected):
            _refuse()


def _refuse() -> NoReturn:
    raise flight.FlightUnauthenticatedError(
        explain(
            "the caller is not authenticated",
            expected="the cluster's token",
            hint="set ESTIMATORKIT_TOKEN to the same value on every host",
        )
    )
