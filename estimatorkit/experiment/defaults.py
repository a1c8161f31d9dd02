"""The estimator that `init` chooses for a table, why, and what its sections say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from estimatorkit.premade import tabular

_NO_TREES = "boosted trees need YDF: pip install 'estimatorkit[trees]'"

_NETWORK = """\
# hidden_units: [128, 128, 128]
# members: 4              # networks whose predictions are averaged
# dropout: 0.15
"""
_TREES = """\
# n_trees: 300
# max_depth: 6
"""
_MEMBERS = """\
# members: [network, trees, linear]
"""
_FOLDS = 5
_IN_FOLDS = f"""\
folds: {_FOLDS}                  # parts of each member, trained on all rows but a fifth each
{_MEMBERS}"""

_SEARCHED_IN_NETWORK = """\
estimator.hidden_units: {choice: [[64, 64], [128, 128, 128], [256, 256, 256]]}
estimator.learning_rate: {log_uniform: [0.005, 0.2]}
estimator.weight_decay: {log_uniform: [0.005, 0.5]}
estimator.dropout: {choice: [0.0, 0.15, 0.3]}"""
_SEARCHED_IN_TREES = """\
estimator.n_trees: {choice: [100, 200, 400]}
estimator.max_depth: {choice: [4, 6, 8]}
estimator.learning_rate: {log_uniform: [0.03, 0.2]}
estimator.min_examples: {choice: [5, 20, 50]}"""
_SEARCHED_MEMBERS = """\
estimator.members: {choice: [[network, trees, linear], [network, trees], [trees, linear]]}"""
_SEARCHED_IN_LINEAR = """\
train.batch_size: {choice: [64, 256, 1024]}
train.epochs: {choice: [5, 20, 80]}"""


@dataclass(frozen=True)
class Default:
    """An estimator that `init` chooses among.

    Attributes:
        name: of the class, without `Classifier` or `Regressor`.
        words: what it is.
        seconds: how long it trains on two cores.
        more: further arguments, as comments.
        tune: the section `tune`.
        reads_once: whether epochs say nothing.
        needs_ydf: whether it has boosted trees.
        most_rows: the number of rows up to which it is chosen.
    """

    name: str
    words: str
    seconds: Callable[[Size], float]
    more: str
    tune: str
    reads_once: bool = False
    needs_ydf: bool = False
    most_rows: float = math.inf


@dataclass(frozen=True)
class Choice:
    """A default, and why it was chosen.

    Attributes:
        default: the default.
        why: a line.
    """

    default: Default
    why: str

    @property
    def name(self) -> str:
        """See `Default`."""
        return self.default.name

    def sections(self, rows: int, metric: str) -> dict[str, str]:
        """The settings that depend on the estimator, by their place in the template."""
        if self.default.reads_once:
            train = "batch_size: 1024          # rows that are read at once\nepochs: 1"
        else:
            train = (
                f"batch_size: {tabular.usual_batch_size(rows)}\n"
                f"epochs: {tabular.usual_epochs(rows)}\n"
                f"early_stopping: {{metric: {metric}, patience: 64}}   # evaluations, one an epoch"
            )
        return {"more": self.default.more, "train": train, "tune": self.default.tune}


MOST_ROWS_IN_FOLDS = 5_000
"""Folds gain less the more rows there are: .004 of the area under the curve with 4,800 (telco),
nothing with 3,700 of five numbers (phoneme)."""

_TEXT = 1_200
"""As many columns as a text costs trees, whose 512 buckets they read: with one, an ensemble of 800
rows takes 19 processor seconds more."""


@dataclass(frozen=True)
class Size:
    """How much there is to learn from.

    Attributes:
        rows: of training.
        columns: of features.
        classes: how many; 0: numbers are predicted.
        texts: how many of the columns become hashed words.
    """

    rows: int
    columns: int
    classes: int
    texts: int = 0

    @property
    def cells(self) -> int:
        """The number of cells that trees read; a text counts as `_TEXT` columns."""
        return self.rows * (self.columns + _TEXT * self.texts)


def _network(size: Size) -> float:
    rows = size.rows
    steps = rows * tabular.usual_epochs(rows) / tabular.usual_batch_size(rows)
    return 5.0 + 15.0 * steps / 5_000


def _trees(size: Size) -> float:
    return 3.0 + 1e-5 * size.cells * (size.classes if size.classes > 2 else 1)


def _linear(size: Size) -> float:
    return 3.0 + 1e-4 * size.rows


def _all(size: Size) -> float:
    more_trees = 0.1 * size.columns
    return more_trees + sum(each(size) for each in (_network, _trees, _linear))


def _in_folds(size: Size) -> float:
    return _all(size) + 0.2 * size.columns + 2.5e-4 * size.cells * max(1, size.classes - 1)


DEFAULTS = (
    Default(
        "Ensemble",
        f"networks, boosted trees and linear models of {_FOLDS} folds",
        _in_folds,
        _IN_FOLDS,
        _SEARCHED_MEMBERS,
        reads_once=True,
        needs_ydf=True,
        most_rows=MOST_ROWS_IN_FOLDS,
    ),
    Default(
        "Ensemble",
        "a network, boosted trees and a linear model",
        _all,
        _MEMBERS,
        _SEARCHED_MEMBERS,
        reads_once=True,
        needs_ydf=True,
    ),
    Default("Tabular", "a network", _network, _NETWORK, _SEARCHED_IN_NETWORK),
    Default(
        "BoostedTrees",
        "boosted trees",
        _trees,
        _TREES,
        _SEARCHED_IN_TREES,
        reads_once=True,
        needs_ydf=True,
    ),
    Default("Linear", "a linear model", _linear, "", _SEARCHED_IN_LINEAR),
)
"""The one that predicts best is the first."""


def chosen(rows: int, columns: int, classes: int, seconds: float, texts: int = 0) -> Choice:
    """The first default that is trained in a time; the fastest if there is none.

    Args:
        rows, columns, classes, texts: see `Size`.
        seconds: how long the training may take on two cores.
    """
    size = Size(rows, columns, classes, texts)
    trees = find_spec("ydf") is not None
    possible = [
        each for each in DEFAULTS if (trees or not each.needs_ydf) and rows <= each.most_rows
    ]
    times = [each.seconds(size) for each in possible]
    fit = [place for place, time in enumerate(times) if time <= seconds]
    place = fit[0] if fit else times.index(min(times))
    found = possible[place]
    why = f"{found.words[0].upper()}{found.words[1:]}: about {times[place]:.0f} s on two cores"
    if not trees:
        return Choice(found, f"{why}; {_NO_TREES}")
    if place:
        why += f"; {possible[0].words} would take {times[0]:.0f} s (--time {times[0]:.0f})"
    return Choice(found, f"{why}.")


__all__ = ["DEFAULTS", "Choice", "Default", "chosen"]
