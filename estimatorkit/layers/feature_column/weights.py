"""Variables of columns: created in the layer's scope, or kept by a layer object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from estimatorkit.core.dtypes import float32
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.ops.variables.variable_scope import (
    VariableScope,
    get_variable,
    get_variable_scope,
    variable_scope,
)

if TYPE_CHECKING:
    from estimatorkit.layers.feature_column.columns import FeatureColumn


class State:
    """TensorFlow's state manager of a layer: makes columns' variables, and knows them.

    Args:
        make: `WeightMaker.make`.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._made: dict[tuple[Any, str], Any] = {}

    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        """A new float32 variable of a column; `dtype` and `use_resource` are ignored.

        Raises:
            ValueError: the column has one of this name.
        """
        if (feature_column, name) in self._made:
            raise ValueError("Variable already exists.")
        made = self._make(feature_column, name, shape, initializer, trainable)
        self._made[feature_column, name] = made
        return made

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """The variable that `create_variable` made.

        Raises:
            ValueError: it has made none of this name.
        """
        if (feature_column, name) not in self._made:
            raise ValueError(f"Could not find variable: {name} of column {feature_column.name}")
        return self._made[feature_column, name]


class WeightMaker:
    """Creates columns' variables by `get_variable` in the current scope.

    Args:
        collections: the variables' collections in addition to GLOBAL_VARIABLES.
        trainable: False makes no variable trainable; True leaves it to the column.
        shared_scope: the scope of tables that `shared_embeddings` share; by default outside all
            scopes, as in TensorFlow's estimators.
    """

    def __init__(
        self,
        collections: Sequence[str] = (),
        trainable: bool = True,
        shared_scope: VariableScope | None = None,
    ) -> None:
        self._collections = list(dict.fromkeys([GraphKeys.GLOBAL_VARIABLES, *collections]))
        self._trainable = trainable
        self._shared_scope = shared_scope or VariableScope()
        self.state = State(self.make)

    @property
    def collections(self) -> list[str]:
        """The collections that take the variables."""
        return self._collections

    @property
    def trainable(self) -> bool:
        """Whether variables may be trainable."""
        return self._trainable

    def make(
        self,
        column: FeatureColumn,
        name: str,
        shape: Sequence[int],
        initializer: Any,
        trainable: bool = True,
    ) -> Any:
        """A variable, or a `PartitionedVariable` where the scope has a partitioner.

        Args:
            column: whose it is.
            name: its name in the current scope.
            shape: its shape.
            initializer: an initializer.
            trainable: whether it is trainable where the layer is.
        """
        return get_variable(
            name,
            list(shape),
            float32,
            initializer,
            trainable=self._trainable and trainable,
            collections=self._collections,
        )

    def make_shared(
        self,
        column: FeatureColumn,
        name: str,
        shape: Sequence[int],
        initializer: Any,
        trainable: bool = True,
    ) -> Any:
        """A variable that several columns share by its name, outside the layer's scope.

        It has the partitioner of that scope.
        """
        cut = get_variable_scope().partitioner
        with variable_scope(self._shared_scope, auxiliary_name_scope=False, partitioner=cut):
            return self.make(column, name, shape, initializer, trainable)

    def shared(self, name: str, make: Callable[[], Any]) -> Any:
        """A table that several columns of the graph share, made by the first of them.

        Args:
            name: the table's.
            make: makes it.
        """
        return shared_by_graph(name, make)


def variables_of(value: Any) -> list[Any]:
    """A variable, or its partitions, as a list."""
    from estimatorkit.ops.variables.partitioned_variables import PartitionedVariable

    return list(value) if isinstance(value, PartitionedVariable) else [value]


def shared_by_graph(name: str, make: Callable[[], Any]) -> Any:
    """The item in the graph's collection `name`, created if the collection is empty.

    Args:
        name: the collection.
        make: a function without arguments.
    """
    held = get_default_graph().get_collection_ref(name)
    if not held:
        held.append(make())
    return held[0]


def notes_of_graph(graph: Graph | None = None) -> dict[str, Any]:
    """What feature columns remember of a graph, in memory only: by name, a dict each.

    Args:
        graph: the graph; the default one by default.
    """
    owner = get_default_graph() if graph is None else graph
    notes: dict[str, Any] = vars(owner).setdefault("_feature_column_notes", {})
    return notes


def remember_tensor(column: FeatureColumn, tensor: Any) -> None:
    """Records the tensor `(batch, n)` by which a column enters a layer."""
    notes_of_graph().setdefault("tensors", {})[tensor.name] = column, tensor


def remember_columns(columns: Iterable[FeatureColumn]) -> None:
    """Remembers that a layer of the default graph reads these."""
    notes_of_graph().setdefault("columns", {}).update(dict.fromkeys(columns))


def remembered_columns(graph: Graph) -> list[FeatureColumn]:
    """The columns that layers of a graph read, in the order in which they were made."""
    return [*notes_of_graph(graph).get("columns", ())]


class LayerState(State):
    """A state manager by hand (`feature_column_v2._StateManagerImpl`).

    Args:
        layer: accepted for compatibility only: variables are those of the current scope.
        trainable: whether they may be trainable.
    """

    def __init__(self, layer: Any, trainable: bool) -> None:
        super().__init__(WeightMaker((), trainable).make)
