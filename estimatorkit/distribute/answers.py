"""`Answers`: what a task has answered on a channel, so that nothing is done twice.

Each question on a channel has a number, one more than that before. Where a connection breaks, the
asker does not know whether its question was worked on; it asks it again under its number, and gets
the answer that there is, or waits for it. Pure state, without a network: what the tests turn over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from estimatorkit.core.errors import AbortedError, CancelledError


class Answers:
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
            CancelledError: the same question was given up by another who worked on it.
        """
        with self._changed:
            if number == self._number:
                while self._working:
                    self._changed.wait()
                if self._number == number:
                    return self._answer
                raise CancelledError(None, None, "The question was given up.")
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
