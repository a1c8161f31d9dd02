"""Fits forests with YDF (Yggdrasil Decision Forests, Guillame-Bert et al. 2023), and makes arrays
of them.

YDF is needed for this alone: what uses a forest has its arrays.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import explain, value_error
from estimatorkit.premade.forest import Forest

Array = NDArray[Any]


@dataclass(frozen=True)
class Growth:
    """How a forest grows.

    Attributes:
        n_trees, max_depth, learning_rate, l1_regularization, l2_regularization, min_examples,
            early_stopping_fraction: see `BoostedTreesClassifier`.
        refit: whether the best number of trees is then grown on all rows, and on those of each
            further fold.
    """

    n_trees: int
    max_depth: int
    learning_rate: float
    l1_regularization: float
    l2_regularization: float
    min_examples: int
    early_stopping_fraction: float
    refit: bool = False

    def __post_init__(self) -> None:
        ranges = {
            "n_trees": self.n_trees >= 1,
            "max_depth": self.max_depth >= 1,
            "learning_rate": 0.0 < self.learning_rate <= 1.0,
            "l1_regularization": self.l1_regularization >= 0.0,
            "l2_regularization": self.l2_regularization >= 0.0,
            "min_examples": self.min_examples >= 1,
            "early_stopping_fraction": 0.0 <= self.early_stopping_fraction < 1.0,
        }
        expected = {"learning_rate": "in (0, 1]", "early_stopping_fraction": "in [0, 1)"}
        for name, is_right in ranges.items():
            if not is_right:
                least = ">= 0" if name.endswith("regularization") else ">= 1"
                raise value_error(
                    f"{name} is out of range",
                    expected=expected.get(name, least),
                    received=getattr(self, name),
                )


class Fitted(NamedTuple):
    """A fitted forest and its losses by iteration.

    Attributes:
        forest: its arrays.
        losses: of the training rows after each iteration.
        validation_losses: of the rows held out; empty if there are none.
    """

    forest: Forest
    losses: list[float]
    validation_losses: list[float]


def fit(
    rows: Array,
    labels: Array,
    weights: Array | None,
    inputs: Sequence[int],
    classes: int,
    loss: str,
    growth: Growth,
    seed: int,
) -> Fitted:
    """Fits a forest to all rows.

    Args:
        rows: float32 `(rows, numbers)`; NaN is a missing number, categories are their ids.
        labels: `(rows,)`: class ids, or numbers.
        weights: `(rows,)`; None: all 1.
        inputs: see `Forest`.
        classes: how many classes there are; 0 for numbers.
        loss: YDF's name of the loss.
        growth: how it grows.
        seed: rows held out are chosen with it. The same rows and seed give the same forest.

    Raises:
        ImportError: YDF is not installed.
        ValueError: there are no rows, or labels that YDF cannot learn from.
        KeyboardInterrupt: SIGINT came.
    """
    ydf = load_ydf()
    _check(rows, labels, classes)
    names = [f"x{number}" for number in range(len(inputs))]
    data: dict[str, Array] = {
        name: _as_words(column, count) if count else column
        for name, column, count in zip(names, rows.T, inputs, strict=True)
    }
    kinds = [ydf.Semantic.CATEGORICAL if count else ydf.Semantic.NUMERICAL for count in inputs]
    # Ids of few rows are one category: for 1,400 rows of 33 columns of up to 4,096 ids the area
    # under the curve is .688 with 20 rows, .655 with YDF's 5.
    least = max(5, min(20, len(rows) // 50))
    features = [
        ydf.Column(name, kind, min_vocab_frequency=least if count else None)
        for name, kind, count in zip(names, kinds, inputs, strict=True)
    ]
    data["label"] = labels.astype(np.int64) if classes else labels
    if weights is not None:
        data["weight"] = weights
    held_out = growth.early_stopping_fraction
    learner = ydf.GradientBoostedTreesLearner(
        label="label",
        task=ydf.Task.CLASSIFICATION if classes else ydf.Task.REGRESSION,
        weights=None if weights is None else "weight",
        features=features,
        label_classes=[str(each) for each in range(classes)] or None,
        loss=loss,
        num_trees=growth.n_trees,
        max_depth=growth.max_depth + 1,  # a root alone has depth 1 there
        shrinkage=float(growth.learning_rate),
        l1_regularization=float(growth.l1_regularization),
        l2_regularization=float(growth.l2_regularization),
        min_examples=growth.min_examples,
        validation_ratio=float(held_out),
        early_stopping="LOSS_INCREASE" if held_out else "NONE",
        random_seed=seed,
    )
    model = _trained(learner, data, 0 if held_out else growth.n_trees)
    logs = model.training_logs()[: model.num_trees() // model.num_trees_per_iteration()]
    return Fitted(
        _arrays(model, names, inputs, growth.max_depth),
        [each.training_evaluation.loss for each in logs],
        [each.evaluation.loss for each in logs] if held_out else [],
    )


def load_ydf() -> Any:
    """Imports and returns the module `ydf`.

    Raises:
        ImportError: it is not installed; the message says how to install it.
    """
    there = list(logging.root.handlers)
    try:
        import ydf
    except ImportError as error:
        raise ImportError(
            explain("boosted trees are grown by YDF", hint="pip install 'estimatorkit[trees]'")
        ) from error
    for handler in logging.root.handlers[:]:
        if handler not in there:  # its import configures the program's logging
            logging.root.removeHandler(handler)
    return ydf


def _trained(learner: Any, data: dict[str, Array], rounds: int) -> Any:
    """The model, quietly; YDF handles SIGINT itself, so that it is raised here.

    Args:
        learner: a YDF learner.
        data: what it learns.
        rounds: how many there must be, where that is known; else 0.
    """
    try:
        model = learner.train(data, verbose=0)
    except ValueError as error:
        if "interrupted by user" in str(error):
            raise KeyboardInterrupt from error
        raise
    if model.num_trees() < rounds * model.num_trees_per_iteration():
        raise KeyboardInterrupt
    return model


def _check(rows: Array, labels: Array, classes: int) -> None:
    if not len(rows):
        raise value_error("there are no rows to grow trees from", expected="a row at least")
    if not classes:
        return
    found = np.unique(labels)
    if not np.array_equal(found, np.round(found)):
        raise value_error(
            "boosted trees learn classes",
            expected="labels that are class ids",
            received=found[found != np.round(found)][:5].tolist(),
            hint="use BoostedTreesRegressor for fractions",
        )
    if len(found) < 2:
        raise value_error(
            "boosted trees need labels of two classes",
            received=f"{len(rows)} rows of class {int(found[0])}",
        )


def _as_words(ids: Array, count: int) -> Array:
    """Ids as YDF's words; the empty one is missing."""
    words = np.array([b"", *(str(each).encode() for each in range(count))])
    places = np.where(np.isnan(ids), -1, ids).astype(np.int64) + 1
    return np.asarray(words[places])


