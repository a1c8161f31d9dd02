"""Columns of sequences: one or several values per step, with a length per example.

`sequence_input_layer` and `SequenceFeatures` use them. A sparse feature `(batch, steps)` has a
value per step, `(batch, steps, n)` up to n; in dense features '' and -1 are missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import DType, as_dtype, float32, int64, string
from estimatorkit.core.errors import type_error
from estimatorkit.core.registry import output
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.categorical import (
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
)
from estimatorkit.layers.feature_column.column_values import Ids, Sequence
from estimatorkit.layers.feature_column.columns import (
    CategoricalColumn,
    OfColumn,
    OfFeature,
    SequenceDenseColumn,
)
from estimatorkit.layers.feature_column.features import Features
from estimatorkit.layers.feature_column.numeric import (
    Normalizer,
    check_normalizer,
    check_numbers,
    checked_shape,
)
from estimatorkit.layers.feature_column.protocol import IdsAndWeights
from estimatorkit.layers.feature_column.vocabulary import (
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
)
from estimatorkit.layers.feature_column.weights import WeightMaker
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.parsing.parsing import VarLenFeature
from estimatorkit.ops.sparse.shapes import sparse_reshape
from estimatorkit.ops.sparse.sparse import sparse_tensor_to_dense
from estimatorkit.ops.tables.feature_ids import ABSENT


@dataclass(frozen=True)
class SequenceCategoricalColumn(OfColumn, CategoricalColumn):
    """See `sequence_categorical_column_with_identity` and its neighbours."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        """As for the wrapped column."""
        return self.categorical_column.name

    @property
    def num_buckets(self) -> int:
        """As for the wrapped column."""
        return self.categorical_column.num_buckets

    def transform(self, features: Features) -> Ids:
        """The ids, `(batch, steps, width)`."""
        return self.categorical_column.transform_steps(features)

    def plain(self, features: Features) -> Any:
        """The values of the categorical column."""
        return features.get(self.categorical_column)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdsAndWeights:
        """The ids and weights of each step, of rank 3."""
        found = self.categorical_column.get_sparse_tensors(transformation_cache, state_manager)
        return IdsAndWeights(*(None if each is None else _by_step(each) for each in found))


def _by_step(sparse: SparseTensor) -> SparseTensor:
    if sparse.shape.rank == 3:
        return sparse
    shape = sparse.dense_shape
    width = reduce.reduce_prod(shape[2:])  # 1 without a third dimension; no -1: a step may be empty
    return sparse_reshape(sparse, joining.stack([shape[0], shape[1], width]))


def sequence_length_of(ids: Ids) -> Tensor:
    """The number of steps up to the last with a value: int64 `(batch,)`."""
    there = reduce.reduce_any(elementwise.not_equal(ids.ids, np.int64(ABSENT)), -1)
    steps = filling.range_(elementwise.cast(array.shape(there)[1], int64))
    ends = indexing.where(there, array.expand_dims(steps + np.int64(1), 0), np.int64(0))
    # Without any step there is no maximum.
    return elementwise.maximum(reduce.reduce_max(ends, 1), np.int64(0))


def check_no_sequence(who: str, name: str, column: CategoricalColumn) -> None:
    """Raises ValueError if a non-sequence column has a sequence column as its source."""
    if isinstance(column, SequenceCategoricalColumn):
        raise ValueError(
            f"In {who}: {name}. categorical_column must not be of type SequenceCategoricalColumn. "
            "Suggested fix A: If you wish to use DenseFeatures, use a non-sequence "
            "categorical_column_with_*. Suggested fix B: If you wish to create sequence input, "
            f"use SequenceFeatures instead of DenseFeatures. Given (type {type(column)}): {column}"
        )


def check_sequence(who: str, name: str, column: CategoricalColumn) -> None:
    """Raises ValueError if a sequence column has a non-sequence column as its source."""
    if not isinstance(column, SequenceCategoricalColumn):
        raise ValueError(
            f"In {who}: {name}. categorical_column must be of type SequenceCategoricalColumn to "
            "use SequenceFeatures. Suggested fix: Use one of sequence_categorical_column_with_*. "
            f"Given (type {type(column)}): {column}"
        )


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> SequenceCategoricalColumn:
    """Sequences of `categorical_column_with_identity`."""
    return SequenceCategoricalColumn(
        categorical_column_with_identity(key, num_buckets, default_value)
    )


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = string
) -> SequenceCategoricalColumn:
    """Sequences of `categorical_column_with_hash_bucket`."""
    return SequenceCategoricalColumn(
        categorical_column_with_hash_bucket(key, hash_bucket_size, dtype)
    )


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: int | None = None,
    num_oov_buckets: int | None = 0,
    default_value: int | None = None,
    dtype: Any = string,
) -> SequenceCategoricalColumn:
    """Sequences of `categorical_column_with_vocabulary_file`."""
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
        )
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Any,
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> SequenceCategoricalColumn:
    """Sequences of `categorical_column_with_vocabulary_list`."""
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_list(
            key, vocabulary_list, dtype, default_value, num_oov_buckets
        )
    )


@dataclass(frozen=True)
class SequenceNumericColumn(OfFeature, SequenceDenseColumn):
    """See `sequence_numeric_column`."""

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: DType
    normalizer_fn: Normalizer | None

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A `VarLenFeature` under the key."""
        return {self.key: VarLenFeature(self.dtype)}

    @property
    def variable_shape(self) -> TensorShape:
        """`shape`."""
        return TensorShape(self.shape)

    def transform(self, features: Features) -> SparseTensor:
        """The normalized feature.

        Raises:
            TypeError: it is dense.
        """
        raw = features.raw(self.key, f"sequence_numeric_column({self.key!r})")
        found: Any = raw.value
        if not isinstance(found, SparseTensor):
            raise type_error(
                "Input must be a SparseTensor",
                expected=f"a sparse feature {self.key!r} for sequence_numeric_column",
                received=raw.described(),
                made_at=found.op.source,
                hint="use io.VarLenFeature, or sparse.from_dense in input_fn",
            )
        return found if self.normalizer_fn is None else self.normalizer_fn(found)  # type: ignore[arg-type,return-value]

    def sequence(self, features: Features, weights: WeightMaker) -> Sequence:
        """float32 `(batch, steps, *shape)` and the lengths."""
        sparse: SparseTensor = features.transformed(self)
        dense = sparse_tensor_to_dense(sparse, self.default_value)
        shape = joining.stack([array.shape(dense)[0], -1, *self.shape])
        dense = elementwise.cast(array.reshape(dense, shape), float32)
        count = math.prod(self.shape) if sparse.shape.rank == 2 else 1
        inputs = [sparse.indices, sparse.dense_shape]
        length = output("SparseSequenceLengths", inputs, {"num_elements": count}, "sequence_length")
        return Sequence(dense, length)


def sequence_numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: float = 0.0,
    dtype: Any = float32,
    normalizer_fn: Normalizer | None = None,
) -> SequenceNumericColumn:
    """A column of sequences of numbers, from a sparse feature.

    Args:
        key: the feature's key, and the column's name.
        shape: the shape of one step: an int or a tuple of ints; `(1,)` by default.
        default_value: the padding value.
        dtype: the dtype of the values in an `Example`; float32 by default.
        normalizer_fn: a function of the sparse tensor.

    Raises:
        TypeError: a dimension is not an int, or normalizer_fn is not callable.
        ValueError: a dimension is not positive, or dtype is not a number.
    """
    dims = checked_shape(shape, key)
    wanted = as_dtype(dtype)
    check_numbers(wanted, key)
    check_normalizer(normalizer_fn)
    return SequenceNumericColumn(key, dims, default_value, wanted, normalizer_fn)
