"""Losses, metrics and heads of tensors whose shapes are known only at run time, against TensorFlow
2.15.1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit
import estimatorkit as tf
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.graph import Graph
from tests.golden.snippets_shapes import MISTAKES, head_losses, look_at

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "shapes.json").read_text("utf-8"))
CLASSES = {"ValueError": ValueError, "InvalidArgumentError": InvalidArgumentError}
PHRASES = {
    "fed_labels_of_another_batch": "[expected_labels_shape: ] [3 1] [labels_shape: ] [2 1]",
    "fed_logits_of_two_columns": "logits shape must be [D0, D1, ... DN, logits_dimension]",
    "losses_of_another_shape": "DN, 3]. ] [logits_shape: ] [3 3] [loss_shape: ] [3 1]",
    "weights_of_examples_for_steps": "[logits_shape: ] [2 2 3] [weights_shape: ] [2 1]",
    "weights_of_columns_for_rows": "weights can not be broadcast to values",
    "fed_weights_of_another_batch": "weights can not be broadcast to values",
}


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def _compare(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        wanted = np.array([float(each) for each in value["values"]]).reshape(value["shape"])
        np.testing.assert_allclose(found[name], wanted, 1e-5, 1e-6, err_msg=name)


@pytest.mark.slow
def test_ranks_are_matched_at_run_time() -> None:
    _compare(look_at(tf), GOLDEN["values"])


@pytest.mark.slow
def test_heads_accept_weight_per_step() -> None:
    _compare(head_losses(tf, estimatorkit), GOLDEN["heads"])


@pytest.mark.parametrize("name", sorted(MISTAKES))
def test_shape_mismatches_raise(name: str) -> None:
    with pytest.raises(CLASSES[GOLDEN["mistakes"][name]]) as caught:
        MISTAKES[name](tf, estimatorkit)
    assert PHRASES.get(name, "shape") in str(caught.value)


def test_loss_of_unknown_rank_has_same_gradient() -> None:
    logits = np.array([[1.0, -2.0], [0.5, 1.0]], np.float32)
    labels, weights = np.array([[1], [0]]), np.array([[0.5], [2.0]], np.float32)
    fed = [tf.placeholder(each.dtype) for each in (labels, logits, weights)]
    known = [tf.constant(each) for each in (labels, logits, weights)]
    gradients = []
    for y, p, w in (fed, known):
        loss = tf.losses.sparse_softmax_cross_entropy(y, p, w)
        gradients.append(tf.gradients(loss, [p, w]))
    with tf.Session() as session:
        found = session.run(gradients, dict(zip(fed, (labels, logits, weights), strict=True)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, 1e-6)


def test_private_weight_and_rank_functions() -> None:
    from estimatorkit.compat.v1.python.ops import (  # type: ignore[import-not-found]
        confusion_matrix,
        weights_broadcast_ops,
    )

    values = np.arange(24).reshape(3, 2, 4)
    weights, wrong = np.array([5, 11]).reshape(1, 2, 1), np.ones((3, 2))
    fed = [tf.placeholder(tf.float32), tf.placeholder(tf.float32)]
    checked = weights_broadcast_ops.assert_broadcastable(*fed)
    full = weights_broadcast_ops.broadcast_weights(*fed)
    labels, _ = confusion_matrix.remove_squeezable_dimensions(*fed, expected_rank_diff=1)
    with tf.Session() as session:
        session.run(weights_broadcast_ops.assert_broadcastable(weights, values))
        session.run(checked, dict(zip(fed, (weights, values), strict=True)))
        np.testing.assert_array_equal(
            session.run(full, dict(zip(fed, (weights, values), strict=True))),
            np.tile(weights, (3, 1, 4)),
        )
        assert session.run(labels, {fed[0]: np.ones((2, 3, 1)), fed[1]: values}).shape == (2, 3)
        with pytest.raises(InvalidArgumentError, match="weights can not be broadcast to values"):
            session.run(checked, dict(zip(fed, (wrong, values), strict=True)))
        with pytest.raises(ValueError, match="weights can not be broadcast to values"):
            weights_broadcast_ops.assert_broadcastable(wrong, values)
