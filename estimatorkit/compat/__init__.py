"""Legacy names: `compat.v1` is TensorFlow 1's module tree; the rest is TensorFlow's `tf.compat`."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_PLACES = {
    "v1": "estimatorkit.compat.v1",
    **names(
        "estimatorkit.compat.text",
        *("as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types"),
        *("complex_types", "integral_types", "path_to_str", "real_types"),
    ),
}

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
