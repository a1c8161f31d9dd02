"""Registry of layer classes by name, used by files and namespaces.

A module is imported when a class of it is first named. Nothing outside the table, the user's
registered classes and those that `add` puts there (models) can be named by a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimatorkit.layers.serialization import Registry, get_registered_object
from estimatorkit.lazy import fetch, stub_places

# 'module:class' for each name of `tf.keras.layers`, and for names in files that Keras wrote.
_ALL = stub_places(__name__, Path(__file__).with_name("classes.pyi"))
_ALL |= dict.fromkeys(("BatchNormalizationV1", "BatchNormalizationV2"), _ALL["BatchNormalization"])
# Each class by its own name.
PLACES = {name: place for name, place in _ALL.items() if place.endswith(f":{name}")}


def load(name: str) -> Any:
    """Imports the class of a name."""
    return fetch(_ALL[name])


class _Layers(Registry):
    """The classes of the table, each imported when it is first named."""

    def find(self, name: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
        """The class of a name.

        Raises:
            ValueError: there is none.
        """
        if name in _ALL:
            self.items.setdefault(name, load(name))
        elif get_registered_object(name, custom_objects, self.items) is None:
            # The error lists all known classes.
            self.items.update({each: load(each) for each in PLACES})
        return super().find(name, custom_objects)


_registry = _Layers("layer", {})


def add(*kinds: type) -> None:
    """Lets files name classes that are no layers of this folder: models."""
    _registry.items.update({kind.__name__: kind for kind in kinds})


def serialize(layer: Any) -> Any:
    """Returns {'class_name': ..., 'config': ...} for a layer (`tf.keras.layers.serialize`).

    Raises:
        NotImplementedError: its class has its own constructor arguments, but no `get_config`.
    """
    return _registry.serialize(layer)


def deserialize(
    config: str | Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
) -> Any:
    """Creates a layer, without its weights, from its serialized form.

    Args:
        config: {'class_name': ..., 'config': ...}.
        custom_objects: a dict from names to your own classes and functions.

    Raises:
        ValueError: the class is unknown, or the config has another form.
    """
    return _registry.deserialize(config, custom_objects)


def get(identifier: Any) -> Any:
    """Resolves a layer or its config to a layer.

    Raises:
        ValueError: it means none.
    """
    return _registry.get(identifier)


__all__ = ["PLACES", "add", "deserialize", "get", "load", "serialize"]
