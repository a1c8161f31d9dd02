"""Integrated gradients: what each feature column adds to a network's prediction of a row.

The columns' tensors go on a straight line from a background row's to the row's, and a column's
contribution is the integral of the gradient along it (Sundararajan, Taly and Yan 2017,
arXiv:1703.01365), averaged over the background rows (Erion et al. 2021, arXiv:1906.10670). The
integral is a sum over `STEPS` parts of the line. Of each part the change of the prediction is
known, too, and what the sum lacks of it (the kinks of ReLU) is shared in proportion: contributions
and baseline sum to the prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.gradients import gradients
from estimatorkit.core.nest import flatten
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.built_model import BuiltModel
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.explanations import Explanation, output_of
from estimatorkit.estimator.model_input import ModelInput
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.layers.feature_column.columns import raw_keys
from estimatorkit.layers.feature_column.weights import notes_of_graph
from estimatorkit.ops.array import array

Array = NDArray[Any]

STEPS = 64
"""Points of the path integral: each contribution is then within a thousandth of the largest (ReLU,
two layers of 32; against 2,048 points)."""

_MOST_UNEXPLAINED = 0.5
"""The share of a prediction's changes that gradients may miss: of trees, they miss all."""


@dataclass(frozen=True)
class _Differentiated:
    """A model from the tensors of its columns on.

    Attributes:
        names: of the columns: the key that they read, or their own name.
        tensors: of the columns, `(batch, n)`; what the model gets.
        outputs: predictions by key.
        output: the one that is explained, `(batch, units)`.
        weights: fed, of the output's units, `(batch, units)`.
        slopes: the gradients of the weighted output; None where it does not depend on a tensor.
    """

    names: Sequence[str]
    tensors: Sequence[Tensor]
    outputs: Mapping[str, Tensor]
    output: Tensor
    weights: Tensor
    slopes: Sequence[Tensor | None]


def integrated_gradients(
    estimator: Estimator,
    rows: Mapping[str, Array],
    background: Mapping[str, Array],
    output: str | None = None,
    checkpoint_path: str | None = None,
) -> Explanation:
    """Explains the predictions of rows by gradients.

    Args:
        estimator: a trained one whose columns are read by `input_layer` or `linear_model`, as those
            of premade networks and linear models are.
        rows: by key, `(rows, ...)`.
        background: by key, `(n, ...)`: what the rows are compared with.
        output: see `explanations.score_of`.
        checkpoint_path: the checkpoint; the newest by default.

    Returns:
        Contributions by the key that a column reads; of a column of several, by its name.

    Raises:
        ValueError: the model is not differentiable, or reads features otherwise; a number is
            missing; or see `explanations.score_of`.
    """
    path = estimator._checkpoint_or_error(checkpoint_path)
    with estimator.as_predictor(path) as predictor:
        key, chosen = output_of(predictor.batch(dict(rows)), output)
    given = ModelInput.of(
        lambda: Dataset.from_tensor_slices(dict(rows)).batch(len(chosen)), ModeKeys.PREDICT, None
    )
    model = estimator._build(given, ModeKeys.PREDICT, lambda spec: _differentiated(spec, key))
    try:
        model.load(path)
        _check_ways(model)
        return _explained(model, rows, background, chosen)
    finally:
        model.close()


def _differentiated(spec: EstimatorSpec, key: str) -> _Differentiated:
    found = list(notes_of_graph().get("tensors", {}).values())
    names, tensors = [], []
    for column, tensor in found:
        keys = [*dict.fromkeys(raw_keys(column))]
        names.append(keys[0] if len(keys) == 1 else column.name)
        tensors.append(tensor)
    whole = spec.predictions[key]
    flat = array.reshape(whole, [array.shape(whole)[0], whole.shape[-1]])
    weights = placeholder(float32, [None, whole.shape[-1]])
    slopes = gradients(flat, tensors, grad_ys=[weights]) if tensors else []
    return _Differentiated(names, tensors, spec.predictions, flat, weights, slopes)


