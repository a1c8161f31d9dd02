"""The feature columns of `tf.contrib.layers`: the same columns under their original names.

There a categorical column had a `combiner` for its values; here it is an argument of the layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from estimatorkit.compat.arguments import with_arguments
from estimatorkit.core.dtypes import float32, int64, string
from estimatorkit.layers import feature_column as columns
from estimatorkit.layers.feature_column.categorical import HashedColumn
from estimatorkit.lazy import listing
from estimatorkit.ops.parsing.parsing import parse_example
from estimatorkit.ops.variables.variable_scope import variable_scope

SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY = 0xDECAFCAFFE
"""The hash key of crossed values."""

_as = partial(with_arguments, __name__)


def real_valued_column(
    column_name: str,
    dimension: int | None = 1,
    default_value: Any = None,
    dtype: Any = float32,
    normalizer: Callable[[Any], Any] | None = None,
) -> Any:
    """`numeric_column` of `dimension` numbers.

    Raises:
        ValueError: the dimension is None; it must be known.
    """
    if dimension is None:
        raise ValueError(
            "real_valued_column: the dimension must be known; use "
            "feature_column.sequence_numeric_column for any number of values"
        )
    return columns.numeric_column(column_name, (dimension,), default_value, dtype, normalizer)


def bucketized_column(source_column: Any, boundaries: Iterable[float]) -> Any:
    """`feature_column.bucketized_column`; the boundaries may be in any order."""
    return columns.bucketized_column(source_column, sorted(boundaries))


sparse_column_with_hash_bucket = _as(
    "sparse_column_with_hash_bucket",
    columns.categorical_column_with_hash_bucket,
    "column_name=key hash_bucket_size combiner= dtype",
    {"combiner": "sum"},
)
sparse_column_with_keys = _as(
    "sparse_column_with_keys",
    columns.categorical_column_with_vocabulary_list,
    "column_name=key keys=vocabulary_list default_value combiner= dtype",
    {"combiner": "sum", "dtype": string},
)


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = string,
) -> Any:
    """`categorical_column_with_vocabulary_file`; pass `combiner` to the layer."""
    return columns.categorical_column_with_vocabulary_file(
        column_name,
        vocabulary_file,
        vocab_size,
        num_oov_buckets,
        default_value=None if num_oov_buckets else default_value,
        dtype=dtype,
    )


sparse_column_with_integerized_feature = _as(
    "sparse_column_with_integerized_feature",
    columns.categorical_column_with_identity,
    "column_name=key bucket_size=num_buckets combiner= dtype=",
    {"combiner": "sum", "dtype": int64},
)
weighted_sparse_column = _as(
    "weighted_sparse_column",
    columns.weighted_categorical_column,
    "sparse_id_column=categorical_column weight_column_name=weight_feature_key dtype",
)
one_hot_column = _as(
    "one_hot_column", columns.indicator_column, "sparse_id_column=categorical_column"
)
embedding_column = _as(
    "embedding_column",
    columns.embedding_column,
    "sparse_id_column=categorical_column dimension combiner initializer ckpt_to_load_from "
    "tensor_name_in_ckpt max_norm trainable",
)
shared_embedding_columns = _as(
    "shared_embedding_columns",
    columns.shared_embedding_columns,
    "sparse_id_columns=categorical_columns dimension combiner "
    "shared_embedding_name=shared_embedding_collection_name initializer ckpt_to_load_from "
    "tensor_name_in_ckpt max_norm trainable",
)
create_feature_spec_for_parsing = _as(
    "create_feature_spec_for_parsing", columns.make_parse_example_spec, "feature_columns"
)


def crossed_column(
    columns_: Any = None,
    hash_bucket_size: int = 0,
    combiner: str = "sum",
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    hash_key: int | None = None,
    **renamed: Any,
) -> Any:
    """`feature_column.crossed_column` of columns (by the keyword `columns`).

    Hashed columns are crossed by value, not by bucket.
    """
    given = renamed.pop("columns", columns_)
    if renamed:
        raise TypeError(f"crossed_column got unexpected keywords: {sorted(renamed)}")
    keys = [each.key if isinstance(each, HashedColumn) else each for each in given]
    return columns.crossed_column(keys, hash_bucket_size, hash_key)


def parse_feature_columns_from_examples(
    serialized: Any, feature_columns: Any, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """Parses the features that columns read from serialized `Example`s."""
    return parse_example(
        serialized, columns.make_parse_example_spec(feature_columns), name, example_names
    )


def input_from_feature_columns(
    columns_to_tensors: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    cols_to_outs: Any = None,
) -> Any:
    """`feature_column.input_layer`, within a variable scope `scope` if given."""
    with variable_scope(scope, default_name="input_from_feature_columns"):
        return columns.input_layer(
            columns_to_tensors,
            feature_columns,
            weight_collections,
            trainable,
            cols_to_output_tensors=cols_to_outs,
        )


def weighted_sum_from_feature_columns(
    columns_to_tensors: Mapping[str, Any],
    feature_columns: Any,
    num_outputs: int,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Any, dict[Any, Any], Any]:
    """`feature_column.linear_model`: the sums, the variables of each column, and the bias."""
    made: dict[Any, Any] = {}
    with variable_scope(scope, default_name="weighted_sum_from_feature_columns"):
        sums = columns.linear_model(
            columns_to_tensors,
            feature_columns,
            num_outputs,
            weight_collections=weight_collections,
            trainable=trainable,
            cols_to_vars=made,
        )
    bias = made.pop("bias")
    return sums, made, bias[0] if isinstance(bias, list) else bias


__dir__ = listing(__name__)
