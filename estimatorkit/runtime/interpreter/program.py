"""Jaxprs as programs of NumPy functions.

A `Template` is a jaxpr with the functions that it calls inlined, without equations that nothing
needs, and with those of constants computed. Its `Program` for the numbers of a run has a function
for each equation; equations without sizes share theirs among programs. Large arrays are released
after their last use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from estimatorkit.runtime.interpreter.cost import multiplications, seconds_of
from estimatorkit.runtime.interpreter.equations import (
    Equation,
    Function,
    Numbers,
    equation_at,
    equation_has_sizes,
    inner_jaxprs,
)
from estimatorkit.runtime.interpreter.ownership import UPDATES, Memory
