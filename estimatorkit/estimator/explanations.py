"""What each feature adds to the prediction of a row: Shapley values by permutation sampling.

Features take the row's values one after another, in a random order, from those of a background row;
a feature's contribution is the mean of the changes that it makes (Castro, Gómez and Tejada 2009,
"Polynomial calculation of the Shapley value based on sampling"; Štrumbelj and Kononenko 2014). Each
order is also taken backwards (antithetic sampling, Mitchell et al. 2022, arXiv:2104.12199). The
changes of an order add up, so that contributions and baseline sum to the prediction whatever the
number of samples; for a model without interactions they are exact: w (x - mean of the background)
of a linear one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.estimator.serving.predictor import Predictor
from estimatorkit.storage.atomic_files import read_plain
from estimatorkit.train.saving.saved_model_constants import EXTRA_ASSETS_DIRECTORY

Array = NDArray[Any]
Score = Callable[[Mapping[str, Array], Array], Array]
"""Takes features by key, `(n, ...)`, and the number of the explained row for each, `(n,)`; returns
the value of each, `(n,)`.
"""

BACKGROUND = 32
"""Background rows that are enough: 64 orders of the features, half of them reversed ones."""

BACKGROUND_FILE = "background.json"
"""Background rows in an export's `assets.extra`."""

_MAX_BYTES = 1 << 24

_ROWS = 8192
"""Rows of a call; all calls have as many, so that there is one compilation."""


@dataclass(frozen=True)
class Explanation:
    """What features add to the predictions of rows.

    Attributes:
        baseline: the mean prediction of the background rows, float64 `(rows,)`.
        contributions: by key, float64 `(rows,)`; with the baseline they sum to the prediction.
    """

    baseline: Array
    contributions: Mapping[str, Array]

    @property
    def predictions(self) -> Array:
        """The sums, `(rows,)`."""
        total: Array = self.baseline + sum(self.contributions.values())
        return total


