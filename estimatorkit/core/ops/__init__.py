"""The ops by kind: each module registers its rows and defines the functions that make them.

Importing this package imports them all, so that the registry is complete and `Tensor`'s operators
work.
"""

from __future__ import annotations

from estimatorkit.core.ops import (
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
    sparse,
    state,
    summary,
)

__all__ = [
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
    "sparse",
    "state",
    "summary",
]
