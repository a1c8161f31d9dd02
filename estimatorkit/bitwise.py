"""`tf.bitwise`: integers bit by bit."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_OPS = "estimatorkit.ops"

_PLACES = {
    **names(
        f"{_OPS}.math.special", "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift"
    )
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
