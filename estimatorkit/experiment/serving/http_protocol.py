"""`BoundedServer`: uvicorn's server and its HTTP protocol, with limits on handshakes, headers,
connections of an address and waiting requests; all errors are JSON.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_Send = Callable[[Any], Awaitable[None]]
_Application = Callable[[Any, Any, _Send], Awaitable[None]]

_HEADER_SECONDS = 10.0
_MOST_HEADER_BYTES = 64 << 10
_PIECE = 4 << 10  # bytes to parse at once: at most 230 requests


class BoundedServer(uvicorn.Server):
    """uvicorn's server with `BoundedProtocol`.

    Its own gives a TLS handshake asyncio's 60 seconds, and does not tell when it serves.

    Args:
        config: the settings. Half of `limit_concurrency` connections may be of one address.
        on_start: called once connections are accepted.
    """

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start
        self._clients: Counter[str] = Counter()

    async def startup(self, sockets: list[Any] | None = None) -> None:
        """Accepts connections."""
        secure = self.config.ssl
        self.servers = [
            await asyncio.get_running_loop().create_server(
                self._protocol,
                sock=each,
                ssl=secure,
                backlog=self.config.backlog,
                ssl_handshake_timeout=None if secure is None else _HEADER_SECONDS,
            )
            for each in sockets or ()
        ]
        self.started = True
        self._on_start()

    def _protocol(self) -> BoundedProtocol:
        return BoundedProtocol(self._clients, self.config, self.server_state, self.lifespan.state)


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose request headers take too long or are too large; reads no request far
    ahead of the answers.

    uvicorn limits idle connections only: a thousand half-sent requests would stay open for ever. It
    parses all that it reads, 256 kB or 7,000 requests, and reads more after each answer: a client
    that reads no answers fills 850 MB in 25 s. (Servers of a bare application grow in 20 s by
    550 MB with uvicorn 0.54 and httptools, by 1 with h11, which is slower, by 2 with granian 2.8,
    by none with hypercorn 0.18.) Here nothing is parsed while a request waits for the answer of
    another, and nothing read while something is to be parsed. Protocol errors are JSON.
    """

    _timer: asyncio.TimerHandle | None = None
    _header_bytes = 0  # read so far

    def __init__(self, clients: Counter[str], *settings: Any) -> None:
        super().__init__(*settings)
        self._clients = clients
        self._unread = bytearray()

    def connection_made(self, transport: Any) -> None:
        """Waits for the first request."""
        super().connection_made(transport)
        self._running = self.cycle
        self.flow = _Flow(transport, self)
        self._network = network_of(self.client[0] if self.client else "")
        self._clients[self._network] += 1
        most = self.limit_concurrency
        if most is not None and self._clients[self._network] > max(1, most // 2):
            self._send_error(b"429 Too Many Requests", "too many connections of one address")
        else:
            self._expect_headers()

    def _expect_headers(self) -> None:
        self._header_bytes = 0
        self._timer = self.loop.call_later(_HEADER_SECONDS, self._time_out)

    def _time_out(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._send_error(b"408 Request Timeout", "the request's head did not come in time")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def data_received(self, data: bytes) -> None:
        """Reads a part of a request, or many requests."""
        self._unread += data
        self._read_on()

    @property
    def is_behind(self) -> bool:
        """Whether there is something to answer or to parse before more is read."""
        return bool(self.pipeline or self._unread)

    def _read_on(self) -> None:
        while self._unread and not self.pipeline and not self.transport.is_closing():
            size = _PIECE
            if self._timer is not None:  # not a byte of a head beyond the bound
                size = min(size, _MOST_HEADER_BYTES - self._header_bytes)
            piece = bytes(self._unread[:size])
            del self._unread[:size]
            self._parse(piece)
        if self.is_behind:
            self.flow.pause_reading()

    def on_response_complete(self) -> None:
        """Goes on with the next request."""
        super().on_response_complete()
        self._read_on()
        self.flow.resume_reading()

    def _parse(self, data: bytes) -> None:
        if self._timer is None and self._is_idle:
            self._expect_headers()
        if self._timer is not None:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._timer is not None and self._header_bytes >= _MOST_HEADER_BYTES:
            self._stop_timer()
            self._send_error(b"431 Request Header Fields Too Large", "the headers are too large")

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def on_headers_complete(self) -> None:
        """Stops the timer, and runs the application."""
        self._stop_timer()
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, _with_json_errors(app))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the timer, and drops the requests that wait."""
        self._stop_timer()
        self._clients[self._network] -= 1
        if not self._clients[self._network]:
            del self._clients[self._network]
        self.pipeline.clear()
        self._unread.clear()
        self.cycle = self._running  # uvicorn tells the last one that the client has gone
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Rejects malformed HTTP."""
        self._stop_timer()
        self._send_error(b"400 Bad Request", msg)

    def _send_error(self, status: bytes, message: str) -> None:
        body = _error_body(message)
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % (
            status,
            len(body),
        )
        self.transport.write(head + b"connection: close\r\n\r\n" + body)
        self.transport.close()


class _Flow(FlowControl):
    """Reads only what a connection can take."""

    def __init__(self, transport: Any, protocol: BoundedProtocol) -> None:
        super().__init__(transport)
        self._protocol = protocol

    def resume_reading(self) -> None:
        """Resumes reading, unless requests are still queued."""
        if not self._protocol.is_behind:
            super().resume_reading()


def network_of(address: str) -> str:
    """What one client can take its addresses from: itself, or the 64 bits of a network of IPv6."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))


def _error_body(message: str) -> bytes:
    return json.dumps({"error": message}).encode() + b"\n"


def _with_json_errors(app: _Application) -> _Application:
    """An application whose errors in plain text, as Starlette's and uvicorn's, become JSON."""

    async def run(scope: Any, receive: Any, send: _Send) -> None:
        refusal: dict[str, Any] | None = None

        async def sent(message: dict[str, Any]) -> None:
            nonlocal refusal
            if message["type"] == "http.response.start" and message["status"] >= 400:
                headers = dict(message["headers"])
                if headers.get(b"content-type", b"").startswith(b"text/plain"):
                    refusal = {**message, "headers": headers}
                    return
            if refusal is not None:
                body = _error_body(message["body"].decode())
                refusal["headers"] |= {
                    b"content-type": b"application/json",
                    b"content-length": b"%d" % len(body),
                }
                await send({**refusal, "headers": list(refusal["headers"].items())})
                refusal, message = None, {**message, "body": body}
            await send(message)

        await app(scope, receive, sent)

    return run


__all__ = ["BoundedServer", "network_of"]
