"""Small functions that only old programs use: the values that TensorFlow 2.15.1 gives."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf


def test_a_template_makes_its_variables_once() -> None:
    def layer(x: tf.Tensor, units: int) -> tf.Tensor:
        weights = tf.get_variable("weights", [2, units], initializer=tf.ones_initializer())
        return x @ weights

    with tf.Graph().as_default(), tf.Session() as session:
        template = tf.make_template("layer", layer, units=3)
        now = tf.make_template("layer", layer, create_scope_now_=True, units=1)
        results = [template(tf.ones([1, 2])), template(2 * tf.ones([1, 2])), now(tf.ones([1, 2]))]
        names = [each.op.name for each in tf.trainable_variables()]
        assert names == ["layer_1/weights", "layer/weights"]
        session.run(tf.global_variables_initializer())
        values = session.run(results)
    np.testing.assert_array_equal(values[0], [[2, 2, 2]])
    np.testing.assert_array_equal(values[1], [[4, 4, 4]])
    np.testing.assert_array_equal(values[2], [[2]])


def test_shapes_that_broadcast() -> None:
    assert tf.broadcast_static_shape(tf.TensorShape([3, 1]), tf.TensorShape([4])) == (3, 4)
    unknown = tf.broadcast_static_shape(tf.TensorShape([None, 1]), tf.TensorShape([5, None]))
    assert unknown.as_list() == [5, None]
    assert tf.broadcast_static_shape(tf.TensorShape(None), tf.TensorShape([2])).rank is None
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        tf.broadcast_static_shape(tf.TensorShape([3]), tf.TensorShape([4]))
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int32, [None])
        both = tf.broadcast_dynamic_shape(x, tf.constant([1, 4]))
        assert session.run(both, {x: [2, 3, 1]}).tolist() == [2, 3, 4]
        assert session.run(both, {x: [4]}).tolist() == [1, 4]


def test_casts_and_lists() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.add_to_collections(["a", "b"], 1)
        assert tf.get_collection("a") == tf.get_collection("b") == [1]
        double, single, wide = tf.to_double(1), tf.to_complex64(1), tf.to_complex128(1)
        assert [each.dtype.name for each in (double, single, wide)] == [
            *("float64", "complex64", "complex128"),
        ]
        assert session.run(tf.identity_n([1, 2.0])) == [1, 2.0]
        x = tf.placeholder(tf.float32, [])
        slope = tf.gradients(
            x * x, x, aggregation_method=tf.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N
        )
        assert session.run(slope, {x: 3.0}) == [6.0]
        assert session.run(tf.fft(tf.to_complex64([1.0, 0.0]))).tolist() == [1, 1]
