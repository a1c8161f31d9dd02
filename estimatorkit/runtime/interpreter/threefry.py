"""The Threefry generator (Salmon et al., 2011) in NumPy, with the bits of XLA's and JAX's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_SHIFTS = [[(np.uint32(by), np.uint32(32 - by)) for by in each] for each in _ROTATIONS]
"""The left and right shifts that make up each rotation."""

_PARITY = np.uint32(0x1BD11BDA)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_WORD = 0xFFFFFFFF
_FEW = 8
"""Counters up to which Python's integers are faster: they take 16 us, and 3 for each further one;
NumPy takes 46."""

_BLOCK = 1 << 15
"""Numbers computed at once, which fit into a core's cache."""


def threefry(keys: tuple[Any, Any], one: NDArray[np.uint32], other: NDArray[np.uint32]) -> None:
    """Threefry-2x32 with 20 rounds, in place.

    Args:
        keys: two words, or arrays of them that can be broadcast to the counters'.
        one, other: the two words of each counter, replaced by two random words.
    """
    if one.size <= _FEW:
        words = [np.broadcast_to(each, one.shape).ravel().tolist() for each in (*keys, one, other)]
        results = list(map(_single, *words))
        one[...] = np.reshape([word for word, _ in results], one.shape)
        other[...] = np.reshape([word for _, word in results], one.shape)
        return
    three = (keys[0], keys[1], keys[0] ^ keys[1] ^ _PARITY)
    one += three[0]
    other += three[1]
    shifted = np.empty_like(one)
    for group in range(5):
        for left, right in _SHIFTS[group % 2]:
            one += other
            np.right_shift(other, right, shifted)
            np.left_shift(other, left, other)
            other |= shifted
            other ^= one
        one += three[(group + 1) % 3]
        other += three[(group + 2) % 3]
        other += np.uint32(group + 1)


def _single(key: int, other_key: int, one: int, other: int) -> tuple[int, int]:
    """The same of one counter."""
    three = (key, other_key, key ^ other_key ^ int(_PARITY))
    one, other = one + key & _WORD, other + other_key & _WORD
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            one = one + other & _WORD
            other = (other << rotation & _WORD | other >> (32 - rotation)) ^ one
        one = one + three[(group + 1) % 3] & _WORD
        other = other + three[(group + 2) % 3] + group + 1 & _WORD
    return one, other


def counted(keys: tuple[Any, Any], start: int, count: int) -> tuple[Any, Any]:
    """The random words of 64-bit counters.

    Args:
        keys: two words.
        start: the first counter.
        count: their number.

    Returns:
        Two arrays of words `(count,)`.
    """
    first, second = np.empty(count, np.uint32), np.empty(count, np.uint32)
    for begin in range(0, count, _BLOCK):
        chosen = slice(begin, min(begin + _BLOCK, count))
        counters = np.arange(start + chosen.start, start + chosen.stop, dtype=np.uint64)
        np.bitwise_and(counters, _LOW, first[chosen], casting="unsafe")
        np.right_shift(counters, _HALF, second[chosen], casting="unsafe")
        threefry(keys, first[chosen], second[chosen])
    return first, second


def bits(keys: tuple[Any, Any], start: int, shape: tuple[int, ...]) -> NDArray[np.uint32]:
    """Random words in the order of XLA's generator.

    A counter gives two words, which are neighbours along the first dimension of even length, or
    along the longest one if all are odd.

    Args:
        keys: two words.
        start: the first counter.
        shape: that of the result.
    """
    dims = shape or (1,)
    at, half = _halves(dims)
    pairs = [each.reshape(half) for each in counted(keys, start, math.prod(half))]
    whole = np.stack(pairs, at + 1).reshape(*dims[:at], 2 * half[at], *dims[at + 1 :])
    return whole[(*[slice(None)] * at, slice(dims[at]))].reshape(shape)


def _halves(dims: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    even = [at for at, length in enumerate(dims) if length % 2 == 0]
    at = even[0] if even else int(np.argmax(dims))
    return at, (*dims[:at], -(-dims[at] // 2), *dims[at + 1 :])


def counters_of(shape: tuple[int, ...]) -> int:
    """How many counters `bits` uses."""
    return math.prod(_halves(shape or (1,))[1])


__all__ = ["bits", "counted", "counters_of", "threefry"]
