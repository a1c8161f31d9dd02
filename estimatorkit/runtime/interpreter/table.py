"""All rules: importing this module registers them."""

from estimatorkit.runtime.interpreter import (
    control,
    elementwise,
    products,
    reductions,
    shapes,
)
from estimatorkit.runtime.interpreter.program import Program

__all__ = ["Program", "control", "elementwise", "products", "reductions", "shapes"]
