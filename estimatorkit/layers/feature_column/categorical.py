"""Categorical columns of one feature: by identity, by hash, and weighted.

Those by vocabulary are in `vocabulary`. In dense features, '' and -1 are missing values, as in
TensorFlow.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from estimatorkit.core.dtypes import DType, as_dtype, float32, int64, string
from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import lookup, output
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.column_values import Ids
from estimatorkit.layers.feature_column.columns import (
    CategoricalColumn,
    FeatureColumn,
    OfFeature,
    check_key,
)
from estimatorkit.layers.feature_column.features import Features, Raw
from estimatorkit.layers.feature_column.protocol import sparse_ids, sparse_of
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.parsing.parsing import VarLenFeature


class KeyedColumn(OfFeature, CategoricalColumn):
    """A categorical column that maps one feature to ids by a host operation."""

    key: str
    dtype: DType
    factory: ClassVar[str]
    """The function that makes such columns."""

    @property
    @abstractmethod
    def kind(self) -> tuple[str, dict[str, Any]]:
        """The type of the operation (see `ops.tables.feature_ids`) and its attributes."""

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A `VarLenFeature` under the key."""
        return {self.key: VarLenFeature(self.dtype)}

    def described(self) -> str:
        """The column, for error messages."""
        return f"{self.factory}({self.key!r})"

    def check(self, raw: Raw) -> None:
        """Raises ValueError if the feature has a dtype other than the column."""
        if raw.dtype.is_integer != self.dtype.is_integer:
            raise self.misfit(
                raw,
                "Column dtype and SparseTensors dtype must be compatible. "
                f"key: {self.key}, column dtype: <dtype: {self.dtype.name!r}>, "
                f"tensor dtype: <dtype: {raw.dtype.name!r}>",
            )
        if not (raw.dtype.is_integer or raw.dtype is string):
            raise self.misfit(raw, _not_string_or_int(f"{self.key} input_tensor", raw.dtype))

    def misfit(self, raw: Raw, problem: str) -> ValueError:
        """The error for a feature of the wrong dtype."""
        return value_error(
            problem,
            expected=f"{self.described()}: feature {self.key!r} of dtype {self.dtype.name}",
            received=raw.described(),
            made_at=raw.value.op.source,
            hint=self._suggestion(raw.dtype),
        )

    def _suggestion(self, dtype: DType) -> str:
        if dtype.is_integer:
            return "use strings.as_string(values) in input_fn, or dtype=int64 for the column"
        if dtype is string and self.dtype.is_integer:
            return "use strings.to_number(values, int64) in input_fn, or dtype=string"
        return "use numeric_column and bucketized_column for numbers, or cast(values, int64)"

    def transform(self, features: Features) -> Ids:
        """The ids, `(batch, width)`."""
        return Ids(self._ids(features, False))

    def transform_steps(self, features: Features) -> Ids:
        """The ids, `(batch, steps, width)`."""
        return Ids(self._ids(features, True))

    def _ids(self, features: Features, steps: bool) -> Tensor:
        raw = self.checked_raw(features)
        kind, attrs = self.kind
        self.note(attrs)
        return ids_of(raw, kind, attrs, steps=steps)

    def plain(self, features: Features) -> Any:
        """The ids as a `SparseTensor`, with the indices of a sparse feature."""
        raw = self.checked_raw(features)
        sparse = raw.value
        if not isinstance(sparse, SparseTensor):
            return sparse_ids(features.transformed(self).ids)
        # Each value in its own row: rows of ids would lose the positions of empty ones.
        count = array.shape(sparse.values, out_type=int64)
        rows = joining.stack([filling.range_(count[0]), filling.zeros(count, int64)], 1)
        alone = SparseTensor(rows, sparse.values, joining.concat([count, [1]], 0))
        kind, attrs = self.kind
        ids = array.reshape(ids_of(Raw(self.key, alone), kind, attrs), [-1])
        return SparseTensor(sparse.indices, ids, sparse.dense_shape)

    def checked_raw(self, features: Features) -> Raw:
        """The raw feature, after a dtype check."""
        raw = features.raw(self.key, self.described())
        self.check(raw)
        return raw

    def note(self, attrs: Mapping[str, Any]) -> None:
        """Called when an operation with these attributes has been created."""

    def host_ids(self, features: Features) -> Tensor:
        """The ids for host operations."""
        ids = super().host_ids(features)
        on_host = lookup(ids.op.type).placement.where == "host"
        return ids if on_host else self._ids(features, False)  # else a part of what is packed


