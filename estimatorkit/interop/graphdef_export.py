"""Graphs as TensorFlow reads them: `GraphDef`s of TensorFlow's own node types.

The inverse of `graphdef_tensorflow`. What has no rule in `graphdef_export_rules` (gradients,
optimizers) is left out with all that needs it.
"""

from __future__ import annotations

from estimatorkit.core.graph import Graph
from estimatorkit.interop.graphdef_export_rules import RULES
from estimatorkit.interop.graphdef_writer import Exported, Scope, write


def export_graph(graph: Graph) -> Exported:
    """A graph in TensorFlow's node types, but for what has none."""
    operations = graph.get_operations()
    tables = {
        op.attrs["shared_name"] or op.name: op.name for op in operations if op.type == "HashTableV2"
    }
    made = Exported()
    write(operations, made, Scope("", tables, {op.name for op in operations}, RULES))
    return made
