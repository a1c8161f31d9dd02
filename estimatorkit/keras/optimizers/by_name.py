"""Optimizers by name and config: `get`, `serialize`, `deserialize`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.keras.optimizers import built_in
from estimatorkit.keras.optimizers.optimizer import Optimizer
from estimatorkit.layers.serialization import Registry, classes_in, get_registered_object
from estimatorkit.lazy import Port
from estimatorkit.train.optimizers import optimizer as train_optimizer

if TYPE_CHECKING:
    from estimatorkit.keras.mixed_precision import loss_scale_optimizer
else:  # it builds on this module
    loss_scale_optimizer = Port("loss_scaling")

_CLASSES = classes_in(built_in.__name__, Optimizer)
_BY_LOWER = {name.lower(): name for name in _CLASSES}
_REGISTRY = Registry("optimizer", _CLASSES)


def get(identifier: Any, **kwargs: Any) -> Any:
    """Resolves an identifier to an optimizer.

    Source: `tf.keras.optimizers.get`.

    Args:
        identifier: an optimizer, also one of `train` (returned unchanged), a name such as 'adam' in
            any case, or a config that `serialize` returned.
        **kwargs: `use_legacy_optimizer`, accepted for Keras' signature.

    Raises:
        ValueError: the identifier is unknown.
        TypeError: another keyword was given.
    """
    kwargs.pop("use_legacy_optimizer", None)
    if kwargs:
        raise TypeError(f"Invalid keyword arguments: {kwargs}")
    if isinstance(identifier, train_optimizer.Optimizer):
        return identifier
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    if isinstance(identifier, Mapping):
        return deserialize(identifier)
    raise value_error(
        f"Could not interpret optimizer identifier: {identifier!r}",
        expected=f"an optimizer, its config, or one of {sorted(_CLASSES)}",
    )


def serialize(optimizer: Any) -> dict[str, Any]:
    """Returns {'class_name': ..., 'config': ...} for an optimizer."""
    described: dict[str, Any] = _REGISTRY.serialize(optimizer)
    return described


def deserialize(
    config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None, **kwargs: Any
) -> Any:
    """Creates an optimizer from the result of `serialize`.

    Args:
        config: {'class_name': ..., 'config': ...}; the case of class names does not matter.
        custom_objects: a dict from names to your own classes.
        **kwargs: `use_legacy_optimizer`, accepted for Keras' signature.

    Raises:
        ValueError: the name is unknown.
    """
    given = str(config["class_name"])
    if given.lower() == "lossscaleoptimizer":
        return loss_scale_optimizer.from_config(config.get("config", {}), custom_objects)
    name = given
    if get_registered_object(given, custom_objects) is None:
        known = _BY_LOWER.get(given.lower())
        if known is None:
            raise value_error(
                f"Unknown optimizer: '{given}'",
                expected=f"one of {', '.join(sorted(_CLASSES))}",
                hint=did_you_mean(given.lower(), _BY_LOWER)
                or "pass your own by custom_objects={'Name': class}",
            )
        name = known
    return _REGISTRY.deserialize(
        {"class_name": name, "config": config.get("config", {})}, custom_objects
    )


__all__ = ["deserialize", "get", "serialize"]
