"""The private heads of TensorFlow 1 (`tensorflow.python.estimator.canned.head`).

Programs that were written before heads were public take them from there. Their losses are sums over
the batch unless `loss_reduction` says otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

from estimatorkit.layers.losses.reduction import Reduction
from estimatorkit.lazy import listing
from estimatorkit.premade.classification_heads import BinaryClassHead, MultiClassHead
from estimatorkit.premade.regression_head import RegressionHead
from estimatorkit.train.optimizers_by_name import get_optimizer_by_name

__dir__ = listing(__name__)


class _Head(ABC):
    """What a head of TensorFlow 1 says; a base class for heads of your own."""

    @property
    @abstractmethod
    def name(self) -> str | None:
        """The head's name, or None."""

    @property
    @abstractmethod
    def logits_dimension(self) -> int:
        """How many logits an example has."""

    @abstractmethod
    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> Any:
        """The loss, or what it consists of."""

    @abstractmethod
    def create_estimator_spec(
        self, features: Any, mode: str, logits: Any, labels: Any = None, **options: Any
    ) -> Any:
        """The `EstimatorSpec` of a mode."""


_binary_logistic_head_with_sigmoid_cross_entropy_loss = partial(
    BinaryClassHead, loss_reduction=Reduction.SUM
)
_multi_class_head_with_softmax_cross_entropy_loss = partial(
    MultiClassHead, loss_reduction=Reduction.SUM
)
_regression_head = partial(RegressionHead, loss_reduction=Reduction.SUM)
_regression_head_with_mean_squared_error_loss = _regression_head

# `tensorflow.python.estimator.canned.optimizers`
get_optimizer_instance = partial(get_optimizer_by_name, version=1)
