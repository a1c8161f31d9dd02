"""Columns as plain values and back (`serialize_feature_columns`), by one rule for all kinds.

A column is {'class_name': TensorFlow's name of its class, 'config': its fields}. Functions are the
names under which they are registered. Columns that share a table are not described: two models that
were read of one file would share it too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.layers import initializers
from estimatorkit.layers.feature_column.categorical import (
    HashedColumn,
    IdentityColumn,
    WeightedColumn,
)
from estimatorkit.layers.feature_column.columns import FeatureColumn
from estimatorkit.layers.feature_column.crossed import CrossedColumn
from estimatorkit.layers.feature_column.embedding import EmbeddingColumn
from estimatorkit.layers.feature_column.indicator import IndicatorColumn
from estimatorkit.layers.feature_column.numeric import BucketizedColumn, NumericColumn
from estimatorkit.layers.feature_column.sequence import (
    SequenceCategoricalColumn,
    SequenceNumericColumn,
)
from estimatorkit.layers.feature_column.vocabulary import (
    VocabularyFileColumn,
    VocabularyListColumn,
    categorical_column_with_vocabulary_file,
)
from estimatorkit.layers.serialization import Registry

_KINDS: dict[str, type[Any]] = {
    "BucketizedColumn": BucketizedColumn,
    "CrossedColumn": CrossedColumn,
    "EmbeddingColumn": EmbeddingColumn,
    "HashedCategoricalColumn": HashedColumn,
    "IdentityCategoricalColumn": IdentityColumn,
    "IndicatorColumn": IndicatorColumn,
    "NumericColumn": NumericColumn,
    "SequenceCategoricalColumn": SequenceCategoricalColumn,
    "SequenceNumericColumn": SequenceNumericColumn,
    "VocabularyFileCategoricalColumn": VocabularyFileColumn,
    "VocabularyListCategoricalColumn": VocabularyListColumn,
    "WeightedCategoricalColumn": WeightedColumn,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_functions = Registry("function of a feature column", {})


def serialize_feature_columns(feature_columns: Sequence[FeatureColumn]) -> list[dict[str, Any]]:
    """Columns as plain values (`tf.__internal__.feature_column.serialize_feature_columns`).

    Raises:
        ValueError: one shares a table, or has a function without a name.
    """
    return [_described(column) for column in feature_columns]


def _described(column: FeatureColumn) -> dict[str, Any]:
    kind = type(column)
    if kind not in _NAMES:
        raise value_error(
            f"the column {column.name!r} ({kind.__name__}) cannot be described in a config",
            expected=f"a column of one of the types {', '.join(_KINDS)}",
            hint="use save_weights(), which needs no config",
        )
    fields = dataclasses.fields(kind)
    config = {each.name: _plain(each.name, getattr(column, each.name), column) for each in fields}
    return {"class_name": _NAMES[kind], "config": config}


def _plain(field: str, value: Any, column: FeatureColumn) -> Any:
    if isinstance(value, FeatureColumn):
        return _described(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple):
        return [_plain(field, each, column) for each in value]
    if isinstance(value, bytes):
        return value.decode()
    if field == "initializer":
        return initializers.serialize(value() if isinstance(value, type) else value)
    if field == "normalizer_fn":
        return _functions.serialize(value)
    return value


def deserialize_feature_columns(described: Sequence[Any]) -> list[FeatureColumn]:
    """The columns that `serialize_feature_columns` described; functions are looked up among the
    registered ones.

    Raises:
        ValueError: the form is another, or a name is unknown.
    """
    return [_column(each) for each in described]


def _column(described: Any) -> FeatureColumn:
    name = described.get("class_name") if isinstance(described, Mapping) else None
    config = described.get("config") if isinstance(described, Mapping) else None
    if name not in _KINDS or not isinstance(config, Mapping):
        raise value_error(
            "Improper config format for a feature column",
            expected=f"{{'class_name': one of {', '.join(_KINDS)}, 'config': ...}}",
            received=repr(described)[:200],
            hint=did_you_mean(str(name), _KINDS),
        )
    kind = _KINDS[name]
    values = {field: _read(field, value) for field, value in config.items()}
    fields = dataclasses.fields(kind)
    unknown = sorted(set(values) - {each.name for each in fields})
    needed = {each.name for each in fields if each.default is dataclasses.MISSING}
    missing = sorted(needed - set(values) - {"fingerprint"})
    if unknown or missing:
        raise value_error(
            f"the config of a {name} has the wrong keys",
            expected=f"{[each.name for each in fields]}",
            received=f"{sorted(values)}",
        )
    if kind is VocabularyFileColumn and "fingerprint" not in values:  # a config of TensorFlow
        made: FeatureColumn = categorical_column_with_vocabulary_file(**values)
    else:
        made = kind(**values)
    return made


def _read(field: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return initializers.get(value) if field == "initializer" else _column(value)
    if isinstance(value, (list, tuple)):
        return tuple(_read(field, each) for each in value)
    if value is None:
        return None
    if field == "dtype":
        return as_dtype(value)
    return _functions.deserialize(value) if field == "normalizer_fn" else value


__all__ = ["deserialize_feature_columns", "serialize_feature_columns"]
