"""Names that NumPy 2 removed, and their replacements, for `estimatorkit migrate`.

TensorFlow 1 scripts were written for NumPy 1. The installed NumPy determines what is missing;
`INSTEAD` has replacements of the most common names.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from types import ModuleType

import numpy as np

_BUILTINS = ("complex", "float", "int", "object", "str")
INSTEAD: dict[str, str] = {
    **{name: f"{name}, Python's own" for name in _BUILTINS},
    "unicode": "str, Python's own",
    "Inf": "np.inf",
    "Infinity": "np.inf",
    "NINF": "-np.inf",
    "NZERO": "-0.0",
    "NaN": "np.nan",
    "NAN": "np.nan",
    "PINF": "np.inf",
    "PZERO": "0.0",
    "alltrue": "np.all",
    "asfarray": "np.asarray(x, dtype=float)",
    "asscalar": "x.item()",
    "cast": "np.asarray(x, dtype=...)",
    "complex_": "np.complex128",
    "cumproduct": "np.cumprod",
    "disp": "print",
    "fastCopyAndTranspose": "x.T.copy()",
    "find_common_type": "np.promote_types",
    "float_": "np.float64",
    "in1d": "np.isin",
    "infty": "np.inf",
    "issubclass_": "issubclass",
    "mat": "np.asmatrix",
    "msort": "np.sort(x, axis=0)",
    "product": "np.prod",
    "recfromcsv": "np.genfromtxt(..., delimiter=',')",
    "recfromtxt": "np.genfromtxt",
    "rank": "np.ndim",
    "round_": "np.round",
    "row_stack": "np.vstack",
    "singlecomplex": "np.complex64",
    "sometrue": "np.any",
    "string_": "np.bytes_",
    "trapz": "np.trapezoid",
    "unicode_": "np.str_",
    "random.random_integers": "np.random.randint, whose upper end is not included",
}


@cache
def problem(name: str) -> tuple[str, bool] | None:
    """The problem with a dotted name below `numpy`, such as 'random.random_integers'.

    Returns:
        The message, and whether the name is removed; None if there is no problem.
    """
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        is_gone = not _exists(name)
    if not is_gone and not warned and name not in INSTEAD:
        return None
    told = f"NumPy {np.__version__} {'has no such name' if is_gone else 'warns of it'}"
    return (f"{told}; write {INSTEAD[name]}" if name in INSTEAD else told), is_gone


def _exists(name: str) -> bool:
    found: object = np
    parts = name.split(".")
    for count, part in enumerate(parts, 1):
        if not isinstance(found, ModuleType):
            return True
        found = getattr(found, part, _MISSING)
        if found is _MISSING:
            try:  # a submodule that is not imported yet
                return find_spec(".".join(["numpy", *parts[:count]])) is not None
            except ModuleNotFoundError:
                return False
    return True


_MISSING = object()


def argument_problem(name: str, arguments: Mapping[str, object]) -> str | None:
    """The problem with the keyword arguments of a call; None if there is none.

    Args:
        name: the function's dotted name below `numpy`.
        arguments: values by keyword; None unless constant.
    """
    if name == "reshape" and "newshape" in arguments:
        return "newshape= is shape= in NumPy 2"
    if name == "array" and arguments.get("copy") is False:
        return "copy=False raises where a copy is needed in NumPy 2; write np.asarray"
    return None
