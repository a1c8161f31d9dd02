"""A cache of traces: when a kernel is traced again, its jaxpr is reused.

Most operations of a network have the type, attributes and shapes of others, in layers that are
alike, and in the steps of training and evaluation. JAX takes 2 ms to differentiate a small kernel
and to transpose the result, and 0.2 ms to inline what that has made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from estimatorkit.core.dtypes import DType
from estimatorkit.core.shapes import TensorShape

MOST = 1024
"""The capacity of the cache, in kernels; a full cache is cleared."""

_LARGEST = 64
"""The most elements of a constant operand, whose value is part of the key."""

_KNOWN = (np.ndarray, np.generic)

_NEW = object()
_ONCE = object()
_traces: dict[Any, Any] = {}


def retraced(
    function: Callable[..., Any], key: Sequence[Any], operands: Sequence[Any]
) -> tuple[Any, bool]:
    """Calls a function; later calls with equal keys inline its cached trace.

    Args:
        function: a pure function; what it returns follows from `key` and the operands.
        key: identifies the function.
        operands: traced values, constants in NumPy, and None.

    Returns:
        Its result, and whether it comes from a cached trace.
    """
    try:
        whole = _key(key), tuple(map(_of_operand, operands))
    except TypeError:  # functions, large constants, symbolic sizes
        return function(*operands), False
    call = _traces.get(whole, _NEW)
    if call is _NEW:
        result = function(*operands)
        if len(_traces) >= MOST:
            _traces.clear()
        if not any(isinstance(leaf, _KNOWN) for leaf in jax.tree.leaves(result)):
            _traces[whole] = _ONCE  # most are not traced again
        return result, False
    traced = [at for at, each in enumerate(operands) if isinstance(each, jax.core.Tracer)]
    if call is _ONCE:
        constants = [None if at in traced else each for at, each in enumerate(operands)]

        def of_traced(*values: Any) -> Any:
            given = list(constants)
            for at, value in zip(traced, values, strict=True):
                given[at] = value
            return function(*given)

        call = _traces[whole] = jax.jit(of_traced, inline=True)
    return call(*[operands[at] for at in traced]), True


def _of_operand(value: Any) -> Any:
    if isinstance(value, jax.core.Tracer):
        aval: Any = value.aval
        if any(type(dim) is not int for dim in aval.shape):
            raise TypeError("a symbolic size")
        return aval
    return _key(value)


def _key(value: Any) -> Any:
    """A value as a part of a key: equal for those of one type that no kernel can tell apart.

    Raises:
        TypeError: it has no such key.
    """
    if value is None or type(value) in (int, bool, str, bytes, DType, TensorShape, np.dtype):
        return type(value), value
    if type(value) is float:
        return float, value.hex()  # 0.0 is not -0.0
    if type(value) in (tuple, list):
        return type(value), tuple(map(_key, value))
    if isinstance(value, Mapping):
        return dict, tuple((name, _key(each)) for name, each in value.items())
    if type(value) is slice:
        return slice, tuple(map(_key, (value.start, value.stop, value.step)))
    if isinstance(value, _KNOWN) and value.dtype.kind not in "OV" and value.size <= _LARGEST:
        return type(value), value.dtype, value.shape, value.tobytes()
    raise TypeError(f"{type(value).__name__} is not a part of a key")


__all__ = ["retraced"]
