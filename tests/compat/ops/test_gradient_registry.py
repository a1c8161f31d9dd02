"""The tests of `tests/ops/test_gradient_registry.py` that need names of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.ops.control.defun import Defun
from tests.ops.test_gradient_registry import MORE, OURS, _steep


@Defun(tf.float32, python_grad_func=lambda op, dy: 50.0 * dy)
def tripled(x: Any) -> Any:
    return 3.0 * x


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (_steep, 100.0),
        (tripled, 50.0),
        (lambda x: tf.cond(x > 0.0, lambda: _steep(x), lambda: x), 100.0),
        (tf.grad_pass_through(tf.round), 1.0),
    ],
)
def test_imported_graphs_keep_custom_gradients(function: Any, slope: float) -> None:
    with tf.Graph().as_default() as original:
        x = tf.placeholder(tf.float32, [], "x")
        tf.identity(function(x), "y")
    definition = original.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.import_graph_def(definition, return_elements=["x:0", "y:0"])
        (gradient,) = tf.gradients(y, x)
        assert session.run(gradient, {x: 2.0}) == slope


def test_listed_operations_exist() -> None:
    assert set(OURS) >= MORE
