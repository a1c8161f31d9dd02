"""`crossed_column`: the combinations of several features' values, hashed as TensorFlow does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.dtypes import string
from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import output
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.categorical import (
    HashedColumn,
    WeightedColumn,
    ids_of,
)
from estimatorkit.layers.feature_column.column_values import Ids
from estimatorkit.layers.feature_column.columns import CategoricalColumn, FeatureColumn
from estimatorkit.layers.feature_column.features import Features, Raw
from estimatorkit.layers.feature_column.protocol import sparse_ids
from estimatorkit.ops.parsing.parsing import VarLenFeature
from estimatorkit.ops.tables.feature_crosses import HASH_KEY


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """See `crossed_column`."""

    keys: tuple[CategoricalColumn | str, ...]
    hash_bucket_size: int
    hash_key: int | None

    @property
    def leaves(self) -> tuple[CategoricalColumn | str, ...]:
        """The keys, with nested crosses flattened."""
        return tuple(self._leaves())

    def _leaves(self) -> Iterator[CategoricalColumn | str]:
        for key in self.keys:
            if isinstance(key, CrossedColumn):
                yield from key.leaves
            else:
                yield key

    @property
    def name(self) -> str:
        """The leaves' names, sorted, with '_X_' between them."""
        return "_X_".join(sorted(key if isinstance(key, str) else key.name for key in self.leaves))

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """Those of the columns; a `VarLenFeature` of strings for each key."""
        spec: dict[str, Any] = {}
        for key in self.keys:
            own = {key: VarLenFeature(string)} if isinstance(key, str) else key.parse_example_spec
            spec.update(own)
        return spec

    @property
    def parents(self) -> list[FeatureColumn | str]:
        """The columns and keys."""
        return list(self.keys)

    @property
    def num_buckets(self) -> int:
        """`hash_bucket_size`."""
        return self.hash_bucket_size

    def transform(self, features: Features) -> Ids:
        """The ids `(batch, width)`; the width is the product of the parents' widths.

        Raises:
            ValueError: a parent has weights, or a feature's dtype cannot be crossed.
        """
        tensors: list[Tensor] = []
        expand: list[int] = []
        for key in self.ordered(features):
            if not isinstance(key, str):
                tensor, lacks = key.host_ids(features), 0
            elif self.raw(features, key).is_sparse:
                tensor, lacks = self._rows(features, key), 0
            else:
                (tensor,) = self.raw(features, key).tensors
                lacks = -1 if tensor.shape.rank is None else int(tensor.shape.rank == 1)
            tensors.append(tensor)
            expand.append(lacks)
        ids = output("CrossedIds", tensors, self.attrs(tuple(expand)), "cross")
        if ids.shape.rank is None:
            ids.set_shape([None, None])
        return Ids(ids)

    def plain(self, features: Features) -> Any:
        """The ids as a `SparseTensor`, as wide as the longest row."""
        return sparse_ids(features.transformed(self).ids, packed=True)

    def attrs(self, expand: tuple[int, ...], mixed: tuple[bool, ...] | None = None) -> Any:
        """The attributes of the cross operation.

        Args:
            expand: how many dimensions inputs lack: 0, 1, or -1 where that is not known yet.
            mixed: which inputs are of `MixedIds`; none by default.
        """
        return {
            "num_buckets": self.hash_bucket_size,
            "hash_key": HASH_KEY if self.hash_key is None else self.hash_key,
            "expand": expand,
            "mixed": mixed or (False,) * len(expand),
        }

    def ordered(self, features: Features) -> list[CategoricalColumn | str]:
        """The leaves in TensorFlow's order: sparse ones (including columns), then dense ones.

        Raises:
            ValueError: a parent has weights, or a feature's dtype cannot be crossed.
        """
        for key in self.leaves:
            if isinstance(key, WeightedColumn):
                raise value_error(
                    "crossed_column does not support weight_tensor, but the given column "
                    f"populates weight_tensor. Given column: {key.name}",
                    hint="cross the column without its weights",
                )
        return sorted(
            self.leaves,
            key=lambda leaf: isinstance(leaf, str) and not self.raw(features, leaf).is_sparse,
        )

    def raw(self, features: Features, key: str) -> Raw:
        """The raw feature of a leaf.

        Raises:
            ValueError: its dtype cannot be crossed.
        """
        raw = features.raw(key, f"crossed_column {self.name!r}")
        if not (raw.dtype is string or raw.dtype.is_integer):
            raise value_error(
                f"crossed_column {self.name!r} cannot cross feature {key!r}",
                expected="strings or integers",
                received=raw.described(),
                made_at=raw.value.op.source,
                hint="use bucketized_column for numbers, and cross that instead of the key",
            )
        return raw

    def _rows(self, features: Features, key: str) -> Tensor:
        """A sparse raw feature in rows, hashed or unchanged."""
        raw = features.raw(key, self.name)
        if raw.dtype is string:
            return ids_of(raw, "FingerprintIds", {})
        return ids_of(raw, "PlainIds", {})


def crossed_column(keys: Any, hash_bucket_size: int, hash_key: int | None = None) -> CrossedColumn:
    """A categorical column of crossed features: hashed combinations of their values.

    Its ids are equal to TensorFlow's: FingerprintCat64 over the parents' values (ids of columns,
    FarmHash of strings, integers unchanged).

    Args:
        keys: at least two keys of string or integer features, or categorical columns (except
            hashed ones).
        hash_bucket_size: the number of buckets.
        hash_key: the seed of the hash; TensorFlow's 0xDECAFCAFFE by default.

    Raises:
        ValueError: an argument is invalid.
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, (str, CategoricalColumn)):
            raise value_error(
                "Unsupported key type. All keys must be either string, or categorical column "
                f"except HashedCategoricalColumn. Given: {key}",
                hint="use bucketized_column for numbers",
            )
        if isinstance(key, HashedColumn):
            raise value_error(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing "
                "before crossing will increase probability of collision. Instead, use the "
                f"feature name as a string. Given: {key}",
                hint=f"crossed_column([{key.key!r}, ...], {hash_bucket_size})",
            )
    return CrossedColumn(tuple(keys), int(hash_bucket_size), hash_key)
