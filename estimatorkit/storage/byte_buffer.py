"""Vectorized decoding of numbers, lists and strings at many offsets of a byte buffer.

Offsets and sizes are int64 arrays, in bytes. Malformed lists do not raise: methods return which
ones are malformed.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[Any]

_SHORT = 32
"""NumPy slices strings up to this length, Python longer ones."""
_NO_LISTS = np.empty(0, np.int64)


def chosen(mask: _Array, *arrays: _Array) -> tuple[_Array, ...]:
    """Indexes arrays by a mask; returns the arrays themselves if it is all true."""
    return arrays if mask.all() else tuple(each[mask] for each in arrays)


class ByteBuffer:
    """A byte buffer to decode from.

    The last 64 bytes of `content` must be padding, so that reads may overrun slightly.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.bytes = np.frombuffer(content, np.uint8)

    def windows(self, at: _Array, size: int) -> _Array:
        """Returns the `size` bytes at each offset, as raw elements."""
        count = len(self.content) - size + 1
        # Elements may be unaligned: 5 ns each, against 0.7 ns per byte with an index array.
        return np.ndarray((count,), f"V{size}", self.content, strides=(1,))[at]

    def varints(self, at: _Array) -> tuple[_Array, _Array]:
        """Decodes varint lengths; returns them (-1 if overlong) and the offsets after them."""
        values = self.bytes[at].astype(np.int64)
        after = at + 1
        longer = np.flatnonzero(values >= 128)
        for number in range(1, 5):
            if not len(longer):
                break
            byte = self.bytes[at[longer] + number].astype(np.int64)
            values[longer] &= (1 << 7 * number) - 1
            values[longer] |= byte << 7 * number
            after[longer] += 1
            longer = longer[byte >= 128]
        values[longer] = -1
        return values, after

    def floats(self, starts: _Array, sizes: _Array) -> tuple[_Array, _Array, _Array]:
        """Decodes packed float32 lists; returns counts, all values, and the malformed lists."""
        bad = np.flatnonzero(sizes & 3)
        if len(bad):
            return np.zeros(len(sizes), np.int64), np.empty(0, np.float32), bad
        values = self._gathered(starts, sizes, 4).view("<f4")
        return sizes >> 2, values.astype(np.float32, copy=False), bad

    def ints(self, starts: _Array, sizes: _Array) -> tuple[_Array, _Array, _Array]:
        """Decodes packed int64 lists; returns counts, all values, and the malformed lists."""
        data = self._gathered(starts, sizes, 1)
        last = data < 128  # the last byte of each number
        if last.all():  # such as labels: one byte each
            return sizes, data.astype(np.int64), _NO_LISTS
        ends = np.flatnonzero(last)
        after = np.cumsum(sizes)
        so_far = np.zeros(len(data) + 1, np.int64)
        np.cumsum(last, out=so_far[1:])
        counts = np.diff(so_far[after], prepend=0)
        cut = (sizes > 0) & ~last[after - 1]
        lengths = np.diff(ends, prepend=-1)
        if cut.any() or lengths.max(initial=0) > 10:
            long = np.searchsorted(after, ends[lengths > 10], side="right")
            bad = np.union1d(np.flatnonzero(cut), long)
            return np.zeros(len(sizes), np.int64), np.empty(0, np.int64), bad
        digits = data & 127
        values = digits[ends].astype(np.uint64)
        seven = np.uint64(7)
        longer = np.flatnonzero(lengths > 1)
        for number in range(1, 10):
            if not len(longer):
                break
            values[longer] = values[longer] << seven | digits[ends[longer] - number]
            longer = longer[lengths[longer] > number + 1]
        return counts, values.view(np.int64), _NO_LISTS

    def fields(
        self, several: _Array, starts: _Array, sizes: _Array
    ) -> tuple[_Array, _Array, _Array, _Array]:
        """Finds the strings in lists, one string of every list per iteration.

        `several` masks the lists; other items are single strings. Returns the number of strings per
        list, the strings' offsets and sizes, and the lists that are malformed or have other fields.
        """
        counts = (~several).astype(np.int64)
        rows = np.flatnonzero(several & (sizes > 0))
        at, end = starts[rows], starts[rows] + sizes[rows]
        bad, steps = [], []
        while len(rows):
            size, after = self.varints(at + 1)
            good = (self.bytes[at] == 0x0A) & (size >= 0) & (after + size <= end)
            bad.append(rows[~good])
            rows, start, size, end = chosen(good, rows, after, size, end)
            steps.append((rows, counts[rows], start, size))
            counts[rows] += 1
            at = start + size
            rows, at, end = chosen(at < end, rows, at, end)
        single = np.flatnonzero(~several)
        steps.append((single, np.zeros(len(single), np.int64), starts[single], sizes[single]))
        row, step, start, size = (np.concatenate(each) for each in zip(*steps, strict=True))
        place = (np.cumsum(counts) - counts)[row] + step
        all_starts, all_sizes = np.empty((2, len(place)), np.int64)
        all_starts[place], all_sizes[place] = start, size
        return counts, all_starts, all_sizes, np.concatenate([*bad, rows])

    def strings(self, starts: _Array, sizes: _Array) -> _Array:
        """Returns strings as an array of `bytes`."""
        short = sizes <= _SHORT
        if short.all():
            return self._short_strings(starts, sizes)
        result = np.empty(len(starts), object)
        if short.any():
            result[short] = self._short_strings(starts[short], sizes[short])
        result[~short] = self._cut(starts[~short], sizes[~short])
        return result

    def _short_strings(self, starts: _Array, sizes: _Array) -> _Array:
        width = -(-max(int(sizes.max(initial=0)), 1) // 8) * 8
        # NumPy's fixed-width strings strip trailing zero bytes.
        if ((self.bytes[starts + sizes - 1] == 0) & (sizes > 0)).any():
            return self._cut(starts, sizes)
        words = self.windows(starts, width).view("<u8").reshape(len(starts), width // 8)
        return (words & _masks(width)[sizes]).view(f"S{width}").reshape(-1).astype(object)

    def _cut(self, starts: _Array, sizes: _Array) -> _Array:
        result = np.empty(len(starts), object)
        result[:] = self._pieces(starts, sizes)
        return result

    def _pieces(self, starts: _Array, sizes: _Array) -> list[bytes]:
        content = self.content
        places = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        return [content[start:end] for start, end in places]

    def _gathered(self, starts: _Array, sizes: _Array, unit: int) -> _Array:
        """Concatenates pieces of the buffer as bytes; sizes are multiples of `unit`."""
        size = int(sizes[0]) if len(sizes) else 0
        if size and (sizes == size).all():
            return self.windows(starts, size).view(np.uint8)
        total = int(sizes.sum())
        if total > 64 * len(starts):
            return np.frombuffer(b"".join(self._pieces(starts, sizes)), np.uint8)
        counts = sizes // unit
        before = np.cumsum(counts) - counts
        index = np.repeat(starts - before * unit, counts) + unit * np.arange(int(counts.sum()))
        return self.windows(index, unit).view(np.uint8) if unit > 1 else self.bytes[index]


@functools.cache
def _masks(width: int) -> _Array:
    """Words that mask the first 0, 1, ... `width` bytes of a string."""
    masks = np.where(np.arange(width) < np.arange(width + 1)[:, None], 0xFF, 0)
    return masks.astype(np.uint8).view("<u8")
