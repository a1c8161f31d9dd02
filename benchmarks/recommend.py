"""What click-through models reach on a sample of Criteo, beside DeepCTR's: AUC and normalized
cross-entropy.

    export ESTIMATORKIT_DATA_DIR=FOLDER                     # with criteo/train.tiny.csv
    export ESTIMATORKIT_BENCH_TENSORFLOW=DIR_TF/bin/python  # with deepctr; without it, ours alone
    PYTHONPATH=. python benchmarks/recommend.py [--epochs 3] [--seeds 3]

Both sides get the same table (`programs/recommend_data.py`), sizes, optimizer (Adam, 0.001), batch
and number of epochs, and no penalties. The normalized cross-entropy is the log loss over the
entropy of the test rows' rate of clicks: below 1 is better than knowing the rate alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from typing import Any

import estimatorkit as tf
from benchmarks.programs.recommend_data import (
    BATCH,
    BUCKETS,
    DIMENSION,
    HIDDEN,
    MODELS,
    load,
    scores,
)


def columns(features: dict[str, Any]) -> list[Any]:
    """Embeddings of the categories, and the counts."""
    fc = tf.feature_column
    return [
        fc.embedding_column(fc.categorical_column_with_identity(key, BUCKETS), DIMENSION)
        if key.startswith("C")
        else fc.numeric_column(key)
        for key in features
    ]


def linear_columns(features: dict[str, Any]) -> list[Any]:
    """The same for the linear model, which all of DeepCTR's models have."""
    fc = tf.feature_column
    return [
        fc.categorical_column_with_identity(key, BUCKETS)
        if key.startswith("C")
        else fc.numeric_column(key)
        for key in features
    ]


def ours(name: str, epochs: int, seed: int) -> tuple[float, float]:
    """Trains one of our models."""
    (features, labels), (test, truth) = load()
    kind, arguments, _, _ = MODELS[name]
    model = getattr(tf.estimator, kind)(
        columns(features),
        HIDDEN,
        linear_feature_columns=linear_columns(features),
        optimizer=tf.train.AdamOptimizer(0.001),
        linear_optimizer=tf.train.AdamOptimizer(0.001),
        config=tf.estimator.RunConfig(tf_random_seed=seed),
        **arguments,
    )

    def input_fn() -> Any:
        rows = tf.data.Dataset.from_tensor_slices((features, labels))
        return rows.shuffle(len(labels), seed=seed).repeat(epochs).batch(BATCH)

    def test_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices((test, truth)).batch(BATCH)

    model.train(input_fn)
    return scores(truth, [row["probabilities"][1] for row in model.predict(test_fn)])


def theirs(epochs: int, seeds: int) -> dict[str, list[tuple[float, float]]]:
    """What DeepCTR's models reach, in TensorFlow's environment; empty if there is none."""
    python = os.environ.get("ESTIMATORKIT_BENCH_TENSORFLOW")
    if not python:
        return {}
    words = [python, "-m", "benchmarks.programs.recommend_deepctr", str(epochs), str(seeds)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    found: dict[str, list[tuple[float, float]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def cells(runs: list[tuple[float, float]]) -> str:
    """Means over the seeds, and the range of the AUC."""
    areas, entropies = zip(*runs, strict=True)
    between = f"{min(areas):.3f} to {max(areas):.3f}"
    return f"{statistics.mean(areas):.3f} ({between}) | {statistics.mean(entropies):.3f}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    peers = theirs(arguments.epochs, arguments.seeds)
    print("| model | AUC | NCE | DeepCTR: AUC | NCE |")
    print("|---|---|---|---|---|")
    for name in MODELS:
        runs = [ours(name, arguments.epochs, seed) for seed in range(1, arguments.seeds + 1)]
        peer = cells(peers[name]) if peers else " | "
        print(f"| {name} | {cells(runs)} | {peer} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
