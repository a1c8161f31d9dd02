"""Small legacy functions, with the values that TensorFlow 2.15.1 gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf


def test_template_creates_variables_once() -> None:
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


# The scopes of three calls' operations, and of the variable, as TensorFlow 2.15.1 names them.
TEMPLATES: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "plain": ({}, ["t", "t_1", "t_2"], "t"),
    "scope taken": ({}, ["t_1", "t_1_1", "t_1_2"], "t_1"),
    "name taken": ({}, ["t_1", "t_2", "t_3"], "t"),
    "now": ({"create_scope_now_": True}, ["t", "t_1", "t_2"], "t"),
    "unique": ({"unique_name_": "u"}, ["u", "u_1", "u_2"], "u"),
}


@pytest.mark.parametrize("case", TEMPLATES)
def test_template_operation_names_match_tensorflow(case: str) -> None:
    options, scopes, variables = TEMPLATES[case]
    with tf.Graph().as_default():
        if case == "scope taken":
            with tf.variable_scope("t"):
                tf.constant(1)
        if case == "name taken":
            with tf.name_scope("t"):
                tf.constant(1)
        template = tf.make_template(
            "t", lambda x: tf.add(x, tf.get_variable("w", []), name="y"), **options
        )
        assert [template(1.0).op.name for _ in range(3)] == [f"{scope}/y" for scope in scopes]
        assert [each.op.name for each in template.variables] == [f"{variables}/w"]
        assert template.trainable_variables == tf.trainable_variables()
        assert (template.name, template.variable_scope_name) == ("t", f"{variables}/")


def test_templates_of_one_name_alternate() -> None:
    with tf.Graph().as_default():
        one, other = (
            tf.make_template("t", lambda: tf.constant(1, name="y"), create_scope_now_=True)
            for _ in range(2)
        )
        found = [each().op.name for each in (one, other, one, other, one)]
    assert found == ["t/y", "t_1/y", "t_2/y", "t_1_1/y", "t_3/y"]


def test_broadcast_shapes() -> None:
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


def test_scalar_tensor_protos_use_value_fields() -> None:
    assert tf.make_tensor_proto(10.0).float_val[:] == [10.0]
    assert tf.make_tensor_proto(5, shape=[2, 2]).int_val[:] == [5]
    assert tf.make_tensor_proto(1 + 2j).dcomplex_val[:] == [1.0, 2.0]
    assert tf.make_tensor_proto(np.float16(1)).half_val[:] == [0x3C00]
    assert len(tf.make_tensor_proto([1, 2]).tensor_content) == 8
    for value in (10.0, 3, True, b"a", 1j, np.float16(2), np.zeros((0, 2)), [1, 2, 3]):
        np.testing.assert_array_equal(tf.make_ndarray(tf.make_tensor_proto(value)), value)
    np.testing.assert_array_equal(
        tf.make_ndarray(tf.make_tensor_proto([1, 2], shape=[3])), [1, 2, 2]
    )
