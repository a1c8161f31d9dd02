"""Which ops are differentiable: errors are raised where TensorFlow raises them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import estimatorkit as tf
from estimatorkit.core import registry

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "gradient_registry.json").read_text("utf-8")
)["types"]
OURS = [type_ for type_ in registry.registered_types() if type_ in GOLDEN]

# Ours have the derivative where TensorFlow raises, or has None (the last three).
MORE = {
    *("AdjustContrastv2", "AdjustHue", "AdjustSaturation", "IRFFT3D", "RFFT3D"),
    *(
        "MatrixExponential",
        "ResizeArea",
        "SparseSplit",
        "TruncateMod",
        "HSVToRGB",
        "LinSpace",
        "SparseConcat",
    ),
}

# Optionals hold elements of iterators, which are not differentiable.
FEWER = {"OptionalFromValue", "OptionalGetValue"}


def _differentiable(type_: str) -> bool:
    return registry.lookup(type_).gradient not in (None, "undefined")


def test_every_tensorflow_gradient_exists() -> None:
    assert {type_ for type_ in OURS if GOLDEN[type_] and not _differentiable(type_)} == FEWER


def test_gradients_that_tensorflow_lacks() -> None:
    more = {type_ for type_ in OURS if not GOLDEN[type_] and _differentiable(type_)}
    assert more == MORE & set(OURS)  # without `compat`, there are fewer operations


def test_ops_without_gradient_match_tensorflow() -> None:
    undefined = [type_ for type_ in OURS if registry.lookup(type_).gradient == "undefined"]
    assert undefined
    assert {GOLDEN[type_] for type_ in undefined} == {None}


def test_differentiating_op_without_gradient_raises() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        values = tf.unique(x).y
        with pytest.raises(LookupError, match="No gradient defined for operation 'Unique'"):
            tf.gradients(values, x)
        body = tf.cond(x[0] > 0, lambda: tf.reduce_sum(tf.unique(x).y), lambda: x[1])
        assert session.run(body, {x: [2.0, 2.0, 1.0]}) == 3.0


@tf.custom_gradient
def _steep(x: Any) -> Any:
    return tf.square(x), lambda dy: 100.0 * dy


def test_unknown_custom_gradient_raises() -> None:
    with tf.Graph().as_default() as original:
        tf.identity(_steep(tf.placeholder(tf.float32, [], "x")), "y")
    definition = original.as_graph_def()
    for node in definition.node:
        if "_gradient_op_type" in node.attr:
            node.attr["_gradient_op_type"].s = b"CustomGradient-of-another-process"
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.import_graph_def(definition, return_elements=["x:0", "y:0"])
        assert session.run(y, {x: 3.0}) == 9.0
        with pytest.raises(LookupError, match="No gradient defined"):
            tf.gradients(y, x)
