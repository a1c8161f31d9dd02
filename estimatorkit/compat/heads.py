"""TensorFlow 1's heads: `tf.contrib.estimator.binary_classification_head` and similar, and the
private `estimator.canned.head`.

They are the heads of `tf.estimator` with version 1's metrics, names and argument orders, and with
`create_loss`. Functions of `contrib` average over a batch by default, private ones sum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from types import NoneType
from typing import Any, NamedTuple

from estimatorkit.compat.arguments import with_arguments
from estimatorkit.compat.tpu import TPUEstimatorSpec
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.spec import EstimatorSpec
from estimatorkit.layers.losses import Reduction
from estimatorkit.ops.math import elementwise
from estimatorkit.premade.classification_heads import BinaryClassHead, MultiClassHead
from estimatorkit.premade.head import Head
from estimatorkit.premade.multi_head import MultiHead
from estimatorkit.premade.multi_label_head import MultiLabelHead
from estimatorkit.premade.regression_head import (
    LogisticRegressionHead,
    PoissonRegressionHead,
    RegressionHead,
)
from estimatorkit.premade.single_head import SingleHead
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.optimizers.optimizer import Optimizer


class LossSpec(NamedTuple):
    """The result of `create_loss`.

    Attributes:
        training_loss: a float32 scalar.
        unreduced_loss: the loss of each example, float32 `(batch, ..., n)`.
        weights: the examples' weights, `(batch, ..., 1)`; 1.0 if there are none.
        processed_labels: the labels used by the loss.

    For a multi-head the last three are dicts by head name.
    """

    training_loss: Tensor
    unreduced_loss: Any
    weights: Any
    processed_labels: Any


class _Head(ABC):
    """The base of custom version 1 heads: `create_estimator_spec` is derived from
    `_create_tpu_estimator_spec`.
    """

    @property
    @abstractmethod
    def name(self) -> str | None:
        """The head's name, or None."""

    @property
    @abstractmethod
    def logits_dimension(self) -> int:
        """The number of logits per example."""

    @abstractmethod
    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> LossSpec:
        """The training loss and its components.

        Args:
            features: the features, including the weights.
            mode: accepted for compatibility only.
            logits: numbers `(batch, ..., logits_dimension)`.
            labels: see the head.

        Raises:
            ValueError, TypeError: labels, logits or weights are invalid.
        """

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        regularization_losses: Sequence[Tensor] | None = None,
    ) -> EstimatorSpec:
        """The result of a `model_fn`; see `Head`.

        Raises:
            NotImplementedError: the head overrides neither this nor `_create_tpu_estimator_spec`.
        """
        given = (features, mode, logits, labels, optimizer, train_op_fn, regularization_losses)
        if type(self)._create_tpu_estimator_spec is _Head._create_tpu_estimator_spec:
            raise NotImplementedError(
                "Subclasses of _Head must implement `create_estimator_spec()` or "
                "_create_tpu_estimator_spec()."
            )
        return self._create_tpu_estimator_spec(*given).as_estimator_spec()

    def _create_tpu_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        regularization_losses: Sequence[Tensor] | None = None,
    ) -> TPUEstimatorSpec:
        raise NotImplementedError("TPUEstimatorSpec not available for this model head.")


class _Version1(Head, _Head):
    """Additional methods of version 1's heads."""

    _version = 1

    def create_estimator_spec(  # type: ignore[override]
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        regularization_losses: Sequence[Tensor] | None = None,
    ) -> EstimatorSpec:
        """The result of a `model_fn`; see `Head`.

        As in version 1, the optimizer only needs `minimize(loss, global_step)`.
        """
        if not isinstance(optimizer, (Optimizer, NoneType)) and train_op_fn is None:
            train_op_fn = partial(optimizer.minimize, global_step=get_global_step())
            optimizer = None
        return Head.create_estimator_spec(
            self,
            features,
            mode,
            logits,
            labels,
            optimizer,
            train_op_fn=train_op_fn,
            regularization_losses=regularization_losses,
        )


class _SingleHead(_Version1, SingleHead):
    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> LossSpec:
        batch = self._batch(features, logits, labels)
        weights = 1.0 if batch.weights is None else batch.weights
        return LossSpec(self._reduced(batch), batch.losses, weights, batch.targets)


def _version_1(base: type[SingleHead], **names: str) -> Callable[..., Head]:
    """The version 1 variant of a head of `tf.estimator`; `names` are its operations' names."""
    space = {"__doc__": base.__doc__, "__module__": __name__, **names}
    return type(base.__name__, (_SingleHead, base), space)


_MultiClassHead = _version_1(MultiClassHead, _class_ids_name="ExpandDims_2")
_BinaryClassHead = _version_1(BinaryClassHead)
_RegressionHead = _version_1(RegressionHead)
_PoissonRegressionHead = _version_1(PoissonRegressionHead)
_LogisticRegressionHead = _version_1(LogisticRegressionHead)
_MultiLabelHead = _version_1(MultiLabelHead)


class _MultiHead(_Version1, MultiHead):
    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> LossSpec:
        own, truth = self._split(logits), self._of_heads("labels", labels)
        found: dict[str, LossSpec] = {}
        weighted = any(weight != 1.0 for weight in self._weights)
        for (name, head), weight in zip(self._heads.items(), self._weights, strict=True):
            spec = head.create_loss(features, mode, own[name], truth[name])  # type: ignore[attr-defined]
            if weighted:
                loss, losses, weights = (elementwise.multiply(each, weight) for each in spec[:3])
                spec = LossSpec(loss, losses, weights, spec.processed_labels)
            found[name] = spec
        with get_default_graph().name_scope("merge_losses"):
            total = elementwise.add_n([spec.training_loss for spec in found.values()])
        return LossSpec(
            total,
            {name: spec.unreduced_loss for name, spec in found.items()},
            {name: spec.weights for name, spec in found.items()},
            {name: spec.processed_labels for name, spec in found.items()},
        )


_head = partial(with_arguments, __name__)
multi_class_head = _head(
    "multi_class_head",
    _MultiClassHead,
    "n_classes weight_column label_vocabulary loss_reduction loss_fn name",
)
binary_classification_head = _head(
    "binary_classification_head",
    _BinaryClassHead,
    "weight_column thresholds label_vocabulary loss_reduction loss_fn name",
)
regression_head = _head(
    "regression_head",
    _RegressionHead,
    "weight_column label_dimension loss_reduction loss_fn inverse_link_fn name",
)
poisson_regression_head = _head(
    "poisson_regression_head",
    _PoissonRegressionHead,
    "weight_column label_dimension loss_reduction compute_full_loss name",
)
logistic_regression_head = _head(
    "logistic_regression_head", _LogisticRegressionHead, "weight_column loss_reduction name"
)
multi_label_head = _head(
    "multi_label_head",
    _MultiLabelHead,
    "n_classes weight_column thresholds label_vocabulary loss_reduction loss_fn "
    "classes_for_class_based_metrics name",
)
multi_head = _head("multi_head", _MultiHead, "heads head_weights")

_multi_class_head_with_softmax_cross_entropy_loss = partial(
    multi_class_head, loss_reduction=Reduction.SUM
)
_binary_logistic_head_with_sigmoid_cross_entropy_loss = partial(
    binary_classification_head, loss_reduction=Reduction.SUM
)
_regression_head = partial(regression_head, loss_reduction=Reduction.SUM)
_regression_head_with_mean_squared_error_loss = _regression_head
