"""All rules: importing this module registers them."""

from estimatorkit.runtime.interpreter import (
    arithmetic,
    bits,
    control,
    convolutions,
    cumulative,
    elementwise,
    indexing,
    order,
    places,
    products,
    reductions,
    scatters,
    shapes,
    sorting,
    special,
    windows,
)
from estimatorkit.runtime.interpreter.program import Program

__all__ = [
    "Program",
    "arithmetic",
    "bits",
    "control",
    "convolutions",
    "cumulative",
    "elementwise",
    "indexing",
    "order",
    "places",
    "products",
    "reductions",
    "scatters",
    "shapes",
    "sorting",
    "special",
    "windows",
]