def _check_ways(model: BuiltModel) -> None:
    """Raises ValueError if the output gets features otherwise than by the tensors of columns."""
    parts: _Differentiated = model.extra
    ends = {tensor.name for tensor in parts.tensors}
    features = {tensor.name for tensor in flatten(model.features)}
    left, seen = [parts.output], set[str]()
    while left:
        tensor = left.pop()
        if tensor.name in seen or tensor.name in ends:
            continue
        seen.add(tensor.name)
        if tensor.name in features:
            raise value_error(
                "the model is no function of the tensors of feature columns",
                expected="one that reads features by input_layer or linear_model only",
                received=f"{tensor.name} is read otherwise",
                hint="method='permutation' explains every model",
            )
        left += tensor.op.inputs


def _explained(
    model: BuiltModel, rows: Mapping[str, Array], background: Mapping[str, Array], chosen: Array
) -> Explanation:
    parts: _Differentiated = model.extra
    fed = flatten(model.features)
    ends = []
    for table in (rows, background):
        columns = [table[key] for key in sorted(rows)] if isinstance(model.features, dict) else []
        found = model.session.run(list(parts.tensors), dict(zip(fed, columns, strict=True)))
        ends.append([np.asarray(each, np.float64) for each in found])
    goals, starts = ends
    for name, goal, start in zip(parts.names, goals, starts, strict=True):
        if not (np.isfinite(goal).all() and np.isfinite(start).all()):
            raise value_error(
                f"{name!r} has missing values, between which there is no line",
                hint="method='permutation' takes them",
            )
    baseline = np.zeros(len(chosen))
    totals = {name: np.zeros(len(chosen)) for name in parts.names}
    missed = changed = 0.0
    for row in range(len(chosen)):
        for other in range(len(starts[0])):
            line = _Line(model, [each[row] for each in goals], [each[other] for each in starts])
            values, shares, lacking = line.integrated(int(chosen[row]))
            baseline[row] += values[0]
            for name, share in zip(parts.names, shares, strict=True):
                totals[name][row] += share
            missed, changed = missed + lacking, changed + float(np.abs(np.diff(values)).sum())
    if missed > _MOST_UNEXPLAINED * changed:
        raise value_error(
            "gradients do not explain the predictions",
            expected="a differentiable model, such as a network",
            received=f"they miss {missed / changed:.0%} of the changes",
            hint="method='permutation' explains every model",
        )
    count = len(starts[0])
    return Explanation(baseline / count, {name: each / count for name, each in totals.items()})


@dataclass(frozen=True)
class _Line:
    """The line between two rows, as values of the columns' tensors."""

    model: BuiltModel
    goal: Sequence[Array]
    start: Sequence[Array]

    def integrated(self, unit: int) -> tuple[Array, Array, float]:
        """Integrates one unit of the output.

        Returns:
            Its values at the ends of the parts, `(STEPS + 1,)`; what each column adds,
            `(columns,)`; and how much of the changes the gradients missed.
        """
        parts: _Differentiated = self.model.extra
        at = np.arange(2 * STEPS + 1) / (2 * STEPS)
        feeds: dict[Any, Any] = {}
        for tensor, goal, start in zip(parts.tensors, self.goal, self.start, strict=True):
            feeds[tensor] = (start + at[:, None] * (goal - start)).astype(np.float32)
        units = int(parts.output.shape[-1] or 1)
        weights = np.tile(np.eye(units, dtype=np.float32)[unit], (len(at), 1))
        wanted = [each for each in parts.slopes if each is not None]
        output, *found = self.model.session.run(
            [parts.output, *wanted], {**feeds, parts.weights: weights}
        )
        values = np.asarray(output, np.float64)[::2, unit]
        slopes = iter(found)
        added = np.zeros((len(parts.tensors), STEPS))
        for place, each in enumerate(parts.slopes):
            if each is not None:
                middle = np.asarray(next(slopes), np.float64)[1::2]
                added[place] = middle @ (self.goal[place] - self.start[place]) / STEPS
        lacking = np.diff(values) - added.sum(0)
        moved = [
            goal.tobytes() != start.tobytes()
            for goal, start in zip(self.goal, self.start, strict=True)
        ]
        sizes = np.abs(added) + 1e-12 * np.array(moved, np.float64)[:, None]
        shares = added + lacking * sizes / np.maximum(sizes.sum(0), 1e-300)
        return values, shares.sum(1), float(np.abs(lacking).sum())


__all__ = ["STEPS", "integrated_gradients"]
