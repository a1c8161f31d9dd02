"""`tf.sets`: sets in the last dimension of tensors."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_PLACES = names(
    "estimatorkit.ops.sparse.sets",
    *("set_difference", "set_intersection", "set_size", "set_union"),
    difference="set_difference",
    intersection="set_intersection",
    size="set_size",
    union="set_union",
)

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
