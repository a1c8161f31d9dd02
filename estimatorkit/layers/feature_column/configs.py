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
from estimatorkit.layers.feature_column.words import HashedWordsColumn
from estimatorkit.layers.serialization import Registry

_KINDS: dict[str, type[Any]] = {
    "BucketizedColumn": BucketizedColumn,
    "CrossedColumn": CrossedColumn,
    "EmbeddingColumn": EmbeddingColumn,
    "HashedCategoricalColumn": HashedColumn,
    "HashedWordsCategoricalColumn": HashedWordsColumn,
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


# Fields that TensorFlow's columns lack are omitted if they have these values.
_OWN = {("IdentityCategoricalColumn", "dtype"): "int64"}


def config_of(column: FeatureColumn) -> dict[str, Any]:
    """The fields of a column as plain values (`FeatureColumn.get_config`).

    Raises:
        ValueError: the column shares a table, or has a function without a name.
    """
    name = _class_name(column)
    config = {}
    for each in dataclasses.fields(_KINDS[name]):
        value = _plain(each.name, getattr(column, each.name))
        if value != _OWN.get((name, each.name), ...):
            config[each.name] = value
    return config


def _class_name(column: FeatureColumn) -> str:
    kind = type(column)
    if kind not in _NAMES:
        raise value_error(
            f"the column {column.name!r} ({kind.__name__}) cannot be described in a config",
            expected=f"a column of one of the types {', '.join(_KINDS)}",
            hint="use save_weights(), which needs no config",
        )
    return _NAMES[kind]


def _plain(field: str, value: Any) -> Any:
    if isinstance(value, FeatureColumn):
        return serialize_feature_column(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple):
        return tuple(_plain(field, each) for each in value)
    if isinstance(value, bytes):
        return value.decode()
    if field == "initializer":
        return initializers.serialize(value() if isinstance(value, type) else value)
    if field == "normalizer_fn":
        return _functions.serialize(value)
    return value


def serialize_feature_column(fc: Any) -> Any:
    """A column as plain values; the key of a raw feature is returned unchanged.

    Args:
        fc: a column of this package, one of a class with a `get_config` of its own, or a string.

    Raises:
        ValueError: it is neither, or the column cannot be described.
    """
    if isinstance(fc, str):
        return fc
    if not isinstance(fc, FeatureColumn):
        raise ValueError(f"Instance: {fc} is not a FeatureColumn")
    config = fc.get_config()
    return {"class_name": _NAMES.get(type(fc), type(fc).__name__), "config": config}


def serialize_feature_columns(feature_columns: Sequence[FeatureColumn]) -> list[dict[str, Any]]:
    """Columns as plain values (`tf.__internal__.feature_column.serialize_feature_columns`).

    Raises:
        ValueError: one shares a table, or has a function without a name.
    """
    return [serialize_feature_column(column) for column in feature_columns]


def deserialize_feature_column(
    config: Any,
    custom_objects: Mapping[str, Any] | None = None,
    columns_by_name: dict[str, FeatureColumn] | None = None,
) -> Any:
    """The column that `serialize_feature_column` described; a string is returned unchanged.

    Args:
        config: {'class_name', 'config'}.
        custom_objects: functions and classes of columns by name; others must be registered.
        columns_by_name: the columns made so far, by class and name; an equal one is used again.

    Raises:
        ValueError: the form is another, or a name is unknown.
    """
    if isinstance(config, str):
        return config
    known = {**_KINDS, **(custom_objects or {})}
    name = config.get("class_name") if isinstance(config, Mapping) else None
    values = config.get("config") if isinstance(config, Mapping) else None
    if not isinstance(values, Mapping):
        raise value_error(
            "Improper config format for a feature column",
            expected=f"{{'class_name': one of {', '.join(_KINDS)}, 'config': ...}}",
            received=repr(config)[:200],
        )
    if name not in known:
        raise value_error(
            f"Unknown feature_column_v2: {name}",
            expected=f"one of {', '.join(_KINDS)}, or a name in custom_objects",
            hint=did_you_mean(str(name), _KINDS),
        )
    made_before = {} if columns_by_name is None else columns_by_name
    made = known[name].from_config(
        values, custom_objects=custom_objects, columns_by_name=made_before
    )
    return made_before.setdefault(column_name_with_class_name(made), made)


def deserialize_feature_columns(
    configs: Sequence[Any], custom_objects: Mapping[str, Any] | None = None
) -> list[FeatureColumn]:
    """The columns that `serialize_feature_columns` described.

    Args:
        configs: their descriptions.
        custom_objects: functions and classes of columns by name; others must be registered.

    Raises:
        ValueError: the form is another, or a name is unknown.
    """
    made: dict[str, FeatureColumn] = {}
    return [deserialize_feature_column(each, custom_objects, made) for each in configs]


def column_name_with_class_name(fc: FeatureColumn) -> str:
    """The key of a column in `columns_by_name`: a column may have the name of one that it reads."""
    return f"{_NAMES.get(type(fc), type(fc).__name__)}:{fc.name}"


def column_of(
    kind: type[Any],
    config: Mapping[str, Any],
    custom_objects: Mapping[str, Any] | None = None,
    columns_by_name: dict[str, FeatureColumn] | None = None,
) -> Any:
    """The column of a class that a config describes (`FeatureColumn.from_config`).

    Args:
        kind: the column's class.
        config: the result of `config_of`, or of TensorFlow's `get_config`.
        custom_objects, columns_by_name: see `deserialize_feature_column`.

    Raises:
        ValueError: the config has other keys, or a name is unknown.
    """

    def read(field: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            if field == "initializer":
                return initializers.get(value)
            return deserialize_feature_column(value, custom_objects, columns_by_name)
        if isinstance(value, (list, tuple)):
            return tuple(read(field, each) for each in value)
        if value is None:
            return None
        if field == "dtype":
            return as_dtype(value)
        return _functions.deserialize(value, custom_objects) if field == "normalizer_fn" else value

    values = {field: read(field, value) for field, value in config.items()}
    fields = dataclasses.fields(kind)
    unknown = sorted(set(values) - {each.name for each in fields})
    needed = {each.name for each in fields if each.default is dataclasses.MISSING}
    missing = sorted(needed - set(values) - {"fingerprint"})
    if unknown or missing:
        raise value_error(
            f"the config of a {_NAMES.get(kind, kind.__name__)} has the wrong keys",
            expected=f"{[each.name for each in fields]}",
            received=f"{sorted(values)}",
        )
    if kind is VocabularyFileColumn and "fingerprint" not in values:  # a config of TensorFlow
        return categorical_column_with_vocabulary_file(**values)
    return kind(**values)


__all__ = [
    "column_name_with_class_name",
    "column_of",
    "config_of",
    "deserialize_feature_column",
    "deserialize_feature_columns",
    "serialize_feature_column",
    "serialize_feature_columns",
]
