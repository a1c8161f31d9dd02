"""`AdaptedModel`: the interface to Keras models for `model_to_estimator`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.tensor import Tensor


@dataclass(frozen=True)
class Called:
    """The result of calling a model in an estimator's graph.

    Attributes:
        names: the outputs' names.
        tensors: the outputs.
        losses: scalars to add to the loss.
        updates: operations to run with each training step.
        trainable: the trainable variables.
    """

    names: list[str]
    tensors: list[Tensor]
    losses: list[Tensor]
    updates: list[Any]
    trainable: list[Any]


class AdaptedModel(ABC):
    """A compiled model, adapted to estimators.

    Attributes:
        loss, loss_weights, metrics, weighted_metrics, optimizer: the arguments of `compile`.
        first_values: the model's initial weights, by variable name.
    """

    loss: Any
    loss_weights: Any
    metrics: Any
    weighted_metrics: Any
    optimizer: Any
    first_values: Mapping[str, Any]

    @abstractmethod
    def called(self, features: Any, training: bool) -> AbstractContextManager[Called]:
        """Calls the model on variables of the default graph."""


def inputs_by_name(features: Any, names: Sequence[str]) -> Any:
    """The features for a model's inputs, by name; a single feature may have any name.

    Args:
        features: tensors by name, or a tensor.
        names: the inputs' names; empty if the model does not know them.

    Raises:
        KeyError: one is missing.
    """
    if not isinstance(features, Mapping):
        return features
    if len(features) == 1 and not names:
        return next(iter(features.values()))
    return by_name(features, names, "features", "inputs") if names else features


def by_name(given: Mapping[str, Any], names: Sequence[str], what: str, ends: str) -> dict[str, Any]:
    """The tensors that the model names.

    Raises:
        FormattedKeyError: one is missing.
    """
    missed = [name for name in names if name not in given]
    if missed:
        raise FormattedKeyError(
            f"The dictionary passed into {what} does not cover requested {ends} keys defined in "
            f"the keras model.\n\tExpected keys: {list(names)}\n\t{what} keys: {sorted(given)}"
            f"\n\tMissed keys: {missed}"
        )
    return {name: given[name] for name in names}


class FormattedKeyError(KeyError):
    """A `KeyError` whose message is not shown as a `repr`."""

    def __str__(self) -> str:
        return str(self.args[0])
