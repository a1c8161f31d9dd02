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
    """The last question of a channel and its answer.

    Attributes:
        kept: what later questions of a run take of earlier ones, by tensors' names.
    """

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self._number = 0
        self._answer: Any = None
        self._working = False
        self._changed = threading.Condition()

    def answer(self, number: int, work: Callable[[], Any]) -> Any:
        """The answer to a question, by `work` if it was not answered yet.

        Args:
            number: the question's.
            work: gives the answer; an exception leaves the question unanswered.

        Raises:
            AbortedError: questions before it are missing, or it is older than the last one.
        """
        with self._changed:
            while self._working and number == self._number:
                self._changed.wait()
            if number == self._number:
                return self._answer
            if number != self._number + 1 or self._working:
                raise AbortedError(
                    None, None, f"Question {number} came after question {self._number}."
                )
            self._number, self._working = number, True
        try:
            found = work()
        except BaseException:
            with self._changed:
                self._number, self._working = number - 1, False
                self._changed.notify_all()
            raise
        with self._changed:
            self._answer, self._working = found, False
            self._changed.notify_all()
        return found


class Channels:
    """The `ReplyCache` of the channels that a task serves, by the channels' names."""

    def __init__(self) -> None:
        self._answers: dict[bytes, ReplyCache] = {}
        self._streams: Counter[bytes] = Counter()
        self._kept_until: dict[bytes, float] = {}
        self._lock = threading.Lock()

    def opened(self, channel: bytes) -> ReplyCache:
        """A stream begins: the first of a channel, or one that takes up a broken one."""
        with self._lock:
            self._streams[channel] += 1
            return self._answers.setdefault(channel, ReplyCache())

    def closed(self, channel: bytes) -> None:
        """A stream has ended in order: nobody will ask again."""
        with self._lock:
            self._forget(channel)

    def broke(self, channel: bytes, kept_until: float) -> None:
        """A stream broke; until when it may be taken up."""
        with self._lock:
            self._streams[channel] -= 1
            self._kept_until[channel] = kept_until

    def forget_broken(self, now: float) -> bool:
        """Forgets those that nobody has taken up in time; whether others are broken."""
        with self._lock:
            broken = {each for each in self._kept_until if self._streams[each] <= 0}
            for channel in list(self._kept_until):
                if channel not in broken:
                    del self._kept_until[channel]  # taken up
                elif self._kept_until[channel] <= now:
                    self._forget(channel)
            return bool(self._kept_until)

    def _forget(self, channel: bytes) -> None:
        for each in (self._answers, self._streams, self._kept_until):
            each.pop(channel, None)

    def __contains__(self, channel: bytes) -> bool:
        return channel in self._answers

    def __len__(self) -> int:
        return len(self._answers)
