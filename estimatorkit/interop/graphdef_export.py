"""Export of graphs to `GraphDef`s of TensorFlow's node types.

The inverse of `graphdef_tensorflow`. Operations without a rule in `graphdef_export_rules`
(gradients, optimizers) are omitted with all that depends on them.
"""

from __future__ import annotations

from estimatorkit.core.graph import Graph
from estimatorkit.interop.graphdef_export_rules import RULES
from estimatorkit.interop.graphdef_writer import Exported, Scope, write


def export_graph(graph: Graph) -> Exported:
    """Exports a graph, without operations that have no rule."""
    operations = graph.get_operations()
    tables = {
        op.attrs["shared_name"] or op.name: op.name
        for op in operations
        if op.type in ("HashTableV2", "MutableHashTableV2")
    }
    made = Exported()
    write(operations, made, Scope("", tables, {op.name for op in operations}, RULES))
    return made
