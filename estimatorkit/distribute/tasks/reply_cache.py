"""`ReplyCache`: a retried request executes at most once.

Requests on a channel are numbered. When a connection breaks, the client cannot know whether its
request was executed; it sends it again under the same number and gets the cached reply, or waits
for it. Channels that stay silent are dropped. Pure state without I/O, so tests can drive it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from estimatorkit.core.errors import AbortedError


class ReplyCache:
    """The last request of a channel and its reply.

    Attributes:
        kept: values of earlier requests of a run that later ones need, by tensor name.
    """

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self._number = 0
        self._reply: Any = None
        self._is_executing = False
        self._changed = threading.Condition()

    def execute_once(self, number: int, execute: Callable[[], Any]) -> Any:
        """Returns the cached reply to a request, or executes it.

        Args:
            number: the request's number.
            execute: computes the reply; on an exception nothing is cached.

        Raises:
            AbortedError: earlier requests are missing, or it is older than the last one.
        """
        with self._changed:
            while self._is_executing and number == self._number:
                self._changed.wait()
            if number == self._number:
                return self._reply
            if number != self._number + 1 or self._is_executing:
                raise AbortedError(
                    None, None, f"Request {number} arrived after request {self._number}."
                )
            self._number, self._is_executing = number, True
        try:
            reply = execute()
        except BaseException:
            with self._changed:
                self._number, self._is_executing = number - 1, False
                self._changed.notify_all()
            raise
        with self._changed:
            self._reply, self._is_executing = reply, False
            self._changed.notify_all()
        return reply


class Channels:
    """The reply caches of a task's channels, by name."""

    def __init__(self) -> None:
        self._caches: dict[bytes, ReplyCache] = {}
        self._streams: Counter[bytes] = Counter()
        self._kept_until: dict[bytes, float] = {}
        self._lock = threading.Lock()

    def opened(self, channel: bytes) -> ReplyCache:
        """Opens a stream: the first of a channel, or one that resumes it."""
        with self._lock:
            self._streams[channel] += 1
            return self._caches.setdefault(channel, ReplyCache())

    def closed(self, channel: bytes) -> None:
        """Drops a channel whose stream was closed normally."""
        with self._lock:
            self._forget(channel)

    def broke(self, channel: bytes, kept_until: float) -> None:
        """Records a broken stream, and the deadline for resuming it."""
        with self._lock:
            self._streams[channel] -= 1
            self._kept_until[channel] = kept_until

    def forget_broken(self, now: float) -> bool:
        """Drops channels that were not resumed in time; returns whether others are still broken."""
        with self._lock:
            broken = {each for each in self._kept_until if self._streams[each] <= 0}
            for channel in list(self._kept_until):
                if channel not in broken:
                    del self._kept_until[channel]  # resumed
                elif self._kept_until[channel] <= now:
                    self._forget(channel)
            return bool(self._kept_until)

    def _forget(self, channel: bytes) -> None:
        for each in (self._caches, self._streams, self._kept_until):
            each.pop(channel, None)

    def __contains__(self, channel: bytes) -> bool:
        return channel in self._caches

    def __len__(self) -> int:
        return len(self._caches)
