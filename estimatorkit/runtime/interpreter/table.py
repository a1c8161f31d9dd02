"""All rules: importing this module registers them."""

from estimatorkit.runtime.interpreter import (
    control,
    convolutions,
    elementwise,
    indexing,
    linalg,
    products,
    random,
    reductions,
    scatters,
    shapes,
)
from estimatorkit.runtime.interpreter.program import Program

__all__ = [
    "Program",
    "control",
    "convolutions",
    "elementwise",
    "indexing",
    "linalg",
    "products",
    "random",
    "reductions",
    "scatters",
    "shapes",
]
