"""Graphs with their collections, written to files and read back."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.compat.private import framework_meta_graph as framework
from estimatorkit.core.variables import Variable
from estimatorkit.train.saving.meta_graph import load_meta_graph, read_meta_graph


def build(counted: bool = True) -> None:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    with tf.variable_scope("layer"), tf.device("/cpu:0"):
        weights = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
        y = tf.matmul(x, weights, name="y")
    step = tf.train.get_or_create_global_step() if counted else None
    loss = tf.reduce_mean(tf.square(y - 1.0), name="loss")
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, step, name="train")
    tf.add_to_collection("train_op", train)
    tf.add_to_collection("outputs", y)
    tf.add_to_collection("mine", weights)
    tf.add_to_collection("sizes", 3)
    tf.add_to_collection("rates", 0.5)
    tf.add_to_collection("labels", "a")
    tf.add_to_collection("odd", object())
    tf.global_variables_initializer()


FEEDS = {"x:0": np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)}


def train(graph: tf.Graph, scope: str = "") -> list[Any]:
    feeds = {scope + name: value for name, value in FEEDS.items()}
    with tf.Session(graph=graph) as session:
        session.run(f"{scope}init")
        losses = []
        for _ in range(3):
            losses.append(
                session.run([f"{scope}loss:0", graph.get_collection("train_op")[0]], feeds)
            )
        return [*losses, session.run(graph.get_collection("variables"))]


@pytest.mark.parametrize("as_text", [False, True])
def test_imported_graph_continues_training(tmp_path: Path, as_text: bool, caplog: Any) -> None:
    with tf.Graph().as_default() as graph:
        build()
    path = tmp_path / "model.meta"
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        made = tf.train.export_meta_graph(path, graph=graph, as_text=as_text)
    assert "Issue encountered when serializing odd" in caplog.text
    assert read_meta_graph(path) == made
    with tf.Graph().as_default() as again:
        saver = tf.train.import_meta_graph(path)
    assert isinstance(saver, tf.train.Saver)
    for key in ("variables", "trainable_variables", "mine", "outputs", "train_op", "global_step"):
        one, other = graph.get_collection(key), again.get_collection(key)
        assert [(type(a).__name__, a.name) for a in one] == [
            (type(b).__name__.replace("ImportedVariable", "Variable"), b.name) for b in other
        ]
    (weights,) = again.get_collection("mine")
    assert weights is again.get_collection("trainable_variables")[0]
    assert isinstance(weights, Variable)
    assert (weights.dtype, weights.shape) == (tf.float32, [2, 1])
    assert again.get_collection("sizes") == [3]
    assert again.get_collection("rates") == [0.5]
    assert again.get_collection("labels") == [b"a"]
    assert again.get_collection("odd") == []
    assert repr(train(again)) == repr(train(graph))


def test_imported_variables_are_variables(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        build()
    made = tf.train.export_meta_graph(graph=graph)
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(made)
        (weights,) = tf.trainable_variables()
        session.run(weights.initializer)
        session.run(tf.variables_initializer(tf.global_variables()))
        session.run(weights.assign_add([[1.0], [2.0]]))
        assert session.run(weights * 2.0).tolist() == [[4.0], [6.0]]
        path = saver.save(session, tmp_path / "model.ckpt")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(made).restore(session, path)
        assert session.run(tf.trainable_variables()[0]).tolist() == [[2.0], [3.0]]


def test_scopes_and_devices() -> None:
    with tf.Graph().as_default() as graph:
        with tf.variable_scope("tower"):
            build(counted=False)
        tf.constant(1.0, name="outside")
    made = tf.train.export_meta_graph(graph=graph, export_scope="tower")
    names = {node.name for node in made.graph_def.node}
    assert {"x", "layer/y", "train"} <= names
    assert "outside" not in names
    assert any(node.device for node in made.graph_def.node)
    with tf.Graph().as_default() as again:
        loaded = load_meta_graph(made, clear_devices=True, import_scope="a/b")
        assert sorted(loaded.variables) == ["layer/w", "tower/layer/w/Momentum"]
        assert not any(op.device for op in again.get_operations())
        x = tf.constant([[1.0, 1.0]])
        other = load_meta_graph(
            made, import_scope="a/b", input_map={"x": x}, return_elements=["loss:0"]
        )
        assert other.elements[0].name == "a/b_1/loss:0"
    assert again.get_collection("variables")[0].name.startswith("a/b/")
    with tf.Graph().as_default() as one:
        load_meta_graph(made)
    with tf.Graph().as_default() as under:
        load_meta_graph(made, import_scope="a")
    assert repr(train(one)) == repr(train(under, "a/"))


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


def test_errors(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        outside = tf.constant(1.0, name="outside")
        with tf.name_scope("tower"):
            tf.identity(outside)
    with pytest.raises(ValueError, match="has the external input 'outside'"):
        tf.train.export_meta_graph(graph=graph, export_scope="tower")
    with tf.Graph().as_default():
        with pytest.raises(tf.errors.NotFoundError):
            tf.train.import_meta_graph(tmp_path / "none.meta")
        assert tf.train.import_meta_graph(tf.train.export_meta_graph(graph=graph)) is None


@pytest.mark.parametrize("scope", [None, "old"])
def test_tensorflow_training_graph(scope: str | None, caplog: Any) -> None:
    golden = Path(__file__).parents[1] / "golden"
    with tf.Graph().as_default() as graph, tf.Session() as session:
        with caplog.at_level(logging.WARNING, "estimatorkit"):
            saver = tf.train.import_meta_graph(
                golden / "graphdef_training.meta", import_scope=scope
            )
        assert "node types which are not supported" in caplog.text
        assert "ApplyAdam" in caplog.text
        assert "SaveV2" not in caplog.text
        prefix = f"{scope}/" if scope else ""
        names = [variable.op.name for variable in tf.trainable_variables()]
        assert names == [f"{prefix}layer{at}/{name}" for at in range(3) for name in "wb"]
        assert len(tf.global_variables()) > len(names)  # Adam's, and the step
        assert isinstance(saver, tf.train.Saver)
        (y,) = graph.get_collection("outputs")
        assert graph.get_collection("train_op") == []
        session.run(tf.global_variables_initializer())
        with np.load(golden / "graphdef.npz") as values:
            given, expected = values["training/x"], values["training/y"]
        np.testing.assert_allclose(session.run(y, {f"{prefix}x:0": given}), expected, rtol=1e-5)


def test_partial_collections() -> None:
    with tf.Graph().as_default() as graph:
        build()
    made = tf.train.export_meta_graph(graph=graph, collection_list=["sizes"], clear_devices=True)
    assert list(made.collection_def) == ["sizes"]
    assert not any(node.device for node in made.graph_def.node)


def test_meta_info() -> None:
    with tf.Graph().as_default():
        build()
        made = tf.train.export_meta_graph()
        info = type(made.meta_info_def)(meta_graph_version="mine", tags=["a"])
        given = tf.train.export_meta_graph(meta_info_def=info).meta_info_def
    assert made.meta_info_def.tensorflow_version == f"estimatorkit {tf.__version__}"
    types = [op.name for op in made.meta_info_def.stripped_op_list.op]
    assert types == sorted({node.op for node in made.graph_def.node})
    assert (given.meta_graph_version, given.tags) == ("mine", ["a"])
    assert [op.name for op in given.stripped_op_list.op] == types


def test_empty_graphs() -> None:
    with tf.Graph().as_default() as graph:
        made = tf.train.export_meta_graph()
        assert tf.import_graph_def(made.graph_def) is None
        assert tf.import_graph_def(type(made.graph_def)(), return_elements=[]) == []
        assert tf.train.import_meta_graph(made) is None
        assert graph.get_operations() == []
