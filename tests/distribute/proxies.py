"""`Proxy`: a connection to an address that a test can cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from estimatorkit.distribute.addresses import host_and_port


class Proxy:
    """Passes connections on to an address, and cuts them.

    Args:
        address: `host:port`.

    Attributes:
        address: where it can be reached itself.
        cuts: how often it has cut connections.
    """

    def __init__(self, address: str) -> None:
        self._to = host_and_port(address)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self._passes = True
        self.cuts = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                if not self._passes:
                    near.close()
                    continue
                try:
                    far = socket.create_connection(self._to)
                except OSError:  # it does not serve yet
                    near.close()
                    continue
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    @staticmethod
    def _pass(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Ends all connections."""
        cut, self._open = self._open, []
        self.cuts += bool(cut)
        for each in cut:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def hold(self) -> None:
        """Ends all connections, and lets none through any more."""
        self._passes = False
        self.cut()

    def release(self) -> None:
        """Lets connections through again."""
        self._passes = True

    def close(self) -> None:
        """Ends the proxy."""
        self._listening.close()
        self.cut()
