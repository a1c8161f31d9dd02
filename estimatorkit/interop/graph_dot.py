"""Graphs in Graphviz's DOT language: a cluster per name scope, an edge per tensor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from estimatorkit.core.graph import Graph
from estimatorkit.core.tensor import Operation


@dataclass
class _Scope:
    """The operations and scopes directly in a name scope, by the last part of their names."""

    operations: dict[str, Operation] = field(default_factory=dict)
    scopes: dict[str, _Scope] = field(default_factory=dict)


def dot_of(graph: Graph) -> str:
    """Converts a graph to the DOT language.

    Nodes show name and type, edges the static shape; control edges are dotted.
    """
    root = _Scope()
    for op in graph.get_operations():
        *path, last = op.name.split("/")
        scope = root
        for part in path:
            scope = scope.scopes.setdefault(part, _Scope())
        scope.operations[last] = op
    lines = ["digraph {", "  rankdir=BT;", "  node [shape=box];"]
    lines.extend(_of_scope(root, "", "  "))
    for op in graph.get_operations():
        for tensor in op.inputs:
            label = f"[label={_quoted(str(tensor.shape))}]"
            lines.append(f"  {_quoted(tensor.op.name)} -> {_quoted(op.name)} {label};")
        for control in op.control_inputs:
            lines.append(f"  {_quoted(control.name)} -> {_quoted(op.name)} [style=dotted];")
    return "\n".join([*lines, "}"]) + "\n"


def _of_scope(scope: _Scope, prefix: str, indent: str) -> Iterator[str]:
    for last, op in scope.operations.items():
        yield f"{indent}{_quoted(op.name)} [label={_quoted(last + chr(10) + op.type)}];"
    for part, inner in scope.scopes.items():
        name = f"{prefix}{part}"
        yield f"{indent}subgraph {_quoted('cluster_' + name)} {{"
        yield f"{indent}  label={_quoted(part)};"
        yield from _of_scope(inner, f"{name}/", f"{indent}  ")
        yield f"{indent}}}"


def _quoted(text: str) -> str:
    return json.dumps(text)
