"""`BoundedProtocol`: uvicorn's HTTP protocol, with bounds on what it reads of a request."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD_SECONDS = 10.0
_MOST_HEAD_BYTES = 64 << 10


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose request's head takes too long or is too large.

    uvicorn bounds idle connections only: a thousand half-sent requests would be kept for ever.
    Errors of the protocol are JSON, too.
    """

    _timer: asyncio.TimerHandle | None = None
    _head = 0  # bytes of the head that is being read

    def connection_made(self, transport: Any) -> None:
        """Begins to wait for the first request."""
        super().connection_made(transport)
        self._expect_head()

    def _expect_head(self) -> None:
        self._head = 0
        self._timer = self.loop.call_later(_HEAD_SECONDS, self._refuse_slow)

    def _refuse_slow(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._send_error(b"408 Request Timeout", "the request's head did not come in time")

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def data_received(self, data: bytes) -> None:
        """Reads a part of a request."""
        if self._timer is None and self._is_idle:
            self._expect_head()
        if self._timer is not None:
            self._head += len(data)
        super().data_received(data)
        if self._timer is not None and self._head > _MOST_HEAD_BYTES:
            self._stop()
            self._send_error(b"431 Request Header Fields Too Large", "the headers are too large")

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def on_headers_complete(self) -> None:
        """Begins to answer."""
        self._stop()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self._stop()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no HTTP."""
        self._stop()
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
