"""The inputs of a network for tables: scaled numbers, categories and missing-value indicators.

Statistics of the numbers and of a regressor's labels are variables that are not trained. They are
measured on the first rows of the training input before the first step, so that a model carries
them: in its checkpoints and exports, and on every task.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import OutOfRangeError, value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.data.iterator_ops import iterator_states, restore_iterators
from estimatorkit.layers.feature_column import (
    CategoricalColumn,
    DenseColumn,
    FeatureColumn,
    NumericColumn,
    embedding_column,
    indicator_column,
    input_layer,
    normalize_columns,
)
from estimatorkit.layers.feature_column.embedding import EmbeddingColumn
from estimatorkit.layers.numeric_embeddings import robust_statistics
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.variables.initializers import TruncatedNormal
from estimatorkit.ops.variables.variable_scope import variable_scope
from estimatorkit.train.hooks.hooks import SessionRunHook

Array = NDArray[Any]

MOST_ONE_HOT = 10
"""Categories of more ids than this are embedded."""

SAMPLE = 20_000
"""The rows that statistics are measured on."""

SMOOTH_LIMIT = 3.0
"""The bound of a clipped number (RealMLP, arXiv:2407.04491)."""


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table by how a network reads them.

    Attributes:
        numbers: those whose values are scaled and embedded.
        others: dense columns whose values are taken as they are.
    """

    numbers: tuple[NumericColumn, ...]
    others: tuple[DenseColumn, ...]

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return sum(math.prod(each.shape) for each in self.numbers)

    @classmethod
    def of(
        cls, feature_columns: FeatureColumn | Iterable[FeatureColumn], folds: int = 1
    ) -> TableColumns:
        """Sorts columns; categorical ones become indicators or, of many ids, embeddings.

        Args:
            feature_columns: numeric, categorical and other dense columns.
            folds: each has embeddings of its own, see `TableInputs`.

        Raises:
            ValueError: there are none, or one is of another kind.
        """
        numbers, others = [], []
        for column in normalize_columns(feature_columns):
            if isinstance(column, NumericColumn):
                numbers.append(column)
            elif isinstance(column, DenseColumn):
                others.append(column)
            elif isinstance(column, CategoricalColumn):
                others.append(_dense(column, folds))
            else:
                raise value_error(
                    f"{column.name!r} is not a column of a table",
                    expected="numeric, categorical, bucketized, indicator or embedding columns",
                    received=repr(column)[:200],
                )
        return cls(tuple(numbers), tuple(others))


def _dense(column: CategoricalColumn, folds: int) -> DenseColumn:
    if column.num_buckets <= MOST_ONE_HOT:
        return indicator_column(column)
    width = embedding_width(column.num_buckets)
    initial = TruncatedNormal(stddev=1 / math.sqrt(width))
    return embedding_column(column, folds * width, initializer=initial)


def embedding_width(ids: int) -> int:
    """The width of an embedding of so many ids: 1.6 n**0.56, at least 4 and at most 32.

    Source: the rule of the fastai library (Howard & Gugger 2020, arXiv:2002.04688).
    """
    return int(min(32, max(4, round(1.6 * ids**0.56))))


@dataclass(frozen=True)
class TableInputs:
    """The inputs of a batch.

    If there are folds, all but `raw` are `(folds, batch, ...)`: categories of many ids have an
    embedding for each.

    Attributes:
        raw: the numbers as they were given, `(batch, n)`; NaN where one is missing.
        clipped: scaled, within (-3, 3), and 0 where one is missing.
        scaled: scaled only.
        others: float32 `(batch, m)`: categories, other dense columns, and 1 where a number is
            missing.
    """

    raw: Tensor
    clipped: Tensor
    scaled: Tensor
    others: Tensor


class TableStatistics:
    """Statistics of a data set, held in non-trainable variables; see the module.

    Attributes:
        center, scale: of the numbers, `(n,)`: the median, and 1 / (upper - lower quartile).
        label_center, label_scale: the mean and the standard deviation of the labels, `(units,)`;
            None if labels are classes.
    """

    def __init__(self, numbers: int, label_units: int | None) -> None:
        with variable_scope("statistics"):
            self.measured = _statistic("measured", np.bool_(False))
            self.center = _statistic("center", np.zeros(numbers, np.float32))
            self.scale = _statistic("scale", np.ones(numbers, np.float32))
            self.label_center = self.label_scale = None
            if label_units is not None:
                self.label_center = _statistic("label_center", np.zeros(label_units, np.float32))
                self.label_scale = _statistic("label_scale", np.ones(label_units, np.float32))

    def in_label_units(self, logits: Tensor) -> Tensor:
        """Logits `(..., units)` in the units of the labels."""
        if self.label_scale is None:
            return logits
        return logits * self.label_scale + self.label_center

    def standardized(self, labels: Tensor) -> Tensor:
        """Labels `(batch, units)` in the units of the logits."""
        return (elementwise.cast(labels, float32) - self.label_center) / self.label_scale

    def load(self, session: Any, numbers: Array, labels: Array | None) -> None:
        """Sets the variables to the statistics of arrays `(rows, n)` and `(rows, units)`."""
        found = dict(zip((self.center, self.scale), robust_factors(numbers), strict=True))
        if labels is not None and self.label_center is not None and self.label_scale is not None:
            deviation = labels.std(axis=0, dtype=np.float64)
            found[self.label_center] = labels.mean(axis=0, dtype=np.float64)
            found[self.label_scale] = np.where(deviation > 0, deviation, 1.0)
        for variable, value in found.items():
            variable.load(value.astype(np.float32), session)
        self.measured.load(np.bool_(True), session)