def ids_of(raw: Raw, kind: str, attrs: dict[str, Any], *, steps: bool = False) -> Tensor:
    """Creates the operation that maps a raw feature to ids.

    Args:
        raw: the feature.
        kind: the type of operation for dense features.
        attrs: its attributes.
        steps: whether it holds sequences.

    Returns:
        int64 `(batch, width)`, or `(batch, steps, width)`.
    """
    if raw.is_sparse:
        ids = output(f"Sparse{kind}", raw.tensors, {**attrs, "steps": steps}, "lookup")
    else:
        rank = raw.value.shape.rank
        expand = -1 if rank is None else max((3 if steps else 2) - rank, 0)
        ids = output(kind, raw.tensors, {**attrs, "expand": expand}, "lookup")
    if ids.shape.rank is None and (steps or not raw.is_sparse):
        ids.set_shape([None] * (3 if steps else 2))  # sparse values of unknown rank may have more
    return ids


def _not_string_or_int(what: str, dtype: DType) -> str:
    return f"column_name: {what} dtype must be string or integer. dtype: <dtype: {dtype.name!r}>."


def check_string_or_int(dtype: DType, what: str) -> None:
    """Raises ValueError if a dtype is neither string nor an integer one."""
    if not (dtype is string or dtype.is_integer):
        raise ValueError(_not_string_or_int(what, dtype))


