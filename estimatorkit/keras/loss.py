"""What losses of Keras are: `Loss`, and `LossFunctionWrapper`, which makes one of a function.

A loss is called with labels, predictions and weights and gives one number; nothing is put into the
collection LOSSES. Vectors are columns where weights are given, so that a weight counts as many
examples as it says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any, ClassVar

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, float64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras import crossentropy, error_functions
from estimatorkit.layers.engine.call_record import mask_on
from estimatorkit.layers.losses import compute_weighted_loss
from estimatorkit.layers.weighting import aligned, match_ranks, remove_squeezable_dimensions
from estimatorkit.logger import logger
from estimatorkit.ops.array import array
from estimatorkit.ops.math import elementwise, reduce


class Reduction:
    """How the losses of a batch are reduced.

    AUTO and SUM_OVER_BATCH_SIZE: to their weighted sum divided by their number. SUM: to their
    weighted sum. NONE: not at all.
    """

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All values."""
        return (cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE)

    @classmethod
    def validate(cls, key: Any) -> None:
        """Raises a ValueError if `key` is not one of the values."""
        if key not in cls.all():
            raise value_error(
                f"Invalid Reduction Key: {key}",
                expected="one of " + ", ".join(map(repr, cls.all())),
                received=repr(key),
            )


class Loss:
    """Base class of losses. Subclasses define `call(y_true, y_pred)`, the loss of each example.

    Args:
        reduction: a `Reduction`.
        name: the name scope, and the name in configs.

    Raises:
        ValueError: the reduction is unknown.
    """

    def __init__(self, reduction: str = Reduction.AUTO, name: str | None = None) -> None:
        if isinstance(reduction, str):
            reduction = reduction.removeprefix("weighted_")  # of tf.losses.Reduction
        Reduction.validate(reduction)
        self.reduction = reduction
        self.name = name

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the losses of the examples, `(batch, ...)`."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """Returns the loss.

        Args:
            y_true: labels `(batch, ...)`.
            y_pred: predictions `(batch, ...)`; masked steps are ignored.
            sample_weight: weights, a scalar or a tensor that broadcasts to the shape of the losses;
                a last dimension of 1 may be missing.

        Returns:
            A scalar; with NONE, the weighted losses.

        Raises:
            ValueError: the shapes do not match.
        """
        if sample_weight is not None:
            sample_weight = convert_to_tensor(sample_weight, name="sample_weight")
        by_example = bool(_masks_of(y_pred)) or (
            sample_weight is not None and sample_weight.shape.rank != 0
        )
        scope = (self.name or type(self).__name__).strip("_").replace("<lambda>", "lambda")
        with get_default_graph().name_scope(scope):
            values = self._values(y_true, y_pred, by_example)
            losses = convert_to_tensor(values, name="losses")
            weights = masked_weights(losses, y_pred, sample_weight, self.reduction)
            if weights is not None and losses.shape.rank == 0:
                # A single loss for the whole batch counts once per weight.
                losses, weights = losses * elementwise.cast(weights, losses.dtype), None
            if weights is not None:
                weights = aligned(weights, losses)
            return compute_weighted_loss(
                losses,
                1.0 if weights is None else weights,
                loss_collection=None,
                reduction=self.reduction,
            )

    def _values(self, y_true: Any, y_pred: Any, by_example: bool) -> Any:
        """The losses; one per example, where weights or a mask tell examples apart."""
        if isinstance(y_true, Tensor) and isinstance(y_pred, Tensor):
            _warn_of_pairs(self.name, y_true, y_pred)
        return self.call(y_true, y_pred)

    def _get_reduction(self) -> str:
        """The reduction, with AUTO resolved; read by subclasses written for Keras."""
        is_auto = self.reduction == Reduction.AUTO
        return Reduction.SUM_OVER_BATCH_SIZE if is_auto else self.reduction

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments from which `from_config` creates an equal loss."""
        return {"reduction": self.reduction, "name": self.name}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Loss:
        """Creates a loss from the result of `get_config`, here or in TensorFlow."""
        return cls(**{key: value for key, value in config.items() if key != "fn"})


def masked_weights(
    losses: Tensor, y_pred: Any, sample_weight: Any, reduction: str = Reduction.SUM
) -> Any:
    """Weights of losses without the steps that are masked in predictions or losses.

    Args:
        losses: one per example or step.
        y_pred: the predictions.
        sample_weight: weights, or None.
        reduction: if it divides by the number of losses, the remaining ones are scaled up.

    Returns:
        Weights; None for all 1.
    """
    masks = _masks_of(y_pred, losses)
    if not masks:
        return sample_weight
    # In 16 bits the number of steps would be inexact from 2048 on.
    dtype = float64 if losses.dtype is float64 else float32
    weights = elementwise.cast(masks[0], dtype)
    for each in masks[1:]:
        weights = weights * elementwise.cast(each, dtype)
    if reduction in (Reduction.AUTO, Reduction.SUM_OVER_BATCH_SIZE):
        size = elementwise.cast(array.size(weights), weights.dtype)
        weights = weights * elementwise.div_no_nan(size, reduce.reduce_sum(weights))
    return weights if sample_weight is None else weights * aligned(sample_weight, weights)


