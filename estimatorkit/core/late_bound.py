"""Modules of later folders whose functions the methods of the core's classes call.

The core imports nothing that is built on it. Where a method needs a later folder (`x + y` makes an
`AddV2`, `graph.as_graph_def()` a proto), it calls a function of one of these modules, which is
imported at the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimatorkit.lazy import LazyFunctions

if TYPE_CHECKING:
    from estimatorkit.core import graph_dot, graph_util, graphdef, variable_updates
    from estimatorkit.core.ops import all_ops, gather_nd, indexing
else:
    all_ops = LazyFunctions("estimatorkit.core.ops.all_ops")
    gather_nd = LazyFunctions("estimatorkit.core.ops.gather_nd")
    graph_dot = LazyFunctions("estimatorkit.core.graph_dot")
    graph_util = LazyFunctions("estimatorkit.core.graph_util")
    graphdef = LazyFunctions("estimatorkit.core.graphdef")
    indexing = LazyFunctions("estimatorkit.core.ops.indexing")
    variable_updates = LazyFunctions("estimatorkit.core.variable_updates")

__all__ = [
    "all_ops",
    "gather_nd",
    "graph_dot",
    "graph_util",
    "graphdef",
    "indexing",
    "variable_updates",
]
