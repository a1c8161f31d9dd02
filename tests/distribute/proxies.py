"""`Proxy`: a connection to an address that a test can cut; `BadProxy` does so itself, and worse."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import estimatorkit as tf
from estimatorkit.distribute.addresses import host_and_port
from estimatorkit.distribute.tasks.task_cluster import TaskCluster, serve_target
from estimatorkit.distribute.tasks.task_placement import HERE
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.targets import Target


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

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                self._send(other, data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _send(self, to: socket.socket, data: bytes) -> None:
        to.sendall(data)

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


@contextmanager
def session_by(address: str) -> Iterator[tf.Session]:
    """A session of this process that reaches the server by an address, as others would."""
    cluster = TaskCluster({"/job:ps/task:0": address}, HERE, None)
    with tf.Session(
        serve_target(f"by-{address}", Target(ResourceStore(), cluster, shared=False))
    ) as made:
        yield made


class BadProxy(Proxy):
    """Delays what it passes on, up to 10 ms, and sends some of it byte by byte; ends connections in
    the middle of it, some in one direction only.

    Args:
        address: `host:port`.
        seed: of all this.
        ends: the share of pieces with which a connection ends.
    """

    def __init__(self, address: str, seed: int, ends: float) -> None:
        self._random = random.Random(seed)
        self._ends = ends
        super().__init__(address)

    def _send(self, to: socket.socket, data: bytes) -> None:
        time.sleep(self._random.uniform(0, 0.01))
        ends = self._random.random() < self._ends
        if ends:
            data = data[: self._random.randrange(len(data))]
        to.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        singly = 2000 if self._random.random() < 0.1 else 0
        for byte in data[:singly]:
            to.sendall(bytes([byte]))
        to.sendall(data[singly:])
        if ends:
            self.cuts += 1
            to.shutdown(self._random.choice([socket.SHUT_WR, socket.SHUT_RDWR]))
            raise OSError("cut")
