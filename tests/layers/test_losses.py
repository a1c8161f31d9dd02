"""Losses against TensorFlow 2.15.1's values, their collections, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.ops import array, filling, reduce
from estimatorkit.core.session import Session
from estimatorkit.core.variable_scope import get_variable
from estimatorkit.layers import losses
from estimatorkit.layers.losses import Reduction

LOGITS = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 2.0], [-1.0, 0.0, 1.0]], np.float32)
ONE_HOT = np.eye(3, dtype=np.float32)
WEIGHTS = np.array([0.0, 2.0, 0.5], np.float32)
# What tf.compat.v1.losses gives, in the order of `_all`.
EXPECTED = {
    Reduction.SUM: [1.5190148, 6.8765097, 3.0690148, 11.0, 6.9265051, 8.5],
    Reduction.SUM_OVER_BATCH_SIZE: [
        *(0.5063383, 0.7640566, 1.0230049, 1.2222222, 0.7696117, 0.9444444),
    ],
    Reduction.MEAN: [0.6076059, 0.916868, 1.2276059, 0.6111111, 0.923534, 1.1333333],
    Reduction.SUM_BY_NONZERO_WEIGHTS: [
        *(0.7595074, 1.1460849, 1.5345074, 1.2222222, 1.1544175, 1.4166666),
    ],
}


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def run(fetches: Any) -> Any:
    with Session() as session:
        return session.run(fetches)


def _all(reduction: str) -> list[Any]:
    column = WEIGHTS[:, None]
    probabilities = 1 / (1 + np.exp(-LOGITS))
    rest = {"reduction": reduction}
    return [
        losses.sparse_softmax_cross_entropy(np.array([0, 2, 1]), LOGITS, WEIGHTS, **rest),
        losses.sigmoid_cross_entropy(ONE_HOT, LOGITS, column, label_smoothing=0.1, **rest),
        losses.softmax_cross_entropy(ONE_HOT, LOGITS, WEIGHTS, label_smoothing=0.1, **rest),
        losses.absolute_difference(ONE_HOT, LOGITS, 2.0, **rest),
        losses.log_loss(ONE_HOT, probabilities, column, **rest),
        losses.mean_squared_error(ONE_HOT, LOGITS, column, **rest),
    ]


def test_every_loss_and_reduction_has_tensorflows_value() -> None:
    found = run({reduction: _all(reduction) for reduction in EXPECTED})
    for reduction, values in EXPECTED.items():
        np.testing.assert_allclose(found[reduction], values, rtol=1e-6, err_msg=reduction)


def test_losses_are_collected_and_summed_with_those_of_regularizers() -> None:
    first = losses.mean_squared_error([1.0], [3.0])
    losses.absolute_difference([1.0], [3.0], loss_collection=None)
    get_variable(
        "w", [2], initializer=filling.ones, regularizer=lambda w: reduce.reduce_sum(w) * 0.5
    )
    losses.add_loss(array.identity(first) + 1.0)
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


def test_labels_with_a_last_dimension_of_one_are_squeezed() -> None:
    labels = np.array([[0], [2], [1]])
    column = losses.sparse_softmax_cross_entropy(labels, LOGITS, WEIGHTS[:, None])
    flat = losses.sparse_softmax_cross_entropy(labels[:, 0], LOGITS, WEIGHTS)
    one, two = run([column, flat])
    assert one == two


def test_no_weights_give_zero_and_no_nan() -> None:
    assert run(losses.mean_squared_error([1.0, 2.0], [3.0, 3.0], 0.0)) == 0.0
    assert run(losses.mean_squared_error([1.0], [3.0], [0.0], reduction=Reduction.MEAN)) == 0.0


def test_float64_losses_stay_float64() -> None:
    loss = losses.mean_squared_error(np.array([1.0]), np.array([1.5]))
    assert loss.dtype == "float64"


def test_shapes_that_would_broadcast_to_a_matrix_are_refused() -> None:
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
        *((value, value) for value in Reduction.all()),
    ],
)
def test_reductions_have_names_of_both_versions(name: str, value: str) -> None:
    assert losses.as_reduction(name) == value


@pytest.mark.parametrize("value", ["none", Reduction.NONE, "summ", 3, None])
def test_other_reductions_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=f"Invalid loss_reduction: {value}") as caught:
        losses.as_reduction(value, allow_none=False)
    if value == "summ":
        assert "did you mean 'sum'?" in str(caught.value)
