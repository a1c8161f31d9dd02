"""`LinearMember`: the linear model of an ensemble, fitted by scikit-learn to all rows at once.

Small tables, and categories of many ids, are where a linear model with a penalty is hard to beat.
Numbers are given twice, standardized, and scaled robustly with a smooth limit, since outliers mean
little. Categories become indicators, and those that the rows hardly show share one. The checkpoint
holds the coefficients (`linear_member/<part>`), so that predictions and exported models need no
scikit-learn.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.layers.numeric_embeddings import robust_statistics
from estimatorkit.ops.array import filling, indexing, joining
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.linalg import matmul
from estimatorkit.premade.fit_at_end import Fit, Part, fit_model_fn
from estimatorkit.premade.forest_columns import ForestColumns
from estimatorkit.premade.forest_training import Task
from estimatorkit.premade.head import Head

Array = NDArray[Any]

PENALTIES = (0.01, 0.1, 1.0)
"""Values of scikit-learn's C, the inverse of the penalty, of which the best is taken."""

SHRINKAGES = (1.0, 10.0, 100.0)
"""Ridge regression's alpha."""

LEAST_ROWS = 3
"""Ids that occur in fewer rows share one indicator."""

_SCOPE = "linear_member"

_LIMIT = 3.0
"""What numbers are scaled to at most, as in a network for tables."""

_CHOSEN_ON = 0.2
_ITERATIONS = 200


class _Coefficients(NamedTuple):
    """The variables, or their values.

    Attributes:
        center, scale: of the numbers, `(n,)`: the mean, and 1 / the standard deviation.
        median, inverse_spread: the median, and 1 / the spread (see `robust_statistics`), `(n,)`.
        kernel: of the standardized numbers, those with a limit, and 1 for each that is missing or
            infinite, `(3 n, units)`.
        table: added for each id, and last for a missing one, of each category, `(ids, units)`.
        bias: `(units,)`.
    """

    center: Any
    scale: Any
    median: Any
    inverse_spread: Any
    kernel: Any
    table: Any
    bias: Any


class LinearMember(Estimator):
    """A linear model of a table, which reads the training input once.

    Args:
        head: determines labels, loss, metrics and predictions.
        feature_columns: those of boosted trees.
        model_dir: where the checkpoint goes.
        config: a `RunConfig`.
        folds: see `folds`.
    """

    reads_once = True
    takes_columns = "raw"

    def __init__(
        self,
        head: Head,
        feature_columns: Any,
        model_dir: str | os.PathLike[str] | None = None,
        config: RunConfig | None = None,
        folds: int = 1,
    ) -> None:
        task, columns = Task.of(head), ForestColumns(feature_columns)
        layout = _Layout(columns.inputs)
        model_fn = fit_model_fn(
            head,
            columns,
            lambda scope: layout.variables(head.logits_dimension, scope),
            layout.logits,
            _fit(layout, task.classes),
            _SCOPE,
            folds,
        )
        super().__init__(model_fn, model_dir, config)


class _Layout:
    """Where the numbers and the categories of a row are.

    Args:
        inputs: how many ids each value of a row has; 0: it is a number.
    """

    def __init__(self, inputs: Sequence[int]) -> None:
        self.numbers = [place for place, count in enumerate(inputs) if not count]
        self.categories = [place for place, count in enumerate(inputs) if count]
        self.sizes = [inputs[place] + 1 for place in self.categories]
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int32)

    def variables(self, units: int, scope: str) -> _Coefficients:
        """Variables, zero at first."""
        numbers = len(self.numbers)
        shapes = 4 * [(numbers,)] + [(3 * numbers, units)]
        shapes += [(int(self.starts[-1]), units), (units,)]
        made = [
            Variable(np.zeros(shape, np.float32), name=f"{scope}/{name}", trainable=False)
            for name, shape in zip(_Coefficients._fields, shapes, strict=True)
        ]
        return _Coefficients(*made)

    def logits(self, given: _Coefficients, rows: Tensor) -> Tensor:
        """Logits `(batch, units)` of rows `(batch, inputs)`."""
        found: Tensor = filling.zeros_like(rows[:, :1]) + given.bias
        if self.numbers:
            numbers = indexing.gather(rows, np.array(self.numbers, np.int32), axis=1)
            absent = elementwise.logical_not(elementwise.is_finite(numbers))
            known = indexing.where(absent, filling.zeros_like(numbers) + given.center, numbers)
            scaled = (known - given.center) * given.scale
            clipped = (known - given.median) * given.inverse_spread
            clipped = clipped * elementwise.rsqrt(1.0 + elementwise.square(clipped / _LIMIT))
            read = joining.concat([scaled, clipped, elementwise.cast(absent, np.float32)], 1)
            found = found + matmul(read, given.kernel)
        if self.categories:
            ids = indexing.gather(rows, np.array(self.categories, np.int32), axis=1)
            last = filling.zeros_like(ids) + np.array(self.sizes, np.float32) - np.float32(1)
            ids = indexing.where(elementwise.is_nan(ids), last, ids)
            places = elementwise.cast(ids, np.int32) + self.starts[:-1]
            found = found + reduce.reduce_sum(indexing.gather(given.table, places), 1)
        return found

    def places(self, rows: Array) -> Array:
        """The place in the table of each category, `(rows, categories)`."""
        ids = rows[:, self.categories]
        last = np.array(self.sizes) - 1
        return np.where(np.isnan(ids), last, ids).astype(np.int64) + self.starts[:-1]


