"""Ensembles of different models: `EnsembleClassifier`, `EnsembleRegressor`.

Members are ordinary estimators, which are trained one after another on the same rows. What each
counts for is chosen on rows that none was trained on (Caruana et al. 2004, "Ensemble Selection from
Libraries of Models"). One checkpoint holds all of them, so that evaluation, prediction and exported
models are one function of the graph.

Variables: those of the members, and `ensemble/weights`, float32 `(members,)`. With folds, trees and
linear models have them in further scopes, `boosted_trees_1` and so on. Members whose weight is 0
are in no graph but that of the training.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import Graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.best_epoch import train_to_best
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.interop.events import MetricsWriter
from estimatorkit.layers.feature_column import FeatureColumn
from estimatorkit.logger import logger
from estimatorkit.ops.array import indexing, joining
from estimatorkit.ops.variables.variable_collections import global_variables
from estimatorkit.premade import tabular
from estimatorkit.premade.boosted_trees import TreesMember
from estimatorkit.premade.classification_heads import classification_head
from estimatorkit.premade.folds import FOLD, divided
from estimatorkit.premade.forest import SCOPE
from estimatorkit.premade.forest_fit import load_ydf
from estimatorkit.premade.head import Head
from estimatorkit.premade.linear_member import LinearMember
from estimatorkit.premade.member_hook import MemberEpochs, MemberHook
from estimatorkit.premade.regression_head import regression_head
from estimatorkit.premade.tabular import TabularEstimator
from estimatorkit.premade.whole_input import check_one_process, read_rows
from estimatorkit.runtime.session import Session
from estimatorkit.storage.checkpoint import load_variable, read_checkpoint
from estimatorkit.storage.retention import CheckpointRotation

Array = NDArray[Any]
Rows = tuple[dict[str, Array], Array]

HELD_OUT = 0.15
"""The share of the rows by which epochs and weights are chosen."""

PATIENCE = 64
ROUNDS = 50
"""How often a member is added to the selection."""

_GROWTH = {
    "n_trees": 600,
    "learning_rate": 0.05,
    "early_stopping_fraction": 0.1,
    "refit": True,
}
"""Of the trees; on 7 of 8 tables they predict better than the 100 of `BoostedTreesClassifier`.
Early stopping finds the best number, which is then grown on all training rows."""

_MANY_CLASSES = 8
_MANY_CLASSES_GROWTH = _GROWTH | {"n_trees": 100, "learning_rate": 0.1}
"""Each step grows a tree of each class."""

_EPOCHS_IN_FOLDS = 64
"""The most epochs of a fold's network; 128 were no better. One network per fold is as good as two
with half of the epochs, better from 3,500 rows on (wine .525 instead of .508, phoneme .962 instead
of .957), and predicts in half of the time."""

_BATCH = 4096
"""Rows at once. Evaluations of one size of batches compile in 1.9 s, those of two in 2.6 s."""

_WEIGHTS = "ensemble/weights"
_NETWORK, _TREES, _LINEAR = "network", "trees", "linear"


class _Ensemble(Estimator):
    """What the estimators share.

    Args:
        head: their head.
        members, feature_columns, folds, held_out_fn: see `EnsembleClassifier`.
        classes: how many there are; 0 for numbers.
        model_dir, config: see `Estimator`.
    """

    reads_once = True
    takes_columns = "raw"

    def __init__(
        self,
        head: Head,
        members: Sequence[str],
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        folds: int,
        held_out_fn: Callable[..., Any] | None,
        classes: int,
        model_dir: str | os.PathLike[str] | None,
        config: RunConfig | None,
    ) -> None:
        if folds < 1:
            raise value_error("folds must be positive", expected=">= 1", received=folds)
        self._head = head
        self._make = _makers(members, head, feature_columns, folds, classes)
        self._folds = folds
        self._held_out_fn = held_out_fn
        super().__init__(self._combined, model_dir, config)

    def _member(self, name: str, folder: str, **more: Any) -> Estimator:
        own = self._config.replace(
            model_dir=folder,
            keep_checkpoint_max=PATIENCE + 2,
            save_checkpoints_steps=2**31,
            save_checkpoints_secs=None,
            save_summary_steps=None,
            log_step_count_steps=None,
        )
        return self._make[name](folder, own, **more)

    def _combined(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        """The model function: the weighted mean of the members' predictions."""
        equal = np.full(len(self._make), 1 / len(self._make), np.float32)
        weights = Variable(equal, name=_WEIGHTS, trainable=False)
        names, places = list(self._make), self._weighted(self.latest_checkpoint())
        logits = [
            _logits_of(self._member(names[each], self._folder(names[each])), features)
            for each in places
        ]
        averaged = self._head.average_logits(
            joining.stack(logits, 1), indexing.gather(weights, np.array(places, np.int32))
        )
        return self._head.create_estimator_spec(features, mode, averaged, labels)

    def _weighted(self, checkpoint: str | None) -> list[int]:
        """The indices of the members whose weight in a checkpoint is not 0; all if it is None."""
        if checkpoint is None:
            return [*range(len(self._make))]
        return np.flatnonzero(load_variable(checkpoint, _WEIGHTS)).tolist()

    def _checkpoint_or_none(self, path: str | os.PathLike[str] | None) -> str | None:
        """See `Estimator`; members with weights must match those in the latest checkpoint."""
        found, latest = super()._checkpoint_or_none(path), self.latest_checkpoint()
        if found != latest and latest and self._weighted(found) != self._weighted(latest):
            raise value_error(
                "other members of the ensemble have a weight in this checkpoint",
                expected=f"those of {latest}",
                received=f"{found}: {self._weighted(found)}",
                hint="use an estimator of its own folder",
            )
        return found

    def _run_training(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Any],
        listeners: Sequence[Any],
        steps: int | None,
        max_steps: int | None,
        start: str | None,
    ) -> None:
        check_one_process(self, "an ensemble is trained in one process")
        if start is not None:
            logger.info("Skipping training since %s has all members.", start)
            return
        if _TREES in self._make:
            load_ydf()  # an error now, not once the network is trained
        folder = os.path.join(self.model_dir, "members")
        if os.path.isdir(folder):
            logger.warning(
                "%s is of a training that did not end: all members are trained again.", folder
            )
            shutil.rmtree(folder)
        rows = read_rows(self._input(input_fn, ModeKeys.TRAIN), steps or max_steps)
        training, held_out = self._parts(rows)
        told = [each for each in hooks if isinstance(each, MemberHook)]
        tensors: dict[str, Any] = {}
        step = 0
        logits: list[Array] = []
        for name in self._make:
            checkpoint, found = self._trained_member(name, training, held_out, told)
            logits.append(found)
            saved = read_checkpoint(checkpoint).tensors
            step = max(step, int(saved["global_step"]))
            tensors |= saved
        weights, loss = self._selected(np.stack(logits, 1), held_out)
        named = dict(zip(self._make, weights.tolist(), strict=True))
        logger.info("Weights of the members: %s", named)
        if self._held_out_fn is None and self._folds == 1:
            tensors |= self._fitted_to_all([name for name in named if named[name]], rows)
        for each in told:
            each.after_members(named, loss)
        tensors |= {_WEIGHTS: weights, "global_step": np.int64(step)}
        needed = self._names(held_out)
        CheckpointRotation(self.model_dir).save(
            f"model.ckpt-{step}", {name: tensors[name] for name in needed}, {}
        )
        self._models.clear()  # those before the training have other members

    def _parts(self, rows: Rows) -> tuple[Rows, Rows]:
        """Rows to train on, and rows by which epochs and weights are chosen.

        With folds, both are all rows, with the fold of each.
        """
        seed = self._config.tf_random_seed or 0
        held_out = None
        if self._held_out_fn is not None:
            held_out = read_rows(self._input(self._held_out_fn, ModeKeys.EVAL), None)
        if self._folds > 1:
            return 2 * (_in_folds(rows, held_out, self._folds, seed),)
        return _split(rows, seed) if held_out is None else (rows, held_out)

    def _fitted_to_all(self, names: Iterable[str], rows: Rows) -> dict[str, Any]:
        """The values of the members that need no held-out rows, trained on all rows."""
        tensors: dict[str, Any] = {}
        for name in names:
            if self._member(name, self._folder(name)).reads_once:
                tensors |= read_checkpoint(self._fitted_again(name, rows)).tensors
        return tensors

    def _fitted_again(self, name: str, rows: Rows) -> str:
        """The checkpoint of a member that is fitted anew; as many trees grow as it has."""
        folder = self._folder(name)
        more: dict[str, Any] = {}
        if name == _TREES:
            roots = self._member(name, folder).get_variable_value(f"{SCOPE}/root")
            rounds = len(roots) // self._head.logits_dimension
            more = {"n_trees": rounds, "early_stopping_fraction": 0.0, "refit": False}
        shutil.rmtree(folder)
        return _trained(self._member(name, folder, **more), rows, rows, None, ())

    def _folder(self, name: str) -> str:
        return os.path.join(self.model_dir, "members", name)

    def _trained_member(
        self, name: str, training: Rows, held_out: Rows, hooks: Sequence[MemberHook]
    ) -> tuple[str, Array]:
        """The checkpoint of a new member, and its logits of the held-out rows."""
        rows, begun = len(training[1]), time.monotonic()
        epochs = self._epochs(rows) if name == _NETWORK else None
        for each in hooks:
            each.before_member(name, rows, epochs)
        length = {} if epochs is None else {"train_steps": _steps(rows, epochs)}
        member = self._member(name, self._folder(name), **length)
        checkpoint = _trained(member, training, held_out, epochs, hooks)
        logits = _predicted(member, held_out, checkpoint)
        with self._loss_of(logits[:, None], held_out) as loss_with:
            loss = loss_with(np.ones(1))
        for each in hooks:
            each.after_member(name, loss, time.monotonic() - begun)
        return checkpoint, logits

    def _epochs(self, rows: int) -> int:
        """The maximum number of epochs of a network."""
        usual = tabular.usual_epochs(rows)
        return usual if self._folds == 1 else min(usual, _EPOCHS_IN_FOLDS)

    def _names(self, rows: Rows) -> list[str]:
        """The names of the model's variables, the global step's among them."""
        given = self._input(lambda: _batches(rows), ModeKeys.EVAL)
        with Graph().as_default() as graph:
            _, features, labels = given.rebuilt(graph)
            self._call_model_fn(features, labels, ModeKeys.EVAL, self.config)
            return ["global_step", *(each.op.name for each in global_variables())]

    def _selected(self, logits: Array, rows: Rows) -> tuple[Array, float]:
        """The members' weights, float32 `(members,)`, by greedy selection with replacement, and the
        loss with them.

        Args:
            logits: of rows that no member was trained on, `(rows, members, units)`.
            rows: these rows.
        """
        counts = np.zeros(logits.shape[1])
        with self._loss_of(logits, rows) as loss_with:
            for _ in range(ROUNDS):
                added = [loss_with(counts + each) for each in np.eye(len(counts))]
                counts[int(np.argmin(added))] += 1
            loss = loss_with(counts)
        shares: Array = (counts / counts.sum()).astype(np.float32)
        return shares, loss

    @contextmanager
    def _loss_of(self, logits: Array, rows: Rows) -> Iterator[Callable[[Array], float]]:
        """The loss of rows as a function of how much each member counts, `(members,)`.

        Args:
            logits: `(rows, members, units)`.
            rows: the rows.
        """
        features, labels = rows
        with Graph().as_default() as graph, Session(graph=graph) as session:
            weights = placeholder(float32, [logits.shape[1]])
            averaged = self._head.average_logits(constant(logits), weights)
            loss = self._head.loss(labels, averaged, features)
            yield lambda counts: float(
                session.run(loss, {weights: (counts / counts.sum()).astype(np.float32)})
            )


