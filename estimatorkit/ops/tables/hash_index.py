"""`HashIndex`: positions of int64 keys, for many keys at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MISSING = -1
_LEAST_SLOTS = 1 << 10


def mixed(keys: Ints) -> NDArray[np.uint64]:
    """The finalizer of MurmurHash3 (Appleby 2011), a bijection: ids may be consecutive."""
    found = keys.astype(np.uint64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        found ^= found >> np.uint64(33)
        found *= np.uint64(factor)
    found ^= found >> np.uint64(33)
    return found


class HashIndex:
    """Finds the positions of distinct keys: open addressing with linear probing, at most half full.

    It keeps positions only; the caller keeps the keys.

    Args:
        keys: the keys; the position of `keys[i]` is i.
    """

    def __init__(self, keys: Ints) -> None:
        self._mask = max(_LEAST_SLOTS, 1 << (3 * len(keys)).bit_length()) - 1
        self._slots = np.full(self._mask + 1, MISSING, np.int64)
        self.add(keys, 0)

    def has_room(self, count: int) -> bool:
        """Whether it can hold `count` keys in all."""
        return 2 * count <= self._mask + 1

    def find(self, keys: Ints, known: Ints) -> Ints:
        """The positions of keys, MISSING where there is none.

        Args:
            keys: what to find.
            known: the keys by position.
        """
        found = np.full(len(keys), MISSING, np.int64)
        left, probes = np.arange(len(keys)), self._first_slots(keys)
        while len(left):
            positions = self._slots[probes]
            taken = positions != MISSING
            left, probes, positions = left[taken], probes[taken], positions[taken]
            equal = known[positions] == keys[left]
            found[left[equal]] = positions[equal]
            left, probes = left[~equal], (probes[~equal] + 1) & self._mask
        return found

    def add(self, keys: Ints, start: int) -> None:
        """Adds distinct keys that are not there, at positions from `start`; there must be room."""
        positions, probes = np.arange(start, start + len(keys)), self._first_slots(keys)
        while len(positions):
            free = self._slots[probes] == MISSING
            self._slots[probes[free]] = positions[free]  # the last of those that share a slot wins
            lost = self._slots[probes] != positions
            positions, probes = positions[lost], (probes[lost] + 1) & self._mask

    def _first_slots(self, keys: Ints) -> Ints:
        return (mixed(keys) & np.uint64(self._mask)).astype(np.int64)
