"""Exports of every estimator, column and receiver, as TensorFlow loads them.

`golden/exports.json` has what TensorFlow 2.15.1 computed with the exports of these cases; the nodes
of their graphs are compared with what it knows of its node types.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
import estimatorkit as v1
from estimatorkit.estimator.serving.exporting import ServedModel
from estimatorkit.interop.graphdef_export import export_graph
from estimatorkit.train.saving.saved_model_builder import _tensors_of
from estimatorkit.train.saving.saved_model_files import read_saved_model
from tests.estimator.graph_checks import problems
from tests.golden.golden_values import plain
from tests.golden.snippets_exports import CASES, VOCABULARY, answer, receiver_of, request_of
from tests.golden.write_exports import export_of, trained
from tests.sweep import sweep

VALUES = json.loads((Path(__file__).parents[1] / "golden" / "exports.json").read_text("utf-8"))
EVERY = [(name, receiver) for name, case in CASES.items() for receiver in case.receivers]


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path(VOCABULARY[0]).write_bytes(VOCABULARY[1])
    with tf.Graph().as_default():
        yield


def test_tensorflow_loaded_every_case() -> None:
    assert set(VALUES) == {f"{name}-{receiver}" for name, receiver in EVERY}


@sweep(("name", "receiver"), EVERY, quick=20)
def test_all_nodes_are_tensorflow_nodes(name: str, receiver: str, tmp_path: Path) -> None:
    case = CASES[name]
    estimator = case.build(tf, str(tmp_path / "model"))
    for mode in ("eval", "train") if receiver == "supervised" else ("infer",):
        model = ServedModel(estimator, mode, receiver_of(tf, case, receiver))
        graph = model.session.graph
        model.session.close()
        exported = export_graph(graph)
        needed = [model.main_op]
        for signature in model.signatures.values():
            needed += _tensors_of(graph, signature)
        assert not [each for each in needed if not exported.has(each)], exported.missing
        assert problems(exported.graph_def) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "receiver"),
    [
        ("linear_crossed_columns", "parsing"),
        ("dnn_weighted", "raw"),
        ("linear_classifier", "supervised"),
        ("rnn_estimator", "parsing"),
    ],
)
def test_exports_match_tensorflow_results(name: str, receiver: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = export_of(trained(case, tmp_path / "model"), case, receiver, tmp_path / "exports")
    assert [problems(each.graph_def) for each in protos(path)] == [[]] * len(protos(path))
    found = answer(v1, request_of(tf, case, receiver), receiver, path)
    expected = VALUES[f"{name}-{receiver}"]
    assert set(found) == set(expected)
    for key, value in found.items():
        given = plain(value)
        assert (given["dtype"], given["shape"]) == (expected[key]["dtype"], expected[key]["shape"])
        if given["dtype"].startswith("float"):
            numbers = [[float(x) for x in side["values"]] for side in (given, expected[key])]
            np.testing.assert_allclose(*numbers, rtol=1e-5, atol=1e-5)
        else:
            assert given["values"] == expected[key]["values"]


def protos(folder: str) -> list[Any]:
    """The `MetaGraphDef`s of a model as TensorFlow reads them."""
    return list(read_saved_model(folder).meta_graphs)


def test_integer_crosses_match_tensorflow() -> None:
    """Features that are no columns: what is dense comes behind what is sparse."""
    raw = {
        "a": tf.placeholder(tf.int32, [None], name="a"),
        "b": tf.placeholder(tf.string, [None, 2], name="b"),
    }
    column = tf.feature_column.crossed_column
    layers = [
        tf.feature_column.linear_model(raw, [column(keys, 100)])
        for keys in (["a", "b"], ["b", "a"])
    ]
    exported = export_graph(layers[0].graph)
    assert all(map(exported.has, layers))
    assert problems(exported.graph_def) == []
    crosses = [node for node in exported.graph_def.node if node.op == "SparseCross"]
    kinds = [list(node.attr["dense_types"].list.type) for node in crosses]
    integer, string = tf.int64.as_datatype_enum, tf.string.as_datatype_enum
    assert kinds == [[integer, string], [string, integer]]


def test_checker_finds_problems() -> None:
    x = tf.placeholder(tf.float32, [None], name="x")
    tf.identity(x + 1.0, name="y")
    graph_def = export_graph(tf.get_default_graph()).graph_def
    assert problems(graph_def) == []
    nodes = {node.name: node for node in graph_def.node}
    nodes["add"].attr["T"].type = tf.int32.as_datatype_enum
    assert problems(graph_def) == [
        "AddV2 'add': takes dtype 3, 'x' has 1",
        "AddV2 'add': takes dtype 3, 'add/y' has 1",
        "Identity 'y': takes dtype 1, 'add' has 3",
    ]
    del nodes["add"].attr["T"]
    assert "AddV2 'add': lacks the attribute 'T'" in problems(graph_def)
    nodes["x"].op = "Unheard"
    assert problems(graph_def) == ["unknown node types: ['Unheard']"]
