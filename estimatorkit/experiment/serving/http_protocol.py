"""`BoundedProtocol`: uvicorn's HTTP protocol with limits on the size and time of headers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEADER_SECONDS = 10.0
_MOST_HEADER_BYTES = 64 << 10


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose request headers take too long or are too large.

    uvicorn limits idle connections only: a thousand half-sent requests would stay open for ever.
    Protocol errors are JSON, too.
    """

    _timer: asyncio.TimerHandle | None = None
    _header_bytes = 0  # read so far

    def connection_made(self, transport: Any) -> None:
        """Waits for the first request."""
        super().connection_made(transport)
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
        """Reads a part of a request."""
        if self._timer is None and self._is_idle:
            self._expect_headers()
        if self._timer is not None:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._timer is not None and self._header_bytes > _MOST_HEADER_BYTES:
            self._stop_timer()
            self._send_error(b"431 Request Header Fields Too Large", "the headers are too large")

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def on_headers_complete(self) -> None:
        """Stops the timer, and runs the application."""
        self._stop_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Rejects malformed HTTP."""
        self._stop_timer()
        self._send_error(b"400 Bad Request", msg)

    def _send_error(self, status: bytes, message: str) -> None:
        body = json.dumps({"error": message}).encode()
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % (
            status,
            len(body),
        )
        self.transport.write(head + b"connection: close\r\n\r\n" + body)
        self.transport.close()


__all__ = ["BoundedProtocol"]
