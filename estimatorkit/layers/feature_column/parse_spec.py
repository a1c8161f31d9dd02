"""What to read from `Example`s for columns, labels and weights (`io.parse_example`'s features)."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.dtypes import as_dtype, float32, int64
from estimatorkit.core.errors import value_error
from estimatorkit.layers.feature_column.columns import FeatureColumn
from estimatorkit.layers.feature_column.numeric import NumericColumn, numeric_column
from estimatorkit.ops.parsing.parsing import FixedLenFeature


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """Returns the parsing spec of `Example`s for feature columns.

    Args:
        feature_columns: the columns.

    Returns:
        A dict of `FixedLenFeature`s and `VarLenFeature`s by feature key.

    Raises:
        ValueError: one is not a column, or two read a feature in different ways.
    """
    columns = [feature_columns] if isinstance(feature_columns, FeatureColumn) else feature_columns
    spec: dict[str, Any] = {}
    for column in columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                f"All feature_columns must be FeatureColumn instances. Given: {column}"
            )
        for key, feature in column.parse_example_spec.items():
            known = spec.setdefault(key, feature)
            if type(known) is not type(feature) or known != feature:
                raise value_error(
                    f"feature_columns contain different parse_spec for key {key}. "
                    f"Given {feature} and {known}",
                    hint="give the columns of this key the same shape, dtype and default",
                )
    return spec


def classifier_parse_example_spec(
    feature_columns: Any,
    label_key: str,
    label_dtype: Any = int64,
    label_default: Any = None,
    weight_column: Any = None,
) -> dict[str, Any]:
    """Returns the parsing spec of `Example`s for a classifier (`tf.estimator`).

    Args:
        feature_columns: the model's columns.
        label_key: the label's key.
        label_dtype: int64 by default; string where there is a `label_vocabulary`.
        label_default: the label of examples without one; None (default) makes the label required.
        weight_column: the weights' key, or a `numeric_column`.

    Raises:
        ValueError: the label or the weights are features of the columns, or an argument is invalid.
    """
    label = FixedLenFeature((1,), as_dtype(label_dtype), label_default)
    return _with_label(feature_columns, label_key, label, weight_column)


def regressor_parse_example_spec(
    feature_columns: Any,
    label_key: str,
    label_dtype: Any = float32,
    label_default: Any = None,
    label_dimension: int = 1,
    weight_column: Any = None,
) -> dict[str, Any]:
    """Returns the parsing spec of `Example`s for a regressor; see `classifier_parse_example_spec`.

    Args:
        label_dimension: the number of labels per example.
    """
    label = FixedLenFeature((label_dimension,), as_dtype(label_dtype), label_default)
    return _with_label(feature_columns, label_key, label, weight_column)


def _with_label(
    feature_columns: Any, label_key: str, label: FixedLenFeature, weight_column: Any
) -> dict[str, Any]:
    spec = make_parse_example_spec(feature_columns)
    if label_key is None:
        raise ValueError("label_key should not be None.")
    if label_key in spec:
        raise ValueError(
            f"label should not be used as feature. label_key: {label_key}, features: {sorted(spec)}"
        )
    spec[label_key] = label
    if weight_column is None:
        return spec
    column = numeric_column(weight_column) if isinstance(weight_column, str) else weight_column
    if not isinstance(column, NumericColumn):
        raise ValueError(
            "weight_column should be an instance of tf.feature_column.numeric_column. "
            f"Given type: {type(column)} value: {column}"
        )
    if column.key in spec:
        raise ValueError(
            "weight_column should not be used as feature. "
            f"weight_column: {column.key}, features: {sorted(spec)}"
        )
    return {**spec, **column.parse_example_spec}
