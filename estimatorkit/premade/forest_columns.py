"""Feature columns as the numbers of a row that a forest splits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core.builtin_ops import identity
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.layers.feature_column.categorical import WeightedColumn
from estimatorkit.layers.feature_column.columns import (
    CategoricalColumn,
    FeatureColumn,
    normalize_columns,
)
from estimatorkit.layers.feature_column.features import Features
from estimatorkit.layers.feature_column.indicator import IndicatorColumn
from estimatorkit.layers.feature_column.layers import as_features, flat_tensor
from estimatorkit.layers.feature_column.numeric import BucketizedColumn, NumericColumn
from estimatorkit.layers.feature_column.packing import pack
from estimatorkit.layers.feature_column.sequence import SequenceCategoricalColumn
from estimatorkit.layers.feature_column.weights import WeightMaker
from estimatorkit.layers.feature_column.words import HashedWordsColumn
from estimatorkit.ops.array import array, indexing, joining
from estimatorkit.ops.array.filling import zeros_like
from estimatorkit.ops.debug.checks import assert_less_equal
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.train.saving.column_notes import note_columns

_MOST_CATEGORIES = 1 << 24  # float32 has all ids up to it


class ForestColumns:
    """The columns that a forest reads.

    Args:
        feature_columns: see `BoostedTreesClassifier`.

    Attributes:
        names: those of the columns, sorted.
        inputs: how many categories each number of a row has; 0: it is ordered.
        column_of: the column of each number, by its place in `names`.

    Raises:
        ValueError: a column is of another kind.
    """

    def __init__(self, feature_columns: Any) -> None:
        self._columns = normalize_columns(feature_columns)
        self.names = [column.name for column in self._columns]
        self.inputs: list[int] = []
        self.column_of: list[int] = []
        for place, column in enumerate(self._columns):
            found = _inputs_of(column)
            self.inputs += found
            self.column_of += [place] * len(found)

    def rows(self, features: Any, mode: str) -> Tensor:
        """The numbers of a batch, float32 `(batch, len(inputs))`; NaN where one is missing.

        Args:
            features: tensors by key.
            mode: a `ModeKeys`; for PREDICT, an example with several categories has the last.
        """
        note_columns("boosted_trees", self.names)
        read = as_features(features, self._columns)
        pack(read, self._columns)
        parts = [_numbers(_source(column), read, mode) for column in self._columns]
        return parts[0] if len(parts) == 1 else joining.concat(parts, 1)


def _source(column: FeatureColumn) -> FeatureColumn:
    """What a column's numbers are made of: of words, which are many an example, their counts."""
    if isinstance(column, HashedWordsColumn):
        return IndicatorColumn(column)
    if not isinstance(column, IndicatorColumn):
        return column
    inside = column.categorical_column
    return column if isinstance(inside, HashedWordsColumn) else inside


def _inputs_of(column: FeatureColumn) -> Sequence[int]:
    """The categories of a column's numbers."""
    source = _source(column)
    if isinstance(source, NumericColumn):
        return [0] * math.prod(source.shape)
    if isinstance(source, IndicatorColumn):
        return [0] * source.categorical_column.num_buckets
    if isinstance(source, BucketizedColumn):
        return [0] * math.prod(source.source_column.shape)
    if not isinstance(source, CategoricalColumn) or isinstance(
        source, WeightedColumn | SequenceCategoricalColumn
    ):
        raise value_error(
            f"trees cannot split {type(column).__name__} {column.name!r}",
            expected="numeric, bucketized and categorical columns, or indicators of these",
            received=repr(column)[:200],
            hint="give the categorical column itself: trees split sets of categories",
        )
    if source.num_buckets > _MOST_CATEGORIES:
        raise value_error(
            f"{column.name!r} has too many categories",
            expected=f"at most {_MOST_CATEGORIES:,}",
            received=f"{source.num_buckets:,}",
            hint="hash them into fewer buckets",
        )
    return [source.num_buckets]


def _numbers(column: FeatureColumn, features: Features, mode: str) -> Tensor:
    if isinstance(column, NumericColumn | IndicatorColumn):
        return flat_tensor(column, features, WeightMaker())
    if isinstance(column, BucketizedColumn):
        numbers = flat_tensor(column.source_column, features, WeightMaker())
        buckets = elementwise.cast(column.plain(features), float32)
        return indexing.where(elementwise.is_nan(numbers), numbers, buckets)
    return _category(column, features, mode)


def _category(column: Any, features: Features, mode: str) -> Tensor:
    """The id of each example, float32 `(batch, 1)`."""
    ids = features.transformed(column).ids
    if ids.shape[-1] is None:
        ids = reduce.reduce_max(_checked(ids, column) if mode != ModeKeys.PREDICT else ids, -1)
        ids = array.expand_dims(ids, -1)
    elif ids.shape[-1] != 1:
        raise value_error(
            f"trees split one category an example of {column.name!r}",
            expected="a feature (batch,) or (batch, 1)",
            received=f"{ids.shape[-1]} values an example",
            hint="make a feature, and a column, of each value",
        )
    missing = ids < np.int64(0)
    number = elementwise.cast(ids, float32)
    return indexing.where(missing, zeros_like(number) + np.float32("nan"), number)


def _checked(ids: Tensor, column: Any) -> Tensor:
    there = reduce.reduce_sum(elementwise.cast(ids >= np.int64(0), float32), -1)
    message = f"trees split one category an example of {column.name!r}"
    with get_default_graph().control_dependencies([assert_less_equal(there, 1.0, message=message)]):
        return identity(ids)


__all__ = ["ForestColumns"]
