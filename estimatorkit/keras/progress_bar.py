"""`Progbar`: a progress bar for custom loops (`tf.keras.utils.Progbar`)."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Any


class Progbar:
    """A progress bar, redrawn in place. Without a terminal, only the final line is written.

    Args:
        target: the number of steps; None if unknown.
        width: the width of the bar, in characters.
        verbose: 0 for silent, 1 for a bar, 2 for one line at the end.
        interval: the minimum time between two updates of the display, in seconds.
        stateful_metrics: names of values to show unchanged; others are averaged over steps.
        unit_name: the name of a step.
    """

    def __init__(
        self,
        target: int | None,
        width: int = 30,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Iterable[str] | None = None,
        unit_name: str = "step",
    ) -> None:
        self.target = target
        self.width = width
        self.verbose = verbose
        self.interval = interval
        self.stateful_metrics = set(stateful_metrics or ())
        self.unit_name = unit_name
        self._sums: dict[str, tuple[float, float]] = {}
        self._seen = 0
        self._begun = time.monotonic()
        self._drawn = float("-inf")
        self._length = 0

    def update(
        self,
        current: int,
        values: Iterable[tuple[str, Any]] | None = None,
        finalize: bool | None = None,
    ) -> None:
        """Updates the progress bar.

        Args:
            current: the number of steps done.
            values: (name, value) pairs for the steps since the last call.
            finalize: whether this is the last update; by default, when `current` reaches `target`.
        """
        done = current - self._seen
        for name, value in values or ():
            if name in self.stateful_metrics:
                self._sums[name] = (float(value), 1.0)
            else:
                total, weight = self._sums.get(name, (0.0, 0.0))
                steps = max(done, 1)
                self._sums[name] = (total + float(value) * steps, weight + steps)
        self._seen = current
        if finalize is None:
            finalize = self.target is not None and current >= self.target
        now = time.monotonic()
        on_terminal = self.verbose == 1 and sys.stdout.isatty()
        if finalize and self.verbose:
            self._write(now, "\n", on_terminal)
        elif on_terminal and now - self._drawn >= self.interval:
            self._write(now, "", on_terminal)

    def add(self, n: int, values: Iterable[tuple[str, Any]] | None = None) -> None:
        """Advances by `n` steps; see `update`."""
        self.update(self._seen + n, values)

    def _write(self, now: float, end: str, on_terminal: bool) -> None:
        self._drawn = now
        spent = now - self._begun
        each = spent / max(self._seen, 1)
        if self.target is None:
            line = f"{self._seen}/Unknown"
        else:
            digits = len(str(self.target))
            line = f"{self._seen:>{digits}}/{self.target}"
            if self.verbose == 1:
                filled = min(self.width * self._seen // max(self.target, 1), self.width)
                arrow = 0 < filled < self.width
                bar = "=" * (filled - arrow) + ">" * arrow
                line += f" [{bar.ljust(self.width, '.')}]"
        if end or self.target is None:
            line += f" - {spent:.0f}s {1000 * each:.0f}ms/{self.unit_name}"
        else:
            line += f" - ETA: {each * (self.target - self._seen):.0f}s"
        for name, (total, weight) in self._sums.items():
            line += f" - {name}: {total / weight:.4f}"
        sys.stdout.write(("\r" if on_terminal else "") + line.ljust(self._length) + end)
        sys.stdout.flush()
        self._length = len(line)


__all__ = ["Progbar"]
