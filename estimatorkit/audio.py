"""`tf.audio`: sound from and to files."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = names("estimatorkit.ops.text.audio", "decode_wav encode_wav")

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
