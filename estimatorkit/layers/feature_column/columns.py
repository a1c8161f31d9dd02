"""The base classes of feature columns: immutable descriptions of how to transform features.

`DenseColumn`s produce a float tensor per example, `CategoricalColumn`s ids (`Ids`), and
`SequenceDenseColumn`s a float tensor per step of a sequence. Layers only depend on these classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from estimatorkit.core.errors import value_error
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.column_values import Ids, Sequence
from estimatorkit.layers.feature_column.protocol import (
    CategoricalProtocol,
    ColumnProtocol,
    DenseProtocol,
    SequenceProtocol,
)
from estimatorkit.lazy import Port

if TYPE_CHECKING:
    from estimatorkit.layers.feature_column import configs
    from estimatorkit.layers.feature_column.features import Features
    from estimatorkit.layers.feature_column.weights import WeightMaker
else:
    configs = Port("column_configs")  # which reads all kinds


class FeatureColumn(ColumnProtocol, ABC):
    """The base class: a name, the features that it reads, and a transformation."""

    packs_ids = True
    """Whether a layer may find the ids that it asks for together with those of other columns."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name, which is unique in a model and part of variable names."""

    @property
    @abstractmethod
    def parse_example_spec(self) -> dict[str, Any]:
        """The parsing spec of an `Example`, by feature key."""

    @property
    def parents(self) -> list[FeatureColumn | str]:
        """The columns and the keys of raw features that it reads; [] if unknown."""
        return []

    def get_config(self) -> dict[str, Any]:
        """The fields as plain values; columns as `serialize_feature_columns` has them.

        Raises:
            ValueError: the column cannot be described (see `configs`).
        """
        return configs.config_of(self)

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, Any],
        custom_objects: Mapping[str, Any] | None = None,
        columns_by_name: dict[str, FeatureColumn] | None = None,
    ) -> Self:
        """The column that `get_config` described.

        Args:
            config: the fields.
            custom_objects: functions and classes of columns by name; others must be registered.
            columns_by_name: the columns made so far, which are used again.

        Raises:
            ValueError: the config has other keys, or a name is unknown.
        """
        made: Self = configs.column_of(cls, config, custom_objects, columns_by_name)
        return made

    @abstractmethod
    def transform(self, features: Features) -> Any:
        """The transformed feature, computed once per `features` (see `Features.transformed`)."""

    @property
    def scope_name(self) -> str:
        """The scope of its variables."""
        return self.name

    def make_variables(self, weights: WeightMaker) -> None:
        """Creates its variables with `weights`; most columns have none."""


class OfFeature(FeatureColumn):
    """A column of one feature, named by its key."""

    key: str

    @property
    def name(self) -> str:
        """The key."""
        return self.key

    @property
    def parents(self) -> list[FeatureColumn | str]:
        """The key."""
        return [self.key]


class OfColumn(FeatureColumn):
    """A column derived from a categorical column."""

    categorical_column: CategoricalColumn

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The spec of the categorical column."""
        return self.categorical_column.parse_example_spec

    @property
    def parents(self) -> list[FeatureColumn | str]:
        """The categorical column."""
        return [self.categorical_column]


class DenseColumn(DenseProtocol, FeatureColumn):
    """A column that produces a float tensor."""

    @property
    @abstractmethod
    def variable_shape(self) -> TensorShape:
        """The fully defined shape of one example."""

    @abstractmethod
    def dense_tensor(self, features: Features, weights: WeightMaker) -> Tensor:
        """float32 `(batch, *variable_shape)`.

        Args:
            features: the features.
            weights: creates its variables.
        """


class CategoricalColumn(CategoricalProtocol, FeatureColumn):
    """A column that produces ids."""

    @property
    @abstractmethod
    def num_buckets(self) -> int:
        """The number of ids, which are in [0, num_buckets)."""

    @abstractmethod
    def transform(self, features: Features) -> Ids:
        """The ids of a batch."""

    def transform_steps(self, features: Features) -> Ids:
        """The ids of the steps of sequences.

        Raises:
            ValueError: there is no sequence column of this kind.
        """
        raise value_error(
            f"{type(self).__name__} {self.name!r} cannot be a sequence",
            hint="use a sequence_categorical_column_with_*",
        )

    def host_ids(self, features: Features) -> Tensor:
        """The ids for host operations, such as crosses.

        Raises:
            ValueError: they have weights.
        """
        found: Ids = features.transformed(self)
        if found.weights is not None:
            raise value_error(
                "crossed_column does not support weight_tensor, but the given column "
                f"populates weight_tensor. Given column: {self.name}",
                hint="cross the column without its weights",
            )
        return found.ids


class SequenceDenseColumn(SequenceProtocol, FeatureColumn):
    """A column that produces a float tensor for each step of sequences."""

    TensorSequenceLengthPair = Sequence

    @property
    @abstractmethod
    def variable_shape(self) -> TensorShape:
        """The fully defined shape of one step."""

    @abstractmethod
    def sequence(self, features: Features, weights: WeightMaker) -> Sequence:
        """The steps and the sequences' lengths; see `DenseColumn.dense_tensor`."""


def raw_keys(column: FeatureColumn) -> Iterator[str]:
    """The keys of the raw features that a column reads."""
    for parent in column.parents:
        if isinstance(parent, str):
            yield parent
        else:
            yield from raw_keys(parent)


def check_key(key: Any) -> None:
    """Raises ValueError if a feature's key is not a string."""
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")


def normalize_columns(feature_columns: Any, word: str = "FeatureColumn") -> list[FeatureColumn]:
    """Returns columns as a list, sorted by name.

    Args:
        feature_columns: a column or an iterable of columns.
        word: the word for a column in the error message.

    Raises:
        ValueError: there are none, one is not a column, or two have the same name.
    """
    if isinstance(feature_columns, Mapping):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    if isinstance(feature_columns, (str, FeatureColumn)) or not isinstance(
        feature_columns, Iterable
    ):
        feature_columns = [feature_columns]
    columns = list(feature_columns)
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    by_name: dict[str, FeatureColumn] = {}
    for column in columns:
        if not isinstance(column, FeatureColumn):
            raise value_error(
                f"Items of feature_columns must be a {word}. Given (type {type(column)}): {column}",
                hint=f"use feature_column.numeric_column({column!r})"
                if isinstance(column, str)
                else None,
            )
        if column.name in by_name:
            raise value_error(
                f"Duplicate feature column name found for columns: {column} and "
                f"{by_name[column.name]}",
                expected="each column once",
                hint="leave one out, or put the feature under a second key in input_fn",
            )
        by_name[column.name] = column
    return sorted(columns, key=lambda column: column.name)
