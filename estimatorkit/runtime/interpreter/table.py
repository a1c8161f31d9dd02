"""All rules: importing this module registers them."""

from estimatorkit.runtime.interpreter import (
    control,
    elementwise,
    indexing,
    products,
    reductions,
    scatters,
    shapes,
)
from estimatorkit.runtime.interpreter.program import Program

__all__ = [
    "Program",
    "control",
    "elementwise",
    "indexing",
    "products",
    "reductions",
    "scatters",
    "shapes",
]
