"""A sample weight of w counts as w examples in every weighted loss and metric.

Users of TensorFlow reported for years that weights were ignored or averaged wrongly in metrics
(tensorflow#8043, keras#20542). So for any batch: integer weights, and the same rows repeated as
often and without weights, give the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import estimatorkit as tf
from estimatorkit.core.graph import Graph
from estimatorkit.keras import losses as keras_losses, metrics as keras_metrics
from estimatorkit.runtime.session import Session
from tests.golden import snippets_losses, snippets_metrics

ROWS, REPEATED = 6, 10
# A mean over batches of each element: its batches are repeated, not its rows.
OF_BATCHES = {"mean_tensor"}


def _first_of_each(programs: Any) -> dict[str, Any]:
    """One case of each function or class, to spare compilations."""
    found: dict[str, Any] = {}
    for name, program in programs.items():
        found.setdefault(name.split(" ")[0], program)
    return found


def _placeholders(arrays: Any, rows: int, weighted: bool) -> dict[str, list[Any]]:
    """Labels, predictions and weights by kind; without weights these are 1."""
    found = {}
    for kind, (labels, guesses, weights) in arrays.items():
        feeds = [tf.placeholder(each.dtype, [rows, *each.shape[1:]]) for each in (labels, guesses)]
        found[kind] = [*feeds, tf.placeholder(weights.dtype, [rows]) if weighted else None]
    return found


class Program:
    """A graph of losses or metrics, with weights or without, and the session that runs it.

    Args:
        arrays: labels, predictions and weights by kind.
        weighted: whether the rows have weights.
    """

    def __init__(self, arrays: Any, weighted: bool) -> None:
        self.arrays, self.weighted = arrays, weighted
        self.graph = Graph()
        with self.graph.as_default():
            self.feeds = _placeholders(arrays, ROWS if weighted else REPEATED, weighted)
            self.updates, self.values = self.made()
            self.start = tf.local_variables_initializer()
        self.session = Session(graph=self.graph)

    def made(self) -> tuple[Any, dict[str, Any]]:
        """What is run first, and the values by name."""
        raise NotImplementedError

    def __call__(self, rows: Any) -> dict[str, Any]:
        """The values where row i stands as often as i does in `rows`."""
        fed = {}
        for kind, (labels, guesses, weights) in self.feeds.items():
            chosen = slice(ROWS) if self.weighted else np.asarray(rows)
            fed[labels], fed[guesses] = (each[chosen] for each in self.arrays[kind][:2])
            if self.weighted:
                fed[weights] = np.bincount(rows, minlength=ROWS).astype(np.float32)
        self.session.run(self.start)
        self.session.run(self.updates, fed)
        found: dict[str, Any] = self.session.run(self.values, fed)
        return found


class Metrics(Program):
    def made(self) -> tuple[Any, dict[str, Any]]:
        updates, values = [], {}
        for name, (kind, make) in _first_of_each(snippets_metrics.V1).items():
            if name not in OF_BATCHES:
                values[f"v1 {name}"], update = make(tf, *self.feeds[kind])
                updates.append(update)
        classes = {**snippets_metrics.KERAS, **snippets_metrics.VALUES}
        for name, (kind, make) in _first_of_each(classes).items():
            metric = make(keras_metrics)
            labels, guesses, weights = self.feeds[kind]
            given = (guesses,) if name in snippets_metrics.VALUES else (labels, guesses)
            updates.append(metric.update_state(*given, sample_weight=weights))
            values[f"keras {name}"] = metric.result()
        return updates, values


class Losses(Program):
    def made(self) -> tuple[Any, dict[str, Any]]:
        values = {}
        for name, (kind, loss) in snippets_losses.V1.items():
            labels, guesses, weights = self.feeds[kind]
            known = tf.ones([REPEATED]) if weights is None else weights
            for reduction in ("weighted_sum", "weighted_mean"):
                values[f"v1 {name} {reduction}"] = loss(tf, labels, guesses, known, reduction)
        labels, guesses, weights = self.feeds["numbers"]
        known = tf.ones([REPEATED]) if weights is None else weights
        values["v1 pairwise"] = snippets_losses.PAIRWISE(tf, labels, guesses, known, None)
        rows = ROWS if self.weighted else REPEATED
        for name, (kind, make) in snippets_losses.KERAS.items():
            values[f"keras {name} sum"] = make(keras_losses, "sum")(*self.feeds[kind])
            if "without a class" not in name:  # of which the mean leaves rows out
                mean = make(keras_losses, "sum_over_batch_size")(*self.feeds[kind])
                values[f"keras {name} mean"] = mean * float(rows)
        return [], values


@pytest.fixture(scope="module")
def programs() -> dict[str, tuple[Program, Program]]:
    return {
        "metrics": (
            Metrics(snippets_metrics.ARRAYS, True),
            Metrics(snippets_metrics.ARRAYS, False),
        ),
        "losses": (Losses(snippets_losses.ARRAYS, True), Losses(snippets_losses.ARRAYS, False)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("what", ["metrics", "losses"])
def test_weight_counts_as_repeated_row(
    what: str, programs: dict[str, tuple[Program, Program]]
) -> None:
    weighted, repeated = programs[what]

    @settings(max_examples=12, deadline=None, derandomize=True)
    @given(st.lists(st.integers(0, ROWS - 1), min_size=REPEATED, max_size=REPEATED))
    def law(rows: list[int]) -> None:
        assume(len(set(rows)) >= 3)  # R squared of one point is 0 / 0
        found, expected = weighted(rows), repeated(rows)
        assert len(found) > 60
        for name, value in expected.items():
            np.testing.assert_allclose(
                *(found[name], value), rtol=1e-4, atol=1e-5, err_msg=name, equal_nan=True
            )

    law()


def test_weight_counts_as_repeated_batch_for_mean_tensor() -> None:
    batches = np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]], np.float32)
    weights = np.array([2.0, 0.0, 3.0], np.float32)
    with Graph().as_default(), Session() as session:
        batch, weight = tf.placeholder("float32", [2]), tf.placeholder("float32", [])
        value, update = tf.metrics.mean_tensor(batch, weight)
        metric = keras_metrics.MeanTensor()
        updates = [update, metric.update_state(batch, weight)]
        session.run(tf.local_variables_initializer())
        for row, count in zip(batches, weights, strict=True):
            session.run(updates, {batch: row, weight: count})
        found = session.run([value, metric.result()])
    expected = np.repeat(batches, weights.astype(int), 0).mean(0)
    np.testing.assert_allclose(found, [expected, expected], rtol=1e-6)
