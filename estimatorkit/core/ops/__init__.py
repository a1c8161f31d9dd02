"""The ops by kind: each module registers its rows and defines the functions that make them.

Importing this package imports them all, so that the registry is complete and `Tensor`'s operators
work.
"""

from __future__ import annotations

from estimatorkit.core.ops import (
    accumulators,
    array,
    checks,
    debug,
    elementwise,
    filling,
    indexing,
    joining,
    linalg,
    nn,
    py_func,
    queue_kinds,
    queues,
    random,
    readers,
    reduce,
    sets,
    sparse,
    sparse_joining,
    sparse_math,
    sparse_products,
    sparse_segments,
    sparse_shapes,
    state,
    summary,
)

__all__ = [
    "accumulators",
    "array",
    "checks",
    "debug",
    "elementwise",
    "filling",
    "indexing",
    "joining",
    "linalg",
    "nn",
    "py_func",
    "queue_kinds",
    "queues",
    "random",
    "readers",
    "reduce",
    "sets",
    "sparse",
    "sparse_joining",
    "sparse_math",
    "sparse_products",
    "sparse_segments",
    "sparse_shapes",
    "state",
    "summary",
]