def explained(
    score: Score, rows: Mapping[str, Array], background: Mapping[str, Array], seed: int = 0
) -> Explanation:
    """Estimates the Shapley values of rows' predictions by permutation sampling.

    Args:
        score: computes values; a row's must not depend on the others.
        rows: by key, `(rows, ...)`.
        background: what features are when they are unknown: by key, `(n, ...)`, such as 32 training
            rows; or one row that the others are compared with.
        seed: of the orders; a row's explanation does not depend on the other rows.

    Raises:
        ValueError: a feature is missing in the background, or has another shape.
    """
    keys = sorted(rows)  # the same orders for a run and its export
    _check(rows, background)
    count, samples = len(rows[keys[0]]), len(background[keys[0]])
    random = np.random.default_rng(seed)
    orders = np.array([random.permutation(len(keys)) for _ in range(samples)])
    orders = np.concatenate([orders, orders[:, ::-1]])
    places = np.tile(np.arange(samples), 2)
    rank = np.argsort(orders, axis=1)
    # For each order and each number of features that are known: which are, and the background row.
    known = rank[:, None, :] < np.arange(len(keys) + 1)[:, None]
    steps = known.shape[0] * known.shape[1]
    known, other = known.reshape(steps, -1), np.repeat(places, len(keys) + 1)
    joined = {key: np.concatenate([rows[key], background[key]]) for key in keys}
    baseline, found = np.zeros(count), np.zeros((count, len(keys)))
    size, at_once = min(_ROWS, count * steps), max(1, _ROWS // steps)
    for start in range(0, count, at_once):
        here = np.arange(start, min(start + at_once, count))
        mixed = _Mixed(
            joined,
            np.repeat(here, steps),
            count + np.tile(other, len(here)),
            np.tile(known, (len(here), 1)),
        )
        curves = mixed.values(score, size).reshape(len(here), len(orders), -1)
        baseline[here] = curves[:, :, 0].mean(1)
        changes = np.diff(curves, axis=2)
        found[here] = np.take_along_axis(changes, rank[None], 2).mean(1)
    return Explanation(baseline, {key: found[:, keys.index(key)] for key in rows})


@dataclass(frozen=True)
class _Mixed:
    """Rows of which some features are a row's, and the others those of another one.

    Attributes:
        features: of all rows, by key.
        rows: the numbers of the explained rows, `(n,)`.
        others: the numbers of the other rows, `(n,)`.
        known: which features are of the first, `(n, keys)`.
    """

    features: Mapping[str, Array]
    rows: Array
    others: Array
    known: Array

    def values(self, score: Score, size: int) -> Array:
        """The value of each, float64 `(n,)`, in calls of `size` rows; the last row is repeated."""
        count, found = len(self.rows), []
        for start in range(0, count, size):
            part = np.minimum(np.arange(start, start + size), count - 1)
            rows, others, known = self.rows[part], self.others[part], self.known[part]
            mixed = {
                key: column[np.where(known[:, place], rows, others)]
                for place, (key, column) in enumerate(self.features.items())
            }
            found.append(score(mixed, rows))
        return np.concatenate(found)[:count].astype(np.float64)


def _check(rows: Mapping[str, Array], background: Mapping[str, Array]) -> None:
    for what, columns in (
        ("rows", rows),
        ("background", {key: background.get(key) for key in rows}),
    ):
        counts = {len(each) for each in columns.values() if each is not None}
        if len(counts) > 1:
            raise value_error(
                f"features of the {what} differ in their number of rows", received=sorted(counts)
            )
    for key, column in rows.items():
        if key not in background:
            raise value_error(
                f"the background lacks the feature {key!r}",
                expected=f"all of {sorted(rows)}",
                hint=did_you_mean(key, background),
            )
        if background[key].shape[1:] != column.shape[1:] or not len(background[key]):
            raise value_error(
                f"the feature {key!r} has another shape in the background",
                expected=f"(rows, ...) with {column.shape[1:]} behind, and at least one row",
                received=f"{background[key].shape}",
            )


def output_of(first: Mapping[str, Array], output: str | None) -> tuple[str, Array]:
    """The key of the predictions that are explained, and the place of each row's number.

    Args:
        first: the predictions of the rows to explain.
        output: see `score_of`.

    Raises:
        ValueError: see `score_of`.
    """
    key = output or next((each for each in _OUTPUTS if each in first), "")
    if key not in first:
        raise value_error(
            f"there is no prediction {key!r}" if key else "the predictions have no number",
            expected=f"one of {', '.join(map(str, first))}",
            hint=did_you_mean(key, list(map(str, first))),
        )
    units = first[key].reshape(len(first[key]), -1).shape[1]
    if units == 2 and key == "probabilities":
        chosen = np.ones(len(first[key]), np.int64)
    elif units > 1 and "class_ids" in first:
        chosen = np.asarray(first["class_ids"]).reshape(-1).astype(np.int64)
    elif units == 1:
        chosen = np.zeros(len(first[key]), np.int64)
    else:
        raise value_error(
            "several numbers are predicted for a row",
            expected="one number, or classes",
            received=f"{key} of shape {first[key].shape}",
        )
    return key, chosen


def score_of(
    predict: Callable[[Mapping[str, Array]], Mapping[str, Array]],
    rows: Mapping[str, Array],
    output: str | None = None,
) -> Score:
    """The number that is explained, of a model's predictions.

    Args:
        predict: predictions by key of features by key.
        rows: the rows to explain.
        output: a key of the predictions. By default `predictions`, or `probabilities`: of class
            1 of two classes, and of more of the class that is predicted for the row.

    Raises:
        ValueError: the predictions have no such key, or several numbers for a row.
    """
    key, chosen = output_of(predict(rows), output)

    def score(features: Mapping[str, Array], numbers: Array) -> Array:
        values = predict(features)[key]
        flat = values.reshape(len(values), -1)
        result: Array = flat[np.arange(len(flat)), chosen[numbers]]
        return result

    return score


def background_json(rows: Mapping[str, Array]) -> str:
    """Background rows as JSON, for an export's `assets.extra`."""

    def texts(value: Any) -> Any:
        if isinstance(value, list):
            return [texts(each) for each in value]
        return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value

    return json.dumps({key: texts(column.tolist()) for key, column in rows.items()})


def background_of_export(directory: Path) -> Path:
    """The file of an exported model's background rows."""
    return directory / EXTRA_ASSETS_DIRECTORY / BACKGROUND_FILE


def read_background(path: Path) -> dict[str, Array]:
    """The background rows in a file, by input.

    Raises:
        ValueError: there is no such file, or it is damaged.
    """
    try:
        content = read_plain(path)
        if len(content) > _MAX_BYTES:
            raise ValueError(f"{len(content)} bytes are too many")
        found = {str(key): _column(each) for key, each in json.loads(content).items()}
        if not all(each.ndim and 0 < len(each) <= BACKGROUND for each in found.values()):
            raise ValueError(f"columns do not have 1 to {BACKGROUND} rows")
        return found
    except (FileNotFoundError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise value_error(
            f"{path}: explanations need background rows",
            expected="the file that a training of an experiment writes",
            received=str(error),
            hint="tf.inspection.explain takes other rows",
        ) from error


def _column(values: Any) -> Array:
    """An array `(rows, ...)`, of bytes for text; `(rows, 1)` becomes `(rows,)`."""
    array = np.array(values)
    if array.dtype.kind in "USO":
        flat = [
            each.encode("utf-8", "surrogateescape") if isinstance(each, str) else each
            for each in np.ravel(np.array(values, object))
        ]
        array = np.array(flat, object).reshape(array.shape)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def of_request(predictor: Predictor, inputs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Explains the predictions of an exported model.

    Args:
        predictor: with background rows.
        inputs: values by input, `(rows, ...)`.

    Returns:
        For each row `{"baseline": ..., "contributions": {input: ...}}`.

    Raises:
        ValueError: there are more than 32 rows or no background, or the inputs do not fit.
    """
    rows = {key: _column(value) for key, value in inputs.items()}
    count = max((len(each) for each in rows.values()), default=0)
    if count > BACKGROUND:
        raise value_error(
            "explanations are of a few rows",
            expected=f"at most {BACKGROUND}",
            received=f"{count}",
        )
    name = "predict" if "predict" in predictor.signatures else None
    background = read_background(background_of_export(predictor.directory))
    score = score_of(lambda features: predictor(features, name), rows)
    found = explained(score, rows, background)
    return [
        {
            "baseline": float(found.baseline[row]),
            "contributions": {key: float(each[row]) for key, each in found.contributions.items()},
        }
        for row in range(count)
    ]


_OUTPUTS: Sequence[str] = ("probabilities", "predictions", "score")

__all__ = [
    "BACKGROUND",
    "BACKGROUND_FILE",
    "Explanation",
    "Score",
    "background_json",
    "background_of_export",
    "explained",
    "of_request",
    "output_of",
    "read_background",
    "score_of",
]
