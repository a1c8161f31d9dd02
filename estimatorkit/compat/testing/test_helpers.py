"""Helpers of `tf.test.TestCase`: threads, captured streams, replaced attributes."""

from __future__ import annotations

import threading
import unittest
from pathlib import Path
from typing import Any


class StubOutForTesting:
    """Replaces attributes for a test; `CleanUp` restores them."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:
        """Replaces an attribute of an object."""
        self._replaced.append((parent, child_name, getattr(parent, child_name)))
        setattr(parent, child_name, new_child)

    SmartSet = Set

    def UnsetAll(self) -> None:
        """Restores everything, in reverse order."""
        while self._replaced:
            setattr(*self._replaced.pop())

    SmartUnsetAll = CleanUp = UnsetAll


class CheckedThread:
    """A thread whose exception fails the test that joins it; see `TestCase.checkedThread`.

    Args:
        test: the test case.
        target, args, kwargs: see `threading.Thread`.
    """

    def __init__(self, test: unittest.TestCase, target: Any, args: Any, kwargs: Any) -> None:
        self._test, self._target = test, target
        self._args, self._kwargs = args, kwargs
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._target(*self._args, **self._kwargs)
        except BaseException as error:  # raised in `join`
            self._error = error

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def join(self) -> None:
        """Waits for the thread.

        Raises:
            AssertionError: it raised an exception.
        """
        self._thread.join()
        if self._error is not None:
            self._test.fail(f"Error in checkedThread: {self._error}")

    def is_alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """Fails the test if the thread is still running."""
        if self._thread.is_alive():
            self._test.fail("checkedThread was not terminated by the end of the test")


class CapturedWrites:
    """Captured writes to a stream; see `TestCase.captureWritesToStream`.

    Args:
        path: the file that stores them.
        stream: the stream.
    """

    def __init__(self, path: Path, stream: Any) -> None:
        self._path, self._stream = path, stream

    def contents(self) -> str:
        """Returns what has been written so far."""
        self._stream.flush()
        return self._path.read_text("utf-8", "replace")
