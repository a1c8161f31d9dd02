"""The feature columns of `tf.contrib.layers`: the same columns under their first names.

A categorical column there knew how its values are combined; here the layers are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from estimatorkit.core.dtypes import float32, int64, string
from estimatorkit.layers import feature_column as columns
from estimatorkit.layers.feature_column.categorical import HashedColumn
from estimatorkit.lazy import listing
from estimatorkit.ops.parsing.parsing import parse_example

SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY = 0xDECAFCAFFE
"""What crossed values are hashed with."""


def real_valued_column(
    column_name: str,
    dimension: int | None = 1,
    default_value: Any = None,
    dtype: Any = float32,
    normalizer: Callable[[Any], Any] | None = None,
) -> Any:
    """`numeric_column` of `dimension` numbers.

    Raises:
        ValueError: the dimension is None: how many numbers there are must be known.
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


def sparse_column_with_hash_bucket(
    column_name: str, hash_bucket_size: int, combiner: str = "sum", dtype: Any = string
) -> Any:
    """`categorical_column_with_hash_bucket`; give `combiner` to the layer."""
    return columns.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype)


def sparse_column_with_keys(
    column_name: str, keys: Any, default_value: int = -1, combiner: str = "sum", dtype: Any = string
) -> Any:
    """`categorical_column_with_vocabulary_list`; give `combiner` to the layer."""
    return columns.categorical_column_with_vocabulary_list(
        column_name, keys, dtype, default_value=default_value
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
    """`categorical_column_with_vocabulary_file`; give `combiner` to the layer."""
    return columns.categorical_column_with_vocabulary_file(
        column_name,
        vocabulary_file,
        vocab_size,
        num_oov_buckets,
        default_value=None if num_oov_buckets else default_value,
        dtype=dtype,
    )


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = int64
) -> Any:
    """`categorical_column_with_identity`; give `combiner` to the layer."""
    return columns.categorical_column_with_identity(column_name, bucket_size)


def weighted_sparse_column(
    sparse_id_column: Any, weight_column_name: str, dtype: Any = float32
) -> Any:
    """`weighted_categorical_column`."""
    return columns.weighted_categorical_column(sparse_id_column, weight_column_name, dtype)


def one_hot_column(sparse_id_column: Any) -> Any:
    """`indicator_column`."""
    return columns.indicator_column(sparse_id_column)


def embedding_column(
    sparse_id_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> Any:
    """`feature_column.embedding_column`."""
    return columns.embedding_column(
        sparse_id_column,
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


def shared_embedding_columns(
    sparse_id_columns: Any,
    dimension: int,
    combiner: str = "mean",
    shared_embedding_name: str | None = None,
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> Any:
    """`feature_column.shared_embedding_columns`."""
    return columns.shared_embedding_columns(
        sparse_id_columns,
        dimension,
        combiner,
        initializer,
        shared_embedding_name,
        ckpt_to_load_from=ckpt_to_load_from,
        tensor_name_in_ckpt=tensor_name_in_ckpt,
        max_norm=max_norm,
        trainable=trainable,
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

    Hashed columns are crossed by their values, not by their buckets.
    """
    given = renamed.pop("columns", columns_)
    if renamed:
        raise TypeError(f"crossed_column got unexpected keywords: {sorted(renamed)}")
    keys = [each.key if isinstance(each, HashedColumn) else each for each in given]
    return columns.crossed_column(keys, hash_bucket_size, hash_key)


def create_feature_spec_for_parsing(feature_columns: Any) -> dict[str, Any]:
    """`make_parse_example_spec`."""
    return columns.make_parse_example_spec(feature_columns)


def parse_feature_columns_from_examples(
    serialized: Any, feature_columns: Any, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of serialized `Example`s that columns read."""
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
    """`feature_column.input_layer`, within a variable scope `scope` where it is given."""
    from estimatorkit.ops.variables.variable_scope import variable_scope

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
    from estimatorkit.ops.variables.variable_scope import variable_scope

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