@dataclass(frozen=True)
class IdentityColumn(KeyedColumn):
    """See `categorical_column_with_identity`."""

    factory = "categorical_column_with_identity"

    key: str
    number_buckets: int
    default_value: int | None = None
    dtype: DType = int64

    @property
    def num_buckets(self) -> int:
        """As given."""
        return self.number_buckets

    @property
    def kind(self) -> tuple[str, dict[str, Any]]:
        """By identity."""
        default = -1 if self.default_value is None else self.default_value
        attrs = {"key": self.key, "num_buckets": self.num_buckets, "default_value": default}
        return "IdentityIds", attrs

    def check(self, raw: Raw) -> None:
        """Raises ValueError if the feature is not an integer tensor."""
        if not raw.dtype.is_integer:
            problem = f"Invalid input, not integer. key: {self.key} dtype: {raw.dtype!r}"
            raise self.misfit(raw, problem)


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityColumn:
    """A categorical column of integers that are the ids.

    Args:
        key: the feature's key, and the column's name.
        num_buckets: the number of ids, which are in [0, num_buckets).
        default_value: the id of values out of range; None (default) makes larger ones an error and
            ignores negative ones.

    Raises:
        ValueError: num_buckets is less than 1, or default_value is out of range.
        InvalidArgumentError: when run, a value is too large and there is no default_value.
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(
            f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}"
        )
    check_key(key)
    default = None if default_value is None else int(default_value)
    return IdentityColumn(key, int(num_buckets), default)


@dataclass(frozen=True)
class HashedColumn(KeyedColumn):
    """See `categorical_column_with_hash_bucket`."""

    factory = "categorical_column_with_hash_bucket"

    key: str
    hash_bucket_size: int
    dtype: DType

    @property
    def num_buckets(self) -> int:
        """`hash_bucket_size`."""
        return self.hash_bucket_size

    @property
    def kind(self) -> tuple[str, dict[str, Any]]:
        """By FarmHash."""
        return "HashedIds", {"num_buckets": self.hash_bucket_size}

    def check(self, raw: Raw) -> None:
        """Raises ValueError if the feature has a dtype other than the column."""
        if not (raw.dtype.is_integer or raw.dtype is string):
            raise self.misfit(raw, _not_string_or_int(f"{self.key} input_tensor", raw.dtype))
        super().check(raw)


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = string
) -> HashedColumn:
    """A categorical column of hashed values, with the same ids as TensorFlow.

    Args:
        key: the feature's key, and the column's name.
        hash_bucket_size: the number of buckets.
        dtype: the values' dtype: string (default), or an integer, hashed as a string.

    Raises:
        ValueError: an argument is invalid.
    """
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(
            f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}"
        )
    check_key(key)
    wanted = as_dtype(dtype)
    check_string_or_int(wanted, key)
    return HashedColumn(key, int(hash_bucket_size), wanted)


@dataclass(frozen=True)
class WeightedColumn(CategoricalColumn):
    """See `weighted_categorical_column`."""

    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: DType

    @property
    def name(self) -> str:
        """The names of the column and the weights, joined."""
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The spec of the column, and a `VarLenFeature` for the weights.

        Raises:
            ValueError: the column reads the weights' feature.
        """
        spec = dict(self.categorical_column.parse_example_spec)
        key = self.weight_feature_key
        if key in spec:
            raise ValueError(f"Parse config {spec[key]} already exists for {key}.")
        return {**spec, key: VarLenFeature(self.dtype)}

    @property
    def parents(self) -> list[FeatureColumn | str]:
        """The column and the weights' key."""
        return [self.categorical_column, self.weight_feature_key]

    @property
    def num_buckets(self) -> int:
        """That of the column."""
        return self.categorical_column.num_buckets

    def transform(self, features: Features) -> Ids:
        """The column's ids and their weights.

        Raises:
            ValueError: the weights have another dtype, or only one of both is sparse.
        """
        ids: Ids = features.transformed(self.categorical_column)
        raw = features.raw(self.weight_feature_key, f"the weights of column {self.name!r}")
        if raw.dtype is not self.dtype:
            raise self._misfit(features)
        if not raw.is_sparse:
            weights = features.tensor(self.weight_feature_key, self.name)
            return Ids(ids.ids, elementwise.cast(weights, float32))
        source = self._source(features)
        attrs = {"key": self.weight_feature_key}
        inputs = [source.tensors[0], *raw.tensors]
        weights = output("SparseFeatureWeights", inputs, attrs, "weights")
        return Ids(ids.ids, weights)

    def plain(self, features: Features) -> Any:
        """The ids and weights as sparse tensors; dense weights of 0 are omitted."""
        weights = features.get(self.weight_feature_key)
        if weights.dtype is not self.dtype:
            raise self._misfit(features)
        if isinstance(weights, SparseTensor):
            values = elementwise.cast(weights.values, float32)
            weights = SparseTensor(weights.indices, values, weights.dense_shape)
        else:
            weights = elementwise.cast(weights, float32)
            weights = sparse_of(weights, elementwise.not_equal(weights, 0.0))
        return features.get(self.categorical_column), weights

    def _misfit(self, features: Features) -> ValueError:
        raw = features.raw(self.weight_feature_key, f"the weights of column {self.name!r}")
        return value_error(
            f"Bad dtype, expected <dtype: {self.dtype.name!r}>, but got <dtype: "
            f"{raw.dtype.name!r}>",
            expected=f"weights of {self.name!r} of dtype {self.dtype.name}",
            received=raw.described(),
            made_at=raw.value.op.source,
            hint=f"weighted_categorical_column(..., dtype={raw.dtype.name})",
        )

    def _source(self, features: Features) -> Raw:
        """The sparse feature whose values are weighted."""
        column = self.categorical_column
        found = features.raw(column.key, column.name) if isinstance(column, KeyedColumn) else None
        if found is None or not found.is_sparse:
            raise value_error(
                f"weights {self.weight_feature_key!r} are sparse, but the ids are dense",
                expected="both sparse, with the same indices, or both dense",
                received=f"sparse weights, dense ids of column {column.name!r}",
                hint="use sparse.to_dense on the weights in input_fn",
            )
        return found


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: Any = float32
) -> WeightedColumn:
    """A categorical column with weights from another feature.

    Args:
        categorical_column: the column.
        weight_feature_key: the key of the weights, which are dense with the shape of the values, or
            sparse with the same indices.
        dtype: the dtype of the weights, floating (float32 by default) or integer.

    Raises:
        ValueError: dtype is not a number.
    """
    if dtype is None or not (as_dtype(dtype).is_integer or as_dtype(dtype).is_floating):
        shown = None if dtype is None else f"<dtype: {as_dtype(dtype).name!r}>"
        raise ValueError(f"dtype {shown} is not convertible to float.")
    return WeightedColumn(categorical_column, weight_feature_key, as_dtype(dtype))
