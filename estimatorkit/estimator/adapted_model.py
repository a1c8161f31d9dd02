"""`AdaptedModel`: what `model_to_estimator` asks of a model, whatever Keras it is of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.tensor import Tensor


@dataclass(frozen=True)
class Called:
    """What calling a model in an estimator's graph gave.

    Attributes:
        names: of the outputs.
        tensors: the outputs.
        losses: scalars that are added to the loss.
        updates: operations that run with each training step.
        trainable: the variables that training changes.
    """

    names: list[str]
    tensors: list[Tensor]
    losses: list[Tensor]
    updates: list[Any]
    trainable: list[Any]


class AdaptedModel(ABC):
    """A model as an estimator takes it.

    Attributes:
        loss, loss_weights, metrics, weighted_metrics, optimizer: what `compile` was given.
        first_values: the weights that the model came with, by the names of the variables.
    """

    loss: Any
    loss_weights: Any
    metrics: Any
    weighted_metrics: Any
    optimizer: Any
    first_values: Mapping[str, Any]

    @abstractmethod
    def called(self, features: Any, training: bool) -> AbstractContextManager[Called]:
        """Calls the model; its variables are those of the default graph inside."""


def inputs_by_name(features: Any, names: Sequence[str]) -> Any:
    """The features that a model's inputs are called; the only one, whatever its name.

    Args:
        features: tensors by name, or a tensor.
        names: of the inputs; none where the model does not know them.

    Raises:
        KeyError: one is missing.
    """
    if not isinstance(features, Mapping):
        return features
    if len(features) == 1 and not names:
        return next(iter(features.values()))
    return by_name(features, names, "features", "inputs") if names else features


def by_name(given: Mapping[str, Any], names: Sequence[str], what: str, ends: str) -> dict[str, Any]:
    """Those of the tensors that the model has names for.

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
    """A `KeyError` whose message is shown as it is, not as a string's `repr`."""

    def __str__(self) -> str:
        return str(self.args[0])
