"""Legacy names: `compat.v1` is TensorFlow 1's module tree; the rest is TensorFlow's `tf.compat`."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    "v1": "estimatorkit.compat.v1",
    **names(
        "estimatorkit.compat.text",
        "as_bytes as_str as_str_any as_text bytes_or_text_types complex_types integral_types",
        "path_to_str real_types",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
