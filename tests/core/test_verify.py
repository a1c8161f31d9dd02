"""Malformed graphs, and the errors of `Graph.verify`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import dtypes
from estimatorkit.core.shapes import TensorShape


def _graph() -> tuple[tf.Graph, Any, Any]:
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.identity(tf.matmul(x, np.ones([2, 3], np.float32), name="product"), name="y")
    return graph, x, y


def test_well_formed_graph_verifies() -> None:
    graph, _, _ = _graph()
    graph.verify()


def _other_dtype(graph: tf.Graph, x: Any, y: Any) -> None:
    y.dtype = dtypes.int32


def _other_shape(graph: tf.Graph, x: Any, y: Any) -> None:
    y._shape = TensorShape([4])


def _cycle(graph: tf.Graph, x: Any, y: Any) -> None:
    graph.get_operation_by_name("product").inputs = (y, y)


def _one_name(graph: tf.Graph, x: Any, y: Any) -> None:
    y.op.name = "x"


def _unknown_type(graph: tf.Graph, x: Any, y: Any) -> None:
    y.op.type = "Unheard"


def _another_graph(graph: tf.Graph, x: Any, y: Any) -> None:
    _, _, other = _graph()
    y.op.inputs = (other,)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_other_dtype, r"output y:0 is int32 .* infers float32"),
        (_other_shape, r"output y:0 is float32 \(4,\), its type infers float32"),
        (_cycle, r"product \(MatMul\): it needs y, which is not an earlier operation"),
        (_one_name, "another operation has the same name"),
        (_unknown_type, "the type is not registered"),
        (_another_graph, "it needs y, which is not an earlier operation of the graph"),
    ],
)
def test_malformed_graphs_are_reported(damage: Callable[..., None], message: str) -> None:
    graph, x, y = _graph()
    damage(graph, x, y)
    with pytest.raises(ValueError, match=message) as error:
        graph.verify()
    assert "made at:" in str(error.value)
