"""Pictures of graphs."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree

import pytest

import estimatorkit as tf
from estimatorkit.interop.graphviz import render


def test_dot() -> None:
    with tf.Graph().as_default() as graph, tf.name_scope("outer"):
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        with tf.name_scope("inner"), tf.control_dependencies([tf.no_op(name="before")]):
            tf.identity(x, name="y")
    text = graph.to_dot()
    assert text.startswith("digraph {")
    assert text.count("{") == text.count("}") == 3
    assert '    subgraph "cluster_outer/inner" {' in text.splitlines()
    assert '  "outer/x" -> "outer/inner/y" [label="(?, 2)"];' in text.splitlines()
    assert '  "outer/inner/before" -> "outer/inner/y" [style=dotted];' in text.splitlines()


def network() -> tf.Graph:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        for name in ("first", "second"):
            x = tf.layers.dense(x, 3, tf.nn.relu, name=name)
        tf.train.AdamOptimizer().minimize(tf.reduce_mean(x, name="loss"))
    return graph


def nodes(dot: str) -> dict[str, bool]:
    """The nodes of a picture, and whether they are lit."""
    found = re.findall(r'^ *("[^"]+") \[label=.*?(gray)?\];$', dot, re.MULTILINE)
    return {name.strip('"'): not gray for name, gray in found}


def test_fetches_light_what_a_run_needs() -> None:
    graph = network()
    lit = {name for name, is_lit in nodes(graph.to_dot(fetches="first/Relu:0")).items() if is_lit}
    assert {"x", "first/MatMul", "first/Relu"} <= lit
    assert not any(name.startswith(("second/", "Adam/", "gradients/")) for name in lit)
    assert all(nodes(graph.to_dot()).values())


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_scopes_close_below_a_depth(depth: int) -> None:
    graph = network()
    drawn = nodes(graph.to_dot(depth=depth))
    names = [op.name for op in graph.get_operations()]
    assert drawn.keys() == {
        name if name.count("/") <= depth else "/".join(name.split("/")[: depth + 1]) + "/"
        for name in names
    }
    # Edges join nodes that are drawn, and none to itself.
    edges = re.findall(r'^  "([^"]+)" -> "([^"]+)"', graph.to_dot(depth=depth), re.MULTILINE)
    assert edges
    assert all(start in drawn and end in drawn and start != end for start, end in edges)


def test_svg_is_an_element_that_shows_names() -> None:
    element = ElementTree.fromstring(network().to_svg(fetches=["loss"]))  # noqa: S314 - our own
    assert element.tag.endswith("svg")
    texts = {each.text for each in element.iter() if each.tag.endswith("}text")}
    assert {"first/", "x", "Placeholder"} <= texts


def test_notebooks_show_pictures_of_readable_graphs_and_tables_of_others() -> None:
    assert "<svg" in network()._repr_html_()
    with tf.Graph().as_default() as graph:
        assert "<svg" not in graph._repr_html_()
        for _ in range(100):
            tf.constant(1.0)
    assert "<svg" not in graph._repr_html_()
    assert "<table>" in graph._repr_html_()


def test_what_cannot_be_drawn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="unknown format of a picture"):
        render("digraph {}", "exe")
    with pytest.raises(ValueError, match="could not draw the graph"):
        render("digraph {", "svg")
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    with pytest.raises(ImportError, match=r"estimatorkit\[plot\]"):
        network().to_svg()
