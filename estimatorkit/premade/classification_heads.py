"""Heads of classifiers: `BinaryClassHead`, `MultiClassHead`, and the choice between them.

Both convert labels to class indices (strings by a vocabulary), check them after the step, and
predict class ids and names as well as probabilities; see `head` for what heads share.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import float32, int32, int64, string
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import fixed_value
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.serving.export_outputs import (
    ClassificationOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
)
from estimatorkit.layers import metrics
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.premade.decision import scores_to_decide_by
from estimatorkit.premade.head import Head, Metrics, Version
from estimatorkit.premade.label_checks import as_batch_of, check_label_range, checked_labels
from estimatorkit.premade.label_names import (
    Vocabulary,
    all_class_names,
    as_vocabulary,
    class_names,
    label_ids,
)
from estimatorkit.premade.single_head import (
    Batch,
    LossFn,
    SingleHead,
    areas_under_curves,
    average_sigmoid_logits,
    checked_thresholds,
    mean_log_probability,
    metrics_at,
)
from estimatorkit.train.saving.saved_model_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY

_CLASS_KEYS = ("class_ids", "classes", "all_class_ids", "all_classes")


class _ClassificationHead(SingleHead):
    """The base of both classification heads: class ids, names and a vocabulary."""

    def __init__(
        self,
        n_classes: int,
        logits_dimension: int,
        weight_column: Any,
        label_vocabulary: Any,
        loss_reduction: str,
        loss_fn: LossFn | None,
        name: str | None,
        label_smoothing: float,
    ) -> None:
        super().__init__(logits_dimension, 1, weight_column, loss_reduction, loss_fn, name)
        if not 0.0 <= label_smoothing < 1.0 or (label_smoothing and loss_fn is not None):
            raise value_error(
                "label_smoothing cannot be used",
                expected="0 <= label_smoothing < 1, and no loss_fn beside it",
                received=f"label_smoothing={label_smoothing}, loss_fn={loss_fn}",
            )
        self._n_classes = n_classes
        self._label_smoothing = label_smoothing
        self._vocabulary = as_vocabulary(label_vocabulary, n_classes)

    # Names of operations, as in TensorFlow's graphs.

    _class_ids_name = "ExpandDims"

    @property
    def _classes_name(self) -> str:
        vocabulary = self._vocabulary is not None
        return "hash_table_Lookup/LookupTableFindV2" if vocabulary else "str_classes"

    @property
    def _class_names(self) -> Vocabulary:
        numbers = tuple(str(number).encode() for number in range(self._n_classes))
        return self._vocabulary or numbers

    def _class_ids(self, labels: Any, logits: Tensor, floats_allowed: bool) -> Tensor:
        """Labels as class indices, `(batch, ..., 1)`, with a step check of their range."""
        tensor = checked_labels(labels, logits, 1)
        if self._vocabulary is not None:
            if tensor.dtype is not string:
                raise value_error(
                    "Labels dtype should be string if there is a vocabulary. "
                    f"Instead got {tensor.dtype}",
                    made_at=tensor.op.source,
                    hint="leave out label_vocabulary, or give the labels as strings",
                )
            return as_batch_of(logits, label_ids(tensor, self._vocabulary), 1)
        number = tensor.dtype.is_integer or (
            floats_allowed and (tensor.dtype.is_floating or tensor.dtype.is_bool)
        )
        if not number:
            raise value_error(
                f"Labels dtype should be integer. Instead got {tensor.dtype}",
                expected=f"class indices from 0 to {self._n_classes - 1}",
                received=f"{tensor.name} {tensor.shape} {tensor.dtype.name}",
                made_at=tensor.op.source,
                hint="use label_vocabulary=[...] for string labels"
                if tensor.dtype is string
                else "cast(labels, int64), or use a regressor",
            )
        if not tensor.dtype.is_bool:
            check_label_range(tensor, self._n_classes, version=self._version)
        return as_batch_of(logits, tensor, 1)

    def _named_classes(self, scores: Tensor, keys: Iterable[str]) -> dict[str, Tensor]:
        """`class_ids`, `classes`, `all_class_ids` and `all_classes` from scores `(batch, ...,
        n_classes)`.
        """
        class_ids = array.expand_dims(
            reduce.argmax(scores, -1, name="class_ids"), -1, name=self._class_ids_name
        )
        numbers = constant(np.arange(self._n_classes, dtype=np.int32))
        made: dict[str, Callable[[], Tensor]] = {
            "class_ids": lambda: class_ids,
            "classes": lambda: class_names(class_ids, self._class_names, self._classes_name),
            "all_class_ids": lambda: elementwise.add(
                filling.zeros_like(_one_each(class_ids), int32), numbers, name="Tile"
            ),
            "all_classes": lambda: all_class_names(class_ids, self._class_names),
        }
        return {key: make() for key, make in made.items() if key in keys}

    @abstractmethod
    def _loss_of_even(self, logits: Tensor) -> Tensor:
        """The loss of each example with equal probabilities of all classes, `(batch, ..., 1)`."""

    def _smoothed(self, batch: Batch) -> Tensor | None:
        share = self._label_smoothing
        if not share:
            return None
        return batch.losses * (1.0 - share) + self._loss_of_even(batch.logits) * share

    def _export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        return class_outputs(predictions, self._class_names)


def _one_each(values: Tensor) -> Tensor:
    """One value an example, `(batch, 1)`."""
    if values.shape.rank == 2:
        return values
    return array.reshape(values, joining.stack([array.shape(values)[0], -1]))[:, :1]


def class_outputs(predictions: Mapping[Any, Tensor], names: Vocabulary) -> dict[str, ExportOutput]:
    """The export outputs of classifiers: scores with class names, and all predictions.

    Args:
        predictions: by key, `probabilities` among them.
        names: those of the classes.
    """
    scores = predictions["probabilities"]
    output = ClassificationOutput(scores=scores, classes=all_class_names(scores, names))
    return {
        DEFAULT_SERVING_SIGNATURE_DEF_KEY: output,
        "classification": output,
        "predict": PredictOutput(predictions),
    }


class BinaryClassHead(_ClassificationHead):
    """Binary classification with sigmoid cross-entropy and one logit
    (`tf.estimator.BinaryClassHead`).

    Labels: `(batch,)` or `(batch, 1)`: integers 0 and 1, bools, floats in [0, 1], or strings with a
        vocabulary.

    Predictions: `logits`, `logistic` float32 `(batch, 1)`; `probabilities` `(batch, 2)`;
        `class_ids` int64 `(batch, 1)`;
    `classes` bytes `(batch, 1)`; `all_class_ids` int32 `(batch, 2)`; `all_classes` bytes `(batch,
    2)`.

    Metrics: `average_loss`, `accuracy`, `accuracy_baseline`, `auc`, `auc_precision_recall`,
        `precision`, `recall`,
    `label/mean`, `prediction/mean`, and for each threshold t `accuracy/positive_threshold_t`,
    `precision/...`, `recall/...`.

    Args:
        weight_column: the key or `NumericColumn` of the examples' weights; None (default) for
            weights of 1.
        thresholds: probabilities in (0, 1) above which an example counts as positive, for more
            metrics; none by default.
        label_vocabulary: two strings that name the classes, if labels are strings; None by
            default.
        loss_reduction: 'sum_over_batch_size' (default: the weighted sum divided by the batch size),
            'sum', or another of `losses.Reduction`, but not NONE.
        loss_fn: `loss_fn(labels, logits[, features][, loss_reduction])`, giving `(batch, 1)`;
            sigmoid cross-entropy by default.
        name: the head's name, appended to the keys of metrics as `/name`; None by default.
        label_smoothing: e, less than 1: in the loss of the training, the label's class has the
            probability 1 - e + e / classes, each other e / classes (Szegedy et al. 2016,
            arXiv:1512.00567). Evaluation has the labels as they are. 0 by default; not with a
            `loss_fn`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Iterable[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: LossFn | None = None,
        name: str | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            2, 1, weight_column, label_vocabulary, loss_reduction, loss_fn, name, label_smoothing
        )
        self._thresholds = checked_thresholds(thresholds)

    @property
    def prediction_keys(self) -> tuple[str, ...]:
        """The keys of `predictions`."""
        return ("logits", "logistic", "probabilities", *_CLASS_KEYS)

    def _targets(self, labels: Any, logits: Tensor) -> Tensor:
        return elementwise.cast(self._class_ids(labels, logits, floats_allowed=True), float32)

    def _unweighted_loss(self, targets: Tensor, logits: Tensor) -> Tensor:
        return nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)

    def average_logits(self, logits: Tensor, weights: Any = None) -> Tensor:
        """The logits of the members' mean probability; see `Head`."""
        return average_sigmoid_logits(logits, weights)

    def _loss_of_even(self, logits: Tensor) -> Tensor:
        return self._unweighted_loss(filling.ones_like(logits) * 0.5, logits)

    def _predict(self, logits: Tensor, keys: Iterable[str]) -> dict[str, Tensor]:
        both = joining.concat([filling.zeros_like(logits), logits], -1, name="two_class_logits")
        made: dict[str, Callable[[], Tensor]] = {
            "logits": lambda: logits,
            "logistic": lambda: nn.sigmoid(logits, name="logistic"),
            "probabilities": lambda: nn.softmax(both, name="probabilities"),
        }
        found = {key: make() for key, make in made.items() if key in keys}
        return {**found, **self._named_classes(scores_to_decide_by(both), keys)}

    def _export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        regression = RegressionOutput(predictions["logistic"])
        return {**super()._export_outputs(predictions), "regression": regression}

    def _metrics(self, batch: Batch) -> Metrics:
        labels, weights = batch.targets, batch.weights
        guesses = self._predicted(batch, "class_ids", "logistic")
        class_ids, logistic = guesses["class_ids"], guesses["logistic"]
        found = {
            "accuracy": metrics.accuracy(labels, class_ids, weights),
            "precision": metrics.precision(labels, class_ids, weights),
            "recall": metrics.recall(labels, class_ids, weights),
            "prediction/mean": metrics.mean(logistic, weights, name="prediction/mean"),
            "label/mean": metrics.mean(labels, weights, name="label/mean"),
            "accuracy_baseline": metrics.accuracy_baseline(labels, weights),
            **areas_under_curves(labels, logistic, weights, version=self._version),
        }
        for threshold in self._thresholds:
            found |= metrics_at(threshold, labels, logistic, weights)
        return found


