"""`linear_model`: a weighted sum of columns."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.column_values import Ids
from estimatorkit.layers.feature_column.columns import (
    CategoricalColumn,
    DenseColumn,
    FeatureColumn,
    normalize_columns,
)
from estimatorkit.layers.feature_column.features import Features
from estimatorkit.layers.feature_column.layers import (
    as_features,
    as_scope,
    check_batches,
    flat_tensor,
    made_variables,
)
from estimatorkit.layers.feature_column.packing import pack
from estimatorkit.layers.feature_column.tables import combined_rows
from estimatorkit.layers.feature_column.weights import WeightMaker, remember_tensor, variables_of
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.math import elementwise, linalg
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.initializers import Zeros
from estimatorkit.ops.variables.variable_scope import variable_scope

SPARSE_COMBINERS = ("sum", "mean", "sqrtn")


def linear_model(
    features: Any,
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """The sum over the columns of (column's tensor times weights), plus a bias.

    Variables, initially zero: `linear_model/<column>/weights` of shape `(n, units)` for each
    column, sorted by name (n: the size of a dense column, the number of ids of a categorical one),
    then `linear_model/bias_weights` of shape `(units,)`.

    Args:
        features: tensors by key, with a leading batch dimension.
        feature_columns: dense and categorical columns.
        units: the number of outputs.
        sparse_combiner: how to combine several values of a categorical column: "sum", "mean" or
            "sqrtn".
        weight_collections: the variables' collections in addition to GLOBAL_VARIABLES and
            MODEL_VARIABLES.
        trainable: whether the variables are trainable.
        cols_to_vars: filled with each column's variables, and "bias", if given.

    Returns:
        float32 `(batch, units)`.

    Raises:
        ValueError: an argument is out of range, or as for `input_layer`.
    """
    check_sparse_combiner(sparse_combiner)
    columns = check_linear_columns(feature_columns, private=True)
    source = as_features(features, columns)
    maker = WeightMaker([*(weight_collections or ()), GraphKeys.MODEL_VARIABLES], trainable)
    sums = []
    with variable_scope(None, default_name="linear_model") as scope:
        name = scope.name.rpartition("/")[2]
    # As in TensorFlow, the columns' scopes are numbered outside the model's: a second model has
    # `linear_model_1/<column>_1/weights`.
    scopes = dict(sorted((_unique_scope(column), column) for column in columns))
    columns = list(scopes.values())
    with variable_scope(name):
        pack(source, columns)
        for inner, column in scopes.items():
            with variable_scope(inner):
                summed, made = made_variables(
                    partial(weighted_sum, column, source, maker, units, sparse_combiner)
                )
            sums.append(summed)
            remember_tensor(column, summed)
            if cols_to_vars is not None:
                cols_to_vars[column] = made
        check_batches(sums, columns)
        bias = maker.make(columns[0], "bias_weights", [units], Zeros())
        if cols_to_vars is not None:
            cols_to_vars["bias"] = variables_of(bias)
        return nn.bias_add(
            elementwise.add_n(sums, name="weighted_sum_no_bias"), bias, name="weighted_sum"
        )


def _unique_scope(column: FeatureColumn) -> str:
    with variable_scope(None, default_name=as_scope(column.scope_name)) as scope:
        return str(scope.name).rpartition("/")[2]


def weighted_sum(
    column: FeatureColumn, features: Features, maker: WeightMaker, units: int, combiner: str
) -> Tensor:
    """A column's term of the sum, float32 `(batch, units)`."""
    if isinstance(column, CategoricalColumn):
        weights = column_weights(column, maker, units)
        return combined_rows(weights, _in_rows(features.transformed(column)), combiner)
    if not isinstance(column, DenseColumn):
        raise AssertionError("checked by linear_model")
    weights = column_weights(column, maker, units)
    return linalg.matmul(flat_tensor(column, features, maker), weights, name="weighted_sum")


def column_weights(column: Any, maker: WeightMaker, units: int) -> Any:
    """A column's weights `(n, units)`, n being the number of its ids or values."""
    if isinstance(column, CategoricalColumn):
        count = column.num_buckets
    else:
        count = math.prod(dim or 0 for dim in column.variable_shape)
    return maker.make(column, "weights", [count, units], Zeros())


def check_linear_columns(feature_columns: Any, *, private: bool = False) -> list[FeatureColumn]:
    """Returns the columns sorted by name.

    Args:
        feature_columns: dense and categorical columns.
        private: whether error messages use version 1's names, with an underscore.

    Raises:
        ValueError: one is neither.
    """
    word = "_" if private else ""
    columns = normalize_columns(feature_columns, f"{word}FeatureColumn")
    for column in columns:
        if not isinstance(column, (DenseColumn, CategoricalColumn)):
            raise value_error(
                f"Items of feature_columns must be either a {word}DenseColumn or "
                f"{word}CategoricalColumn. "
                f"Given: {column}",
                hint="sequence columns are for sequence_input_layer",
            )
    return columns


def _in_rows(ids: Ids) -> Ids:
    """All ids of an example in one row, `(batch, width)`."""
    if ids.ids.shape.rank == 2:
        return ids
    shape = joining.stack([array.shape(ids.ids)[0], -1])
    weights = None if ids.weights is None else array.reshape(ids.weights, shape)
    return Ids(array.reshape(ids.ids, shape), weights)


def check_sparse_combiner(sparse_combiner: Any) -> None:
    """Raises ValueError if `sparse_combiner` is not one of `SPARSE_COMBINERS`."""
    if sparse_combiner not in SPARSE_COMBINERS:
        raise value_error(
            "sparse_combiner must be one of 'mean', 'sqrtn' or 'sum'",
            expected=f"one of {SPARSE_COMBINERS}",
            received=repr(sparse_combiner),
            hint=did_you_mean(str(sparse_combiner), SPARSE_COMBINERS),
        )
