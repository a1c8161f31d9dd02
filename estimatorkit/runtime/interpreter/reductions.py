"""Rules of reductions, cumulative sums, sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.rules import arithmetic, rule


def _reduction(function: Any, equation: Equation) -> Function:
    axes, dtype = tuple(equation.params["axes"]), equation.result.dtype
    return lambda x: function(x, axis=axes, dtype=dtype)


arithmetic("reduce_sum")(lambda equation: _reduction(np.add.reduce, equation))
arithmetic("reduce_prod")(lambda equation: _reduction(np.multiply.reduce, equation))


def _extreme(function: Any, equation: Equation) -> Function:
    axes = tuple(equation.params["axes"])
    return lambda x: function(x, axis=axes)


arithmetic("reduce_max")(lambda equation: _extreme(np.max, equation))
arithmetic("reduce_min")(lambda equation: _extreme(np.min, equation))
rule("reduce_and")(lambda equation: _extreme(np.bitwise_and.reduce, equation))
rule("reduce_or")(lambda equation: _extreme(np.bitwise_or.reduce, equation))
rule("reduce_xor")(lambda equation: _extreme(np.bitwise_xor.reduce, equation))


@rule("argmax", "argmin")
def _arg(equation: Equation) -> Function:
    (axis,) = equation.params["axes"]
    function: Any = np.argmax if equation.name == "argmax" else np.argmin
    dtype = equation.params["index_dtype"]
    return lambda x: function(x, axis=axis).astype(dtype)
