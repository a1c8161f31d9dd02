"""The order of numbers: extremes in which -0 is less than 0, and keys that sort as XLA does."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Function


def ordered(x: Any) -> Any:
    """Integers in the order of floats: -NaN, -infinity, ..., -0, 0, ..., infinity, NaN.

    The same function, of the bits, makes floats of them again.
    """
    kind = f"i{x.dtype.itemsize}"
    bits = np.asarray(x).view(kind)
    return bits ^ ((bits >> (x.dtype.itemsize * 8 - 1)) & np.iinfo(kind).max)


def extreme(larger: bool, dtype: Any) -> Function:
    """The larger or the smaller of two arrays.

    Of two equal operands NumPy gives the second, which matters for zeros: both orders differ in
    the sign, and one operation on their bits has the right one.
    """
    function = np.maximum if larger else np.minimum
    if dtype.kind != "f":
        return function
    bits, join = f"u{dtype.itemsize}", np.bitwise_and if larger else np.bitwise_or

    def run(a: Any, b: Any) -> Any:
        if not any(b.strides) and b.size:  # one number
            value = b.item(0)
            if value != 0:
                return function(a, b)
            return function(b, a) if np.signbit(value) == larger else function(a, b)
        value, other = function(a, b), function(b, a)
        return join(value.view(bits), other.view(bits)).view(dtype)

    return run


def of_extremes(larger: bool, dtype: Any, function: Function) -> Function:
    """A function that finds extremes of an array, where -0 is less than 0.

    Args:
        larger: whether it finds maxima.
        dtype: of the array.
        function: does so for integers, and for floats up to the signs of zeros.
    """
    if dtype.kind != "f":
        return function
    kind = np.dtype(f"i{dtype.itemsize}")
    nan = np.iinfo(kind).max if larger else np.iinfo(kind).min
    negative_zero = np.iinfo(kind).min

    def run(x: Any) -> Any:
        if not (x.view(kind) == negative_zero).any():
            return function(x)
        keys = np.where(np.isnan(x), kind.type(nan), ordered(x))
        return ordered(function(keys)).view(dtype)

    return run


def least(dtype: Any) -> Any:
    """The number that is no maximum unless alone."""
    if dtype.kind == "b":
        return False
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def most(dtype: Any) -> Any:
    """The largest value of a dtype: the identity of the minimum."""
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


def sort_keys(x: Any) -> list[Any]:
    """Integers that sort as XLA does: -0 equals 0, and NaN is last; two arrays if complex."""
    if x.dtype.kind == "c":
        return [*sort_keys(x.real), *sort_keys(x.imag)]
    if x.dtype.kind != "f":
        return [x.view(np.uint8) if x.dtype.kind == "b" else x]
    whole = ordered(x + 0)
    nan = np.isnan(x)
    if nan.any():
        whole[nan] = np.iinfo(whole.dtype).max
    return [whole]


PACKED = 256
"""Elements from which stable orders of 32-bit keys are found by sorting keys with positions."""


def stable_order(key: Any, axis: int) -> Any:
    """The positions of integers in ascending order; of equal ones, the first first."""
    if key.dtype.itemsize != 4 or key.size < PACKED:
        return np.argsort(key, axis, kind="stable")
    order = packed(key, axis)
    order.sort(axis)
    order &= 0xFFFFFFFF
    return order


def packed(key: Any, axis: int) -> Any:
    """64-bit integers in the order of 32-bit ones and, among equals, of their positions.

    NumPy sorts them 5 times as fast as it finds a stable order.
    """
    wide = key.astype(np.int64)
    if key.dtype.kind == "u":
        wide -= 1 << 31
    wide <<= 32
    shape = [1] * key.ndim
    shape[axis] = -1
    wide |= np.arange(key.shape[axis]).reshape(shape)
    return wide