def _logits_of(member: Estimator, features: Any) -> Tensor:
    """A member's logits, or the numbers that it predicts, `(batch, units)`."""
    spec = member._call_model_fn(features, None, ModeKeys.PREDICT, member.config)
    found: Tensor = spec.predictions.get("logits", spec.predictions.get("predictions"))
    return found


def _split(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    """Rows to train on, and rows that are held out."""
    features, labels = rows
    order = np.random.default_rng(seed).permutation(len(labels))
    count = max(1, round(len(labels) * HELD_OUT))
    parts = order[count:], order[:count]
    training, held_out = (
        ({key: values[part] for key, values in features.items()}, labels[part]) for part in parts
    )
    return training, held_out


def _in_folds(rows: Rows, first: Rows | None, folds: int, seed: int) -> Rows:
    """All rows, with the fold of each among the features.

    Args:
        rows: divided at random.
        first: the rows of the first fold, if they are given.
        folds: how many there are.
        seed: of the division.
    """
    features, labels = rows
    if first is None:
        return features | {FOLD: divided(labels, folds, seed)}, labels
    features = features | {FOLD: 1 + divided(labels, folds - 1, seed)}
    held = first[0] | {FOLD: np.zeros(len(first[1]), np.int32)}
    joined = {key: np.concatenate([held[key], features[key]]) for key in features}
    return joined, np.concatenate([first[1], labels])


def _batches(rows: Rows) -> Dataset:
    return Dataset.from_tensor_slices(rows).batch(_BATCH)


def _steps(rows: int, epochs: int) -> int:
    """The maximum number of training steps of a network."""
    return -(-rows * epochs // tabular.usual_batch_size(rows))


def _trained(
    member: Estimator,
    training: Rows,
    held_out: Rows,
    epochs: int | None,
    hooks: Sequence[MemberHook],
) -> str:
    """Trains a member; returns the checkpoint to use.

    Args:
        epochs: how many there are at most; None if it reads the rows once.
    """
    rows = len(training[1])
    if epochs is None:
        member.train(lambda: _batches(training))
        return str(member.latest_checkpoint())
    data = Dataset.from_tensor_slices(training)
    data = (
        data.shuffle(rows, seed=member.config.tf_random_seed)
        .repeat()
        .batch(tabular.usual_batch_size(rows))
    )
    steps = _steps(rows, epochs)
    with closing(MetricsWriter(member.model_dir)) as writer:
        followed = MemberEpochs(writer, rows, epochs, hooks)
        best = train_to_best(
            member,
            lambda: data,
            lambda: _batches(held_out),
            steps,
            epochs,
            PATIENCE,
            [followed],
            followed.finished,
        )
    return best.checkpoint


def _predicted(member: Estimator, rows: Rows, checkpoint: str) -> Array:
    """A member's logits or predictions, `(rows, units)`."""
    found = [
        each.get("logits", each.get("predictions"))
        for each in member.predict(lambda: _batches(rows), checkpoint_path=checkpoint)
    ]
    return np.stack(found)


def _makers(
    members: Iterable[str],
    head: Head,
    feature_columns: FeatureColumn | Iterable[FeatureColumn],
    folds: int,
    classes: int,
) -> dict[str, Callable[..., Estimator]]:
    """How the members are made, by name."""
    kinds: dict[str, tuple[Callable[..., Estimator], dict[str, Any]]] = {
        _NETWORK: (TabularEstimator, _network(folds, classes)),
        _TREES: (TreesMember, _MANY_CLASSES_GROWTH if classes > _MANY_CLASSES else _GROWTH),
        _LINEAR: (LinearMember, {}),
    }
    names = list(members)
    if not names or len(set(names)) < len(names) or not set(names) <= set(kinds):
        raise value_error(
            "members of an ensemble are named once each",
            expected=f"some of {sorted(kinds)}",
            received=repr(names),
        )

    def maker(name: str) -> Callable[..., Estimator]:
        make, given = kinds[name]
        return lambda folder, config, **more: make(
            head=head,
            feature_columns=feature_columns,
            model_dir=folder,
            config=config,
            folds=folds,
            **given | more,
        )

    return {name: maker(name) for name in names}


def _network(folds: int, classes: int) -> dict[str, Any]:
    own = {"members": folds} if folds > 1 else {}
    return own | (tabular.OF_CLASSES if classes else {})


class EnsembleClassifier(_Ensemble):
    """A classifier: a network, boosted trees and a linear model, weighted by how well they predict.

    Labels, metrics and predictions: see `DNNClassifier`. Members are a `TabularClassifier` and a
    `BoostedTreesClassifier` with their defaults, and a linear model with a penalty, which
    scikit-learn fits. Training needs YDF (`pip install 'estimatorkit[trees]'`); what uses the model
    does not.

    `train` reads the whole input once, into memory, whatever `repeat` says; `steps` and `max_steps`
    limit the batches that are read. It holds out 15 % of the rows, or reads those of `held_out_fn`,
    trains each member on the others (the network until 64 epochs were no better, but at most
    `tabular.usual_epochs`), and chooses weights with which the loss of the held-out rows is
    smallest (greedy selection with replacement). Without `held_out_fn` the other members are then
    trained again, on all rows. Then the model is saved: there is one checkpoint,
    training a saved model does nothing, and a training that was interrupted begins again. Hooks are
    not called, except `MemberHook`s. TensorFlow has no such estimator.

    Args:
        feature_columns: numeric, bucketized and categorical columns.
        model_dir: where checkpoints and logs go, those of members below `members`; a temporary
            folder by default.
        n_classes: the number of classes; 2 by default.
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        label_vocabulary: the `n_classes` names of the classes, if labels are strings; None by
            default.
        members: 'network', 'trees' and 'linear' by default.
        config: a `RunConfig`. With the same `tf_random_seed` the same rows give the same model.
        loss_reduction: as for `DNNClassifier`.
        held_out_fn: an `input_fn` of the rows by which epochs and weights are chosen, so that
            metrics of these rows are somewhat too good; read once, as the training input. None
            (default): 15 % of the training rows. With folds, they are the first one.
        folds: the parts into which all rows are divided, those of `held_out_fn` included; 1
            (default): they are not. Each member then has a part for each fold, trained on the rows
            of the others, and predicts the parts' mean. Epochs and weights are chosen by all rows,
            each predicted by the parts that have not seen it: better for a few thousand rows, and
            several times slower. Features of the key `premade.folds.FOLD`, int32 `(batch,)`, have
            a row predicted so later.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        members: Sequence[str] = ("network", "trees", "linear"),
        config: RunConfig | None = None,
        loss_reduction: str = "sum_over_batch_size",
        held_out_fn: Callable[..., Any] | None = None,
        folds: int = 1,
    ) -> None:
        head = classification_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(
            head, members, feature_columns, folds, held_out_fn, n_classes, model_dir, config
        )


class EnsembleRegressor(_Ensemble):
    """A regressor: a network, boosted trees and a linear model, weighted by how well they predict.

    Labels, metrics and predictions: see `DNNRegressor`. For all else see `EnsembleClassifier`.

    Args:
        label_dimension: 1, as trees have it.
        feature_columns, model_dir, weight_column, members, config, held_out_fn, folds: see
            `EnsembleClassifier`.
        loss_reduction: as for `DNNRegressor`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        members: Sequence[str] = ("network", "trees", "linear"),
        config: RunConfig | None = None,
        loss_reduction: str = "sum_over_batch_size",
        held_out_fn: Callable[..., Any] | None = None,
        folds: int = 1,
    ) -> None:
        head = regression_head(label_dimension, weight_column, loss_reduction)
        super().__init__(head, members, feature_columns, folds, held_out_fn, 0, model_dir, config)


__all__ = ["EnsembleClassifier", "EnsembleRegressor"]
