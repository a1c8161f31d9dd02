"""The tests of `tests/train/test_meta_graph.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit as tf
from estimatorkit.compat.private import framework_meta_graph as framework


def test_copy_scoped_meta_graph_with_inputs() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.constant(2.0, name="x")
        with tf.variable_scope("tower"):
            weight = tf.get_variable("w", [], initializer=tf.constant_initializer(3.0))
            tf.multiply(weight, x, name="y")
        with tf.name_scope("plain"):
            tf.constant(1.0, name="c")
        made, variables = framework.export_scoped_meta_graph(export_scope="tower")
        assert list(variables) == ["w:0"]
        assert framework.copy_scoped_meta_graph("plain", "copy") == {}
        assert graph.get_tensor_by_name("copy/c:0").op.type == "Const"
        with pytest.raises(ValueError, match="need to be different"):
            framework.copy_scoped_meta_graph("plain", "plain")
    assert {"Mul", "Const"} <= set(framework.ops_used_by_graph_def(made.graph_def))
    with tf.Graph().as_default() as again:
        with pytest.raises(ValueError, match=r"unbound inputs: .*_x"):
            framework.import_scoped_meta_graph(made)
        (name,) = (each.decode() for each in made.collection_def["unbound_inputs"].bytes_list.value)
        found = framework.import_scoped_meta_graph(
            made, import_scope="new", input_map={name: tf.constant(5.0)}
        )
        assert list(found) == ["w:0"]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert session.run(again.get_tensor_by_name("new/y:0")) == 15.0
