"""Estimators whose evaluations are known beforehand: the metric at step n is the n-th of a list."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import estimatorkit as tf
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.serving.exporters import Exporter
from estimatorkit.estimator.spec import EstimatorSpec


def estimator(
    model_dir: str | os.PathLike[str], scores: Sequence[float], every: int = 10, **config: Any
) -> Estimator:
    """Its 'loss' and 'score' after `every * n` steps are `scores[n]`; it saves every `every` steps.

    Args:
        model_dir: its directory.
        scores: the metric at checkpoints 0, 1, ...; the last one is for all that follow.
        every: steps from one to the next.
        config: more of the `RunConfig`.
    """

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        step = tf.train.get_or_create_global_step()
        at = tf.minimum(tf.cast(step, tf.int32) // every, len(scores) - 1)
        score = tf.gather(tf.constant(scores, tf.float32), at)
        loss = score + 0.0 * tf.reduce_mean(features)
        metrics = {"score": tf.metrics.mean(score)} if mode == tf.estimator.ModeKeys.EVAL else None
        return EstimatorSpec(
            mode,
            {"features": features},
            loss,
            tf.assign_add(step, 1),
            metrics,
        )

    settings = {
        "tf_random_seed": 1,
        "save_checkpoints_steps": every,
        "save_summary_steps": None,
        "log_step_count_steps": None,
        **config,
    }
    return Estimator(model_fn, model_dir, RunConfig(**settings))


def batches(count: int | None = None) -> Dataset:
    """`count` batches of two numbers; without end by default."""
    return Dataset.from_tensor_slices([1.0, 2.0]).batch(2).repeat(count)


class Recorder(Exporter):
    """An exporter that notes what it is asked, and exports where `wanted` says so."""

    def __init__(self, name: str = "recorder", wanted: bool = True) -> None:
        self._name = name
        self._wanted = wanted
        self.asked: list[tuple[int, bool]] = []

    @property
    def name(self) -> str:
        return self._name

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:
        self.asked.append((int(eval_result["global_step"]), is_the_final_export))
        return os.path.join(export_path, Path(checkpoint_path).name) if self._wanted else None
