"""Servers in threads for tests, and clients that speak HTTP byte by byte."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from estimatorkit.experiment.serving.http_server import ModelServer, ServerOptions
from estimatorkit.experiment.serving.model_store import ModelStore

ROW = {"x": [0.5, 1.0, -1.0], "word": ["a"], "name": ["v"]}


@contextmanager
def serving(*stores: ModelStore, **options: Any) -> Iterator[ModelServer]:
    """A server in a thread."""
    server = ModelServer(stores, ServerOptions(port=0, **options))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


class RawClient:
    """A connection, on which any bytes can be sent."""

    def __init__(
        self, server: ModelServer, tls: ssl.SSLContext | None = None, source: str = ""
    ) -> None:
        address = ("127.0.0.1", server.port)
        self.socket = socket.create_connection(address, timeout=60, source_address=(source, 0))
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self._file = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        """Sends bytes as they are."""
        self.socket.sendall(data)

    def ask(self, path: str, content: Any = None, headers: str = "") -> tuple[int, Any]:
        """A whole request, and its response."""
        body = b"" if content is None else content
        if not isinstance(body, bytes):
            body = json.dumps(content).encode()
        size = f"Content-Length: {len(body)}\r\n" if content is not None else ""
        host = "" if "Host:" in headers else "Host: localhost\r\n"
        method = "GET" if content is None else "POST"
        self.send(f"{method} {path} HTTP/1.1\r\n{host}{size}{headers}\r\n".encode() + body)
        return self.response()

    def response(self) -> tuple[int, Any]:
        """The next response: its status, and its content (text if it is not JSON)."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self._file.readline()
            if not line:
                raise ConnectionError("the server closed the connection")
            head += line
        size = int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
        body = self._file.read(size)
        status = int(head.split()[1])
        if b"application/json" not in head.lower():
            return status, body.decode()
        return status, json.loads(body)

    def is_closed(self) -> bool:
        """Whether the server has closed the connection; waits for its next bytes."""
        return self._file.read(1) == b""

    def close(self) -> None:
        """Closes the connection."""
        self._file.close()
        self.socket.close()

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
