"""`tf.bitwise`: integers bit by bit."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_OPS = "estimatorkit.ops"

_PLACES = {
    **names(
        f"{_OPS}.math.special",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "invert",
        "left_shift",
        "right_shift",
    ),
}

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