def _fit(layout: _Layout, classes: int) -> Fit:
    """The function that fits the coefficients."""

    def fit(part: Part, seed: int) -> _Coefficients:
        from scipy import sparse

        rows, labels, weights = part
        numbers = rows[:, layout.numbers].astype(np.float64)
        absent = ~np.isfinite(numbers)
        present = np.ma.masked_array(numbers, absent)
        center = present.mean(0).filled(0.0)
        deviation = present.std(0).filled(0.0)
        columns_of_numbers = zip(numbers.T, absent.T, strict=True)
        robust = [robust_statistics(column[~gaps]) for column, gaps in columns_of_numbers]
        median, spread = np.reshape(robust, (-1, 2)).T
        scale, inverse_spread = (
            np.divide(1.0, each, out=np.zeros_like(each), where=each > 0)
            for each in (deviation, spread)
        )
        known = np.where(absent, center, numbers)
        clipped = (known - median) * inverse_spread
        clipped /= np.sqrt(1.0 + np.square(clipped / _LIMIT))
        read = np.concatenate([(known - center) * scale, clipped, absent], 1)
        places = layout.places(rows)
        shared = _shared_places(layout, places)
        used, columns = np.unique(shared, return_inverse=True)
        taken = columns[places]
        wide = sparse.csr_matrix(
            (
                np.ones(taken.size),
                taken.reshape(-1),
                np.arange(len(rows) + 1) * len(layout.categories),
            ),
            shape=(len(rows), len(used)),
        )
        design: Any = sparse.hstack([sparse.csr_matrix(read), wide], format="csr")
        kernel, bias = _chosen(design, labels, weights, classes, seed)
        count = read.shape[1]
        values = (
            center,
            scale,
            median,
            inverse_spread,
            kernel[:count],
            kernel[count:][columns],
            bias,
        )
        return _Coefficients(*(each.astype(np.float32) for each in values))

    return lambda parts, config: [fit(each, config.tf_random_seed or 0) for each in parts]


def _shared_places(layout: _Layout, places: Array) -> Array:
    """The place whose indicator each place of the table has: ids of few rows share one."""
    total = int(layout.starts[-1])
    seen = np.bincount(places.reshape(-1), minlength=total)
    shared = np.arange(total)
    for start, end in zip(layout.starts, layout.starts[1:], strict=False):
        rare = start + np.flatnonzero(seen[start:end] < LEAST_ROWS)
        if len(rare):
            shared[rare] = rare[0]
    return shared


def _chosen(
    design: Any, labels: Array, weights: Array | None, classes: int, seed: int
) -> tuple[Array, Array]:
    """Coefficients `(columns, units)` and bias with the penalty that predicts best."""
    order = np.random.default_rng(seed).permutation(len(labels))
    count = max(1, round(len(labels) * _CHOSEN_ON))
    held_out, training = order[:count], order[count:]
    choices = PENALTIES if classes else SHRINKAGES
    if len(training) == 0:
        return _fitted(design, labels, weights, classes, choices[0])
    part = None if weights is None else weights[training]
    losses = []
    for choice in choices:
        kernel, bias = _fitted(design[training], labels[training], part, classes, choice)
        logits = design[held_out] @ kernel + bias
        each = _losses(logits, labels[held_out], classes)
        losses.append(np.average(each, weights=None if weights is None else weights[held_out]))
    return _fitted(design, labels, weights, classes, choices[int(np.nanargmin(losses))])


def _losses(logits: Array, labels: Array, classes: int) -> Array:
    """The loss of each row."""
    if not classes:
        squares: Array = np.square(logits[:, 0] - labels)
        return squares
    if classes == 2:
        logits = np.concatenate([np.zeros_like(logits), logits], 1)
    of_label = np.take_along_axis(logits, labels.astype(np.int64)[:, None], 1)[:, 0]
    found: Array = np.logaddexp.reduce(logits, 1) - of_label
    return found


def _fitted(
    design: Any, labels: Array, weights: Array | None, classes: int, choice: float
) -> tuple[Array, Array]:
    """Coefficients `(columns, units)` and bias `(units,)`."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression, Ridge

    if not classes:
        ridge = Ridge(alpha=choice).fit(design, labels, weights)
        return np.reshape(ridge.coef_, (-1, 1)), np.reshape(ridge.intercept_, (1,))
    units = 1 if classes == 2 else classes
    present = np.unique(labels.astype(np.int64))
    # A class that does not occur is as rare as one row.
    kernel = np.zeros((design.shape[1], units))
    bias = np.full(units, -np.log(len(labels) + 1.0))
    if len(present) == 1:
        if units > 1 or present[0] == 1:
            bias[present[0] if units > 1 else 0] *= -1
        return kernel, bias
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is good enough then
        model = LogisticRegression(C=choice, max_iter=_ITERATIONS)
        model.fit(design, labels.astype(np.int64), weights)
    if units == 1:
        return model.coef_.T, model.intercept_
    if len(present) == 2:  # the logit of the second of them
        kernel[:, present[1]], bias[present] = model.coef_[0], [0.0, model.intercept_[0]]
        return kernel, bias
    kernel[:, present], bias[present] = model.coef_.T, model.intercept_
    return kernel, bias


__all__ = ["LinearMember"]
