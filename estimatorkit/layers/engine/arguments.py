"""Arguments that are written once: those of another function, and those that a config lists.

A constructor keeps an argument as an attribute of the same name, where the config reads it back.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_PACKAGE = __name__.partition(".")[0]


def arguments_of(other: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Lets a function have the arguments of another one, of which it gets each by its name.

    Type checkers and `inspect.signature` see the other's names, order and defaults.
    """
    signature = inspect.signature(other)

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            bound.apply_defaults()
            return function(**bound.arguments)

        call.__module__, call.__doc__ = function.__module__, function.__doc__
        call.__name__ = call.__qualname__ = function.__name__
        call.__annotations__ = other.__annotations__
        vars(call)["__wrapped__"] = other  # whose signature `inspect` and `typing` read
        return call

    return decorate


def given_arguments(values: Mapping[str, Any], without: Collection[str] = ()) -> dict[str, Any]:
    """A constructor's arguments by name.

    Args:
        values: `locals()` of the constructor, where all are arguments yet.
        without: those to leave out.
    """
    others = ("self", "kwargs", "__class__", *without)
    return {name: value for name, value in values.items() if name not in others}


def argument_names(kind: type, base: type) -> list[str]:
    """The constructor's argument names, including those passed to its bases by `**kwargs`.

    Args:
        kind: the class.
        base: the base class whose constructor is the last.
    """
    found: dict[str, None] = {}
    for each in kind.__mro__:
        if "__init__" not in vars(each):
            continue
        parameters = list(inspect.signature(vars(each)["__init__"]).parameters.values())[1:]
        open_ended = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        found |= {each.name: None for each in parameters if each.kind not in open_ended}
        if each is base or not any(each.kind is each.VAR_KEYWORD for each in parameters):
            break
    return list(found)


def kept_arguments(value: Any, base: type, without: Collection[str] = ()) -> dict[str, Any]:
    """The arguments of an object's constructor, of a class of this package, by name.

    A user's subclass has those of the class that it extends, as in Keras.

    Args:
        value: the object; arguments that are no attributes are left out.
        base: see `argument_names`.
        without: further ones to leave out.
    """
    kinds = type(value).__mro__
    kind = next(each for each in kinds if each.__module__.startswith(f"{_PACKAGE}."))
    names = argument_names(kind, base)
    kept = vars(value)
    return {name: kept[name] for name in names if name in kept and name not in without}


__all__ = ["argument_names", "arguments_of", "given_arguments", "kept_arguments"]
