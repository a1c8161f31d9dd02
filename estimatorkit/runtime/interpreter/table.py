"""All rules: importing this module registers them."""

from estimatorkit.runtime.interpreter import (
    arithmetic,
    bits,
    control,
    elementwise,
    products,
    reductions,
    shapes,
    special,
)
from estimatorkit.runtime.interpreter.program import Program

__all__ = [
    "Program",
    "arithmetic",
    "bits",
    "control",
    "elementwise",
    "products",
    "reductions",
    "shapes",
    "special",
]
