"""`LinearModel`: `linear_model` as a layer that keeps its variables."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.dtypes import float32
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.columns import CategoricalColumn, DenseColumn
from estimatorkit.layers.feature_column.keras_layers import FeaturesLayer, first_of
from estimatorkit.layers.feature_column.layers import as_features, as_scope, check_batches
from estimatorkit.layers.feature_column.linear import (
    check_linear_columns,
    check_sparse_combiner,
    column_weights,
    weighted_sum,
)
from estimatorkit.layers.feature_column.packing import pack
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.initializers import Zeros


class LinearModel(FeaturesLayer):
    """A linear model of columns (TensorFlow's private `feature_column_v2.LinearModel`).

    Called with features it gives float32 `(batch, units)`; every call uses the same variables,
    `<name>/<column>/weights` in the order of the columns' names, then `<name>/bias_weights`.

    Args:
        feature_columns: dense and categorical columns.
        units: the number of outputs.
        sparse_combiner: how several values of a categorical column become one: "sum", "mean" or
            "sqrtn".
        trainable: whether its variables are trainable.
        name: its name; 'linear_model' by default.
        kwargs: as for `Layer`.

    Raises:
        ValueError: a column is of another kind, two have one name, or an argument is out of range.
    """

    _kind = (DenseColumn, CategoricalColumn)

    def __init__(
        self,
        feature_columns: Any,
        units: int = 1,
        sparse_combiner: str = "sum",
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        check_sparse_combiner(sparse_combiner)
        check_linear_columns(feature_columns)
        super().__init__(feature_columns, trainable, name, **kwargs)
        self._units = units
        self._combiner = sparse_combiner
        self.bias: Any = None

    def _make_variables(self, column: Any) -> None:
        column.make_variables(self._maker)
        column_weights(column, self._maker, self._units)

    def build(self, input_shape: Any = None) -> None:
        """Makes the variables.

        Args:
            input_shape: anything: columns know the shapes of their variables.
        """
        super().build(input_shape)
        self.bias = self.add_weight(
            "bias_weights", [self._units], float32, Zeros(), trainable=self._is_made_trainable
        )

    def call(self, features: Any) -> Tensor:
        """The predictions."""
        source = as_features(features, self._feature_columns)
        pack(source, self._feature_columns)
        sums = []
        for column in self._feature_columns:
            with get_default_graph().name_scope(as_scope(column.scope_name)):
                sums.append(weighted_sum(column, source, self._maker, self._units, self._combiner))
        check_batches(sums, self._feature_columns)
        total = elementwise.add_n(sums, name="weighted_sum_no_bias")
        return nn.bias_add(total, self.bias, name="weighted_sum")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, the columns as `serialize_feature_columns` has them."""
        own = {"units": self._units, "sparse_combiner": self._combiner}
        return {**super().get_config(), **own}

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """`(batch, units)`, the batch as in `input_shape`."""
        return TensorShape([first_of(input_shape)[0], self._units])
