"""A quickly compiled training with known numbers: the loss at step n is n."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import estimatorkit as tf
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook


def model_fn(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> EstimatorSpec:
    """Counts in the variable 'x'; the loss is 'x' before the update, NaN from `nan_at` on.

    Training takes elements of the input only where `uses_input` is set.

    Its predictions are the features times the count, its metric their mean.
    """
    x = tf.get_variable("x", [], initializer=tf.zeros_initializer())
    value = tf.identity(x, name="value")
    loss = value
    if (nan_at := params.get("nan_at")) is not None:
        loss = tf.where(value >= nan_at, value * float("nan"), value)
    counter = tf.train.get_global_step()
    used = [tf.identity(loss), *([tf.identity(features)] if params.get("uses_input") else [])]
    with tf.control_dependencies(used):
        train_op = tf.group(tf.assign_add(x, 1.0), tf.assign_add(counter, params.get("by", 1)))
    predictions = {"scaled": features * value}
    metrics = {"mean": tf.metrics.mean(features)} if mode == tf.estimator.ModeKeys.EVAL else None
    return EstimatorSpec(mode, predictions, loss, train_op, metrics)


def estimator(
    model_dir: str | os.PathLike[str], *, spec: dict[str, Any] | None = None, **params: Any
) -> Estimator:
    """An estimator of it that saves nothing and logs nothing, but where `config` says otherwise.

    Args:
        model_dir: its directory.
        spec: more arguments of its `EstimatorSpec`.
        params: those of `model_fn`, and `config`.
    """

    def with_spec(features: Any, labels: Any, mode: str, params: Any) -> EstimatorSpec:
        made = model_fn(features, labels, mode, params)
        changes: dict[str, Any] = {name: tuple(value) for name, value in (spec or {}).items()}
        return made._replace(**changes)

    config = {
        "save_checkpoints_secs": None,
        "save_summary_steps": None,
        "log_step_count_steps": None,
        "tf_random_seed": 1,
        **params.pop("config", {}),
    }
    return Estimator(with_spec, model_dir, RunConfig(**config), params)


def no_input() -> Any:
    """Features that are no input: there are as many steps as one wishes."""
    return tf.constant([1.0, 2.0])


def train(
    model_dir: str | os.PathLike[str],
    hooks: Sequence[SessionRunHook],
    steps: int | None,
    **params: Any,
) -> Estimator:
    """Trains for so many steps."""
    made = estimator(model_dir, **params)
    return made.train(no_input, hooks, steps)


class Recorder(SessionRunHook):
    """Notes which of its methods were called, and the steps of each call of the loop.

    It takes no part in single steps.
    """

    def __init__(self, calls: list[str] | None = None, name: str = "") -> None:
        self.calls = [] if calls is None else calls
        self.name = name
        self.steps: list[FinishedSteps] = []
        self.session: Any = None

    @property
    def losses(self) -> list[float]:
        """The losses of all steps."""
        return [float(loss) for steps in self.steps for loss in steps.losses]

    def begin(self) -> None:
        self.calls.append(f"{self.name}begin")

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.session = session
        self.calls.append(f"{self.name}after_create_session")

    def after_steps(self, steps: FinishedSteps) -> None:
        self.steps.append(steps)

    def end(self, session: Any) -> None:
        self.calls.append(f"{self.name}end")

    def close(self) -> None:
        self.calls.append(f"{self.name}close")
