"""`ProgressHook`: a tqdm bar on a terminal, with the loss, steps per second and the time left."""

from __future__ import annotations

import sys
from typing import Any

from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook

REFRESH_SECS = 0.2
"""At most five refreshes a second."""


class ProgressHook(SessionRunHook):
    """Shows a progress bar.

    Args:
        steps: how many steps this training has, or None if only the input ends it.
        last_step: the global step it ends at, or None.
        stream: where to show it; stderr by default.
    """

    def __init__(
        self, steps: int | None = None, last_step: int | None = None, stream: Any = None
    ) -> None:
        self._steps = steps
        self._last_step = last_step
        self._stream = stream
        self._bar: Any = None

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Opens the bar."""
        from tqdm import tqdm  # 6 ms, for programs that show a bar

        start = int(session.run(get_global_step(session.graph)))
        total = self._steps
        if self._last_step is not None:
            total = self._last_step - start
        self._bar = tqdm(
            total=total,
            unit=" steps",
            desc="train",
            file=self._stream or sys.stderr,
            mininterval=REFRESH_SECS,
            dynamic_ncols=True,
        )

    def after_steps(self, steps: FinishedSteps) -> None:
        """Moves the bar; tqdm draws it when it is time."""
        self._bar.set_postfix_str(f"loss={float(steps.losses[-1]):.4g}", refresh=False)
        self._bar.update(len(steps.losses))

    def end(self, session: Any) -> None:
        """Closes the bar in its current state."""
        self.close()

    def close(self) -> None:
        """Closes the bar; closing twice is not an error."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
