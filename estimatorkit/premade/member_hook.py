"""`MemberHook`: what is told of an ensemble's members while they are trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.interop.events import MetricsWriter
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook


@dataclass(frozen=True)
class MemberEpoch:
    """An epoch of a member that is trained in steps.

    Attributes:
        number: from 1.
        epochs: how many there are at most.
        rows: the training rows.
        loss: the mean of the training losses of its steps.
        metrics: those of the held-out rows.
    """

    number: int
    epochs: int
    rows: int
    loss: float
    metrics: Mapping[str, float]


class MemberHook(SessionRunHook):
    """A hook that an ensemble tells of its members; of `SessionRunHook`, it calls nothing.

    Losses are those of the held-out rows, reduced as the head says.
    """

    def before_member(self, name: str, rows: int, epochs: int | None) -> None:
        """Called before a member is trained.

        Args:
            name: its name in `members`.
            rows: the training rows.
            epochs: how many there are at most; None if it reads the rows once.
        """

    def after_epoch(self, epoch: MemberEpoch) -> None:
        """Called after each epoch of a member that does not read the rows once."""

    def after_member(self, name: str, loss: float, seconds: float) -> None:
        """Called when a member is trained."""

    def after_members(self, weights: Mapping[str, float], loss: float) -> None:
        """Called at the end, with the weights of the members by name and the ensemble's loss."""


class MemberEpochs(SessionRunHook):
    """Follows the epochs of a member: writes their training losses, for curves, and tells hooks.

    Args:
        writer: of the member's folder.
        rows, epochs: see `MemberEpoch`.
        hooks: the hooks.
    """

    def __init__(
        self, writer: MetricsWriter, rows: int, epochs: int, hooks: Sequence[MemberHook]
    ) -> None:
        self._writer = writer
        self._rows = rows
        self._epochs = epochs
        self._hooks = hooks
        self._losses: list[NDArray[Any]] = []

    def after_steps(self, steps: FinishedSteps) -> None:
        """Collects losses."""
        self._losses.append(steps.losses)

    def finished(self, number: int, metrics: Mapping[str, float]) -> None:
        """Called after an epoch; see `MemberEpoch`."""
        loss = float(np.concatenate(self._losses).mean())
        self._losses.clear()
        self._writer.write(int(metrics["global_step"]), {"loss": loss})
        for each in self._hooks:
            each.after_epoch(MemberEpoch(number, self._epochs, self._rows, loss, metrics))


__all__ = ["MemberEpoch", "MemberEpochs", "MemberHook"]
