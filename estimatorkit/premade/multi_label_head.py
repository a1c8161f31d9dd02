"""`MultiLabelHead`: the head of classifiers whose examples have any number of classes; see
`single_head` for what heads share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import make
from estimatorkit.core.dtypes import float32, int64, string
from estimatorkit.core.errors import InvalidArgumentError, did_you_mean, value_error
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor, SparseTensorValue
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.serving.export_outputs import ExportOutput
from estimatorkit.layers import metrics
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.premade.classification_heads import class_outputs
from estimatorkit.premade.head import Metrics
from estimatorkit.premade.label_checks import as_batch_of, check_label_range, checked_labels
from estimatorkit.premade.label_names import (
    Vocabulary,
    all_class_names,
    as_vocabulary,
    label_ids,
)
from estimatorkit.premade.single_head import (
    Batch,
    LossFn,
    SingleHead,
    areas_under_curves,
    average_sigmoid_logits,
    checked_thresholds,
    metrics_at,
)

# -- which classes an example has


def _label_indicator(
    indices: NDArray[Any], ids: NDArray[Any], dense_shape: NDArray[Any], classes: int
) -> NDArray[np.float32]:
    wrong = (ids < 0) | (ids >= classes)
    if wrong.any():
        raise InvalidArgumentError.explained(
            f"labels must be an integer SparseTensor with values in [0, {classes})",
            expected=f"labels in [0, {classes - 1}], n_classes={classes}",
            received=f"minimum {ids.min()}, maximum {ids.max()} in a batch",
            hint="use class ids from 0, or strings and label_vocabulary",
        )
    result = np.zeros([*dense_shape[:-1], classes], np.float32)
    result[(*indices.T[:-1], ids)] = 1.0
    return result


def _infer_indicator(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    rank = inputs[2].shape[0] if inputs[2].shape.rank == 1 else None
    shape = UNKNOWN if rank is None else TensorShape([*[None] * (rank - 1), attrs["classes"]])
    return [Spec(float32, shape)]


register(
    "LabelIndicator",
    _label_indicator,
    where="host",
    infer=_infer_indicator,
    gradient=None,
    cases=lambda: [
        Case(
            (
                np.array([[0, 0], [0, 1], [2, 0]], np.int64),
                np.array([2, 0, 1], np.int64),
                np.array([3, 2], np.int64),
            ),
            {"classes": 3},
            np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], np.float32),
        )
    ],
)


class MultiLabelHead(SingleHead):
    """Multi-label classification: each example has any number of classes, with one logit per class.
    The loss is the mean of the classes' sigmoid cross-entropies (`tf.estimator.MultiLabelHead`).

    Labels: integers, bools or floats `(batch, n_classes)`, 1 for the classes an example has and 0
        for the others; or a `SparseTensor` `(batch, ?)` of ids, or of strings with a vocabulary.

    Predictions: `logits`, `probabilities` float32 and `classes` (the names of all) bytes, each
        `(batch, n_classes)`.

    Metrics: `average_loss`, `auc`, `auc_precision_recall`; for each threshold t
        `accuracy/positive_threshold_t`, `precision/...`, `recall/...`; for each class c of
        `classes_for_class_based_metrics` `probability_mean/class<c>`, `auc/class<c>`,
        `auc_precision_recall/class<c>`, with the class's name in place of `class<c>` where there is
        a vocabulary.

    Args:
        n_classes: the number of classes, more than 1.
        weight_column: the key or `NumericColumn` of the examples' weights; None (default) for
            weights of 1.
        thresholds: probabilities in (0, 1) above which a class counts as predicted, for more
            metrics; none by default.
        label_vocabulary: `n_classes` strings that name the classes, if labels are a
            `SparseTensor` of strings; None by default.
        loss_reduction: 'sum_over_batch_size' (default: the weighted sum divided by the batch size),
            'sum', or another of `losses.Reduction`, but not NONE.
        loss_fn: `loss_fn(labels, logits[, features][, loss_reduction])`, giving `(batch, 1)`.
        classes_for_class_based_metrics: ids or, with a vocabulary, names of classes that get
            metrics of their own; none by default.
        name: the head's name, appended to the keys of metrics as `/name`; None by default.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Iterable[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: LossFn | None = None,
        classes_for_class_based_metrics: Sequence[int | str] | None = None,
        name: str | None = None,
    ) -> None:
        if n_classes is None or n_classes < 2:
            raise ValueError(
                f"n_classes must be > 1 for multi-label classification. Given: {n_classes}"
            )
        super().__init__(n_classes, 1, weight_column, loss_reduction, loss_fn, name)
        self._thresholds = checked_thresholds(thresholds)
        self._vocabulary = as_vocabulary(label_vocabulary, n_classes, multi_label=True)
        self._classes = [
            self._class_id(each) for each in tuple(classes_for_class_based_metrics or ())
        ]

    def _class_id(self, given: int | str) -> int:
        """The number of a class that is given by its number or its name."""
        if isinstance(given, str):
            known = [each.decode() for each in self._vocabulary or ()]
            if given not in known:
                raise value_error(
                    f"{given!r} is not in list label_vocabulary, which "
                    "classes_for_class_based_metrics must be of"
                    if known
                    else "label_vocabulary must be provided when "
                    "classes_for_class_based_metrics are strings.",
                    hint=did_you_mean(given, known) if known else None,
                )
            return known.index(given)
        if not 0 <= given < self._logits_dimension:
            raise ValueError(
                "All classes_for_class_based_metrics must be in range "
                f"[0, {self._logits_dimension - 1}]. Given: {given}"
            )
        return int(given)

    @property
    def prediction_keys(self) -> tuple[str, ...]:
        """The keys of `predictions`."""
        return ("logits", "probabilities", "classes")

    @property
    def _class_names(self) -> Vocabulary:
        numbers = tuple(str(number).encode() for number in range(self._logits_dimension))
        return self._vocabulary or numbers

    def _targets(self, labels: Any, logits: Tensor) -> Tensor:
        if isinstance(labels, (SparseTensor, SparseTensorValue)):
            return as_batch_of(
                logits, self._indicator(SparseTensor.from_value(labels)), self._logits_dimension
            )
        tensor = checked_labels(labels, logits, self._logits_dimension)
        if tensor.dtype is string:
            raise value_error(
                "Multi-label labels must be 0 and 1, or a SparseTensor",
                expected=f"numbers of shape {logits.shape}, or a SparseTensor of strings",
                received=f"{tensor.name} {tensor.shape} string",
                made_at=tensor.op.source,
                hint="use strings.split(labels), which returns a SparseTensor",
            )
        if not tensor.dtype.is_bool:
            what = "labels must be an integer indicator Tensor with values in [0, 1]"
            check_label_range(tensor, 2, what)
        return as_batch_of(logits, elementwise.cast(tensor, float32), self._logits_dimension)

    def _indicator(self, labels: SparseTensor) -> Tensor:
        ids = labels.values
        if labels.dtype is string and self._vocabulary is not None:
            ids = label_ids(ids, self._vocabulary)
        elif not labels.dtype.is_integer:
            raise value_error(
                f"Labels dtype should be integer. Instead got {labels.dtype}",
                expected=f"ids from 0 to {self._logits_dimension - 1}",
                received=f"a SparseTensor of {labels.dtype.name}",
                made_at=labels.op.source,
                hint="use label_vocabulary=[...] for string labels"
                if labels.dtype is string
                else None,
            )
        inputs = {
            "indices": labels.indices,
            "ids": elementwise.cast(ids, int64),
            "dense_shape": labels.dense_shape,
        }
        attrs = {"classes": self._logits_dimension}
        return make("LabelIndicator", inputs, attrs, "label_indicator")

    def _unweighted_loss(self, targets: Tensor, logits: Tensor) -> Tensor:
        losses = nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)
        return reduce.reduce_mean(losses, -1, keepdims=True)

    def average_logits(self, logits: Tensor, weights: Any = None) -> Tensor:
        """The logits of the members' mean probabilities; see `Head`."""
        return average_sigmoid_logits(logits, weights)

    def _predict(self, logits: Tensor, keys: Iterable[str]) -> dict[str, Tensor]:
        made: dict[str, Callable[[], Tensor]] = {
            "logits": lambda: logits,
            "probabilities": lambda: nn.sigmoid(logits, name="probabilities"),
            "classes": lambda: all_class_names(logits, self._class_names),
        }
        return {key: make_it() for key, make_it in made.items() if key in keys}

    def _export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        return class_outputs(predictions, self._class_names)

    def _metrics(self, batch: Batch) -> Metrics:
        targets, weights = batch.targets, batch.weights
        probabilities = self._predicted(batch, "probabilities")["probabilities"]
        areas = partial(areas_under_curves, version=self._version)
        found = areas(targets, probabilities, weights)
        for threshold in self._thresholds:
            found |= metrics_at(threshold, targets, probabilities, weights)
        for number in self._classes:
            own = slice(number, number + 1)
            name = self._vocabulary[number].decode() if self._vocabulary else f"class{number}"
            key = f"probability_mean/{name}"
            values = probabilities[..., own]
            found[key] = metrics.mean(values, weights, name=key)
            found |= areas(targets[..., own], values, weights, f"/{name}")
        return found


__all__ = ["MultiLabelHead"]
