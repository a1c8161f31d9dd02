"""DIN, DIEN and models of two tasks on MovieLens-100K, beside DeepCTR's DIN on the same examples.

    PYTHONPATH=. python benchmarks/recommend_sequences.py FOLDER [--models DIN MMoE ...]
    python benchmarks/recommend_sequences.py FOLDER --models DeepCTR   # with TensorFlow 2.15

FOLDER holds `ml-100k.inter` (RecBole's form: user, item, rating, timestamp) or GroupLens' `u.data`.
An example is a rating, with the last 20 items that the user had rated before; the first 80% by time
are for training. Tasks: `like`, a rating of at least 4, and `love`, of 5. It prints the areas under
the ROC curve on the last 20%, and seconds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

USERS, ITEMS, STEPS, WIDTH = 944, 1683, 20, 16
BATCH, SEED = 256, 1
TWO_TASKS = ("MMoE", "PLE", "ESMM")


def examples(folder: Path) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Features, labels, and the number of training examples, by time; -1 pads histories."""
    path = folder / "ml-100k.inter"
    found, skipped = (path, 1) if path.exists() else (folder / "u.data", 0)
    rows = np.loadtxt(found, delimiter="\t", skiprows=skipped, dtype=np.float64).astype(np.int64)
    rows = rows[np.argsort(rows[:, 3], kind="stable")]
    histories: dict[int, list[int]] = {}
    history = np.full((len(rows), STEPS), -1)
    for row, (user, item, *_) in enumerate(rows):
        before = histories.setdefault(user, [])
        last = before[-STEPS:]
        history[row, : len(last)] = last
        before.append(item)
    features = {"user": rows[:, 0], "item": rows[:, 1], "history": history}
    labels = {"like": rows[:, 2] >= 4, "love": rows[:, 2] == 5}
    return (
        features,
        {key: each.astype(np.int64) for key, each in labels.items()},
        len(rows) * 4 // 5,
    )


def area(labels: Any, scores: Any) -> float:
    """The area under the ROC curve: how often a positive example scores above a negative one."""
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    ones = int(labels.sum())
    above = ranks[labels == 1].sum() - ones * (ones + 1) / 2
    return float(above / (ones * (len(labels) - ones)))


def with_estimatorkit(
    kind: str, features: Any, labels: Any, train: int, epochs: int
) -> dict[str, float]:
    """Trains and evaluates an estimator; AUC by task."""
    import estimatorkit as tf

    fc = tf.feature_column
    # As DeepCTR's: most users of the last 20% are new, and a vector near 0 says so.
    near_zero = tf.random_normal_initializer(stddev=1e-4)
    users = fc.categorical_column_with_identity("user", USERS)
    user = fc.embedding_column(users, WIDTH, initializer=near_zero)
    item, history = fc.shared_embeddings(
        [
            fc.categorical_column_with_identity("item", ITEMS),
            fc.sequence_categorical_column_with_identity("history", ITEMS),
        ],
        WIDTH,
        initializer=near_zero,
    )
    several = kind in TWO_TASKS
    names = {"like": "ctr", "love": "ctcvr"} if kind == "ESMM" else {"like": "like", "love": "love"}
    given = {names[key]: each for key, each in labels.items()} if several else labels["like"]
    more: dict[str, Any] = {} if several else {"sequences": [(history, item)]}
    if several and kind != "ESMM":
        more["head"] = [tf.estimator.BinaryClassHead(name=name) for name in names.values()]
    model = getattr(tf.estimator, kind)(
        hidden_units=[64, 32],
        feature_columns=[user, item],
        optimizer=lambda: tf.train.AdamOptimizer(0.001),
        config=tf.estimator.RunConfig(tf_random_seed=SEED),
        **more,
    )

    def input_fn(rows: slice, shuffled: bool) -> Any:
        used = {k: each[rows] for k, each in features.items() if k != "history" or not several}
        truth = {k: each[rows] for k, each in given.items()} if several else given[rows]
        data = tf.data.Dataset.from_tensor_slices((used, truth))
        return (
            data.shuffle(100_000, seed=SEED).repeat(epochs).batch(BATCH)
            if shuffled
            else (data.batch(1024))
        )

    model.train(lambda: input_fn(slice(train), True))
    found = list(model.predict(lambda: input_fn(slice(train, None), False)))
    return {
        task: area(
            each[train:],
            np.array([row[name, "logits"] if several else row["logits"] for row in found])[:, 0],
        )
        for (task, each), name in zip(labels.items(), names.values(), strict=True)
        if several or task == "like"
    }


def with_deepctr(features: Any, labels: Any, train: int, epochs: int) -> dict[str, float]:
    """Trains and evaluates DeepCTR's DIN; AUC of `like`."""
    import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from deepctr.feature_column import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
        SparseFeat,
        VarLenSparseFeat,
    )
    from deepctr.models import DIN  # type: ignore[import-not-found,import-untyped,unused-ignore]

    tf.keras.utils.set_random_seed(SEED)
    ids = SparseFeat("hist_item", ITEMS, WIDTH, embedding_name="item")
    columns = [
        SparseFeat("user", USERS, WIDTH),
        SparseFeat("item", ITEMS, WIDTH),
        VarLenSparseFeat(ids, STEPS),
    ]
    model = DIN(columns, ["item"], dnn_hidden_units=(64, 32), dnn_activation="dice")
    model.compile(tf.keras.optimizers.legacy.Adam(0.001), "binary_crossentropy")
    # Its mask is where the id is 0, which MovieLens does not use.
    inputs = {
        "user": features["user"],
        "item": features["item"],
        "hist_item": np.maximum(features["history"], 0),
    }
    data = [
        {key: each[rows] for key, each in inputs.items()} for rows in (np.s_[:train], np.s_[train:])
    ]
    model.fit(data[0], labels["like"][:train], BATCH, epochs, verbose=0)
    found = model.predict(data[1], 1024, verbose=0)[:, 0]
    return {"like": area(labels["like"][train:], found)}


def main() -> None:
    """Trains the models and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", default=["DIN", "DIEN", *TWO_TASKS])
    parser.add_argument("--epochs", type=int, default=2)
    arguments = parser.parse_args()
    features, labels, train = examples(arguments.folder)
    print("| model | epochs | AUC like | AUC love | seconds |\n|---|---|---|---|---|")
    for kind in arguments.models:
        begun = time.perf_counter()
        given = (features, labels, train, arguments.epochs)
        found = with_deepctr(*given) if kind == "DeepCTR" else with_estimatorkit(kind, *given)
        shown = [f"{found[task]:.4f}" if task in found else "" for task in ("like", "love")]
        seconds = time.perf_counter() - begun
        print(f"| {kind} | {arguments.epochs} | {' | '.join(shown)} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
