"""Callbacks that tell others: on the terminal, in a CSV file, over HTTP."""

from __future__ import annotations

import csv
import json
import logging
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

import numpy as np

from estimatorkit.core.errors import value_error
from estimatorkit.keras.callback import Callback, Logs, plain_logs

_log = logging.getLogger("estimatorkit")
_REFRESH_SECONDS = 0.2  # five times a second: drawing the bar every step takes longer than the step
_WIDTH = 30
_TIMEOUT_SECONDS = 10


class ProgbarLogger(Callback):
    """Shows the progress of each epoch, and its logs.

    On a terminal, verbose=1 shows a progress bar that is redrawn at most five times a second;
    elsewhere, and with verbose=2, there is one line per epoch.

    Args:
        count_mode: 'steps' or 'samples'; both count steps.
        stateful_metrics: accepted for compatibility only.

    Raises:
        ValueError: `count_mode` is something else.
    """

    def __init__(self, count_mode: str = "samples", stateful_metrics: Any = None) -> None:
        super().__init__()
        if count_mode not in ("samples", "steps"):
            raise ValueError(
                f"Unknown `count_mode`: {count_mode}. Expected values are ['samples', 'steps']"
            )
        self._training = False
        self._total: int | None = None
        self._seen = 0
        self._begun = 0.0
        self._drawn = 0.0
        self._line = ""
        self._told = 0.0  # when the last training call ended, or the last line was written
        self._each: float | None = None  # seconds per step in that call, which may span epochs
        self._spent = 0.0  # seconds of this epoch spent in such calls

    def wants_batches(self, kind: str) -> bool:
        """False: it only shows logs."""
        return False

    @property
    def _verbose(self) -> int:
        given = self.params.get("verbose", 0)
        return 1 if given == "auto" else int(given)

    @property
    def _draws(self) -> bool:
        return self._verbose == 1 and sys.stdout.isatty()

    def on_train_begin(self, logs: Logs = None) -> None:
        """Records that evaluations are now validations."""
        self._training = True
        self._total = self.params.get("steps")
        self._each = None

    def on_train_end(self, logs: Logs = None) -> None:
        """Records that training has ended."""
        self._training = False

    def wants_epochs(self) -> bool:
        """False: it only writes logs."""
        return False

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Starts a line."""
        self._begin()
        if self._each is None:
            self._told = self._begun
        epochs = self.params.get("epochs") or 1
        if self._verbose and epochs > 1:
            print(f"Epoch {epoch + 1}/{epochs}")

    def after_steps(self, count: int) -> None:
        """Measures the time of the last steps."""
        now = time.monotonic()
        self._told, self._each = now, (now - self._told) / count

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Redraws the line if due."""
        self._spent += (batch + 1 - self._seen) * (self._each or 0.0)
        self._advance(batch + 1, logs)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Ends the line."""
        now = time.monotonic()
        if self._each is not None:  # validation comes after the last step
            self._begun = self._told - self._spent
            self._told = now
        self._end(logs, now)

    def on_test_begin(self, logs: Logs = None) -> None:
        """Starts a progress line, unless this evaluation is the validation of a training."""
        if not self._training:
            self._total = self.params.get("steps")
            self._begin()

    def on_test_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Redraws the line if due."""
        if not self._training:
            self._advance(batch + 1, logs)

    def on_test_end(self, logs: Logs = None) -> None:
        """Ends the line."""
        if not self._training:
            self._end(logs, time.monotonic())

    def on_predict_begin(self, logs: Logs = None) -> None:
        """Starts a line."""
        self._total = self.params.get("steps")
        self._begin()

    def on_predict_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Redraws the line if due."""
        self._advance(batch + 1, None)

    def on_predict_end(self, logs: Logs = None) -> None:
        """Ends the line."""
        self._end(None, time.monotonic())

    # -- the line

    def _begin(self) -> None:
        self._seen = 0
        self._begun = time.monotonic()
        self._drawn = self._spent = 0.0
        self._line = ""

    def _advance(self, seen: int, logs: Logs) -> None:
        self._seen = seen
        now = time.monotonic()
        if self._draws and now - self._drawn >= _REFRESH_SECONDS:
            self._drawn = now
            self._draw(self._bar(now) + _numbers(logs), "")

    def _end(self, logs: Logs, now: float) -> None:
        if not self._verbose:
            return
        self._total = self._seen
        spent = now - self._begun
        each = _duration(spent / max(self._seen, 1)) + "/step"
        if self._draws:
            bar = f"{self._seen}/{self._seen} [{'=' * _WIDTH}] - {_seconds(spent)} {each}"
            self._draw(bar + _numbers(logs), "\n")
        else:
            line = f"{self._seen}/{self._seen} - {_seconds(spent)}{_numbers(logs)}"
            print(f"{line} - {_duration(spent)}/epoch - {each}", flush=True)

    def _bar(self, now: float) -> str:
        if not self._total:
            return f"{self._seen:>7}/Unknown - {_seconds(now - self._begun)}"
        filled = min(_WIDTH * self._seen // self._total, _WIDTH)
        bar = "=" * (filled - 1) + ">" * (filled > 0) + "." * (_WIDTH - filled)
        left = (now - self._begun) * (self._total - self._seen) / max(self._seen, 1)
        return (
            f"{self._seen:>{len(str(self._total))}}/{self._total} [{bar}] - ETA: {_seconds(left)}"
        )

    def _draw(self, line: str, end: str) -> None:
        sys.stdout.write("\r" + line.ljust(len(self._line)) + end)
        sys.stdout.flush()
        self._line = line


def _numbers(logs: Logs) -> str:
    parts = []
    for name, value in (logs or {}).items():
        if np.ndim(value) == 0 and not isinstance(value, str) and name not in ("batch", "size"):
            number = float(value)
            parts.append(f" - {name}: {number:.4f}" if abs(number) > 1e-3 else _small(name, number))
    return "".join(parts)


def _small(name: str, number: float) -> str:
    return f" - {name}: {number:.4e}"


def _seconds(seconds: float) -> str:
    whole = int(seconds)
    if whole >= 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
    return f"{whole // 60}:{whole % 60:02d}" if whole >= 60 else f"{whole}s"


def _duration(seconds: float) -> str:
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.0f}s"
    return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us"


class CSVLogger(Callback):
    """Writes the logs of each epoch as a row of a CSV file.

    Args:
        filename: the file.
        separator: the separator of values.
        append: whether to append to an existing file, whose header is kept.
    """

    def __init__(
        self, filename: str | os.PathLike[str], separator: str = ",", append: bool = False
    ) -> None:
        super().__init__()
        self.filename = os.fspath(filename)
        self.sep = separator
        self.append = append
        self._keys: list[str] | None = None

    def on_train_begin(self, logs: Logs = None) -> None:
        """Creates an empty file, or reads the header of the existing one."""
        self._keys = None
        if self.append and os.path.exists(self.filename):
            with open(self.filename, newline="", encoding="utf-8") as file:
                header = next(csv.reader(file, delimiter=self.sep), None)
            if header:
                self._keys = header[1:]
            return
        with open(self.filename, "w", encoding="utf-8"):
            pass

    def wants_epochs(self) -> bool:
        """False: it only writes logs."""
        return False

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Writes a row, with 'NA' for logs that are missing in this epoch."""
        given = plain_logs(logs or {})
        first = self._keys is None
        if self._keys is None:
            self._keys = sorted(given)
            if not any(key.startswith("val_") for key in given):  # they may follow later
                self._keys += [f"val_{key}" for key in self._keys]
        row = [epoch, *(_cell(given.get(key, "NA")) for key in self._keys)]
        with open(self.filename, "a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=self.sep)
            if first:
                writer.writerow(["epoch", *self._keys])
            writer.writerow(row)


def _cell(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return f'"[{", ".join(map(str, value.tolist()))}]"'
    return value


class RemoteMonitor(Callback):
    """Sends the logs of each epoch to a server by HTTP POST.

    Args:
        root: the address of the server, `http://...` or `https://...`.
        path: the path on the server.
        field: the form field for the JSON text, if it is sent as a form.
        headers: the headers of the request.
        send_as_json: whether to send the JSON text itself instead of a form.

    Raises:
        ValueError: `root` has another scheme.
    """

    def __init__(
        self,
        root: str = "http://localhost:9000",
        path: str = "/publish/epoch/end/",
        field: str = "data",
        headers: Mapping[str, str] | None = None,
        send_as_json: bool = False,
    ) -> None:
        super().__init__()
        if urllib.parse.urlsplit(root).scheme not in ("http", "https"):
            raise value_error(
                "RemoteMonitor sends to HTTP servers only",
                expected="http://... or https://...",
                received=repr(root),
            )
        self.root = root
        self.path = path
        self.field = field
        self.headers = dict(headers or {})
        self.send_as_json = send_as_json

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Sends the logs; logs a warning if the server does not answer."""
        text = json.dumps({"epoch": epoch, **plain_logs(logs or {})}, default=_listed)
        if self.send_as_json:
            content, kind = text, "application/json"
        else:
            content = urllib.parse.urlencode({self.field: text})
            kind = "application/x-www-form-urlencoded"
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked
            self.root + self.path, content.encode(), {"Content-Type": kind, **self.headers}
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS):  # noqa: S310
                pass
        except (urllib.error.URLError, OSError) as error:
            _log.warning("Could not reach RemoteMonitor root server at %s: %s", self.root, error)


def _listed(value: Any) -> Any:
    return np.asarray(value).tolist()


__all__ = ["CSVLogger", "ProgbarLogger", "RemoteMonitor"]
