"""`indicator_column`: a dense column of id counts (multi-hot)."""

from __future__ import annotations

from dataclasses import dataclass

from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.column_values import Ids, Sequence
from estimatorkit.layers.feature_column.columns import (
    CategoricalColumn,
    DenseColumn,
    OfColumn,
    SequenceDenseColumn,
)
from estimatorkit.layers.feature_column.features import Features
from estimatorkit.layers.feature_column.sequence import (
    check_no_sequence,
    check_sequence,
    sequence_length_of,
)
from estimatorkit.layers.feature_column.weights import WeightMaker
from estimatorkit.ops.array import array, indexing
from estimatorkit.ops.math import reduce


@dataclass(frozen=True)
class IndicatorColumn(OfColumn, DenseColumn, SequenceDenseColumn):
    """See `indicator_column`."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        """The categorical column's name and '_indicator'."""
        return f"{self.categorical_column.name}_indicator"

    @property
    def variable_shape(self) -> TensorShape:
        """`(1, num_buckets)`, as TensorFlow has it."""
        return TensorShape([1, self.categorical_column.num_buckets])

    def transform(self, features: Features) -> Tensor:
        """float32 `(..., num_buckets)`: the count of each id, or the sum of its weights."""
        ids, weights = features.transformed(self.categorical_column)
        depth = self.categorical_column.num_buckets
        if weights is None and ids.shape.rank and ids.shape[-1] == 1:
            return indexing.one_hot(array.squeeze(ids, [-1]), depth, 1.0, 0.0)
        hot = indexing.one_hot(ids, depth, 1.0, 0.0)
        if weights is not None:
            hot = hot * array.expand_dims(weights, -1)
        return reduce.reduce_sum(hot, -2)

    def dense_tensor(self, features: Features, weights: WeightMaker) -> Tensor:
        """float32 `(batch, num_buckets)`."""
        check_no_sequence("indicator_column", self.name, self.categorical_column)
        counts: Tensor = features.transformed(self)
        return counts

    def sequence(self, features: Features, weights: WeightMaker) -> Sequence:
        """float32 `(batch, steps, num_buckets)` and the lengths."""
        check_sequence("indicator_column", self.name, self.categorical_column)
        ids: Ids = features.transformed(self.categorical_column)
        return Sequence(features.transformed(self), sequence_length_of(ids))


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """A dense column with the count of each id of a categorical column (multi-hot).

    Args:
        categorical_column: the column of ids; its weights, if any, are summed.

    Raises:
        ValueError: it is not a categorical column.
    """
    if not isinstance(categorical_column, CategoricalColumn):
        raise ValueError(
            "Unsupported input type. Input must be a CategoricalColumn. "
            f"Given: {categorical_column}"
        )
    return IndicatorColumn(categorical_column)
