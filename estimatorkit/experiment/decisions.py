"""Decision thresholds of binary classifiers: the setting, and how one is chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Field, Tag

from estimatorkit.experiment.sections import Model, OneKey, Positive, Share

HALF = 0.5
"""The threshold of a model that has none."""

_ODDS = -100.0, 36.0
"""The least and the most of a threshold: 1 minus its probability is a float64."""


class Costs(Model):
    """What the errors of a classifier of two classes cost, in any unit."""

    missed: Annotated[Positive, Field(description="the second class, predicted as the first")]
    false_alarm: Annotated[Positive, Field(description="the first class, predicted as the second")]


class Aim(OneKey):
    """What a threshold is chosen for, on rows that neither train nor measure the model."""

    example: ClassVar[str] = "{precision: 0.9}"

    cost: Annotated[Costs | None, Field(description="the smallest sum of costs")] = None
    precision: Annotated[
        Share | None, Field(description="the largest recall with at least this precision")
    ] = None
    recall: Annotated[
        Share | None, Field(description="the largest precision with at least this recall")
    ] = None


def _kind(value: Any) -> str:
    if isinstance(value, dict | Aim):
        return "an aim"
    return "a rule" if isinstance(value, str) else "a probability"


Threshold = Annotated[
    Annotated[Share, Tag("a probability")]
    | Annotated[Literal["f1"], Tag("a rule")]
    | Annotated[Aim, Tag("an aim")],
    Discriminator(_kind),
]


@dataclass(frozen=True)
class Quality:
    """How good the classes are that a threshold gives; of the second class.

    Attributes:
        precision: the share of the rows predicted so that are so; 0 if there are none.
        recall: the share of the rows that are so that are predicted so.
        f1: their harmonic mean.
    """

    precision: float
    recall: float
    f1: float


def quality(
    hits: NDArray[np.bool_], odds: NDArray[Any], weights: NDArray[Any], threshold: float
) -> Quality:
    """How good the classes of some rows are.

    Args:
        hits: whether a row is of the second class, `(rows,)`.
        odds: the log odds that are predicted, float32 `(rows,)`.
        weights: of the rows.
        threshold: a probability.
    """
    decided = odds > np.float32(_odds(threshold))  # as the graph decides
    right, there = weights[decided & hits].sum(), weights[hits].sum()
    found = weights[decided].sum()
    return Quality(
        precision=float(right / found) if found else 0.0,
        recall=float(right / there) if there else 0.0,
        f1=float(2 * right / (found + there)) if there else 0.0,
    )


def _odds(probability: float) -> float:
    return math.log(probability) - math.log1p(-probability)


def best(
    rule: float | str | Aim,
    hits: NDArray[np.bool_],
    odds: NDArray[Any],
    weights: NDArray[Any],
) -> float:
    """The threshold that a rule asks for; where no threshold has the precision that is aimed at,
    the one of the largest.

    Args:
        rule: a probability, which is taken as it is, 'f1' or an aim.
        hits, odds, weights: see `quality`; there are rows of the second class.
    """
    if isinstance(rule, float):
        return rule
    order = np.argsort(-odds, kind="stable")
    scores, truth, shares = odds[order].astype(float), hits[order], weights[order]
    ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))
    right, wrong = (np.cumsum(shares * each)[ends] for each in (truth, ~truth))
    chosen = _place(rule, right, wrong)
    # Between two scores that occur, so that rounding decides no row.
    beyond = scores[0] + 1.0, scores[-1] - 1.0
    limits = np.array([beyond[0], *scores[ends], beyond[1]])
    low, high = np.clip(limits[[chosen + 2, chosen + 1]], *_ODDS)
    return _short_between(*(1.0 / (1.0 + math.exp(-each)) for each in (low, high)))


def _place(rule: str | Aim, right: NDArray[Any], wrong: NDArray[Any]) -> int:
    """After how many distinct scores, less one, the second class ends; -1: it has no rows.

    Args:
        rule: 'f1' or an aim.
        right: weights of its rows with this score or a larger one.
        wrong: weights of other rows with such a score.
    """
    there, found = right[-1], right + wrong
    precision = np.divide(right, found, out=np.zeros_like(right), where=found > 0)
    if not isinstance(rule, Aim):
        return int(np.argmax(2 * right / (found + there)))
    if rule.cost is not None:
        costs = rule.cost.missed * (there - right) + rule.cost.false_alarm * wrong
        never = rule.cost.missed * there
        return -1 if never <= costs.min() else int(np.argmin(costs))
    if rule.recall is not None:
        enough = right >= rule.recall * there * (1 - 1e-12)
        return int(np.argmax(np.where(enough, precision, -1.0)))
    enough = precision >= (rule.precision or 0.0)
    if not enough.any():
        return int(np.argmax(precision))
    return int(np.argmax(np.where(enough, right, -1.0)))


def _short_between(low: float, high: float) -> float:
    """The number of the fewest digits in the middle half of a range."""
    middle, quarter = (low + high) / 2, (high - low) / 4
    shown = (float(f"{middle:.{digits}g}") for digits in range(1, 17))
    return next((each for each in shown if abs(each - middle) <= quarter), middle)


__all__ = ["HALF", "Aim", "Costs", "Quality", "Threshold", "best", "quality"]
