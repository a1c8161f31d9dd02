"""`Watchdog`: ends a process whose steps have stalled because a peer is alive but stuck.

A dead process is noticed by its connections; one that is stopped, swapping or deadlocked is not,
and all others would wait for it. After the limit, tracebacks of all threads are written to stderr
and the process exits with the code for restart.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
import threading
import time

from estimatorkit.distribute.exit_codes import RETRY

_logger = logging.getLogger("estimatorkit")

TIMES = 20
"""The limit as a multiple of the longest wait so far: slow steps are not stuck."""

_POLL_SECS = 0.5


class Watchdog:
    """Watches a loop of steps, from its first beat.

    Args:
        limit_secs: the minimum limit for the time between beats.
        what: what is being waited for, for the log.
    """

    def __init__(self, limit_secs: float, what: str) -> None:
        self._limit_secs = limit_secs
        self._what = what
        self._beat_at: float | None = None
        self._longest = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def beat(self) -> None:
        """Records progress."""
        now = time.monotonic()
        if self._beat_at is not None:
            self._longest = max(self._longest, now - self._beat_at)
        self._beat_at = now

    def rest(self) -> None:
        """Pauses until the next beat."""
        self._beat_at = None

    def stop(self) -> None:
        """Stops watching."""
        self._ended.set()

    @property
    def limit(self) -> float:
        """The current limit in seconds."""
        return max(self._limit_secs, TIMES * self._longest)

    def _watch(self) -> None:
        while not self._ended.wait(_POLL_SECS):
            beat_at = self._beat_at
            if beat_at is not None and time.monotonic() - beat_at > self.limit:
                self._exit(time.monotonic() - beat_at)

    def _exit(self, seconds: float) -> None:
        _logger.error(
            "No step of %s for %.0f seconds: another process may be stuck. Exiting with code %d "
            "for a restart; RunConfig(stuck_secs=...) sets this timeout.",
            self._what,
            seconds,
            RETRY,
        )
        faulthandler.dump_traceback(sys.stderr, all_threads=True)
        sys.stderr.flush()
        os._exit(RETRY)
