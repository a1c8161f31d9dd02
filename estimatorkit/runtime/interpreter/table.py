"""All rules: importing this module registers them."""

from estimatorkit.runtime.interpreter import (
    arithmetic,
    bits,
    control,
    convolutions,
    cumulative,
    elementwise,
    indexing,
    products,
    reductions,
    scatters,
    shapes,
    sorting,
    special,
    windows,
)
from estimatorkit.runtime.interpreter.program import Program, Template, program_of

__all__ = [
    "Program",
    "Template",
    "arithmetic",
    "bits",
    "control",
    "convolutions",
    "cumulative",
    "elementwise",
    "indexing",
    "products",
    "program_of",
    "reductions",
    "scatters",
    "shapes",
    "sorting",
    "special",
    "windows",
]
