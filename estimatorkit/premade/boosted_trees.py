"""Gradient boosted trees: `BoostedTreesClassifier`, `BoostedTreesRegressor` and
`BoostedTreesEstimator`.

YDF grows the trees in one call, of all rows; the checkpoint holds them as arrays
(`boosted_trees/<part>`, see `forest`), so that evaluation, prediction and exported models are a
function of the graph and need no YDF.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from estimatorkit.core.errors import value_error
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.extenders import extended
from estimatorkit.estimator.model_input import ModelInput
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.estimator.training import Training
from estimatorkit.layers.feature_column import FeatureColumn
from estimatorkit.logger import logger
from estimatorkit.ops.array.filling import zeros_like
from estimatorkit.ops.nn import nn
from estimatorkit.premade.classification_heads import BinaryClassHead, classification_head
from estimatorkit.premade.forest import SCOPE, contributions, forest_of_graph
from estimatorkit.premade.forest_columns import ForestColumns
from estimatorkit.premade.forest_fit import Growth
from estimatorkit.premade.forest_training import Task, forest_model_fn
from estimatorkit.premade.head import Head, Version
from estimatorkit.premade.regression_head import regression_head
from estimatorkit.premade.whole_input import check_ends, check_one_process, without_repeats
from estimatorkit.train.hooks.hooks import SessionRunHook
from estimatorkit.train.training import takes_input

_BIAS, _CONTRIBUTIONS = "bias", "dfc"


class _BoostedTrees(Estimator):
    """What the estimators share.

    Args:
        head: its head.
        model_dir, config: see `Estimator`.
        arguments: the constructor's, by name.
    """

    _version: ClassVar[Version] = 2
    reads_once = True
    takes_columns = "raw"

    def __init__(
        self,
        head: Head,
        model_dir: str | os.PathLike[str] | None,
        config: RunConfig | None,
        arguments: Mapping[str, Any],
    ) -> None:
        _refuse(arguments)
        self._task = Task.of(head)
        self._columns = ForestColumns(arguments["feature_columns"])
        given = {
            each.name: arguments[each.name] for each in fields(Growth) if each.name in arguments
        }
        self._growth = Growth(**given)
        folds = arguments.get("folds", 1)
        model_fn = forest_model_fn(self._task, self._columns, self._growth, folds)
        super().__init__(model_fn, model_dir, config)

    # -- training

    def _input(
        self, input_fn: Callable[..., Any], mode: str, checkpoint: str | None = ""
    ) -> ModelInput:
        given = super()._input(input_fn, mode, checkpoint)
        return without_repeats(given) if mode == ModeKeys.TRAIN else given

    def _run_training(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[SessionRunHook],
        listeners: Sequence[Any],
        steps: int | None,
        max_steps: int | None,
        start: str | None,
    ) -> None:
        check_one_process(self, "boosted trees grow in one process, on its CPUs")
        if start is not None:
            self._check_grown(start)
            return
        given = self._input(input_fn, ModeKeys.TRAIN)
        if not takes_input(given.graph.get_operations()):
            steps, max_steps = 1, None  # tensors without an input are one batch
        elif steps is None and max_steps is None:
            check_ends(given)
        with self._models.model(
            given,
            self._made_of,
            lambda: self._build(given, ModeKeys.TRAIN, self._training),
            hooks,
        ) as model:
            model.extra.run(model, given, hooks, listeners, steps, max_steps, None)

    def _training(self, spec: EstimatorSpec) -> Training:
        # The losses are in the event file by tree; those of the steps say nothing.
        config = self._config.replace(
            model_dir=self.model_dir, save_summary_steps=None, log_step_count_steps=None
        )
        return Training(spec, config, None)

    def _check_grown(self, checkpoint: str) -> None:
        """Says that there is a forest already; raises ValueError if it has too few trees."""
        logits = self._task.head.logits_dimension
        rounds = len(self.get_variable_value(f"{SCOPE}/root")) // logits
        if rounds < self._growth.n_trees and not self._growth.early_stopping_fraction:
            raise value_error(
                "a forest does not grow further",
                expected=f"n_trees={rounds}, as in {checkpoint}",
                received=f"n_trees={self._growth.n_trees}",
                hint="train in another model_dir",
            )
        logger.info("Skipping training since %s has all its trees.", checkpoint)

    # -- explanations

    def experimental_feature_importances(self, normalize: bool = False) -> OrderedDict[str, float]:
        """How much the splits of each column have reduced the loss, the largest first.

        Args:
            normalize: whether the sum becomes 1.

        Returns:
            Importances by name of the column: sums of gains (YDF's SUM_SCORE).

        Raises:
            ValueError: there is no checkpoint; or no tree has a split, with `normalize`.
        """
        gain = self.get_variable_value(f"{SCOPE}/gain")
        feature = self.get_variable_value(f"{SCOPE}/feature")
        places = np.array(self._columns.column_of)[feature]
        sums = np.bincount(places, gain, len(self._columns.names))
        if normalize:
            total = sums.sum()
            if not total > 0:
                raise value_error("no tree has a split, so that importances have no sum")
            sums = sums / total
        order = np.argsort(-sums, kind="stable")
        return OrderedDict((self._columns.names[each], float(sums[each])) for each in order)

    def experimental_predict_with_explanations(
        self,
        input_fn: Callable[..., Any],
        predict_keys: str | Sequence[str] | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: str | os.PathLike[str] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yields predictions, and what each column adds to them.

        Args:
            input_fn, predict_keys, hooks, checkpoint_path: see `predict`.

        Yields:
            For each example what `predict` yields, and two more: `bias`, the prediction without
            trees, and `dfc`, the contributions by name of the column, the largest first. Their sum
            is the probability of class 1, or the number that is predicted.

        Raises:
            ValueError: there are more than two classes or the predictions are not logits; see
                `predict`.
        """
        link = {
            BinaryClassHead: nn.sigmoid,
        }.get(type(self._task.head))
        if link is None and self._task.loss != "SQUARED_ERROR":
            raise value_error(
                "only predictions of two classes, and of numbers by squared error, are sums of "
                "contributions",
                received=type(self._task.head).__name__,
            )
        explaining = extended(self, self._explained(link or (lambda logits: logits)))
        if predict_keys is not None:
            keys = [predict_keys] if isinstance(predict_keys, str) else predict_keys
            predict_keys = [*dict.fromkeys([*keys, _BIAS, _CONTRIBUTIONS])]
        names = self._columns.names
        for each in explaining.predict(input_fn, predict_keys, hooks, checkpoint_path):
            values = each[_CONTRIBUTIONS]
            order = np.argsort(-np.abs(values), kind="stable")
            yield {
                **each,
                _BIAS: float(each[_BIAS]),
                _CONTRIBUTIONS: OrderedDict((names[at], float(values[at])) for at in order),
            }

    def _explained(self, link: Callable[[Any], Any]) -> Callable[..., EstimatorSpec]:
        columns = self._columns

        def explained(spec: EstimatorSpec, features: Any, *_: Any) -> EstimatorSpec:
            forest, rows = forest_of_graph(), columns.rows(features, spec.mode)
            added = {
                _BIAS: zeros_like(rows[:, 0]) + link(forest.bias),
                _CONTRIBUTIONS: contributions(
                    forest, rows, columns.inputs, link, columns.column_of
                ),
            }
            return spec._replace(predictions={**spec.predictions, **added})

        return explained


def _refuse(arguments: Mapping[str, Any]) -> None:
    """Raises ValueError for what YDF does not have."""
    known = {
        "tree_complexity": (0.0, "limit the trees by max_depth or min_examples"),
        "min_node_weight": (0.0, "use min_examples: rows, not the sum of their second derivatives"),
        "pruning_mode": ("none", "hold out rows: early_stopping_fraction=0.1 keeps the best trees"),
    }
    for name, (expected, hint) in known.items():
        if arguments.get(name) not in (expected, None):
            raise value_error(
                f"boosted trees have no {name}",
                expected=f"{name}={expected!r}",
                received=f"{name}={arguments[name]!r}",
                hint=hint,
            )


class BoostedTreesClassifier(_BoostedTrees):
    """A classifier: gradient boosted trees (`tf.estimator.BoostedTreesClassifier`).

    Labels, metrics and predictions: see `DNNClassifier`. Training needs YDF (`pip install
    'estimatorkit[trees]'`); what uses the model does not.

    `train` reads the whole input once, into memory, whatever `repeat` says; `steps` and `max_steps`
    limit the batches that are read. Then the trees grow, and the model is saved: there is one
    checkpoint, and training a saved model does nothing. Each split sends missing numbers (NaN) and
    categories (out of the vocabulary, or -1) where they are best sent.

    Differences from TensorFlow: all rows grow each layer and are split at any number, so that
    `n_batches_per_layer`, `quantile_sketch_epsilon` and `train_in_memory` are ignored; trees always
    begin at the labels' frequency, as with `center_bias`; any number of classes; categories are
    split as sets; regularization is added to sums over a leaf's rows, where TensorFlow adds it to
    means over a batch.

    Args:
        feature_columns: numeric, bucketized and categorical columns; an `indicator_column` counts
            as its categorical one. Each example has one category.
        n_batches_per_layer: ignored.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        n_classes: the number of classes; 2 by default. Each has its own trees, unless it is one of
            two.
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        label_vocabulary: the `n_classes` names of the classes, if labels are strings; None by
            default.
        n_trees: the number of trees; of many classes for each of them. 100 by default.
        max_depth: the number of splits from a root to a leaf, at most; 6 by default.
        learning_rate: what the values of leaves are multiplied with; 0.1 by default.
        l1_regularization, l2_regularization: added to the gradient's sum in a leaf, towards 0, and
            to that of the second derivative; 0 by default.
        tree_complexity, min_node_weight, pruning_mode: 0, 0 and 'none' only.
        config: a `RunConfig`. With the same `tf_random_seed` the same rows give the same trees.
        center_bias, quantile_sketch_epsilon, train_in_memory: ignored.
        loss_reduction: of the loss that evaluation gives: 'sum_over_batch_size' (default: the mean
            over the batch), 'sum', or another of `losses.Reduction`, but not NONE. Not in
            TensorFlow.
        min_examples: the smallest number of rows of a leaf; 5 by default. Not in TensorFlow.
        early_stopping_fraction: the fraction of the rows that is held out: trees after the one with
            which their loss was smallest are left out. 0 by default. Not in TensorFlow.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        n_batches_per_layer: int = 1,
        model_dir: str | os.PathLike[str] | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: RunConfig | None = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
        *,
        loss_reduction: str = "sum_over_batch_size",
        min_examples: int = 5,
        early_stopping_fraction: float = 0.0,
    ) -> None:
        arguments = locals()
        head = classification_head(
            n_classes, weight_column, label_vocabulary, loss_reduction, self._version
        )
        super().__init__(head, model_dir, config, arguments)


class BoostedTreesRegressor(_BoostedTrees):
    """A regressor: gradient boosted trees (`tf.estimator.BoostedTreesRegressor`).

    Labels, metrics and predictions: see `DNNRegressor`. Labels need no scaling. For all else see
    `BoostedTreesClassifier`.

    Args:
        feature_columns, n_batches_per_layer, model_dir, weight_column: see
            `BoostedTreesClassifier`.
        label_dimension: 1, as in TensorFlow.
        n_trees, max_depth, learning_rate, l1_regularization, l2_regularization, tree_complexity,
            min_node_weight, config, center_bias, pruning_mode, quantile_sketch_epsilon,
            train_in_memory, loss_reduction, min_examples, early_stopping_fraction: see
            `BoostedTreesClassifier`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        n_batches_per_layer: int = 1,
        model_dir: str | os.PathLike[str] | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: RunConfig | None = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
        *,
        loss_reduction: str = "sum_over_batch_size",
        min_examples: int = 5,
        early_stopping_fraction: float = 0.0,
    ) -> None:
        arguments = locals()
        head = regression_head(label_dimension, weight_column, loss_reduction, self._version)
        super().__init__(head, model_dir, config, arguments)


