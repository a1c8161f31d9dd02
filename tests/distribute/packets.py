"""A bad network below TCP: a device whose packets are delayed, reordered, lost and sent twice.

What `tc netem` does, without its kernel module: a packet to `FAR` comes to this process, which
gives it back to the kernel as one from `FAR` to `NEAR`. Servers listen at `NEAR`, clients call
`FAR`. Only in a network namespace of one's own, where every program is root: `unshare -rn`.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time

NEAR, FAR = "10.77.0.1", "10.77.0.2"

_SET_DEVICE = 0x400454CA  # TUNSETIFF
_BARE_PACKETS = 0x1001  # IFF_TUN | IFF_NO_PI


class BadNetwork:
    """Makes the device; its packets pass until the process ends.

    Args:
        delay: the least and the most seconds that a packet takes; so much apart they are reordered.
        loss: the share of packets that is lost.
        twice: the share that comes twice.
        seed: of all this.

    Attributes:
        is_down: whether all packets are lost.
        packets: how many came.

    Raises:
        OSError, subprocess.CalledProcessError: this system has none of these devices.
    """

    def __init__(
        self, delay: tuple[float, float], loss: float = 0.0, twice: float = 0.0, seed: int = 0
    ) -> None:
        self._device = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(self._device, _SET_DEVICE, struct.pack("16sH", b"bad0", _BARE_PACKETS))
        for words in (f"addr add {NEAR}/24 dev bad0", "link set bad0 up", "link set lo up"):
            subprocess.run(["ip", *words.split()], check=True)
        self._delay, self._loss, self._twice = delay, loss, twice
        self._random = random.Random(seed)
        self._waiting: list[tuple[float, int, bytes]] = []
        self.is_down = False
        self.packets = 0
        threading.Thread(target=self._pass, daemon=True).start()

    def _pass(self) -> None:
        while True:
            now = time.monotonic()
            while self._waiting and self._waiting[0][0] <= now:
                os.write(self._device, heapq.heappop(self._waiting)[2])
            timeout = self._waiting[0][0] - now if self._waiting else None
            if select.select([self._device], [], [], timeout)[0]:
                self._take(os.read(self._device, 1 << 16))

    def _take(self, packet: bytes) -> None:
        if packet[0] >> 4 != 4 or self.is_down or self._random.random() < self._loss:
            return
        source, target = packet[12:16], packet[16:20]  # exchanged, the checksums stay as they are
        turned = packet[:12] + target + source + packet[20:]
        for _ in range(1 + (self._random.random() < self._twice)):
            self.packets += 1
            due = time.monotonic() + self._random.uniform(*self._delay)
            heapq.heappush(self._waiting, (due, self.packets, turned))
