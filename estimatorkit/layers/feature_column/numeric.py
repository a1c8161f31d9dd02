"""Columns of numbers: `numeric_column`, and `bucketized_column`.

Both are computed on the device, except for crosses of buckets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, float32, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import output
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.column_values import Ids
from estimatorkit.layers.feature_column.columns import (
    CategoricalColumn,
    DenseColumn,
    FeatureColumn,
    OfFeature,
    check_key,
)
from estimatorkit.layers.feature_column.features import Features
from estimatorkit.layers.feature_column.protocol import IdsAndWeights, sparse_ids
from estimatorkit.layers.feature_column.weights import WeightMaker
from estimatorkit.ops.array import array, indexing, joining
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.parsing.parsing import FixedLenFeature

Normalizer = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class NumericColumn(OfFeature, DenseColumn):
    """See `numeric_column`."""

    key: str
    shape: tuple[int, ...]
    default_value: tuple[Any, ...] | None
    dtype: DType
    normalizer_fn: Normalizer | None

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A `FixedLenFeature` under the key."""
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    @property
    def variable_shape(self) -> TensorShape:
        """`shape`."""
        return TensorShape(self.shape)

    def transform(self, features: Features) -> Tensor:
        """The normalized feature as float32, of unchanged shape.

        Raises:
            ValueError: it is missing, sparse, or holds strings.
        """
        tensor = features.tensor(self.key, f"numeric_column({self.key!r})")
        if tensor.dtype.on_host:
            raise value_error(
                f"numeric_column({self.key!r}) cannot read a string feature",
                expected="numbers or bools",
                received=f"{tensor.name} {tensor.shape} {tensor.dtype.name}",
                made_at=tensor.op.source,
                hint="use a categorical column, or convert the values to numbers in input_fn",
            )
        if self.normalizer_fn is not None:
            tensor = convert_to_tensor(self.normalizer_fn(tensor))
        return elementwise.cast(tensor, float32)

    def dense_tensor(self, features: Features, weights: WeightMaker) -> Tensor:
        """float32 `(batch, *shape)`.

        Raises:
            ValueError: an example has a different number of values than `shape`.
        """
        tensor: Tensor = features.transformed(self)
        count = math.prod(self.shape)
        dims = tensor.shape.dims
        per_example = None if dims is None else TensorShape(dims[1:]).num_elements()
        if per_example is not None and per_example != count:
            size = dims[0] if dims else None
            told = (
                ""
                if size is None
                else (
                    f": Cannot reshape a tensor with {size * per_example} elements to shape "
                    f"[{','.join(map(str, (size, *self.shape)))}] ({size * count} elements)"
                )
            )
            raise value_error(
                f"feature {self.key!r} does not match its numeric_column of "
                f"shape {self.shape}{told}",
                expected=f"{TensorShape((None, *self.shape))}, {count} values per example",
                received=f"{tensor.shape}, {per_example} values per example",
                made_at=tensor.op.source,
                hint=f"numeric_column({self.key!r}, shape={tuple(dims[1:]) if dims else ()})",
            )
        if dims is not None and dims[1:] == self.shape:
            return tensor
        return array.reshape(tensor, joining.stack([array.shape(tensor)[0], *self.shape]))


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: Any = float32,
    normalizer_fn: Normalizer | None = None,
) -> NumericColumn:
    """A column of numbers.

    Args:
        key: the feature's key, and the column's name.
        shape: the shape of one example: an int or a tuple of ints; `(1,)` by default.
        default_value: the value of missing features when parsing examples: a number, or numbers of
            `shape`; None (default) makes a missing feature an error.
        dtype: the dtype of the values in an `Example`, integer or floating; float32 by default.
        normalizer_fn: a function of the raw tensor, for example `lambda x: (x - 3.0) / 4.2`.

    Raises:
        TypeError: a dimension is not an int, default_value fits neither shape nor dtype, or
            normalizer_fn is not callable.
        ValueError: a dimension is not positive, dtype is not a number, or key is not a string.
    """
    dims = checked_shape(shape, key)
    wanted = as_dtype(dtype)
    check_numbers(wanted, key)
    default = _checked_default(default_value, dims, wanted, key)
    check_normalizer(normalizer_fn)
    check_key(key)
    return NumericColumn(key, dims, default, wanted, normalizer_fn)


def check_numbers(dtype: DType, key: Any) -> None:
    """Raises ValueError if a dtype is neither integer nor floating."""
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(
            f"dtype must be convertible to float. dtype: <dtype: {dtype.name!r}>, key: {key}"
        )


def check_normalizer(normalizer_fn: Any) -> None:
    """Raises TypeError if it is neither None nor callable."""
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")


