"""Losses against TensorFlow 2.15.1: values, collections and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.layers import losses
from estimatorkit.layers.losses import Reduction
from estimatorkit.ops.array import filling
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.variable_scope import get_variable
from estimatorkit.runtime.session import Session
from tests.golden.snippets_losses import ARRAYS, PAIRWISE, V1, V1_REDUCTIONS

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text("utf-8"))["v1"]
LOGITS = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 2.0], [-1.0, 0.0, 1.0]], np.float32)
WEIGHTS = np.array([0.0, 2.0, 0.5], np.float32)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def run(fetches: Any) -> Any:
    with Session() as session:
        return session.run(fetches)


def test_every_loss_and_reduction_matches_tensorflow() -> None:
    made = {
        f"{name}/{reduction}": loss(tf, *ARRAYS[arrays], reduction)
        for name, (arrays, loss) in V1.items()
        for reduction in V1_REDUCTIONS
    }
    made["mean_pairwise_squared_error"] = PAIRWISE(tf, *ARRAYS["numbers"], None)
    found = run(made)
    assert sorted(found) == sorted(GOLDEN)
    for name, expected in GOLDEN.items():
        values = np.array([float(each) for each in expected["values"]])
        values = values.reshape(expected["shape"])
        np.testing.assert_allclose(found[name], values, 1e-6, 1e-7, err_msg=name)


def test_cosine_distance_needs_one_axis() -> None:
    for arguments in ({}, {"axis": 1, "dim": 1}):
        with pytest.raises(ValueError, match="You must specify 'axis'"):
            losses.cosine_distance([[1.0]], [[1.0]], **arguments)


def test_pairwise_errors_average_within_example() -> None:
    labels = np.array([[1.0, 2.0, 4.0], [0.0, 0.0, 0.0]])
    guesses = np.array([[1.0, 1.0, 1.0], [5.0, 6.0, 7.0]])
    errors = guesses - labels
    pairs = [
        np.mean([(row[i] - row[j]) ** 2 for i in range(3) for j in range(3) if i != j])
        for row in errors
    ]
    found = run(
        [
            losses.mean_pairwise_squared_error(labels, guesses),
            losses.mean_pairwise_squared_error(labels, guesses, [[2.0], [0.0]]),
            losses.mean_pairwise_squared_error(labels[:, :1], guesses[:, :1]),
        ]
    )
    np.testing.assert_allclose(found, [sum(pairs), 2 * pairs[0], 0.0])


def test_losses_are_collected_and_summed_with_regularizers() -> None:
    first = losses.mean_squared_error([1.0], [3.0])
    losses.absolute_difference([1.0], [3.0], loss_collection=None)
    get_variable(
        "w", [2], initializer=filling.ones, regularizer=lambda w: reduce.reduce_sum(w) * 0.5
    )
    losses.add_loss(builtin_ops.identity(first) + 1.0)
    assert len(losses.get_losses()) == 2
    assert get_default_graph().get_collection(GraphKeys.LOSSES)[0] is first
    with Session() as session:
        session.run(get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)[0].initializer)
        total, alone, penalty = session.run(
            [
                losses.get_total_loss(),
                losses.get_total_loss(add_regularization_losses=False),
                losses.get_regularization_loss(),
            ]
        )
    assert (total, alone, penalty) == (10.0, 9.0, 1.0)


def test_trailing_label_dimension_is_squeezed() -> None:
    labels = np.array([[0], [2], [1]])
    column = losses.sparse_softmax_cross_entropy(labels, LOGITS, WEIGHTS[:, None])
    flat = losses.sparse_softmax_cross_entropy(labels[:, 0], LOGITS, WEIGHTS)
    one, two = run([column, flat])
    assert one == two


def test_zero_weights_give_zero_not_nan() -> None:
    assert run(losses.mean_squared_error([1.0, 2.0], [3.0, 3.0], 0.0)) == 0.0
    assert run(losses.mean_squared_error([1.0], [3.0], [0.0], reduction=Reduction.MEAN)) == 0.0


def test_float64_losses_stay_float64() -> None:
    loss = losses.mean_squared_error(np.array([1.0]), np.array([1.5]))
    assert loss.dtype == "float64"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_float16_means_are_exact_for_any_size(dtype: str) -> None:
    many = elementwise.cast(np.full(70001, 3, np.float32), dtype)  # float16 ends at 65504
    for reduction in (Reduction.SUM_OVER_BATCH_SIZE, Reduction.SUM_BY_NONZERO_WEIGHTS):
        assert run(losses.compute_weighted_loss(many, reduction=reduction)) == 3
    mean = losses.compute_weighted_loss(many, [0.5], reduction=Reduction.MEAN)
    assert mean.dtype == dtype
    assert run(mean) == 3


def test_outer_broadcast_is_refused() -> None:
    with pytest.raises(ValueError, match="labels and predictions are incompatible"):
        losses.mean_squared_error(np.zeros([4, 1], np.float32), np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="weights can not be broadcast to values"):
        losses.mean_squared_error(np.zeros([4, 2]), np.zeros([4, 2]), np.ones(3))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sum", Reduction.SUM),
        ("SUM", Reduction.SUM),
        ("sum_over_batch_size", Reduction.SUM_OVER_BATCH_SIZE),
        ("SUM_OVER_BATCH_SIZE", Reduction.SUM_OVER_BATCH_SIZE),
        ("auto", Reduction.SUM_OVER_BATCH_SIZE),
        ("weighted_mean", Reduction.MEAN),
        ("sum_over_nonzero_weights", Reduction.SUM_BY_NONZERO_WEIGHTS),
        *((value, value) for value in dict.fromkeys(Reduction.all())),
    ],
)
def test_reductions_of_both_versions(name: str, value: str) -> None:
    assert losses.as_reduction(name) == value


@pytest.mark.parametrize("value", ["none", Reduction.NONE, "summ", 3, None])
def test_unknown_reductions_raise(value: Any) -> None:
    with pytest.raises(ValueError, match=f"Invalid loss_reduction: {value}") as caught:
        losses.as_reduction(value, allow_none=False)
    if value == "summ":
        assert "did you mean 'sum'?" in str(caught.value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("loss", "value"),
    [
        (losses.log_loss, 0.0),
        (losses.mean_squared_error, 90000.0),
        (losses.absolute_difference, 300.0),
        (losses.huber_loss, 299.5),
        (losses.hinge_loss, 301.0),
    ],
)
def test_16_bit_predictions_give_float32_losses(loss: Any, value: float, dtype: str) -> None:
    certain = loss is losses.log_loss  # 1 - 1 + 1e-7 is 0 in 16 bits
    predictions = elementwise.cast(np.array([0.0, 1.0] if certain else [300.0]), dtype)
    result = loss([0.0, 1.0] if certain else [0.0], predictions)
    assert result.dtype == "float32"
    assert run(result) == pytest.approx(value, abs=1e-5)
