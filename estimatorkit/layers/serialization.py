"""Resolves identifiers such as `'relu'` or `{'class_name': 'L2', 'config': ...}` to objects.

A `Registry` is a fixed table of one kind of objects (activations, initializers, layers, ...), with
the user's own beside it: those of `custom_object_scope` and `register_keras_serializable`. Nothing
is ever imported, evaluated or unpickled: a name that is in none of them is an error.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from estimatorkit.core.errors import did_you_mean, value_error

_custom: dict[str, Any] = {}
_registered_names: dict[Any, str] = {}


def get_custom_objects() -> dict[str, Any]:
    """Returns the dict of custom classes and functions that configs may name
    (`tf.keras.utils.get_custom_objects`). Changes to it take effect.
    """
    return _custom


@contextmanager
def _with_custom_objects(objects: Mapping[str, Any]) -> Iterator[None]:
    before = dict(_custom)
    _custom.update(objects)
    try:
        yield
    finally:
        _custom.clear()
        _custom.update(before)


def custom_object_scope(*objects: Mapping[str, Any]) -> AbstractContextManager[None]:
    """A context in which configs may name these objects (`tf.keras.utils.custom_object_scope`).

    Args:
        objects: dicts of classes and functions by name.
    """
    return _with_custom_objects({name: each for one in objects for name, each in one.items()})


def register_keras_serializable(
    package: str = "Custom", name: str | None = None
) -> Callable[[Any], Any]:
    """A decorator that lets configs name a class or function, as `package>name`.

    Source: `tf.keras.utils.register_keras_serializable`.

    Raises:
        ValueError: the name is taken, or a class has no `get_config`.
    """

    def register(item: Any) -> Any:
        full = f"{package}>{name or item.__name__}"
        if inspect.isclass(item) and not hasattr(item, "get_config"):
            raise ValueError("Cannot register a class that does not have a get_config() method.")
        if _custom.get(full, item) is not item:
            raise ValueError(f"{full} has already been registered to {_custom[full]}")
        _custom[full] = item
        _registered_names[item] = full
        return item

    return register


def get_registered_name(item: Any) -> str:
    """Returns the registered name of a class or function, or else its own name."""
    return _registered_names.get(item) or str(item.__name__)


def get_registered_object(
    name: str,
    custom_objects: Mapping[str, Any] | None = None,
    module_objects: Mapping[str, Any] | None = None,
) -> Any:
    """Returns the custom or registered object with this name, or None."""
    for table in (custom_objects, _custom, module_objects):
        if table and name in table:
            return table[name]
    return None


def classes_in(module: str, base: type) -> dict[str, type]:
    """The public classes of a kind that a module defines, by name.

    Args:
        module: its name; it is imported already.
        base: their base class.
    """
    return {
        name: each
        for name, each in vars(sys.modules[module]).items()
        if isinstance(each, type) and issubclass(each, base)
        if each.__module__ == module and not name.startswith("_")
    }


class Registry:
    """Objects of one kind by name.

    Args:
        kind: a word for them in errors ('activation function').
        items: classes and functions by their names; more than one name may mean one object.
    """

    def __init__(self, kind: str, items: Mapping[str, Any]) -> None:
        self._kind = kind
        self.items = dict(items)
        self._names: dict[Any, str] = {}
        for name, item in self.items.items():
            self._names.setdefault(item, name)

    def find(self, name: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
        """The object of a name.

        Raises:
            ValueError: there is none.
        """
        found = get_registered_object(name, custom_objects, self.items)
        if found is None:
            raise value_error(
                f"Unknown {self._kind}: '{name}'",
                expected=f"one of {', '.join(sorted(self.items))}",
                hint=did_you_mean(name, self.items)
                or "pass your own by custom_objects={'Name': object} or custom_object_scope",
            )
        return found

    def get(self, identifier: Any) -> Any:
        """Resolves an identifier to an object.

        Args:
            identifier: None (returned unchanged), an object, a class, a name, or a config.

        Raises:
            ValueError: the identifier is unknown.
        """
        if identifier is None:
            return None
        if isinstance(identifier, (str, Mapping)):
            return self.deserialize(identifier)
        if inspect.isclass(identifier):
            return identifier()
        if callable(identifier):
            return identifier
        raise value_error(
            f"Could not interpret {self._kind} identifier: {identifier!r}",
            expected="a name, a config, a function or an object",
        )

    def serialize(self, item: Any) -> Any:
        """Describes an object by plain values: a function's name, or a class's name and config.

        Raises:
            ValueError: the object has neither a name nor a config.
        """
        if item is None:
            return None
        if hasattr(item, "get_config"):
            kind = type(item)
            class_name = self._names.get(kind) or get_registered_name(kind)
            return {"class_name": class_name, "config": item.get_config()}
        given = self._names.get(item) or _registered_names.get(item)
        name: str | None = given or getattr(item, "__name__", None)
        if name is None or name == "<lambda>":
            raise value_error(
                f"Cannot serialize {item!r}",
                expected=f"a named {self._kind}",
                hint="define it as a function, and decorate it with "
                "keras.utils.register_keras_serializable()",
            )
        return name

    def deserialize(
        self, config: str | Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Any:
        """Creates an object from the result of `serialize`.

        Args:
            config: a name, or {'class_name': ..., 'config': ...}.
            custom_objects: a dict from names to your own classes and functions.

        Raises:
            ValueError: the name is unknown, or the config has another form.
        """
        if isinstance(config, str):
            named = self.find(config, custom_objects)
            return named() if inspect.isclass(named) else named
        if not isinstance(config, Mapping) or "class_name" not in config:
            raise value_error(
                f"Improper config format for a {self._kind}",
                expected="{'class_name': ..., 'config': ...}",
                received=repr(config)[:200],
            )
        name = config.get("registered_name") or config["class_name"]
        if get_registered_object(name, custom_objects, self.items) is None:
            name = config["class_name"]
        found: Any = self.find(name, custom_objects)
        inner = config.get("config")
        if not inspect.isclass(found):
            return found
        if not isinstance(inner, Mapping):
            return found()
        make: Any = getattr(found, "from_config", None)
        if make is None:
            return found(**inner)
        if "custom_objects" in inspect.signature(make).parameters:
            return make(dict(inner), custom_objects=custom_objects)
        with custom_object_scope(custom_objects or {}):
            return make(dict(inner))


__all__ = [
    "Registry",
    "classes_in",
    "custom_object_scope",
    "get_custom_objects",
    "get_registered_name",
    "get_registered_object",
    "register_keras_serializable",
]
