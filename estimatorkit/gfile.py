"""`tf.gfile` and `tf.io.gfile`: files and folders, by the newer names and the older ones."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = names(
    "estimatorkit.storage.gfile",
    "GFile copy exists get_registered_schemes glob isdir join listdir makedirs mkdir remove rename",
    "rmtree stat walk Copy DeleteRecursively Exists FastGFile Glob IsDirectory ListDirectory",
    "MakeDirs MkDir Open Remove Rename Stat Walk",
)

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
