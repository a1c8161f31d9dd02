"""Click prediction in the shape of Criteo's data: 26 tables of 10 million rows, 13 numbers.

Trains a network over embeddings with Adagrad, and prints examples a second and the peak of memory:

    python benchmarks/criteo_tables_program.py PARTICIPANT [DIVISOR]

PARTICIPANT is tensorflow, pytorch, estimatorkit, dynamic (tables that grow), ahead (two steps in
flight) or rounded (two steps in flight, rows as bfloat16). DIVISOR makes the tables that many times
smaller: what the rest takes is what is left. In a cluster (`TF_CONFIG`), every process runs the
program.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
import tempfile
import time
from typing import Any

import numpy as np

# As skewed as Criteo's: 10,040,543 rows in all.
SIZES = (
    *(1460, 583, 4_000_000, 1_600_000, 305, 24, 12517, 633, 3, 93145, 5683, 3_200_000, 3194),
    *(27, 14992, 600_000, 10, 5652, 2173, 4, 400_000, 18, 15, 60_000, 105, 40_000),
)
DIMENSION = 16
BATCH = 2048
BATCHES = 100  # in memory, read again and again
HIDDEN = (256, 128)
LEARNING_RATE = 0.05
WARM, LOGGED = 100, 100  # steps; the last of three times LOGGED counts


def data(divisor: int) -> tuple[dict[str, Any], Any]:
    """Ids, log-uniform in large tables, normal numbers, and labels by chance."""
    random = np.random.default_rng(0)
    features: dict[str, Any] = {}
    for number, rows in enumerate(SIZES):
        size = max(2, rows // divisor)
        drawn = np.exp(random.random(BATCH * BATCHES) * np.log(size + 1)) - 1
        features[f"C{number}"] = np.minimum(drawn.astype(np.int64), size - 1)
    for number in range(13):
        features[f"I{number}"] = random.normal(size=BATCH * BATCHES).astype(np.float32)
    return features, random.integers(0, 2, BATCH * BATCHES)


def pytorch(divisor: int) -> float:
    """`EmbeddingBag` with sparse gradients, which Adagrad applies by rows."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(
                nn.EmbeddingBag(max(2, rows // divisor), DIMENSION, mode="mean", sparse=True)
                for rows in SIZES
            )
            layers: list[nn.Module] = []
            width = len(SIZES) * DIMENSION + 13
            for hidden in HIDDEN:
                layers += [nn.Linear(width, hidden), nn.ReLU()]
                width = hidden
            self.network = nn.Sequential(*layers, nn.Linear(width, 1))

        def forward(self, ids: Any, numbers: Any) -> Any:
            rows = [table(each[:, None]) for table, each in zip(self.tables, ids, strict=True)]
            return self.network(torch.cat([*rows, numbers], 1))[:, 0]

    features, labels = data(divisor)
    ids = [torch.from_numpy(features[f"C{number}"]) for number in range(len(SIZES))]
    numbers = torch.from_numpy(np.stack([features[f"I{number}"] for number in range(13)], 1))
    targets = torch.from_numpy(labels).float()
    model = Model()
    optimizer = torch.optim.Adagrad(
        model.parameters(), LEARNING_RATE, initial_accumulator_value=0.1
    )
    start = 0.0
    for step in range(WARM + 3 * LOGGED):
        if step == WARM + 2 * LOGGED:
            start = time.perf_counter()
        rows = slice(step % BATCHES * BATCH, (step % BATCHES + 1) * BATCH)
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(
            model([each[rows] for each in ids], numbers[rows]), targets[rows]
        )
        loss.backward()
        optimizer.step()
    return LOGGED / (time.perf_counter() - start)


class Rates(logging.Handler):
    """The rates that an Estimator logs."""

    def __init__(self) -> None:
        super().__init__()
        self.rates: list[float] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Notes the number of a line 'global_step/sec: 12.3'."""
        _, found, rate = record.getMessage().partition("global_step/sec: ")
        if found:
            self.rates.append(float(rate))


def estimator(
    tf: Any, logger: str, divisor: int, dynamic: bool = False, config_options: Any = None
) -> float:
    """A `DNNClassifier`, as TensorFlow 2.15 and estimatorkit have it."""
    rates = Rates()
    logging.getLogger(logger).addHandler(rates)
    logging.getLogger(logger).setLevel(logging.INFO)
    columns = []
    for number, rows in enumerate(SIZES):
        ids = tf.feature_column.categorical_column_with_identity(
            f"C{number}", max(2, rows // divisor)
        )
        table = {"table": tf.feature_column.EmbeddingTable(dynamic=True)} if dynamic else {}
        columns.append(tf.feature_column.embedding_column(ids, DIMENSION, **table))
    columns += [tf.feature_column.numeric_column(f"I{number}") for number in range(13)]
    adagrad = tf.keras.optimizers.legacy.Adagrad
    config = tf.estimator.RunConfig(
        os.environ.get("MODEL_DIR") or tempfile.mkdtemp(),
        save_checkpoints_steps=10**6,
        save_summary_steps=None,
        log_step_count_steps=LOGGED,
        **(config_options or {}),
    )
    model = tf.estimator.DNNClassifier(
        list(HIDDEN),
        columns,
        optimizer=lambda: adagrad(LEARNING_RATE, initial_accumulator_value=0.1, epsilon=0.0),
        config=config,
    )

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices(data(divisor)).repeat().batch(BATCH).prefetch(2)

    steps = WARM + 3 * LOGGED
    if "TF_CONFIG" in os.environ:
        tf.estimator.train_and_evaluate(
            model,
            tf.estimator.TrainSpec(input_fn, max_steps=steps),
            tf.estimator.EvalSpec(input_fn, steps=1),
        )
    else:
        model.train(input_fn, steps=steps)
    return rates.rates[-1]


def main(participant: str, divisor: int) -> None:
    """Measures, and prints JSON."""
    if participant == "pytorch":
        rate = pytorch(divisor)
    elif participant == "tensorflow":
        import tensorflow as tf

        rate = estimator(tf, "tensorflow", divisor)
    else:
        import estimatorkit as tf

        options = {} if participant in ("estimatorkit", "dynamic") else {"steps_in_flight": 2}
        if participant == "rounded":
            options["bfloat16_rows"] = True
        rate = estimator(tf, "estimatorkit", divisor, participant == "dynamic", options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"examples": rate * BATCH, "megabytes": peak}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
