"""Ports: functions of later folders that methods of the core's classes call.

The core imports nothing that is built on it. Where a method needs a later folder (`x + y` makes an
`AddV2`, `graph.as_graph_def()` a proto), it calls a port, and `estimatorkit.wiring` says which
module has the function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from estimatorkit.lazy import Port

if TYPE_CHECKING:
    from estimatorkit.core.graph import Graph
    from estimatorkit.core.tensor import Operation, Tensor
    from estimatorkit.core.variables import Variable


class _Ops(Protocol):
    def load(self) -> None:
        """Registers the ops of `ops`."""

    def operate(self, name: str, *operands: Any) -> Any:
        """Applies Python's operator `name` ('add', 'getitem', ...) to tensors."""


class _OpTypes(Protocol):
    def load(self) -> None:
        """Calls `registry.add_ops` for the modules of later folders."""


class _Indexing(Protocol):
    def gather(
        self,
        params: Any,
        indices: Any,
        validate_indices: bool | None = None,
        name: str | None = None,
    ) -> Tensor:
        """The rows of `params` at `indices`."""


class _GatherNd(Protocol):
    def gather_nd(self, params: Any, indices: Any, name: str | None = None) -> Tensor:
        """The slices of `params` at n-dimensional `indices`."""


class _VariableUpdates(Protocol):
    def scatter(
        self, kind: str, variable: Variable, indices: Any, updates: Any, name: str | None
    ) -> Tensor:
        """The operation that updates a variable at `indices`."""

    def scatter_rows(self, kind: str, variable: Variable, rows: Any, name: str | None) -> Tensor:
        """`scatter` with the indices and values of `IndexedSlices`."""

    def check_rows(self, rows: Any) -> None:
        """Raises TypeError unless `rows` are `IndexedSlices`."""

    def batch_scatter_update(
        self,
        ref: Variable,
        indices: Any,
        updates: Any,
        use_locking: bool = True,
        name: str | None = None,
    ) -> Tensor:
        """Sets elements of a variable, with indices for each row of the batch."""

    def assign_slice(
        self,
        variable: Variable,
        key: Any,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
    ) -> Tensor:
        """Assigns to a slice of a variable."""

    def count_up_to(self, ref: Variable, limit: int, name: str | None = None) -> Tensor:
        """The value before an operation that adds 1."""


class _Replicas(Protocol):
    def over_replicas(self, value: Any, mean: bool = False) -> Any:
        """The sum or mean of a tensor over all replicas."""


class _GraphDefs(Protocol):
    def graph_def_of(
        self, graph: Graph, from_version: int | None = None, add_shapes: bool = False
    ) -> Any:
        """The `GraphDef` of a graph."""

    def node_def_of(self, op: Operation) -> Any:
        """The `NodeDef` of an operation."""


class _SubGraphs(Protocol):
    def extract_sub_graph(self, graph_def: Any, dest_nodes: Any) -> Any:
        """The part of a `GraphDef` on which nodes depend."""


class _Dot(Protocol):
    def dot_of(self, graph: Graph, fetches: Any = None, depth: int | None = None) -> str:
        """A graph in the DOT language."""

    def svg_of(self, graph: Graph, fetches: Any = None, depth: int | None = None) -> str:
        """A graph's picture, an element of HTML."""

    def html_of(self, graph: Graph) -> str:
        """What a notebook shows of a graph."""


class _Verification(Protocol):
    def verify(self, graph: Graph, start: int = 0) -> None:
        """Checks that a graph is well formed."""


ops = cast("_Ops", Port("ops"))
op_types = cast("_OpTypes", Port("op_types"))
indexing = cast("_Indexing", Port("indexing"))
gather_nd = cast("_GatherNd", Port("gather_nd"))
variable_updates = cast("_VariableUpdates", Port("variable_updates"))
replica_context = cast("_Replicas", Port("replica_context"))
graphdef = cast("_GraphDefs", Port("graphdef"))
graph_util = cast("_SubGraphs", Port("graph_util"))
graph_dot = cast("_Dot", Port("graph_dot"))
verification = cast("_Verification", Port("verification"))
