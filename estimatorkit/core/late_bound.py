"""Late-bound modules: functions of later folders that methods of the core's classes call.

The core imports nothing that is built on it. Where a method needs a later folder (`x + y` makes an
`AddV2`, `graph.as_graph_def()` a proto), it calls a function of one of these modules, which is
imported at the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimatorkit.lazy import LazyFunctions

if TYPE_CHECKING:
    from estimatorkit.core import verify
    from estimatorkit.distribute import replica_context
    from estimatorkit.interop import graph_dot, graph_util, graphdef
    from estimatorkit.ops import all_ops
    from estimatorkit.ops.array import gather_nd, indexing
    from estimatorkit.ops.variables import variable_updates
else:
    all_ops = LazyFunctions("estimatorkit.ops.all_ops")
    gather_nd = LazyFunctions("estimatorkit.ops.array.gather_nd")
    graph_dot = LazyFunctions("estimatorkit.interop.graph_dot")
    graph_util = LazyFunctions("estimatorkit.interop.graph_util")
    graphdef = LazyFunctions("estimatorkit.interop.graphdef")
    indexing = LazyFunctions("estimatorkit.ops.array.indexing")
    verify = LazyFunctions("estimatorkit.core.verify")
    replica_context = LazyFunctions("estimatorkit.distribute.replica_context")
    variable_updates = LazyFunctions("estimatorkit.ops.variables.variable_updates")

__all__ = ["all_ops", "gather_nd", "graph_dot", "graph_util", "graphdef", "indexing"]
__all__ += ["replica_context", "variable_updates", "verify"]
