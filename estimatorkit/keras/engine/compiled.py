"""The losses, metrics and class weights of `compile`, matched to a model's outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras import losses as keras_losses, metrics as keras_metrics
from estimatorkit.keras.loss import LossFunctionWrapper, masked_weights
from estimatorkit.ops.array import array, indexing
from estimatorkit.ops.math import elementwise, reduce


def by_output(value: Any, names: Sequence[str], what: str) -> list[Any]:
    """Expands one entry, a list, or a dict by output name to one entry per output.

    Raises:
        ValueError: a name is unknown, or the number of entries is wrong.
    """
    if isinstance(value, Mapping) and "class_name" not in value:  # not a config of one object
        unknown = [name for name in value if name not in names]
        if unknown:
            raise value_error(
                f"Found unexpected {what} for an output that is not there: {unknown[0]!r}",
                expected=f"some of {list(names)}",
                hint=did_you_mean(str(unknown[0]), names),
            )
        return [value.get(name) for name in names]
    if isinstance(value, (list, tuple)) and len(names) > 1:
        if len(value) != len(names):
            raise ValueError(
                f"{what}: expected one entry for each of {len(names)} outputs, received "
                f"{len(value)}."
            )
        return list(value)
    return [value] * len(names)


def as_list_of(value: Any, names: Sequence[str], what: str) -> list[Any]:
    """Converts a tensor, a list, or a dict by name to a list of tensors by output."""
    if value is None:
        return [None] * len(names)
    if isinstance(value, Mapping):
        return by_output(value, names, what)
    given = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(given) != len(names):
        raise value_error(
            f"the model's outputs and the {what} do not go together",
            expected=f"{len(names)}: {list(names)}",
            received=f"{len(given)}",
        )
    return given


def matched(y_true: Any, y_pred: Tensor, weight: Any) -> tuple[Tensor, Any]:
    """Casts labels to the predictions' rank and dtype, and weights to their rank.

    Keras does so before it calls losses and metrics, and user-defined ones may rely on it.
    """
    truth = convert_to_tensor(y_true)
    rank, other = truth.shape.rank, y_pred.shape.rank
    if rank == 1 and other == 2:
        truth = array.expand_dims(truth, -1)
    if weight is not None:
        weight = convert_to_tensor(weight)
        if weight.shape.rank == 1 and other == 2:
            weight = array.expand_dims(weight, -1)
    both_floating = truth.dtype.is_floating and y_pred.dtype.is_floating
    both_integer = truth.dtype.is_integer and y_pred.dtype.is_integer
    if (both_floating or both_integer) and truth.dtype != y_pred.dtype:
        truth = elementwise.cast(truth, y_pred.dtype)
    return truth, weight


def weights_of_classes(y_true: Any, class_weight: Mapping[int, float]) -> Tensor:
    """The weight of each example's class; 1 for classes that are not in the dict.

    TensorFlow 2.15 refuses a dict that lacks a class below its largest, and fails in the step for a
    label beyond it; Keras 3 uses 1.

    Args:
        y_true: class numbers `(batch,)` or `(batch, 1)`, or one-hot `(batch, classes)`.

    Raises:
        ValueError: a key is not a class number, or exceeds the width of one-hot labels.
    """
    labels = convert_to_tensor(y_true)
    width = labels.shape[-1] if labels.shape.rank == 2 else 1
    one_hot = labels.shape.rank == 2 and width != 1
    limit = width if one_hot and width is not None else float("inf")
    wrong = [key for key in class_weight if not _is_number(key) or not 0 <= key < limit]
    if wrong:
        raise value_error(
            f"`class_weight` has the key {wrong[0]!r}",
            expected=f"class numbers from 0 to {limit - 1}"
            if one_hot and width is not None
            else "class numbers: 0, 1, ...",
            received=f"{dict(class_weight)}",
            hint="encode the labels as numbers, and give weights by these numbers",
        )
    count = int(max(class_weight, default=-1)) + 1
    table = np.ones(count + 1, np.float32)  # the last is the weight of all other classes
    for key, weight in class_weight.items():
        table[int(key)] = weight
    if one_hot:
        numbers = reduce.argmax(labels, 1)
    else:
        numbers = elementwise.cast(array.reshape(labels, [-1]), "int64")
    known = elementwise.logical_and(
        elementwise.greater_equal(numbers, 0), elementwise.less(numbers, count)
    )
    other = elementwise.cast(count, numbers.dtype)
    return indexing.gather(constant(table), indexing.where(known, numbers, other))


def _is_number(key: Any) -> bool:
    return isinstance(key, (int, float, np.integer, np.floating)) and int(key) == key


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """Maps a function over leaves; names and {'class_name', ...} dicts are leaves."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [map_leaves(function, each) for each in value]
    if isinstance(value, Mapping) and "class_name" not in value:
        return {key: map_leaves(function, each) for key, each in value.items()}
    return function(value)


