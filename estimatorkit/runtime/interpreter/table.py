"""All rules: importing this module registers them."""

from estimatorkit.runtime.interpreter import (
    arithmetic,
    bits,
    control,
    convolutions,
    cumulative,
    elementwise,
    indexing,
    linalg,
    products,
    random,
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
    "linalg",
    "products",
    "program_of",
    "random",
    "reductions",
    "scatters",
    "shapes",
    "sorting",
    "special",
    "windows",
]
