"""Embedding columns, with their own or shared tables."""

from __future__ import annotations

from collections.abc import Sequence as Series
from dataclasses import dataclass, field
from typing import Any

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.arguments import arguments_of
from estimatorkit.layers.feature_column.categorical import WeightedColumn
from estimatorkit.layers.feature_column.column_values import Ids, Sequence
from estimatorkit.layers.feature_column.columns import (
    CategoricalColumn,
    DenseColumn,
    OfColumn,
    SequenceDenseColumn,
)
from estimatorkit.layers.feature_column.embedding_table import EmbeddingTable
from estimatorkit.layers.feature_column.features import Features
from estimatorkit.layers.feature_column.sequence import (
    SequenceCategoricalColumn,
    check_no_sequence,
    check_sequence,
    sequence_length_of,
)
from estimatorkit.layers.feature_column.tables import COMBINERS, Table, combined_rows
from estimatorkit.layers.feature_column.weights import WeightMaker
from estimatorkit.ops.linalg.products import tensordot


class _Embedding(OfColumn, DenseColumn, SequenceDenseColumn):
    """The base class of embedding columns."""

    categorical_column: CategoricalColumn
    combiner: str
    max_norm: float | None

    def transform(self, features: Features) -> Ids:
        """The categorical column's ids."""
        ids: Ids = features.transformed(self.categorical_column)
        return ids

    def plain(self, features: Features) -> Any:
        """The values of the categorical column."""
        return features.get(self.categorical_column)

    def _table(self, weights: WeightMaker) -> Any:
        """The embedding table."""
        raise NotImplementedError

    def make_variables(self, weights: WeightMaker) -> None:
        """Creates the table."""
        self._table(weights)

    def _looked_up(self, features: Features, weights: WeightMaker) -> Tensor:
        ids: Ids = features.transformed(self)
        return combined_rows(self._table(weights), ids, self.combiner, self.max_norm)

    def dense_tensor(self, features: Features, weights: WeightMaker) -> Tensor:
        """float32 `(batch, dimension)`."""
        check_no_sequence("embedding_column", self.name, self.categorical_column)
        return self._looked_up(features, weights)

    def sequence(self, features: Features, weights: WeightMaker) -> Sequence:
        """float32 `(batch, steps, dimension)` and the lengths."""
        check_sequence("embedding_column", self.name, self.categorical_column)
        ids: Ids = features.transformed(self)
        return Sequence(self._looked_up(features, weights), sequence_length_of(ids))


@dataclass(frozen=True)
class EmbeddingColumn(_Embedding):
    """See `embedding_column`."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str = "mean"
    initializer: Any = None
    ckpt_to_load_from: str | None = None
    tensor_name_in_ckpt: str | None = None
    max_norm: float | None = None
    trainable: bool = True
    use_safe_embedding_lookup: bool = True

    @property
    def name(self) -> str:
        """The categorical column's name and '_embedding'."""
        return f"{self.categorical_column.name}_embedding"

    @property
    def variable_shape(self) -> TensorShape:
        """`(dimension,)`."""
        return TensorShape([self.dimension])

    def _table(self, weights: WeightMaker) -> Any:
        table = Table(
            self.categorical_column.num_buckets,
            self.dimension,
            self.initializer,
            self.ckpt_to_load_from,
            self.tensor_name_in_ckpt,
            self.trainable,
        )
        return table.made_by(weights.make, self, "embedding_weights")


@dataclass(frozen=True)
class TableEmbeddingColumn(EmbeddingColumn):
    """An embedding column with an `EmbeddingTable`."""

    table: EmbeddingTable = field(default_factory=EmbeddingTable)

    packs_ids = False  # slices on the device would separate the ids from their rows on the host

    def _table(self, weights: WeightMaker) -> Any:
        return self.table.made_for(self, weights)

    def _looked_up(self, features: Features, weights: WeightMaker) -> Tensor:
        rows = super()._looked_up(features, weights)
        projection = self._table(weights).projection
        return rows if projection is None else tensordot(rows, projection, 1)