class CompiledLoss:
    """The loss of each output.

    Args:
        loss: a name, a function, a `Loss`, or a list or dict of these.
        loss_weights: factors, a list or a dict.
        names: the outputs' names.

    Raises:
        ValueError: an entry is invalid.
    """

    def __init__(self, loss: Any, loss_weights: Any, names: Sequence[str]) -> None:
        self._names = list(names)
        self.losses = [
            None if each is None else _as_loss(each) for each in by_output(loss, names, "loss")
        ]
        weights = [1.0] * len(names)
        if loss_weights is not None:
            if not isinstance(loss_weights, (Mapping, list, tuple)):
                raise TypeError(
                    f"Could not interpret loss_weights argument: {loss_weights!r} - expected a "
                    "list or a dict."
                )
            given = by_output(loss_weights, names, "loss_weights")
            weights = [1.0 if each is None else float(each) for each in given]
        self._weights = weights

    @property
    def names(self) -> list[str]:
        """What the losses of several outputs are called in logs."""
        pairs = zip(self._names, self.losses, strict=True)
        named = [f"{name}_loss" for name, loss in pairs if loss is not None]
        return named if len(self._names) > 1 else []

    def __call__(
        self, y: Sequence[Any], outputs: Sequence[Tensor], weights: Sequence[Any]
    ) -> tuple[Tensor | None, list[tuple[str, Tensor]]]:
        """Returns the weighted sum, and each output's loss, before its factor, by name.

        Losses of the reduction NONE remain one per example, as in TensorFlow 2: the gradient is
        that of their sum, and their mean is shown.
        """
        total: Tensor | None = None
        named = []
        for name, loss, factor, truth, output, weight in zip(
            self._names, self.losses, self._weights, y, outputs, weights, strict=True
        ):
            if loss is None:
                continue
            if truth is None:
                raise value_error(
                    f"the loss of output {name!r} has no labels",
                    expected="(x, y), y in the structure of the outputs",
                )
            labels, weight = matched(truth, output, weight)
            _check_same_shape(loss, labels, output)
            value = loss(labels, output, weight)
            named.append((f"{name}_loss", value))
            term = value if factor == 1.0 else value * elementwise.cast(factor, value.dtype)
            total = added(total, term)
        return total, named if len(self._names) > 1 else []


def _check_same_shape(loss: Any, labels: Tensor, output: Tensor) -> None:
    """Raises ValueError if labels would be broadcast to another shape than the outputs have."""
    if getattr(loss, "fn", None) not in _OF_EQUAL_SHAPES:
        return
    pairs = zip((labels.shape.dims or ())[1:], (output.shape.dims or ())[1:], strict=False)
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        raise ValueError(
            f"A target array with shape {labels.shape} was passed for an output of shape "
            f"{output.shape} while using as loss `{loss.name}`. This loss expects targets to have "
            "the same shape as the output."
        )


_OF_EQUAL_SHAPES = (
    keras_losses.mean_squared_error,
    keras_losses.binary_crossentropy,
    keras_losses.categorical_crossentropy,
)


def added(total: Tensor | None, more: Any) -> Tensor:
    """The sum of losses, all scalars or all of one shape.

    Raises:
        ValueError: their shapes differ.
    """
    loss: Tensor = convert_to_tensor(more)
    if total is None:
        return loss
    if not loss.shape.is_compatible_with(total.shape):
        raise value_error(
            f"the loss {loss.name} cannot be added to the others: it has another shape",
            expected=str(total.shape),
            received=str(loss.shape),
            made_at=loss.op.source,
            hint="give a scalar: tf.reduce_mean(loss), or a Loss with another reduction than NONE",
        )
    return total + elementwise.cast(loss, total.dtype)


def _as_loss(loss: Any) -> Any:
    found = keras_losses.get(loss)
    if isinstance(found, keras_losses.Loss):
        return found
    return LossFunctionWrapper(found, name=getattr(found, "__name__", "loss"))


