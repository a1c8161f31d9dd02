"""Estimators for the tests of interrupted trainings; their subprocesses import them too."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import estimatorkit as tf
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec
from estimatorkit.storage.checkpoint import read_checkpoint
from tests.train import toy


def network(
    model_dir: str | os.PathLike[str],
    *,
    seed: int | None = 5,
    save_steps: int = 100,
    units: int = 0,
    **config: Any,
) -> Estimator:
    """A layer, or two, with dropout and momentum."""

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        training = mode == tf.estimator.ModeKeys.TRAIN
        model = toy.build(features, labels, dropout=0.25 if training else 0.0, units=units)
        predictions = {
            "class": tf.argmax(model.logits, 1),
            "probabilities": tf.nn.softmax(model.logits),
        }
        metrics = None
        if mode == tf.estimator.ModeKeys.EVAL:
            metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["class"])}
        return EstimatorSpec(mode, predictions, model.loss, model.train_op, metrics)

    settings = {
        "tf_random_seed": seed,
        "save_checkpoints_steps": save_steps,
        "save_summary_steps": None,
        "log_step_count_steps": None,
        "keep_checkpoint_max": None,
        **config,
    }
    return Estimator(model_fn, model_dir, RunConfig(**settings))


def batches() -> Dataset:
    """Shuffled rows without end; an epoch is no whole number of batches."""
    return toy.dataset(42, 8)


def noisy(model_dir: str | os.PathLike[str], seed: int | None) -> Estimator:
    """A random start, random elements, random noise: their sum is the loss."""

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        start = tf.get_variable("start", [])
        loss = start + tf.cast(features, tf.float32) + tf.random_uniform([])
        train_op = tf.assign_add(tf.train.get_global_step(), 1)
        return EstimatorSpec(mode, loss=loss, train_op=train_op)

    return Estimator(model_fn, model_dir, RunConfig(tf_random_seed=seed, save_summary_steps=None))


def adder(model_dir: str | os.PathLike[str], save_steps: int) -> Estimator:
    """Adds up its input in 'total': a checkpoint tells what was seen, each element once."""

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        total = tf.get_variable("total", [], tf.int64, initializer=tf.zeros_initializer())
        added = tf.assign_add(total, tf.reduce_sum(features))
        loss = tf.cast(tf.reduce_sum(features), tf.float32)
        with tf.control_dependencies([added]):
            train_op = tf.assign_add(tf.train.get_global_step(), 1)
        return EstimatorSpec(mode, loss=loss, train_op=train_op)

    config = RunConfig(
        save_checkpoints_steps=save_steps, save_summary_steps=None, log_step_count_steps=None
    )
    return Estimator(model_fn, model_dir, config)


def numbers() -> Dataset:
    """0, 1, ..., 996, and again, in batches of 4."""
    return Dataset.range(997).repeat().batch(4)


def expected_total(steps: int) -> int:
    """What `adder` has added up after so many steps."""
    return int((np.arange(4 * steps) % 997).sum())


def variables(path: str) -> dict[str, Any]:
    """The variables of a checkpoint."""
    return dict(read_checkpoint(path).tensors)


class Tells(tf.train.CheckpointSaverListener):  # type: ignore[misc]
    """Prints the number of each checkpoint once it is committed, and waits a little then."""

    def __init__(self, wait: float = 0.0) -> None:
        self._wait = wait

    def after_save(self, session: Any, global_step_value: int) -> None:
        import time

        print(global_step_value, flush=True)
        time.sleep(self._wait)
