"""Trainings whose tables may be sharded by rows; each argument is one, in JSON (see `OPTIONS`).

Prints in JSON, on the last line, what each came to.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import numpy as np

import estimatorkit as tf
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook

OPTIONS: dict[str, Any] = {
    "model_dir": "",
    "strategy": None,  # 'mirrored' or 'multi'
    "above": None,  # shard_rows_above
    "marked": [],  # tables whose `shard_rows` is True
    "batch": 32,  # of each replica
    "model": "tables",  # or 'columns', 'premade'
    "optimizer": "sgd",
    "rows": [37, 50],
    "regularized": False,
    "examples": 1024,
    "once": False,  # through the examples
    "steps": 30,
    "evaluate": False,
}

OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "lazy_adam": lambda: tf.train.LazyAdamOptimizer(0.01),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
}


def data(options: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Features and labels: ids repeat; those of 'near' are on the first shard only."""
    rng, count = np.random.RandomState(0), options["examples"]
    features = {
        "ids": rng.randint(0, 37, (count, 3)).astype(np.int32),
        "near": rng.randint(0, 3, (count, 1)).astype(np.int32),
        "weights": rng.uniform(0.5, 2.0, (count, 3)).astype(np.float32),
    }
    features["ids"][:, 2] = np.where(rng.rand(count) < 0.3, -1, features["ids"][:, 2])
    score = np.sin(features["ids"][:, :1] + features["near"])
    return features, (score + 0.1 * rng.randn(count, 1)).astype(np.float32)


def columns() -> list[Any]:
    """A weighted column of several values, and two that share a table."""
    column = tf.feature_column
    ids = column.categorical_column_with_identity("ids", 40)
    near = column.categorical_column_with_identity("near", 40)
    weighted = column.weighted_categorical_column(ids, "weights")
    first = tf.random_normal_initializer(seed=4)
    return [
        column.embedding_column(weighted, 4, combiner="mean", initializer=first),
        *column.shared_embedding_columns([ids, near], 4, initializer=first),
    ]


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    """Two tables, or embedding columns, and a linear layer."""
    first = tf.random_normal_initializer
    if params["model"] == "columns":
        hidden = tf.feature_column.input_layer(features, columns())
    else:
        decay = tf.keras.regularizers.l2(0.01) if params["regularized"] else None
        many, few = (
            tf.get_variable(name, [rows, 4], initializer=first(seed=at), regularizer=decay)
            for at, (name, rows) in enumerate(zip(["many", "few"], params["rows"], strict=True))
        )
        for variable in (many, few):
            variable.shard_rows = True if variable.op.name in params["marked"] else None
        rows = tf.gather(many, tf.maximum(features["ids"], 0))
        hidden = tf.concat([tf.reduce_sum(rows, 1), tf.gather(few, features["near"][:, 0])], 1)
    outputs = tf.layers.dense(hidden, 1, kernel_initializer=first(seed=7))
    loss = tf.losses.mean_squared_error(labels, outputs)
    if params["regularized"]:
        loss += tf.losses.get_regularization_loss()
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"mae": tf.metrics.mean_absolute_error(labels, outputs)}
        return tf.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = OPTIMIZERS[params["optimizer"]]()
    update = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.EstimatorSpec(mode, loss=loss, train_op=update)


class Look(SessionRunHook):
    """Keeps losses, and how variables lie on devices."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.shards: dict[str, list[list[int]]] = {}
        self.whole: dict[str, list[int]] = {}

    def after_steps(self, steps: FinishedSteps) -> None:
        """Takes them."""
        self.losses.extend(map(float, steps.losses))

    def end(self, session: Any) -> None:
        """Looks at the variables, and reads those that are sharded."""
        for name, value in session.state.values.items():
            if hasattr(value, "addressable_shards"):
                parts = [list(each.data.shape) for each in value.addressable_shards]
                self.shards[name] = parts
        for name in session.state.sharded:
            self.whole[name] = list(session.run(f"{name}:0").shape)


def strategy(options: dict[str, Any]) -> Any:
    """The strategy that is asked for."""
    kinds = {
        "mirrored": tf.distribute.MirroredStrategy,
        "multi": tf.distribute.experimental.MultiWorkerMirroredStrategy,
    }
    kind = kinds.get(options["strategy"])
    return None if kind is None else kind(shard_rows_above=options["above"])


def trained(options: dict[str, Any], chosen: Any) -> dict[str, Any]:
    """Trains, and says what it came to."""
    config = RunConfig(
        options["model_dir"],
        tf_random_seed=3,
        train_distribute=chosen,
        eval_distribute=chosen,
        log_step_count_steps=None,
        save_checkpoints_steps=10,
    )
    if options["model"] == "premade":
        wide = [tf.feature_column.categorical_column_with_identity("near", 40)]
        estimator = tf.estimator.DNNLinearCombinedRegressor(
            linear_feature_columns=wide,
            dnn_feature_columns=columns(),
            dnn_hidden_units=[8],
            label_dimension=1,
            linear_optimizer=tf.train.FtrlOptimizer(0.05),
            dnn_optimizer=tf.train.AdagradOptimizer(0.05),
            config=config,
        )
    else:
        estimator = tf.Estimator(model_fn, config=config, params=options)

    def input_fn(input_context: Any = None) -> Any:
        found = tf.data.Dataset.from_tensor_slices(data(options))
        found = found if options["once"] else found.repeat()
        found = found.batch(options["batch"])
        if input_context is None:
            return found
        return found.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)

    look = Look()
    estimator.train(input_fn, max_steps=options["steps"], hooks=[look])
    found: dict[str, Any] = {
        "losses": look.losses,
        "shards": look.shards,
        "whole": look.whole,
        "variables": {
            name: np.asarray(estimator.get_variable_value(name)).tolist()
            for name in estimator.get_variable_names()
        },
    }
    if options["evaluate"]:
        found["metrics"] = estimator.evaluate(input_fn, steps=None if options["once"] else 4)
    return found


def main() -> None:
    """Trains."""
    logging.getLogger("estimatorkit").setLevel(logging.WARNING)
    asked = [{**OPTIONS, **json.loads(each)} for each in sys.argv[1:]]
    made: dict[Any, Any] = {}
    answers = []
    for options in asked:
        key = options["strategy"], options["above"]
        if key not in made:
            made[key] = strategy(options)
        answers.append(trained(options, made[key]))
    print(json.dumps(answers, default=float), flush=True)


if __name__ == "__main__":
    main()