class CompiledMetrics:
    """The metrics of each output.

    Args:
        metrics: unweighted names, functions or `Metric`s: a list, a list per output, or a dict.
        weighted_metrics: the same for metrics that use sample weights.
        names: the outputs' names.
    """

    def __init__(self, metrics: Any, weighted_metrics: Any, names: Sequence[str]) -> None:
        self._names = list(names)
        self._plain = self._by_output(metrics)
        self._weighted = self._by_output(weighted_metrics)
        self._made: dict[tuple[int, bool, int], Any] = {}

    def _by_output(self, metrics: Any) -> list[list[Any]]:
        if metrics is None:
            return [[] for _ in self._names]
        if isinstance(metrics, (list, tuple)) and not any(
            isinstance(each, (list, tuple)) for each in metrics
        ):
            others = self._names[1:]
            return [list(metrics), *([_like(each) for each in metrics] for _ in others)]
        given = by_output(metrics, self._names, "metrics")
        return [
            list(each) if isinstance(each, (list, tuple)) else [] if each is None else [each]
            for each in given
        ]

    @property
    def metrics(self) -> list[Any]:
        """The `Metric`s; empty before the first use."""
        return list(self._made.values())

    def names_for(self, outputs: Sequence[Tensor]) -> list[str]:
        """What the metrics are called in logs, for labels like the outputs."""
        names: list[str] = []
        for name, output, plain, weighted in zip(
            self._names, outputs, self._plain, self._weighted, strict=True
        ):
            for given in plain:
                metric = keras_metrics.as_metric(given, output, output)
                names.append(self._title(name, metric, False, names))
            for given in weighted:
                metric = keras_metrics.as_metric(given, output, output)
                names.append(self._title(name, metric, True, names))
        return names

    def __call__(
        self, y: Sequence[Any], outputs: Sequence[Tensor], weights: Sequence[Any], x: Any = None
    ) -> list[tuple[str, Any, Any]]:
        """Returns the name, update and `Metric` of each; `x` has the groups of ranking metrics."""
        rows: list[tuple[str, Any, Any]] = []
        for number, name in enumerate(self._names):
            plain, weighted_ones = self._plain[number], self._weighted[number]
            if not plain and not weighted_ones:
                continue
            output = outputs[number]
            labels, weight = matched(y[number], output, weights[number])
            for weighted, metrics in ((False, plain), (True, weighted_ones)):
                counts = masked_weights(output, output, weight if weighted else None)
                for position, given in enumerate(metrics):
                    key = (number, weighted, position)
                    if key not in self._made:
                        self._made[key] = keras_metrics.as_metric(given, labels, output)
                    metric = self._made[key]
                    group = getattr(metric, "group", None)
                    more = {} if group is None else {"groups": group_of(x, group)}
                    update = metric.update_state(labels, output, sample_weight=counts, **more)
                    rows.append(
                        (
                            self._title(name, metric, weighted, [each[0] for each in rows]),
                            update,
                            metric,
                        )
                    )
        return rows

    def _title(self, output: str, metric: Any, weighted: bool, taken: Sequence[str]) -> str:
        """A unique log name for a metric."""
        name = metric.name if len(self._names) == 1 else f"{output}_{metric.name}"
        if weighted and name in taken:
            name = (
                f"weighted_{name}" if len(self._names) == 1 else f"{output}_weighted_{metric.name}"
            )
        unique, count = name, 0
        while unique in taken:
            count += 1
            unique = f"{name}_{count}"
        return unique


def group_of(x: Any, group: str) -> Any:
    """The feature that a ranking metric groups examples by.

    Raises:
        ValueError: there is none of this name.
    """
    if isinstance(x, Mapping) and group in x:
        return x[group]
    known = list(x) if isinstance(x, Mapping) else []
    raise value_error(
        f"a metric groups examples by {group!r}, which is no feature",
        expected=f"one of {known}" if known else "features in a dict",
        received=type(x).__name__,
        hint=did_you_mean(group, known),
    )


def _like(metric: Any) -> Any:
    """Copies a metric for another output."""
    if isinstance(metric, keras_metrics.Metric):
        return type(metric).from_config(metric.get_config())
    return metric


__all__ = [
    "CompiledLoss",
    "CompiledMetrics",
    "added",
    "as_list_of",
    "by_output",
    "matched",
    "weights_of_classes",
]