class MultiClassHead(_ClassificationHead):
    """Multi-class classification with softmax cross-entropy, one logit per class
    (`tf.estimator.MultiClassHead`).

    Labels: `(batch,)` or `(batch, 1)`: integers in [0, n_classes), or strings with a vocabulary.

    Predictions: `logits`, `probabilities` float32 `(batch, n_classes)`; `class_ids` int64 `(batch,
        1)`; `classes` bytes
    `(batch, 1)`; `all_class_ids` int32 and `all_classes` bytes `(batch, n_classes)`.

    Metrics: `average_loss`, `accuracy`.

    Args:
        n_classes: the number of classes, more than 2; an int or a constant tensor.
        weight_column: the key or `NumericColumn` of the examples' weights; None (default) for
            weights of 1.
        label_vocabulary: `n_classes` strings that name the classes, if labels are strings; None
            by default.
        loss_reduction: 'sum_over_batch_size' (default: the weighted sum divided by the batch size),
            'sum', or another of `losses.Reduction`, but not NONE.
        loss_fn: `loss_fn(labels, logits[, features][, loss_reduction])`, giving `(batch, 1)`;
            softmax cross-entropy by default.
        name: the head's name, appended to the keys of metrics as `/name`; None by default.
        label_smoothing: e, less than 1: in the loss of the training, the label's class has the
            probability 1 - e + e / classes, each other e / classes (Szegedy et al. 2016,
            arXiv:1512.00567). Evaluation has the labels as they are. 0 by default; not with a
            `loss_fn`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: LossFn | None = None,
        name: str | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> None:
        if n_classes is None:
            raise ValueError("n_classes cannot be None")
        known = fixed_value(n_classes) if isinstance(n_classes, Tensor) else n_classes
        if known is None or int(known) <= 2:
            raise ValueError(f"n_classes must be > 2: {n_classes}.")
        classes = int(known)
        super().__init__(
            classes,
            classes,
            weight_column,
            label_vocabulary,
            loss_reduction,
            loss_fn,
            name,
            label_smoothing,
        )

    @property
    def prediction_keys(self) -> tuple[str, ...]:
        """The keys of `predictions`."""
        return ("logits", "probabilities", *_CLASS_KEYS)

    def _targets(self, labels: Any, logits: Tensor) -> Tensor:
        ids = self._class_ids(labels, logits, floats_allowed=False)
        # Image labels are often uint8, which the cross-entropy does not accept.
        return ids if ids.dtype in (int32, int64) else elementwise.cast(ids, int64)

    def _unweighted_loss(self, targets: Tensor, logits: Tensor) -> Tensor:
        with get_default_graph().without_tests():  # the head checks them with better messages
            loss = nn.sparse_softmax_cross_entropy_with_logits(
                labels=array.squeeze(targets, [-1]), logits=logits
            )
        return array.expand_dims(loss, -1)

    def average_logits(self, logits: Tensor, weights: Any = None) -> Tensor:
        """The logarithms of the members' mean probabilities; see `Head`."""
        return mean_log_probability(nn.log_softmax(logits), weights)

    def _loss_of_even(self, logits: Tensor) -> Tensor:
        total = reduce.reduce_logsumexp(logits, -1, keepdims=True)
        loss: Tensor = total - reduce.reduce_mean(logits, -1, keepdims=True)
        return loss

    def _predict(self, logits: Tensor, keys: Iterable[str]) -> dict[str, Tensor]:
        made: dict[str, Callable[[], Tensor]] = {
            "logits": lambda: logits,
            "probabilities": lambda: nn.softmax(logits, name="probabilities"),
        }
        found = {key: make() for key, make in made.items() if key in keys}
        return {**found, **self._named_classes(logits, keys)}

    def _metrics(self, batch: Batch) -> Metrics:
        class_ids = self._predicted(batch, "class_ids")["class_ids"]
        return {"accuracy": metrics.accuracy(batch.targets, class_ids, batch.weights)}


def classification_head(
    n_classes: int,
    weight_column: Any,
    label_vocabulary: Any,
    loss_reduction: str,
    version: Version = 2,
    *,
    label_smoothing: float = 0.0,
) -> Head:
    """Returns the head of a classifier: binary for two classes.

    Args:
        n_classes, weight_column, label_vocabulary, loss_reduction, label_smoothing: see
            `MultiClassHead`.
        version: the major version of TensorFlow to follow in metrics and operation names.
    """
    made: _ClassificationHead
    if n_classes == 2:
        made = BinaryClassHead(
            weight_column=weight_column,
            label_vocabulary=label_vocabulary,
            loss_reduction=loss_reduction,
            label_smoothing=label_smoothing,
        )
    else:
        made = MultiClassHead(
            n_classes,
            weight_column=weight_column,
            label_vocabulary=label_vocabulary,
            loss_reduction=loss_reduction,
            label_smoothing=label_smoothing,
        )
        if version == 1:
            made._class_ids_name = "ExpandDims_2"
    made._version = version
    return made


__all__ = ["BinaryClassHead", "MultiClassHead", "classification_head"]
