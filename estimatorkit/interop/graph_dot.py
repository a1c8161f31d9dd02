"""Graphs in Graphviz's DOT language: a cluster per name scope, an edge per tensor."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from estimatorkit.core.function_graph import ancestors
from estimatorkit.core.graph import Graph
from estimatorkit.core.nest import flatten
from estimatorkit.core.tensor import Operation, as_operation
from estimatorkit.html import html_table
from estimatorkit.interop.graphviz import render

MOST_NODES = 40
"""More in one picture are hard to read: scopes are closed until there are fewer."""

_PRUNED = " color=gray fontcolor=gray"


@dataclass
class _Scope:
    """The nodes and scopes directly in a name scope, by the last part of their names."""

    nodes: dict[str, list[Operation]] = field(default_factory=dict)
    scopes: dict[str, _Scope] = field(default_factory=dict)


def dot_of(graph: Graph, fetches: Any = None, depth: int | None = None) -> str:
    """Converts a graph to the DOT language.

    Nodes show name and type, edges the static shape, unless scalar; control edges are dotted.

    Args:
        graph: the graph.
        fetches: what a run would fetch, as for `Session.run`: operations that it would prune are
            gray. None: nothing is.
        depth: scopes below this many are drawn as one node, with their commonest operations.
            None: all scopes are open.
    """
    ops = graph.get_operations()
    needed = set(ops)
    if fetches is not None:
        fetched = map(graph.as_graph_element, flatten(fetches))
        needed = ancestors(map(as_operation, fetched))
    root = _Scope()
    for op in ops:
        *path, last = op.name.split("/")
        if depth is not None and len(path) > depth:
            path, last = path[:depth], path[depth] + "/"
        scope = root
        for part in path:
            scope = scope.scopes.setdefault(part, _Scope())
        scope.nodes.setdefault(last, []).append(op)
    lines = ["digraph {", "  rankdir=BT;", "  node [shape=box];"]
    lines.extend(_of_scope(root, "", "  ", needed))
    lines.extend(_edges(ops, depth, needed))
    return "\n".join([*lines, "}"]) + "\n"


def svg_of(graph: Graph, fetches: Any = None, depth: int | None = None) -> str:
    """Draws a graph as an SVG element.

    Args:
        graph: the graph.
        fetches: what a run would fetch; other operations are gray (see `dot_of`).
        depth: how deep scopes are open (see `dot_of`). None: as deep as is readable.

    Raises:
        ImportError: pygraphviz (extra `plot`) is not installed.
    """
    depth = _readable_depth(graph) if depth is None else depth
    drawn = render(dot_of(graph, fetches, depth), "svg").decode()
    element = drawn[drawn.index("<svg") :]  # without the heads of a file
    return element.replace("<svg", '<svg style="max-width: 100%; height: auto"', 1)


def html_of(graph: Graph) -> str:
    """What a notebook shows: the picture, or a table where it can't be drawn or is too large."""
    ops = graph.get_operations()
    counts = Counter(op.type for op in ops).most_common()
    table = html_table(("type", "operations"), counts, repr(graph))
    large = len({_node(op, _readable_depth(graph)) for op in ops}) > 2 * MOST_NODES
    if not ops or large or importlib.util.find_spec("pygraphviz") is None:
        return table
    return f"{svg_of(graph)}<details><summary>{escape(repr(graph))}</summary>{table}</details>"


def _readable_depth(graph: Graph) -> int:
    """The largest `depth` of `dot_of` with at most `MOST_NODES` nodes, or else 0."""
    ops = graph.get_operations()
    deepest = max((op.name.count("/") for op in ops), default=0)
    depths = range(deepest, 0, -1)
    return next((d for d in depths if len({_node(op, d) for op in ops}) <= MOST_NODES), 0)


def _node(op: Operation, depth: int | None) -> str:
    """The node that shows an operation: its own, or that of a closed scope around it."""
    path = op.name.split("/")
    if depth is None or len(path) - 1 <= depth:
        return op.name
    return "/".join(path[: depth + 1]) + "/"


def _edges(
    ops: Sequence[Operation], depth: int | None, needed: Collection[Operation]
) -> Iterator[str]:
    shapes: dict[tuple[str, str], set[str]] = {}
    control: dict[tuple[str, str], None] = {}
    lit: set[tuple[str, str]] = set()
    for op in ops:
        to = _node(op, depth)
        data = [(_node(tensor.op, depth), to) for tensor in op.inputs]
        for edge, tensor in zip(data, op.inputs, strict=True):
            shapes.setdefault(edge, set()).add(str(tensor.shape))
        before = [(_node(each, depth), to) for each in op.control_inputs]
        control.update(dict.fromkeys(before))
        if op in needed:
            lit.update(data, before)
    drawn: dict[tuple[str, str], list[str]] = {}
    for edge, texts in shapes.items():
        label = texts.pop() if len(texts) == 1 else f"{len(texts)} shapes"
        drawn[edge] = [f"label={_quoted(label)}"] if label != "()" else []
    for edge in control:
        drawn.setdefault(edge, ["style=dotted"])
    for edge, settings in drawn.items():
        start, end = map(_quoted, edge)
        if edge[0] != edge[1]:  # within a closed scope
            style = " ".join(settings) + ("" if edge in lit else _PRUNED)
            yield f"  {start} -> {end} [{style}];"


def _of_scope(
    scope: _Scope, prefix: str, indent: str, needed: Collection[Operation]
) -> Iterator[str]:
    for last, ops in scope.nodes.items():
        text = f"{last}\n{ops[0].type}"
        if last.endswith("/"):
            kinds = Counter(op.type for op in ops).most_common(3)
            text = "\n".join([last, *(f"{count} {kind}" for kind, count in kinds)])
        style = "" if any(op in needed for op in ops) else _PRUNED
        yield f"{indent}{_quoted(prefix + last)} [label={_quoted(text)}{style}];"
    for part, inner in scope.scopes.items():
        name = f"{prefix}{part}"
        yield f"{indent}subgraph {_quoted('cluster_' + name)} {{"
        yield f"{indent}  label={_quoted(part)};"
        yield from _of_scope(inner, f"{name}/", f"{indent}  ", needed)
        yield f"{indent}}}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