def checked_shape(shape: Any, key: Any) -> tuple[int, ...]:
    """Validates a column's shape, and returns it as a tuple.

    Raises:
        TypeError: a dimension is not an int.
        ValueError: one is not positive.
    """
    dims = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    for dim in dims:
        if not isinstance(dim, (int, np.integer)) or isinstance(dim, bool):
            raise TypeError(f"shape dimensions must be integer. shape: {dims}, key: {key}")
        if dim < 1:
            raise ValueError(f"shape dimensions must be greater than 0. shape: {dims}, key: {key}")
    return tuple(int(dim) for dim in dims)


def _checked_default(
    value: Any, shape: tuple[int, ...], dtype: DType, key: Any
) -> tuple[Any, ...] | None:
    """The default as nested tuples of `shape`, which are hashable."""
    if value is None:
        return None
    array_of = np.asarray(value)
    numeric = array_of.dtype.kind in "iu" or (array_of.dtype.kind == "f" and dtype.is_floating)
    if array_of.shape not in ((), shape):
        raise ValueError(
            "The shape of default_value must be equal to given shape. "
            f"default_value: {value}, shape: {shape}, key: {key}"
        )
    if not numeric:
        raise TypeError(
            "default_value must be compatible with dtype. "
            f"default_value: {value}, dtype: {dtype}, key: {key}"
        )
    full = np.broadcast_to(array_of, shape).astype(dtype.numpy_dtype)
    return tuple(_as_tuples(full.tolist()))


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """See `bucketized_column`."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        """The source's name and '_bucketized'."""
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The spec of the source."""
        return self.source_column.parse_example_spec

    @property
    def parents(self) -> list[FeatureColumn | str]:
        """The source column."""
        return [self.source_column]

    @property
    def num_buckets(self) -> int:
        """The number of boundaries + 1, times the size of the source."""
        return self._each * self.source_column.shape[0]

    @property
    def variable_shape(self) -> TensorShape:
        """`(numbers of the source, buckets)`."""
        return TensorShape((*self.source_column.shape, self._each))

    @property
    def _each(self) -> int:
        return len(self.boundaries) + 1

    def _buckets(self, features: Features) -> Tensor:
        """int32 `(batch, n)`, from 0 for each number."""
        numbers = self.source_column.dense_tensor(features, WeightMaker())
        return output("Bucketize", [numbers], {"boundaries": self.boundaries}, "bucketize")

    def transform(self, features: Features) -> Ids:
        """The ids `(batch, n)`; those of number i of the source start at i * buckets."""
        ids = elementwise.cast(self._buckets(features), int64)
        width = self.source_column.shape[0]
        return Ids(ids if width == 1 else ids + np.arange(width) * self._each)

    def plain(self, features: Features) -> Any:
        """The bucket of each number, from 0."""
        return self._buckets(features)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdsAndWeights:
        """All ids; those of number i of the source start at i * buckets."""
        return IdsAndWeights(sparse_ids(transformation_cache.transformed(self).ids), None)

    def host_ids(self, features: Features) -> Tensor:
        """The ids computed on the host, from the raw numbers unless they are normalized."""
        numbers = self.from_raw(features)
        if numbers is None:
            numbers = self.source_column.dense_tensor(features, WeightMaker())
        attrs = {"boundaries": self.boundaries, "expand": int(numbers.shape.rank == 1)}
        return output("BucketIds", [numbers], attrs, "bucketize")

    def from_raw(self, features: Features) -> Tensor | None:
        """The raw numbers, `(batch,)` or `(batch, n)`; None if they are normalized or shaped."""
        source = self.source_column
        raw = features.raw(source.key, f"column {self.name!r}")
        if source.normalizer_fn is not None or raw.is_sparse or raw.dtype.kind not in "fi":
            return None
        (numbers,) = raw.tensors
        fits = numbers.shape[1:] in ((), source.shape) if numbers.shape.rank else False
        return numbers if fits else None

    def dense_tensor(self, features: Features, weights: WeightMaker) -> Tensor:
        """float32 `(batch, n, buckets)`: 1 at the bucket of each number."""
        return indexing.one_hot(self._buckets(features), self._each, 1.0, 0.0)


def bucketized_column(source_column: NumericColumn, boundaries: Any) -> BucketizedColumn:
    """A column of ranges of numbers, both dense (one-hot) and categorical.

    Bucket 0 is below the first boundary; bucket i starts at boundary i - 1, inclusive. NaN is in
    the last bucket.

    Args:
        source_column: a `numeric_column` whose shape has one dimension.
        boundaries: a sorted list or tuple of numbers.

    Raises:
        ValueError: an argument is invalid.
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(
            "source_column must be a column generated with numeric_column(). "
            f"Given: {source_column}"
        )
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    is_list = isinstance(boundaries, (list, tuple, np.ndarray))
    if boundaries is None or (is_list and len(boundaries) == 0):
        raise ValueError("boundaries must not be empty.")
    if not is_list or any(one >= two for one, two in pairwise(boundaries)):
        raise value_error("boundaries must be a sorted list", received=repr(boundaries)[:200])
    return BucketizedColumn(source_column, tuple(float(each) for each in boundaries))
