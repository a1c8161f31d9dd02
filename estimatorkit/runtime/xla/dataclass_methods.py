"""Compiles the methods of JAX's and this package's dataclasses on first call.

`dataclasses` compiles six methods of each class from source text, most of which are never called:
for 100 classes a twentieth of the time in which a program adds two numbers. Python 3.13 compiles a
class's methods together, and is left as it is.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from estimatorkit.runtime.xla.import_hooks import import_within

_PACKAGES = ("jax", "estimatorkit")


def compile_on_use() -> None:
    """Patches `dataclasses` for the classes of `_PACKAGES`; other classes are not affected."""
    if "dataclasses" in sys.modules:
        _change()
    else:
        import_within(_then_change, lambda name: name == "dataclasses")


@contextmanager
def _then_change() -> Iterator[None]:
    yield
    _change()


def _change() -> None:
    module: Any = sys.modules["dataclasses"]
    create = getattr(module, "_create_fn", None)
    if create is not None and not isinstance(create, functools.partial):
        module._create_fn = functools.partial(_create, create)


def _create(create: Callable[..., Any], name: str, *given: Any, **named: Any) -> Any:
    """The method that `create` compiles, or one that replaces itself by it on first call."""
    package = (named.get("globals") or {}).get("__name__", "").partition(".")[0]
    if package not in _PACKAGES or name == "__init__":  # a class's signature is `__init__`'s
        return create(name, *given, **named)
    compiled = None

    def method(self: Any, *arguments: Any) -> Any:
        nonlocal compiled
        if compiled is None:
            compiled = create(name, *given, **named)
            compiled.__qualname__ = method.__qualname__
        for kind in type(self).__mro__:
            if vars(kind).get(name) is method:
                setattr(kind, name, compiled)
        return compiled(self, *arguments)

    method.__name__ = name
    return method