class BoostedTreesEstimator(_BoostedTrees):
    """Gradient boosted trees under a head (`tf.estimator.BoostedTreesEstimator`).

    Args:
        feature_columns, n_batches_per_layer: see `BoostedTreesClassifier`.
        head: a `BinaryClassHead`, `MultiClassHead`, `RegressionHead` or `PoissonRegressionHead`
            without a loss of its own. It has the weights.
        model_dir, n_trees, max_depth, learning_rate, l1_regularization, l2_regularization,
            tree_complexity, min_node_weight, config, center_bias, pruning_mode,
            quantile_sketch_epsilon, min_examples, early_stopping_fraction: see
            `BoostedTreesClassifier`.
        weight_column: None; TensorFlow ignores it.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        n_batches_per_layer: int,
        head: Head,
        model_dir: str | os.PathLike[str] | None = None,
        weight_column: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: RunConfig | None = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        *,
        min_examples: int = 5,
        early_stopping_fraction: float = 0.0,
    ) -> None:
        super().__init__(head, model_dir, config, locals())


class TreesMember(_BoostedTrees):
    """The trees of an ensemble: a forest for each fold.

    Args:
        head, feature_columns, model_dir, config, n_trees, learning_rate, early_stopping_fraction:
            see `BoostedTreesEstimator`.
        refit: see `Growth`.
        folds: see `folds`.
    """

    def __init__(
        self,
        head: Head,
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None,
        config: RunConfig | None,
        n_trees: int,
        learning_rate: float,
        early_stopping_fraction: float,
        refit: bool,
        folds: int,
    ) -> None:
        rest = {"max_depth": 6, "l1_regularization": 0.0, "l2_regularization": 0.0}
        super().__init__(head, model_dir, config, {**locals(), **rest, "min_examples": 5})


__all__ = [
    "BoostedTreesClassifier",
    "BoostedTreesEstimator",
    "BoostedTreesRegressor",
    "TreesMember",
]
