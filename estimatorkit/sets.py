"""`tf.sets`: sets in the last dimension of tensors."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = names(
    "estimatorkit.ops.sparse.sets",
    "set_difference set_intersection set_size set_union difference=set_difference",
    "intersection=set_intersection size=set_size union=set_union",
)

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