def _statistic(name: str, value: Any) -> Variable:
    return Variable(value, name=name, trainable=False)


def robust_factors(numbers: Array) -> tuple[Array, Array]:
    """The center and the scale factor, 1 / spread, of each column, float32 `(n,)`.

    The factor is 0 where all values are equal; see `robust_statistics`. Numbers that are not finite
    are ignored.

    Args:
        numbers: `(rows, n)`.
    """
    columns = numbers.T.astype(np.float64)
    found = [robust_statistics(column[np.isfinite(column)]) for column in columns]
    center, spread = np.array(found, np.float64).reshape(-1, 2).T
    factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    return center.astype(np.float32), factor.astype(np.float32)


def table_inputs(
    features: Any, columns: TableColumns, statistics: TableStatistics, folds: int = 1
) -> TableInputs:
    """The inputs of a batch.

    Args:
        features: tensors by key.
        columns: the columns that read them.
        statistics: see `TableStatistics`.
        folds: those of `columns`.
    """
    parts: list[Tensor] = []
    raw: Tensor | None = None
    if columns.numbers:
        with variable_scope("numbers"):
            raw = input_layer(features, columns.numbers)
        missing = elementwise.is_nan(raw)
        scaled = (raw - statistics.center) * statistics.scale
        scaled = indexing.where(missing, filling.zeros_like(raw), scaled)
        third = scaled / SMOOTH_LIMIT
        clipped = scaled * elementwise.rsqrt(1.0 + third * third)
        parts.append(_of_each_fold(elementwise.cast(missing, float32), folds))
        clipped, scaled = (_of_each_fold(each, folds) for each in (clipped, scaled))
    if columns.others:
        with variable_scope("others"):
            parts += _others(features, columns.others, folds)
    others = joining.concat(parts, -1) if len(parts) > 1 else parts[0]
    if raw is None:
        raw = scaled = clipped = others[..., :0]
    return TableInputs(raw, clipped, scaled, others)


def _others(features: Any, columns: Sequence[DenseColumn], folds: int) -> list[Tensor]:
    if folds == 1:
        return [input_layer(features, columns)]
    found = []
    for column in columns:
        read = input_layer(features, [column])
        if isinstance(column, EmbeddingColumn):
            of_each = array.reshape(read, [-1, folds, column.dimension // folds])
            found.append(array.transpose(of_each, [1, 0, 2]))
        else:
            found.append(_of_each_fold(read, folds))
    return found


def _of_each_fold(given: Tensor, folds: int) -> Tensor:
    """Repeats `(batch, n)` for each fold, `(folds, batch, n)`; unchanged if there is one."""
    return given if folds == 1 else filling.tile(array.expand_dims(given, 0), [folds, 1, 1])


class MeasureTable(SessionRunHook):
    """Measures statistics on the first rows of the training input, unless they were restored.

    Args:
        statistics: the variables to set.
        numbers: `(batch, n)`, the numbers as they are given.
        labels: `(batch, units)`, or None.
    """

    serves_one_training = False

    def __init__(self, statistics: TableStatistics, numbers: Tensor, labels: Tensor | None) -> None:
        self._statistics = statistics
        self._fetched = [numbers] if labels is None else [numbers, labels]

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Reads up to `SAMPLE` rows, and rewinds the input."""
        if session.run(self._statistics.measured.value()):
            return
        positions = iterator_states(session.state)
        batches = self._read(session)
        restore_iterators(session.state, positions)
        if not batches:
            return  # the training will say that its input is empty
        numbers, *labels = (np.concatenate(parts) for parts in zip(*batches, strict=True))
        self._statistics.load(session, numbers, labels[0] if labels else None)

    def _read(self, session: Any) -> list[list[Array]]:
        batches: list[list[Array]] = []
        rows = 0
        while rows < SAMPLE:
            try:
                batches.append(session.run(self._fetched))
            except OutOfRangeError:
                break
            rows += len(batches[-1][0])
            if not len(batches[-1][0]):
                break
        return batches
