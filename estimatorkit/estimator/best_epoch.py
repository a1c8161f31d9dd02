"""Training epoch by epoch, of which the best is kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.evaluation.metric_monitor import MetricMonitor
from estimatorkit.storage.checkpoint import remove_checkpoint
from estimatorkit.train.hooks.hooks import SessionRunHook


@dataclass(frozen=True)
class BestEpoch:
    """What `train_to_best` found.

    Attributes:
        checkpoint: that of the epoch with the smallest loss.
        epoch: its number, from 1.
        history: the metrics of all epochs.
    """

    checkpoint: str
    epoch: int
    history: list[dict[str, float]]


def train_to_best(
    estimator: Estimator,
    input_fn: Callable[..., Any],
    held_out_fn: Callable[..., Any],
    steps: int,
    epochs: int,
    patience: int | None,
    hooks: Sequence[SessionRunHook] = (),
    after_epoch: Callable[[int, Mapping[str, float]], None] | None = None,
) -> BestEpoch:
    """Trains epoch by epoch, and keeps the checkpoint with the smallest evaluation loss.

    Of the others, only the last one stays: a network's may have 100 MB.

    Args:
        estimator: keeps at least `patience` + 2 checkpoints.
        input_fn: the training input, which does not end.
        held_out_fn: the input to evaluate on.
        steps: those of all epochs.
        epochs: how many parts the training has.
        patience: the number of epochs without a smaller loss after which the training ends; None:
            it does not end early.
        hooks: those of the training of each epoch.
        after_epoch: gets the number of each epoch, from 1, and its metrics.
    """
    estimator._evaluates_often = True
    monitor = MetricMonitor("loss", "min")  # to which NaN is worse than any number
    history: list[dict[str, float]] = []
    best, found, checkpoint, last = math.nan, 0, "", ""
    for number in range(1, epochs + 1):
        estimator.train(input_fn, hooks, max_steps=math.ceil(steps * number / epochs))
        metrics = estimator.evaluate(held_out_fn)
        history.append({key: float(value) for key, value in metrics.items()})
        if after_epoch is not None:
            after_epoch(number, history[-1])
        loss = history[-1].get("average_loss", history[-1]["loss"])
        superseded, last = {last}, str(estimator.latest_checkpoint())
        if number == 1 or monitor.is_better(loss, best):
            superseded.add(checkpoint)
            best, found, checkpoint = loss, number, last
        for each in superseded - {"", checkpoint, last}:
            remove_checkpoint(each)
        if patience is not None and number - found >= patience:
            break
    return BestEpoch(checkpoint, found, history)


__all__ = ["BestEpoch", "train_to_best"]
