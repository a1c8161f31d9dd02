"""The config of `compile`, and the contents of a model file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from estimatorkit.keras.engine import model_config
from estimatorkit.keras.engine.compiled import map_leaves
from estimatorkit.keras.engine.weights import StoredLayer
from estimatorkit.layers.serialization import get_registered_object

_log = logging.getLogger("estimatorkit")


@dataclass(frozen=True)
class Contents:
    """The contents of a model file.

    Attributes:
        layers: the layers that have weights, in order.
        optimizer: the optimizer's variables, in order.
        model: the model as {'class_name', 'config'}, or None.
        compiled: the config of `compile`.
        epoch: the last trained epoch, or None.
    """

    layers: Sequence[StoredLayer]
    optimizer: Sequence[NDArray[Any]] = ()
    model: Any = None
    compiled: Any = None
    epoch: int | None = None

    def tensors(self) -> dict[str, NDArray[Any]]:
        """All arrays by name."""
        found = {f"optimizer/{number}": value for number, value in enumerate(self.optimizer)}
        for layer in self.layers:
            found |= {f"layers/{layer.name}/{key}": value for key, value in layer.weights}
        return found

    def state(self) -> dict[str, Any]:
        """Everything but the arrays, as a JSON-serializable value."""
        return {
            "kind": "keras",
            "layers": [[each.name, [key for key, _ in each.weights]] for each in self.layers],
            "optimizer_weights": len(self.optimizer),
            "model": self.model,
            "compiled": self.compiled,
            "epoch": self.epoch,
        }


def compile_config(model: Any) -> Any:
    """The arguments of `compile` as plain values.

    Returns None if it was not called or, with a warning, if an argument cannot be named.
    """
    from estimatorkit.keras import losses, metrics, optimizers

    compiled = model._compiled
    if compiled is None:
        return None
    try:
        if not hasattr(compiled.optimizer, "get_config"):
            raise ValueError(f"{type(compiled.optimizer).__name__} does not describe itself")
        with model.graph.as_default():
            optimizer = optimizers.serialize(compiled.optimizer)
        return model_config.plain_value(
            {
                "optimizer": optimizer,
                "loss": map_leaves(_named(losses.serialize), compiled.loss),
                "metrics": map_leaves(_named(metrics.serialize), compiled.given_metrics),
                "loss_weights": compiled.given_loss_weights,
                "weighted_metrics": map_leaves(
                    _named(metrics.serialize), compiled.given_weighted_metrics
                ),
            },
            model.name,
        )
    except (ValueError, NotImplementedError) as error:
        _log.warning(
            "The model %r is saved without what compile() was given, because a part of it has no "
            "name: compile it after loading. %s",
            model.name,
            error,
        )
        return None


def compile_from_config(
    model: Any, config: Any, custom_objects: Mapping[str, Any] | None = None
) -> None:
    """Compiles a model from the result of `compile_config`.

    Raises:
        ValueError: a name is unknown.
    """
    from estimatorkit.keras import losses, optimizers

    def metric(value: Any) -> Any:
        return _metric(value, custom_objects)

    with model.graph.as_default():
        optimizer = optimizers.deserialize(config["optimizer"], custom_objects)
    model.compile(
        optimizer,
        loss=map_leaves(lambda each: losses.deserialize(each, custom_objects), config.get("loss")),
        metrics=map_leaves(metric, config.get("metrics")),
        loss_weights=config.get("loss_weights"),
        weighted_metrics=map_leaves(metric, config.get("weighted_metrics")),
    )


def _metric(value: Any, custom_objects: Mapping[str, Any] | None) -> Any:
    """Restores a metric; names stay strings, because logs use them."""
    from estimatorkit.keras import metrics

    named = isinstance(value, str) and get_registered_object(value, custom_objects) is None
    if named and value.lower() in ("accuracy", "acc", "crossentropy", "ce"):
        return value  # the function depends on the outputs
    found = metrics.deserialize(value, custom_objects)
    return value if named else found


def _named(serialize: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The serialized form of an object; a name is its own."""
    return lambda value: value if isinstance(value, str) else serialize(value)
