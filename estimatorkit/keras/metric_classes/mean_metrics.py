"""Metrics that are a weighted sum over a sum of weights: means, and means of losses and matches.

`MeanMetricWrapper` makes a metric of a function; the classes below it are a table of functions with
Keras's names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras import crossentropy, error_functions
from estimatorkit.keras.loss import as_columns, masked_weights
from estimatorkit.keras.metric_classes import metric_functions
from estimatorkit.keras.metric_classes.metric import StreamingMetric
from estimatorkit.layers.metrics.streaming import weighted_sums
from estimatorkit.layers.weighting import broadcast, match_ranks, remove_squeezable_dimensions
from estimatorkit.ops.array import filling
from estimatorkit.ops.math import elementwise, reduce


class _OfValues(StreamingMetric):
    """A metric of values instead of labels and predictions."""

    _drop: ClassVar[Callable[..., Tensor]] = staticmethod(reduce.reduce_mean)

    def update_state(  # type: ignore[override]  # Keras's own
        self, values: Any, sample_weight: Any = None
    ) -> Any:
        """Adds values to the sums.

        Args:
            values: numbers `(batch, ...)`.
            sample_weight: None, a scalar, or weights `(batch, ...)`.

        Returns:
            The operation that does so.
        """
        tensor = elementwise.cast(convert_to_tensor(values, name="values"), self._dtype)
        weights = sample_weight
        if weights is not None:
            weights = elementwise.cast(
                convert_to_tensor(weights, dtype_hint=self._dtype, name="weights"), self._dtype
            )
            rank, wanted = weights.shape.rank, tensor.shape.rank
            if rank and wanted == 0:  # a single value for the whole batch counts once per weight
                tensor = tensor * filling.ones_like(weights)
            elif rank and wanted is not None and rank < wanted - 1:
                tensor = type(self)._drop(tensor, list(range(rank, wanted)))
        return self.add_sums(self._of_values(tensor, weights))

    def _of_values(self, values: Tensor, weights: Any) -> Mapping[str, Tensor]:
        return weighted_sums(values, weights, self._dtype)


class Sum(_OfValues):
    """The weighted sum of values.

    Args:
        name, dtype: see `Metric`.
    """

    _drop = staticmethod(reduce.reduce_sum)

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def shapes(self) -> Mapping[str, Any]:
        return {"total": ()}

    def _of_values(self, values: Tensor, weights: Any) -> Mapping[str, Tensor]:
        return {"total": weighted_sums(values, weights, self._dtype)["total"]}

    def value(self, *sums: Tensor) -> Tensor:
        return sums[0]


class Mean(_OfValues):
    """The weighted mean of values; 0 before the first update.

    Args:
        name, dtype: see `Metric`.
    """

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def shapes(self) -> Mapping[str, Any]:
        return {"total": (), "count": ()}

    def value(self, *sums: Tensor) -> Tensor:
        total, count = sums
        return elementwise.div_no_nan(total, count)


class MeanTensor(_OfValues):
    """The weighted mean over batches, element by element.

    Args:
        name, dtype: see `Metric`.
        shape: the shape of the values; that of the first batch by default.
    """

    def __init__(
        self, name: str | None = "mean_tensor", dtype: Any = None, shape: Any = None
    ) -> None:
        super().__init__(name, dtype)
        self._shape = shape

    def shapes(self) -> Mapping[str, Any] | None:
        return None if self._shape is None else {"total": self._shape, "count": self._shape}

    def _of_values(self, values: Tensor, weights: Any) -> Mapping[str, Tensor]:
        ones = filling.ones_like(values)
        full = ones if weights is None else broadcast(weights, values)
        return {"total": values * full, "count": full}

    def value(self, *sums: Tensor) -> Tensor:
        total, count = sums
        return elementwise.div_no_nan(total, count)


class MeanMetricWrapper(Mean):
    """The mean of a function of labels and predictions.

    Args:
        fn: a function that returns a value, or a value per example, given labels and predictions.
        name, dtype: see `Metric`.
        kwargs: further arguments of the function.
    """

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(name, dtype)
        self._fn = fn
        self._fn_kwargs = kwargs

    def update_state(  # type: ignore[override]  # Keras's own
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> Any:
        """Adds a batch to the sums (see `StreamingMetric.update_state`)."""
        guesses = convert_to_tensor(y_pred, name="y_pred")
        truth, output = match_ranks(y_true, guesses)
        if not (truth.dtype.is_integer and output.dtype.is_integer):  # ids stay exact
            truth, output = self._cast(truth), self._cast(output)
        truth, output = as_columns(self._fn, truth, output)
        values = convert_to_tensor(self._fn(truth, output, **self._fn_kwargs))
        return super().update_state(values, masked_weights(values, guesses, sample_weight))

    def _cast(self, tensor: Tensor) -> Tensor:
        # Unchanged if it has the dtype: a loss looks for the softmax that produced it.
        return tensor if tensor.dtype is self._dtype else elementwise.cast(tensor, self._dtype)

    def get_config(self) -> dict[str, Any]:
        own = {"fn": self._fn} if type(self) is MeanMetricWrapper else {}
        return {**super().get_config(), **self._fn_kwargs, **own}


class MeanRelativeError(Mean):
    """The mean of |label - prediction| / normalizer, with 0 where the normalizer is 0.

    Args:
        normalizer: numbers of the shape of the predictions.
        name, dtype: see `Metric`.
    """

    def __init__(self, normalizer: Any, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.normalizer = normalizer

    def update_state(  # type: ignore[override]  # Keras's own
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> Any:
        """Adds a batch to the sums (see `StreamingMetric.update_state`)."""
        truth, guesses = match_ranks(y_true, y_pred)
        truth, guesses = (elementwise.cast(each, self._dtype) for each in (truth, guesses))
        scale = elementwise.cast(convert_to_tensor(self.normalizer), self._dtype)
        guesses, scale = remove_squeezable_dimensions(guesses, scale)
        guesses.shape.assert_is_compatible_with(truth.shape)
        errors = elementwise.div_no_nan(elementwise.abs(truth - guesses), scale)
        return super().update_state(errors, sample_weight)


class RootMeanSquaredError(Mean):
    """The square root of the mean squared error.

    Args:
        name, dtype: see `Metric`.
    """

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(  # type: ignore[override]  # Keras's own
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> Any:
        """Adds a batch to the sums (see `StreamingMetric.update_state`)."""
        truth, guesses = match_ranks(y_true, y_pred)
        errors = elementwise.squared_difference(
            elementwise.cast(guesses, self._dtype), elementwise.cast(truth, self._dtype)
        )
        return super().update_state(errors, sample_weight)

    def value(self, *sums: Tensor) -> Tensor:
        return elementwise.sqrt(super().value(*sums))


class _Plain(MeanMetricWrapper):
    """The mean of a function without further arguments.

    Args:
        name: Keras's name for it by default.
        dtype: see `Metric`.
    """

    _function: ClassVar[Callable[..., Tensor]]
    _default: ClassVar[str]

    def __init_subclass__(
        cls, function: Callable[..., Tensor] | None = None, name: str | None = None
    ) -> None:
        super().__init_subclass__()
        if function is not None:
            cls._function, cls._default = staticmethod(function), name or function.__name__

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(self._function, name or self._default, dtype)


class Accuracy(_Plain, function=metric_functions.accuracy):
    """How often predictions equal labels."""


class CategoricalAccuracy(_Plain, function=metric_functions.categorical_accuracy):
    """How often the class with the highest score is the one with the highest label."""


class SparseCategoricalAccuracy(
    _Plain, function=metric_functions.sparse_categorical_matches, name="sparse_categorical_accuracy"
):
    """How often the class with the highest score is the label."""


class MeanSquaredError(_Plain, function=error_functions.mean_squared_error):
    """The mean squared error."""


class MeanAbsoluteError(_Plain, function=error_functions.mean_absolute_error):
    """The mean absolute error."""


class MeanAbsolutePercentageError(_Plain, function=error_functions.mean_absolute_percentage_error):
    """The mean absolute error in percent of the labels."""


class MeanSquaredLogarithmicError(_Plain, function=error_functions.mean_squared_logarithmic_error):
    """The mean squared error of logarithms."""


class LogCoshError(_Plain, function=error_functions.log_cosh, name="logcosh"):
    """The mean of log(cosh(error))."""


class Poisson(_Plain, function=error_functions.poisson):
    """The mean Poisson loss, for predictions that are expected counts."""


class KLDivergence(
    _Plain, function=error_functions.kl_divergence, name="kullback_leibler_divergence"
):
    """The mean Kullback-Leibler divergence between distributions."""


class Hinge(_Plain, function=error_functions.hinge):
    """The mean hinge loss."""


class SquaredHinge(_Plain, function=error_functions.squared_hinge):
    """The mean squared hinge loss."""


class CategoricalHinge(_Plain, function=error_functions.categorical_hinge):
    """The mean hinge loss for several classes."""


class BinaryAccuracy(MeanMetricWrapper):
    """How often thresholded predictions equal labels in {0, 1}.

    Args:
        name, dtype: see `Metric`.
        threshold: predictions above it count as 1.
    """

    def __init__(
        self, name: str | None = "binary_accuracy", dtype: Any = None, threshold: float = 0.5
    ) -> None:
        super().__init__(metric_functions.binary_matches, name, dtype, threshold=threshold)


class TopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the class with the highest label is among the k classes with the highest scores.

    Args:
        k: the number of classes.
        name, dtype: see `Metric`.
    """

    def __init__(
        self, k: int = 5, name: str | None = "top_k_categorical_accuracy", dtype: Any = None
    ) -> None:
        super().__init__(metric_functions.top_k_categorical_accuracy, name, dtype, k=k)


class SparseTopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the label is among the k classes with the highest scores.

    Args:
        k: the number of classes.
        name, dtype: see `Metric`.
    """

    def __init__(
        self,
        k: int = 5,
        name: str | None = "sparse_top_k_categorical_accuracy",
        dtype: Any = None,
    ) -> None:
        super().__init__(metric_functions.sparse_top_k_categorical_accuracy, name, dtype, k=k)


class CosineSimilarity(MeanMetricWrapper):
    """The mean cosine similarity of labels and predictions.

    Args:
        name, dtype: see `Metric`.
        axis: the axis of the vectors.
    """

    def __init__(
        self, name: str | None = "cosine_similarity", dtype: Any = None, axis: int = -1
    ) -> None:
        super().__init__(metric_functions.cosine_proximity, name, dtype, axis=axis)


class BinaryCrossentropy(MeanMetricWrapper):
    """The mean cross-entropy for labels in {0, 1}.

    Args:
        name, dtype: see `Metric`.
        from_logits, label_smoothing: see `keras.losses.binary_crossentropy`.
    """

    def __init__(
        self,
        name: str | None = "binary_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
    ) -> None:
        rest = {"from_logits": from_logits, "label_smoothing": label_smoothing}
        super().__init__(crossentropy.binary_crossentropy, name, dtype, **rest)


class CategoricalCrossentropy(MeanMetricWrapper):
    """The mean cross-entropy between distributions over classes.

    Args:
        name, dtype: see `Metric`.
        from_logits, label_smoothing, axis: see `keras.losses.categorical_crossentropy`.
    """

    def __init__(
        self,
        name: str | None = "categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
        axis: int = -1,
    ) -> None:
        rest = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(crossentropy.categorical_crossentropy, name, dtype, **rest)


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """The mean cross-entropy for labels that are class indices.

    Args:
        name, dtype: see `Metric`.
        from_logits, ignore_class, axis: see `keras.losses.sparse_categorical_crossentropy`.
    """

    def __init__(
        self,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        ignore_class: int | None = None,
        axis: int = -1,
    ) -> None:
        rest = {"from_logits": from_logits, "ignore_class": ignore_class, "axis": axis}
        super().__init__(crossentropy.sparse_categorical_crossentropy, name, dtype, **rest)
