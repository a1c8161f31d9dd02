"""Parts of graphs, variables as constants, and graph files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto.graph_pb2 import GraphDef

import estimatorkit as tf
from estimatorkit.interop.graph_util import read_proto
from estimatorkit.ops.control.control_flow import cond


def names(graph_def: Any) -> list[str]:
    return [node.name for node in graph_def.node]


def test_extract_sub_graph() -> None:
    with tf.Graph().as_default() as graph:
        a = tf.constant(1.0, name="a")
        b = tf.add(a, a, name="b")
        with tf.control_dependencies([tf.no_op(name="before")]):
            tf.identity(b, name="c")
        tf.negative(b, name="other")
    graph_def = graph.as_graph_def()
    assert names(tf.graph_util.extract_sub_graph(graph_def, ["c"])) == ["a", "b", "before", "c"]
    assert names(tf.graph_util.extract_sub_graph(graph_def, ["b"])) == ["a", "b"]
    with pytest.raises(AssertionError, match="d is not in graph"):
        tf.graph_util.extract_sub_graph(graph_def, ["d"])
    with pytest.raises(TypeError, match="iterable of strings"):
        tf.graph_util.extract_sub_graph(graph_def, "c")


def test_remove_training_nodes() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [], name="x")
        one = tf.identity(tf.identity(x, name="i"), name="j")
        kept = tf.identity(x, name="kept")
        waited = tf.identity(x, name="waited")
        with tf.control_dependencies([waited]):
            tf.add(one, kept, name="sum")
    result = tf.graph_util.remove_training_nodes(graph.as_graph_def(), protected_nodes=["kept"])
    assert names(result) == ["x", "kept", "waited", "sum"]
    assert list(result.node[-1].input) == ["x", "kept", "^waited"]


def test_convert_variables_to_constants() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        weights = tf.get_variable("w", [2, 3])
        scale = tf.get_variable("scale", [], initializer=tf.ones_initializer())
        y = tf.matmul(x, weights)
        y = cond(tf.reduce_sum(y) > 0, lambda: y * scale, lambda: y - scale)
        y = tf.identity(y, name="y")
        loss = tf.reduce_mean(y)
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="step")
        session.run(tf.global_variables_initializer())
        inputs = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)
        session.run(step, {x: inputs})
        expected = [session.run(y, {x: sign * inputs}) for sign in (1, -1)]
        graph_def = graph.as_graph_def()
        convert = tf.graph_util.convert_variables_to_constants
        frozen = convert(session, graph_def, ["y"])
        partly = convert(session, graph_def, ["MatMul"], variable_names_blacklist=["w"])
        with pytest.raises(AssertionError, match="z is not in graph"):
            convert(session, graph_def, ["z"])
        with pytest.raises(ValueError, match="changes a frozen variable"):
            convert(session, graph_def, ["step"])
        with pytest.raises(ValueError, match="partly frozen"):
            convert(session, graph_def, ["y"], variable_names_whitelist=["w"])
    assert {"VarHandleOp", "ReadVariableOp"}.isdisjoint(node.op for node in frozen.node)
    assert "VarHandleOp" in {node.op for node in partly.node}
    data = frozen.SerializeToString()
    with tf.Graph().as_default(), tf.Session() as session:
        elements = ["x:0", "y:0"]
        x, y = tf.import_graph_def(GraphDef.FromString(data), return_elements=elements) or ()
        assert tf.global_variables() == []
        for sign, values in zip((1, -1), expected, strict=True):
            np.testing.assert_array_equal(session.run(y, {x: sign * inputs}), values)


def test_uninitialized_variables_are_not_frozen() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.get_variable("w", [2, 3])
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value w"):
            tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["w/read"])


@pytest.mark.parametrize("as_text", [True, False])
def test_graph_files(tmp_path: Path, as_text: bool) -> None:
    with tf.Graph().as_default() as graph:
        tf.constant([b"\xff"], name="c")
    for given in (graph, graph.as_graph_def()):
        path = tf.train.write_graph(given, tmp_path / "new", "graph.pb", as_text)
        assert path == str(tmp_path / "new" / "graph.pb")
        assert read_proto(GraphDef, path) == graph.as_graph_def()
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["graph.pb"]
    (tmp_path / "bad.pb").write_bytes(b"\xff\xff")
    with pytest.raises(ValueError, match="is not a GraphDef"):
        read_proto(GraphDef, tmp_path / "bad.pb")
    with pytest.raises(tf.errors.NotFoundError):
        read_proto(GraphDef, tmp_path / "none.pb")