@dataclass(frozen=True)
class SharedEmbeddingColumn(_Embedding):
    """See `shared_embedding_columns` and `shared_embeddings`.

    Attributes:
        shared_name: the table's name.
        outside: whether the variable has exactly that name (`shared_embeddings`), or is
            `<shared name>/embedding_weights` in the layer (`shared_embedding_columns`).
    """

    categorical_column: CategoricalColumn
    table: Table
    shared_name: str
    combiner: str
    max_norm: float | None
    use_safe_embedding_lookup: bool
    outside: bool

    @property
    def dimension(self) -> int:
        """The length of the vectors."""
        return self.table.dimension

    @property
    def initializer(self) -> Any:
        """The initializer of the table."""
        return self.table.initializer

    @property
    def ckpt_to_load_from(self) -> Any:
        """The checkpoint to initialize the table from, or None."""
        return self.table.ckpt_to_load_from

    @property
    def tensor_name_in_ckpt(self) -> str | None:
        """The tensor's name there."""
        return self.table.tensor_name_in_ckpt

    @property
    def trainable(self) -> bool:
        """Whether the table is trainable."""
        return self.table.trainable

    @property
    def shared_embedding_collection_name(self) -> str:
        """The table's name."""
        return self.shared_name

    @property
    def name(self) -> str:
        """The categorical column's name and '_shared_embedding'."""
        return f"{self.categorical_column.name}_shared_embedding"

    @property
    def scope_name(self) -> str:
        """The table's name, so that its variable is there; or the column's."""
        return self.name if self.outside else self.shared_name

    @property
    def variable_shape(self) -> TensorShape:
        """`(dimension,)`."""
        return TensorShape([self.table.dimension])

    def _table(self, weights: WeightMaker) -> Any:
        def made() -> Any:
            if self.outside:
                return self.table.made_by(weights.make_shared, self, self.shared_name)
            return self.table.made_by(weights.make, self, "embedding_weights")

        variable = weights.shared(self.shared_name, made)
        if list(variable.shape) != list(self.table.shape):
            raise value_error(
                "Shared embedding collection "
                f"{self.shared_name} contains a variable of a different shape",
                expected=list(self.table.shape),
                received=f"{variable.name} {variable.shape}",
                hint="use another shared_embedding_collection_name",
            )
        return variable


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
    *,
    table: EmbeddingTable | None = None,
) -> EmbeddingColumn:
    """A dense column of trainable vectors for the ids of a categorical column.

    Args:
        categorical_column: the column of ids.
        dimension: the length of the vectors.
        combiner: how to combine several ids of an example: 'mean' (default), 'sqrtn' or 'sum'.
        initializer: the initializer of the table `(num_buckets, dimension)`; by default truncated
            normal with standard deviation 1 / sqrt(dimension).
        ckpt_to_load_from: a checkpoint, or a folder of checkpoints, to initialize the table from.
        tensor_name_in_ckpt: the tensor's name there.
        max_norm: clip vectors to this L2 norm; None (default) for no clipping.
        trainable: whether the table is trainable; True by default.
        use_safe_embedding_lookup: accepted for compatibility only; examples without ids always
            yield zeros.
        table: the table, where it is more than a variable with a row for each id: see
            `EmbeddingTable`. Not in TensorFlow.

    Raises:
        ValueError: an argument is invalid, or is also one of `table`.
    """
    if table is not None:
        _check_own_table(table, initializer, ckpt_to_load_from, trainable)
    _check_table(dimension, ckpt_to_load_from, tensor_name_in_ckpt)
    _check_categorical("embedding_column", categorical_column)
    if initializer is not None and not callable(initializer):
        raise ValueError(
            "initializer must be callable if specified. "
            f"Embedding of column_name: {categorical_column.name}"
        )
    _check_combiner(combiner)
    arguments = (
        categorical_column,
        int(dimension),
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        bool(trainable),
        bool(use_safe_embedding_lookup),
    )
    return EmbeddingColumn(*arguments) if table is None else TableEmbeddingColumn(*arguments, table)