def _masks_of(*values: Any) -> list[Tensor]:
    """The masks of those that have one."""
    tensors = dict.fromkeys(each for each in values if isinstance(each, Tensor))
    found = [mask_on(each) for each in tensors]
    return [each for each in found if each is not None]


class LossFunctionWrapper(Loss):
    """Wraps a function as a loss.

    Args:
        fn: a function that returns the losses given labels and predictions.
        reduction, name: see `Loss`.
        kwargs: further arguments of the function.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        reduction: str = Reduction.AUTO,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(reduction, name)
        self.fn = fn
        self._fn_kwargs = kwargs

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the function's losses; a last dimension of 1 may be missing in either."""
        truth, guesses = of_one_rank(self.fn, y_true, y_pred)
        return self.fn(truth, guesses, **self._fn_kwargs)

    def _values(self, y_true: Any, y_pred: Any, by_example: bool) -> Any:
        if by_example:
            y_true, y_pred = as_columns(self.fn, *of_one_rank(self.fn, y_true, y_pred))
        return self.call(y_true, y_pred)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._fn_kwargs}


class LossOfFunction(LossFunctionWrapper):
    """A loss of a function without further arguments, which a subclass names.

    Args:
        reduction: a `Reduction`.
        name: the function's name by default.
    """

    _function: ClassVar[Callable[..., Tensor]]

    def __init_subclass__(cls, function: Callable[..., Tensor] | None = None) -> None:
        super().__init_subclass__()
        if function is not None:
            cls._function = staticmethod(function)

    def __init__(self, reduction: str = Reduction.AUTO, name: str | None = None) -> None:
        super().__init__(self._function, reduction, name or self._function.__name__)


_MEANS_OF_ELEMENTS = frozenset(
    {
        error_functions.hinge,
        error_functions.huber,
        error_functions.log_cosh,
        error_functions.mean_absolute_error,
        error_functions.mean_absolute_percentage_error,
        error_functions.mean_squared_error,
        error_functions.mean_squared_logarithmic_error,
        error_functions.poisson,
        error_functions.squared_hinge,
        crossentropy.binary_crossentropy,
        crossentropy.binary_focal_crossentropy,
    }
)
"""Functions that give the mean along the last axis of what each element costs."""


def of_one_rank(function: Any, y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    """Labels and predictions of one rank, where one of them has a last dimension of 1 more.

    Functions of this package get that dimension in both, and so give one value per example. Others
    get it in neither, as from Keras, on which their own indices rely.
    """
    if getattr(function, "__module__", None) in _OWN_MODULES:
        return match_ranks(y_true, y_pred)
    truth, guesses = convert_to_tensor(y_true), convert_to_tensor(y_pred)
    more = truth.shape.rank is not None and guesses.shape.rank == truth.shape.rank + 1
    if not more or guesses.shape[-1] == 1:
        truth, guesses = remove_squeezable_dimensions(truth, guesses)
    _warn_of_pairs(getattr(function, "__name__", "loss"), truth, guesses)
    return truth, guesses


_OWN_MODULES = (error_functions.__name__, crossentropy.__name__)


def _warn_of_pairs(name: str | None, truth: Tensor, guesses: Tensor) -> None:
    if _makes_pairs(truth, guesses):
        logger.warning(
            "The loss %s gets labels of shape %s and predictions of shape %s: their difference "
            "pairs each example with all others. Reshape one of them.",
            name,
            truth.shape,
            guesses.shape,
        )


def _makes_pairs(one: Tensor, other: Tensor) -> bool:
    """Whether broadcasting two tensors gives a shape larger than both."""
    sizes = one.shape.dims, other.shape.dims
    if sizes[0] is None or sizes[1] is None:
        return False
    pairs = list(zip_longest(reversed(sizes[0]), reversed(sizes[1]), fillvalue=1))
    return any(a == 1 != b for a, b in pairs) and any(b == 1 != a for a, b in pairs)


def as_columns(function: Any, y_true: Tensor, y_pred: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors as columns, of which such a function gives a value per example.

    Of vectors it gives one number, their mean, which weights could not change.
    """
    if function in _MEANS_OF_ELEMENTS and y_true.shape.rank == y_pred.shape.rank == 1:
        return array.expand_dims(y_true, -1), array.expand_dims(y_pred, -1)
    return y_true, y_pred


def plain_config(config: Any) -> Any:
    """A name or config of TensorFlow's either format, with functions by their names alone.

    Keras 2.15 writes a function as `{'class_name': 'function', 'config': 'mse', ...}`.
    """
    if isinstance(config, Mapping) and config.get("class_name") == "function":
        return config["config"]
    return config
