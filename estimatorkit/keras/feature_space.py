"""`FeatureSpace`: the preprocessing of a table's columns by their kinds, as in Keras 3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import did_you_mean, explain, value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras.engine.input_layer import Input
from estimatorkit.layers.lookup import IntegerLookup, StringLookup
from estimatorkit.layers.preprocessing import (
    CategoryEncoding,
    Discretization,
    HashedCrossing,
    Hashing,
    Normalization,
    Rescaling,
    batches,
)
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.math import elementwise

Output = Literal["int", "one_hot", "float"]


@dataclass(frozen=True)
class Feature:
    """How a column becomes numbers.

    Attributes:
        dtype: of the column.
        layer: the layer that preprocesses it; None leaves it unchanged.
        size: how many ids there are, where the layer's output is one.
        output_mode: 'float', or what becomes of ids: 'int' or 'one_hot'.
    """

    dtype: str
    layer: Any
    size: Callable[[], int]
    output_mode: Output


class _Normalized:
    """A `Normalization` with constants instead of variables, for functions of datasets."""

    def __init__(self) -> None:
        self._layer: Normalization | None = None

    def adapt(self, data: Any) -> None:
        """Takes the mean and the variance of data."""
        values = np.concatenate([np.asarray(each, np.float64) for each in batches(data)])
        self._layer = Normalization(mean=values.mean(), variance=values.var())

    def __call__(self, x: Tensor) -> Any:
        """The normalized numbers."""
        if self._layer is None:
            raise RuntimeError(
                explain("the FeatureSpace knows no mean yet", hint="call adapt(dataset)")
            )
        return self._layer(x)


@dataclass(frozen=True)
class Cross:
    """Columns of which the combinations are hashed to `dim` numbers."""

    names: tuple[str, ...]
    dim: int
    output_mode: Output = "one_hot"

    def size(self) -> int:
        """How many ids there are."""
        return self.dim


class FeatureSpace:
    """Preprocesses the columns of a table, and concatenates them or returns them by name.

    Source: `keras.utils.FeatureSpace`.

    ```python
    space = tf.keras.utils.FeatureSpace(
        {"age": "float_normalized", "town": "string_categorical",
         "level": tf.keras.utils.FeatureSpace.integer_categorical(num_oov_indices=0)},
        crosses=[("town", "level")])
    space.adapt(dataset_of_dicts)
    dataset = dataset.map(lambda data, label: (space(data), label))
    ```

    Args:
        features: a dict from column names to kinds: 'float', 'float_rescaled', 'float_normalized',
            'float_discretized', 'integer_categorical', 'string_categorical', 'integer_hashed',
            'string_hashed', or the result of this class's method of that name.
        output_mode: 'concat' for one float32 tensor `(batch, n)`, or 'dict' for a tensor per name.
        crosses: tuples of column names whose combinations are hashed, or results of `cross`.
        crossing_dim: the number of bins for combinations.
        hashing_dim: the number of bins for hashed columns.
        num_discretization_bins: the number of ranges of discretized columns.

    Raises:
        ValueError: a kind or a column is unknown.
    """

    def __init__(
        self,
        features: Mapping[str, Any],
        output_mode: Literal["concat", "dict"] = "concat",
        crosses: Sequence[Any] | None = None,
        crossing_dim: int = 32,
        hashing_dim: int = 32,
        num_discretization_bins: int = 32,
    ) -> None:
        if output_mode not in ("concat", "dict"):
            raise value_error(
                "FeatureSpace: unknown output_mode",
                expected="'concat' or 'dict'",
                received=repr(output_mode),
            )
        sized = {
            "float_discretized": {"num_bins": num_discretization_bins},
            "integer_hashed": {"num_bins": hashing_dim},
            "string_hashed": {"num_bins": hashing_dim},
        }
        self.features: dict[str, Feature] = {}
        for name, kind in features.items():
            if isinstance(kind, str) and kind not in _KINDS:
                raise value_error(
                    f"FeatureSpace: the kind of {name!r} is unknown",
                    expected=f"one of {', '.join(_KINDS)}",
                    received=repr(kind),
                    hint=did_you_mean(kind, _KINDS),
                )
            made = getattr(self, kind)(**sized.get(kind, {})) if isinstance(kind, str) else kind
            self.features[name] = made
        self.output_mode = output_mode
        self.crosses: dict[str, tuple[HashedCrossing, Cross]] = {}
        for each in crosses or ():
            given = each if isinstance(each, Cross) else Cross(tuple(each), crossing_dim)
            names = given.names
            for name in names:
                if name not in self.features:
                    raise value_error(
                        "FeatureSpace: a cross names an unknown column",
                        expected=f"of {', '.join(self.features)}",
                        received=repr(name),
                    )
            self.crosses["_X_".join(names)] = (HashedCrossing(given.dim), given)

    # -- kinds

    @staticmethod
    def float(name: str | None = None) -> Feature:
        """A numeric feature, unchanged."""
        return Feature("float32", None, lambda: 1, "float")

    @staticmethod
    def float_rescaled(scale: Any = 1.0, offset: Any = 0.0, name: str | None = None) -> Feature:
        """A numeric feature, times `scale` plus `offset`."""
        return Feature("float32", Rescaling(scale, offset), lambda: 1, "float")

    @staticmethod
    def float_normalized(name: str | None = None) -> Feature:
        """A numeric feature, normalized to mean 0 and variance 1."""
        return Feature("float32", _Normalized(), lambda: 1, "float")

    @staticmethod
    def float_discretized(
        num_bins: int, bin_boundaries: Any = None, output_mode: Output = "one_hot", name: Any = None
    ) -> Feature:
        """A numeric feature, mapped to ranges: those given, or quantiles of the data."""
        layer = Discretization(bin_boundaries, num_bins if bin_boundaries is None else None)
        return Feature("float32", layer, lambda: len(layer.bin_boundaries or ()) + 1, output_mode)

    @staticmethod
    def integer_categorical(
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        output_mode: Output = "one_hot",
        name: str | None = None,
    ) -> Feature:
        """An integer feature, looked up in a vocabulary."""
        layer = IntegerLookup(max_tokens, num_oov_indices)
        return Feature("int64", layer, layer.vocabulary_size, output_mode)

    @staticmethod
    def string_categorical(
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        output_mode: Output = "one_hot",
        name: str | None = None,
    ) -> Feature:
        """A string feature, looked up in a vocabulary."""
        layer = StringLookup(max_tokens, num_oov_indices)
        return Feature("string", layer, layer.vocabulary_size, output_mode)

    @staticmethod
    def integer_hashed(
        num_bins: int, output_mode: Output = "one_hot", name: str | None = None
    ) -> Feature:
        """An integer feature, hashed to bins."""
        return Feature("int64", Hashing(num_bins), lambda: num_bins, output_mode)

    @staticmethod
    def string_hashed(
        num_bins: int, output_mode: Output = "one_hot", name: str | None = None
    ) -> Feature:
        """A string feature, hashed to bins."""
        return Feature("string", Hashing(num_bins), lambda: num_bins, output_mode)

    @staticmethod
    def cross(
        feature_names: Sequence[str], crossing_dim: int, output_mode: Output = "one_hot"
    ) -> Cross:
        """Combinations of columns, hashed to `crossing_dim` bins."""
        return Cross(tuple(feature_names), crossing_dim, output_mode)

    # -- use

    def adapt(self, dataset: Any) -> None:
        """Computes vocabularies, means and ranges from data.

        Args:
            dataset: a dataset of dicts of columns, batched or not; or a dict of arrays.
        """
        for name, feature in self.features.items():
            if hasattr(feature.layer, "adapt") and not getattr(feature.layer, "built", False):
                feature.layer.adapt(_column(dataset, name))

    def get_inputs(self) -> dict[str, Any]:
        """Returns a dict with an `Input` for each column, `(batch, 1)`."""
        return {
            name: Input((1,), dtype=feature.dtype, name=name)
            for name, feature in self.features.items()
        }

    def __call__(self, data: Mapping[str, Any]) -> Any:
        """Returns the preprocessed columns, in the form given by `output_mode`.

        Args:
            data: a dict from column names to tensors or arrays `()`, `(batch,)` or `(batch, 1)`.

        Raises:
            ValueError: a column is missing.
        """
        missing = [name for name in self.features if name not in data]
        if missing:
            raise value_error(
                "FeatureSpace: a column is missing",
                expected=", ".join(self.features),
                received=", ".join(data),
            )
        columns = {
            name: _as_column(data[name], self.features[name].dtype) for name in self.features
        }
        alone = all(convert_to_tensor(data[name]).shape.rank == 0 for name in self.features)
        found: dict[str, Tensor] = {}
        for name, feature in self.features.items():
            prepared = columns[name] if feature.layer is None else feature.layer(columns[name])
            found[name] = self._encoded(prepared, feature.output_mode, feature.size)
        for name, (layer, cross) in self.crosses.items():
            crossed = layer([_crossable(columns[each]) for each in cross.names])
            found[name] = self._encoded(crossed, cross.output_mode, cross.size)
        if alone:
            found = {name: array.squeeze(each, [0]) for name, each in found.items()}
        if self.output_mode == "dict":
            return found
        return joining.concat([elementwise.cast(each, "float32") for each in found.values()], -1)

    def _encoded(self, ids: Tensor, mode: Output, size: Callable[[], int]) -> Tensor:
        if mode != "one_hot":
            return ids
        encoded: Tensor = CategoryEncoding(size(), "one_hot")(ids)
        return encoded


_KINDS = (
    "float",
    "float_rescaled",
    "float_normalized",
    "float_discretized",
    "integer_categorical",
    "string_categorical",
    "integer_hashed",
    "string_hashed",
)


def _column(dataset: Any, name: str) -> Any:
    """A column in batches `(batch, 1)`."""
    if isinstance(dataset, Mapping):
        return _stood_up(dataset[name])
    found: Iterable[Any] = dataset.as_numpy_iterator()
    # In batches, even for datasets of single examples: a Python step for each would be slow.
    first = next(iter(dataset.as_numpy_iterator()))
    if getattr(first[name], "ndim", 0) == 0:
        found = dataset.batch(1024).as_numpy_iterator()
    return map(_stood_up, (batch[name] for batch in found))


def _stood_up(values: Any) -> Any:
    return np.asarray(values).reshape(-1, 1)


def _as_column(value: Any, dtype: str) -> Tensor:
    x = convert_to_tensor(value)
    if dtype != "string" and x.dtype.name != dtype:
        x = elementwise.cast(x, dtype)
    if x.shape.rank == 0:
        return array.reshape(x, [1, 1])
    return array.expand_dims(x, -1) if x.shape.rank == 1 else x


def _crossable(x: Tensor) -> Tensor:
    return elementwise.cast(x, "int64") if x.dtype.is_floating else x


__all__ = ["FeatureSpace"]
