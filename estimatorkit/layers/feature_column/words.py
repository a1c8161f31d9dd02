"""`categorical_column_with_hashed_words`: ids of the words of a text, and of pairs of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import string
from estimatorkit.core.errors import value_error
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.categorical import ids_of
from estimatorkit.layers.feature_column.column_values import Ids
from estimatorkit.layers.feature_column.columns import CategoricalColumn, OfFeature, check_key
from estimatorkit.layers.feature_column.features import Features, Raw
from estimatorkit.layers.feature_column.protocol import sparse_ids
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.parsing.parsing import FixedLenFeature
from estimatorkit.ops.text import string_pieces, strings

BETWEEN_WORDS = r"[\x00-&(-/:-@\[-`{-\x7f]+"
"""What of ASCII stands between words: all but letters, digits and the apostrophe."""


@dataclass(frozen=True)
class HashedWordsColumn(OfFeature, CategoricalColumn):
    """See `categorical_column_with_hashed_words`."""

    key: str
    hash_bucket_size: int
    pairs: bool = True

    @property
    def num_buckets(self) -> int:
        """`hash_bucket_size`, and as many for pairs."""
        return self.hash_bucket_size * (1 + self.pairs)

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """One text an example, '' if it has none."""
        return {self.key: FixedLenFeature([1], string, "")}

    def transform(self, features: Features) -> Ids:
        """The ids, `(batch, width)`: of the words, then of the pairs.

        Raises:
            ValueError: the feature is not one text an example.
        """
        described = f"categorical_column_with_hashed_words({self.key!r})"
        raw = features.raw(self.key, described)
        shape = raw.value.shape
        rows = shape.rank in (1, None) or (shape.rank == 2 and shape[1] in (1, None))
        if raw.is_sparse or raw.dtype is not string or not rows:
            raise value_error(
                "a column of words reads one text an example",
                expected=f"{described}: a feature of dtype string, (batch,) or (batch, 1)",
                received=raw.described(),
                made_at=raw.value.op.source,
            )
        return Ids(_ids_of_words(array.reshape(raw.value, [-1]), self))

    def plain(self, features: Features) -> Any:
        """The ids as a `SparseTensor`."""
        return sparse_ids(features.transformed(self).ids)


def _ids_of_words(texts: Tensor, column: HashedWordsColumn) -> Tensor:
    lowered = strings.string_lower(texts, encoding="utf-8")
    spaced = strings.regex_replace(lowered, BETWEEN_WORDS, " ")
    words = string_pieces.split(spaced)
    attrs = {"num_buckets": column.hash_bucket_size}
    ids = ids_of(Raw(column.key, words), "HashedIds", attrs)
    if not column.pairs:
        return ids
    rows = words.indices[:, 0]
    following = joining.concat([words.values, [""]], 0)[1:], joining.concat([rows, [-1]], 0)[1:]
    joined = string_pieces.string_join([words.values, following[0]], " ")
    # The last word of each text has the pair '', which tells nothing.
    pairs = indexing.where(
        elementwise.equal(rows, following[1]), joined, filling.fill(array.shape(joined), "")
    )
    sparse = SparseTensor(words.indices, pairs, words.dense_shape)
    found = ids_of(Raw(column.key, sparse), "HashedIds", attrs)
    size = np.int64(column.hash_bucket_size)
    return joining.concat([ids, indexing.where(found < np.int64(0), found, found + size)], -1)


def categorical_column_with_hashed_words(
    key: str, hash_bucket_size: int, pairs: bool = True
) -> HashedWordsColumn:
    """A categorical column of the words of a text, hashed; TensorFlow has no such column.

    Words are what stands between spaces and punctuation, in lower case. An example has as many ids
    as words (and pairs): an `indicator_column` counts them, an `embedding_column` averages.

    Args:
        key: the key of a string feature, `(batch,)` or `(batch, 1)`, and the column's name.
        hash_bucket_size: the number of buckets of words, and again of pairs.
        pairs: whether pairs of words that follow one another have ids, too, after those of words.

    Raises:
        ValueError: `hash_bucket_size` is less than 1.
    """
    if hash_bucket_size < 1:
        raise ValueError(
            f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}"
        )
    check_key(key)
    return HashedWordsColumn(key, int(hash_bucket_size), bool(pairs))