def _check_own_table(table: Any, initializer: Any, checkpoint: Any, trainable: bool) -> None:
    if not isinstance(table, EmbeddingTable):
        raise value_error(
            "table must be an EmbeddingTable", received=f"{table!r} of type {type(table).__name__}"
        )
    if initializer is not None or checkpoint is not None or not trainable:
        raise value_error(
            "the table says how its rows start and whether they are trained",
            expected="initializer and trainable as arguments of EmbeddingTable",
            received="initializer, ckpt_to_load_from or trainable beside table",
        )


def _check_table(dimension: Any, checkpoint: Any, tensor_name: Any) -> None:
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (checkpoint is None) != (tensor_name is None):
        raise ValueError(
            "Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."
        )


def _check_categorical(who: str, column: Any) -> None:
    if not isinstance(column, CategoricalColumn):
        raise value_error(
            f"{who} needs a categorical column",
            expected="a categorical_column_with_*, bucketized_column or crossed_column",
            received=repr(column)[:200],
        )


def _check_combiner(combiner: Any) -> None:
    if combiner not in COMBINERS:
        raise value_error(
            "combiner must be one of 'mean', 'sqrtn' or 'sum'",
            received=repr(combiner),
            hint=did_you_mean(str(combiner), COMBINERS),
        )


def shared_embedding_columns(
    categorical_columns: Series[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
) -> list[SharedEmbeddingColumn]:
    """Embedding columns that share one table, `<layer>/<shared name>/embedding_weights`.

    Args:
        categorical_columns: columns of the same kind and number of ids.
        shared_embedding_collection_name: the shared name; by default the sorted columns' names
            and '_shared_embedding'.
        dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm,
            trainable, use_safe_embedding_lookup: see `embedding_column`.

    Returns:
        A column for each, in order.

    Raises:
        ValueError: an argument is invalid, or the columns differ.
    """
    return _shared(
        categorical_columns,
        dimension,
        combiner,
        initializer,
        shared_embedding_collection_name,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
        use_safe_embedding_lookup,
        outside=False,
    )


@arguments_of(shared_embedding_columns)
def shared_embeddings(**given: Any) -> list[SharedEmbeddingColumn]:
    """`shared_embedding_columns` of TensorFlow 2: the table is the variable `<shared name>`.

    Difference from TensorFlow: `input_layer` and `linear_model` support them as well.
    """
    return _shared(*given.values(), outside=True)


def _shared(
    columns: Series[CategoricalColumn],
    dimension: int,
    combiner: str,
    initializer: Any,
    shared_name: str | None,
    checkpoint: Any,
    tensor_name: str | None,
    max_norm: float | None,
    trainable: bool,
    safe: bool,
    *,
    outside: bool,
) -> list[SharedEmbeddingColumn]:
    _check_table(dimension, checkpoint, tensor_name)
    if initializer is not None and not callable(initializer):
        raise ValueError("initializer must be callable if specified.")
    _check_combiner(combiner)
    ordered = sorted(columns, key=lambda column: column.name)
    first = ordered[0]
    for column in ordered:
        if not isinstance(column, CategoricalColumn):
            raise ValueError(
                "All categorical_columns must be subclasses of CategoricalColumn. "
                f"Given: {column}, of type: {type(column)}"
            )
        one, other = _innermost(first), _innermost(column)
        if not isinstance(other, type(one)):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same type, "
                "or be weighted_categorical_column or sequence column of the same type. Given "
                f"column: {one} of type: {type(one)} does not match given column: {other} of "
                f"type: {type(other)}"
            )
        if column.num_buckets != first.num_buckets:
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same "
                f"number of buckets. Given column: {first} with buckets: {first.num_buckets} does  "
                f"not match column: {column} with buckets: {column.num_buckets}"
            )
    name = shared_name or f"{'_'.join(column.name for column in ordered)}_shared_embedding"
    table = Table(
        first.num_buckets, int(dimension), initializer, checkpoint, tensor_name, bool(trainable)
    )
    return [
        SharedEmbeddingColumn(column, table, name, combiner, max_norm, bool(safe), outside)
        for column in columns
    ]


def _innermost(column: CategoricalColumn) -> CategoricalColumn:
    while isinstance(column, (WeightedColumn, SequenceCategoricalColumn)):
        column = column.categorical_column
    return column