# -- arrays


def _arrays(model: Any, names: Sequence[str], inputs: Sequence[int], max_depth: int) -> Forest:
    columns = model.data_spec().columns
    by_name = {name: number for number, name in enumerate(names)}
    numbers = [by_name.get(column.name, -1) for column in columns]
    words = [
        _words_of(columns[numbers.index(number)], count) for number, count in enumerate(inputs)
    ]
    made = _Nodes(numbers, words, max_depth)
    roots = [made.add(tree.root) for tree in model.iter_trees()]
    return made.forest(roots, model.initial_predictions(), inputs)


def _words_of(column: Any, count: int) -> Array:
    """The place of each id in YDF's dictionary; 0 is that of ids that are rare, or not there."""
    places = np.zeros([count], np.int64)
    for word, item in column.categorical.items.items():
        if word.isdigit():
            places[int(word)] = item.index
    return places


class _Nodes:
    """The nodes of trees, collected.

    Args:
        numbers: the number of a row that each of YDF's columns is.
        words: the place of each category of each number in YDF's dictionary.
        max_depth: how many levels of splits a tree may have.
    """

    def __init__(self, numbers: Sequence[int], words: Sequence[Array], max_depth: int) -> None:
        self._numbers = numbers
        self._words = words
        self._nodes: list[tuple[Any, ...]] = []
        self._categories: list[Array] = []
        self._listed = 0
        self._splits = np.zeros([max_depth], np.int32)

    def add(self, root: Any) -> int:
        """Adds a tree; returns the place of its root."""
        start = len(self._nodes)
        level, after = [root], start + 1
        depth = 0
        while level:  # level by level, so that the children of a node are next to each other
            below: list[Any] = []
            for node in level:
                if node.is_leaf:
                    place = len(self._nodes)
                    leaf = (0, np.nan, False, -1, place, node.value.value, 0.0)
                    self._nodes.append(leaf)
                else:
                    self._nodes.append(self._split(node, after))
                    self._splits[depth] += 1
                    below += [node.neg_child, node.pos_child]
                    after += 2
            level, depth = below, depth + 1
        return start

    def _split(self, node: Any, child: int) -> tuple[Any, ...]:
        condition = node.condition
        number, mask, threshold = self._numbers[condition.attribute], -1, np.nan
        words = self._words[number]
        if len(words):
            listed = np.isin(np.arange(words.max() + 1), condition.mask)
            mask = self._listed
            self._categories.append(listed)
            self._listed += len(listed)
        else:
            threshold = condition.threshold
        # As in YDF's own importances: a node's gain counts for each of its examples.
        gain = condition.score * node.value.num_examples
        value = node.value.value
        return number, threshold, condition.missing, mask, child, value, gain

    def forest(self, roots: list[int], bias: Any, inputs: Sequence[int]) -> Forest:
        """The arrays."""
        feature, threshold, missing, mask, child, value, gain = zip(*self._nodes, strict=True)
        return Forest(
            feature=np.array(feature, np.int32),
            threshold=np.array(threshold, np.float32),
            missing=np.array(missing, np.bool_),
            words=np.concatenate(self._words).astype(np.int32),
            mask=np.array(mask, np.int32),
            categories=np.concatenate([*self._categories, np.zeros([1], np.bool_)]),
            child=np.array(child, np.int32),
            value=np.array(value, np.float32),
            gain=np.array(gain, np.float32),
            root=np.array(roots, np.int32),
            bias=np.asarray(bias, np.float32),
            inputs=np.array(inputs, np.int32),
            splits=self._splits,
        )


__all__ = ["Fitted", "Growth", "fit", "load_ydf"]
