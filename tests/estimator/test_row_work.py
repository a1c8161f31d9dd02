"""Feature ids of in-memory rows are computed once per row, whatever the number of epochs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime.steps import indexed_columns as numbered_rows
from estimatorkit.runtime.steps.indexed_columns import MemoizedRowTransform

ROWS = 50
WORDS = [b"ant", b"bee", b"cat", b""]


def features() -> dict[str, Any]:
    generator = np.random.default_rng(0)
    return {
        "animal": np.array([WORDS[place] for place in generator.integers(0, 4, ROWS)], object),
        "place": np.array([b"p%d" % place for place in generator.integers(0, 9, ROWS)], object),
        "age": generator.normal(size=ROWS).astype(np.float32),
        "ignored": np.array([object] * ROWS, dtype="S6").astype(object),
    }


def columns() -> list[Any]:
    fc = tf.feature_column
    animal = fc.categorical_column_with_vocabulary_list("animal", WORDS[:3], num_oov_buckets=2)
    place = fc.categorical_column_with_hash_bucket("place", 7)
    cross = fc.crossed_column(["animal", "place"], 20)
    return [animal, place, cross, fc.numeric_column("age")]


ORDERS: dict[str, Callable[[Any], Any]] = {
    "batches of rows": lambda data: data.shuffle(ROWS, seed=2).repeat(4).batch(8),
    "epochs of batches": lambda data: data.shuffle(ROWS, seed=2).batch(8).repeat(4),
}


def trained(model_dir: Path, order: Callable[[Any], Any]) -> dict[str, Any]:
    """All variables after four epochs."""
    labels = np.arange(ROWS) % 2

    def input_fn() -> Any:
        return order(tf.data.Dataset.from_tensor_slices((features(), labels)))

    config = tf.estimator.RunConfig(tf_random_seed=1)
    model = tf.estimator.LinearClassifier(columns(), model_dir, config=config)
    model.train(input_fn)
    return {name: model.get_variable_value(name) for name in model.get_variable_names()}


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that work was done on, a call each."""
    counts: list[int] = []
    work_on = MemoizedRowTransform._work_on

    def counting(self: MemoizedRowTransform, rows: Any, batch_axes: int) -> None:
        counts.append(len(rows))
        work_on(self, rows, batch_axes)

    monkeypatch.setattr(MemoizedRowTransform, "_work_on", counting)
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("name", ORDERS)
def test_computed_once_per_row_with_same_training(
    name: str, worked: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = trained(tmp_path / "once", ORDERS[name])
    assert sum(worked) == ROWS
    monkeypatch.setattr(numbered_rows, "MOST_BYTES", 0)
    each = trained(tmp_path / "each", ORDERS[name])
    assert once.keys() == each.keys()
    for variable, values in once.items():
        np.testing.assert_array_equal(values, each[variable], err_msg=variable)


def test_out_of_range_value_fails_its_step(tmp_path: Path) -> None:
    column = tf.feature_column.categorical_column_with_identity("id", 5)
    ids = np.array([0, 1, 2, 7])
    model = tf.estimator.LinearClassifier([column], tmp_path)
    data = tf.data.Dataset.from_tensor_slices(({"id": ids}, ids % 2))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"= 7 is not in \[0, 5\)"):
        model.train(lambda: data.repeat().batch(2), steps=3)
