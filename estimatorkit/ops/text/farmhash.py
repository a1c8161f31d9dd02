"""Vectorized string hashes, bit-identical to those behind TensorFlow's hash buckets.

`fingerprint64` is FarmHash's Fingerprint64 (G. Pike, farmhashna), used by feature columns and
`string_to_hash_bucket_fast`; `fingerprint_cat64` combines two fingerprints (crossed columns);
`strong_hash64` is keyed SipHash-2-4 (Aumasson and Bernstein 2012); `legacy_hash64` is
MurmurHash64A, TensorFlow's first. Each processes all strings of one length class at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
"""uint64, one per string; arithmetic is modulo 2**64."""

_K0 = np.uint64(0xC3A5C85C97CB3127)
_K1 = np.uint64(0xB492B66FBE98F273)
_K2 = np.uint64(0x9AE16A3B2F90404F)
_MURMUR = np.uint64(0xC6A4A7935BD1E995)
_MURMUR_SEED = np.uint64(0xDECAFCAFFE)
_PADDING = bytes(8)  # so that eight bytes can be read at any offset


class _Packed(NamedTuple):
    """Strings in one buffer.

    Attributes:
        words: the little-endian eight-byte word that begins at each byte of the buffer.
        starts: the offset of each string.
    """

    words: NDArray[np.uint64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def word(self, offset: Any) -> Words:
        """Eight bytes of each string at `offset` (a scalar, or one per string)."""
        taken: Words = self.words[self.starts + offset]
        return taken

    def half(self, offset: Any) -> Words:
        """Four bytes of each string at `offset`."""
        return self.word(offset) & np.uint64(0xFFFFFFFF)

    def byte(self, offset: Any) -> Words:
        """One byte of each string at `offset`."""
        return self.word(offset) & np.uint64(0xFF)

    def at(self, chosen: NDArray[Any]) -> _Packed:
        """A subset of the strings."""
        return _Packed(self.words, self.starts[chosen], self.lengths[chosen])


def _pack(strings: Sequence[bytes]) -> _Packed:
    data = b"".join((*strings, _PADDING))
    lengths = np.fromiter(map(len, strings), np.int64, len(strings))
    starts = np.cumsum(lengths) - lengths
    # A zero-copy view of all overlapping words.
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
    return _Packed(words, starts, lengths)


def _rotate(value: Words, right: int) -> Words:
    return (value >> np.uint64(right)) | (value << np.uint64(64 - right))


def _shift_mix(value: Words) -> Words:
    return value ^ (value >> np.uint64(47))


def _hash_16(u: Words, v: Words, multiplier: Words) -> Words:
    a = _shift_mix((u ^ v) * multiplier)
    return _shift_mix((v ^ a) * multiplier) * multiplier


def fingerprint64(strings: Sequence[bytes]) -> Words:
    """FarmHash's Fingerprint64 of each string: uint64 `(len(strings),)`."""
    packed = _pack(strings)
    result = np.full(len(packed.lengths), _K2)  # the hash of the empty string
    for shortest, longest, function in _CLASSES:
        chosen = (packed.lengths >= shortest) & (packed.lengths <= longest)
        if chosen.any():
            result[chosen] = function(packed.at(chosen))
    return result


def _hash_1_to_3(part: _Packed) -> Words:
    size = part.lengths
    low = part.byte(0) + (part.byte(size >> 1) << np.uint64(8))
    high = _unsigned(size) + (part.byte(size - 1) << np.uint64(2))
    return _shift_mix(low * _K2 ^ high * _K0) * _K2


def _unsigned(lengths: NDArray[np.int64]) -> Words:
    return lengths.astype(np.uint64)


def _multiplier(part: _Packed) -> Words:
    return _K2 + _unsigned(part.lengths) * np.uint64(2)


def _hash_4_to_7(part: _Packed) -> Words:
    first = _unsigned(part.lengths) + (part.half(0) << np.uint64(3))
    return _hash_16(first, part.half(part.lengths - 4), _multiplier(part))


def _hash_8_to_16(part: _Packed) -> Words:
    multiplier = _multiplier(part)
    a = part.word(0) + _K2
    b = part.word(part.lengths - 8)
    c = _rotate(b, 37) * multiplier + a
    d = (_rotate(a, 25) + b) * multiplier
    return _hash_16(c, d, multiplier)


def _mixed(a: Words, b: Words, c: Words, d: Words, e: Words) -> tuple[Words, Words]:
    """The two words that finish strings of 17 to 64 bytes."""
    return _rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + e, 18) + c


def _hash_17_to_32(part: _Packed) -> Words:
    multiplier = _multiplier(part)
    a = part.word(0) * _K1
    b = part.word(8)
    c = part.word(part.lengths - 8) * multiplier
    d = part.word(part.lengths - 16) * _K2
    return _hash_16(*_mixed(a, b, c, d, _K2 + np.zeros_like(b)), multiplier)


def _hash_33_to_64(part: _Packed) -> Words:
    multiplier = _multiplier(part)
    size = part.lengths
    a = part.word(0) * _K2
    b = part.word(8)
    c = part.word(size - 8) * multiplier
    d = part.word(size - 16) * _K2
    y, tail = _mixed(a, b, c, d, _K2 + np.zeros_like(b))
    z = _hash_16(y, tail, multiplier)
    e = part.word(16) * multiplier
    f = part.word(24)
    g = (y + part.word(size - 32)) * multiplier
    h = (z + part.word(size - 24)) * multiplier
    return _hash_16(*_mixed(e, f, g, h, a), multiplier)


class _Lanes:
    """FarmHash's 56-byte state for strings of more than 64 bytes, one array per word."""

    def __init__(self, part: _Packed) -> None:
        seed = np.uint64(81)
        with np.errstate(over="ignore"):  # scalars warn, arrays do not
            y = seed * _K1 + np.uint64(113)
            z = _shift_mix(np.atleast_1d(y * _K2 + np.uint64(113))) * _K2
            self.x = seed * _K2 + part.word(0)
        count = len(part.starts)
        self.y = np.full(count, y)
        self.z = np.full(count, z[0])
        self.v, self.v2, self.w, self.w2 = np.zeros((4, count), np.uint64)

    def take(self, part: _Packed, offset: Any, multiplier: Any, nine: Any = 1) -> None:
        """Mixes in 64 bytes of each string of `part`, which are a prefix of the lanes."""
        of = slice(0, len(part.starts))
        nine = np.uint64(nine)
        words = [part.word(offset + 8 * place) for place in range(8)]
        x, y, z, v, v2, w, w2 = (
            each[of] for each in (self.x, self.y, self.z, self.v, self.v2, self.w, self.w2)
        )
        x = _rotate(x + y + v + words[1], 37) * multiplier
        y = _rotate(y + v2 + words[6], 42) * multiplier
        x = x ^ (w2 * nine)
        y = y + v * nine + words[5]
        z = _rotate(z + w, 33) * multiplier
        v, v2 = _weak_hash(words[:4], v2 * multiplier, x + w)
        w, w2 = _weak_hash(words[4:], z + w2, y + words[2])
        for lane, value in zip(
            (self.x, self.y, self.z, self.v, self.v2, self.w, self.w2),
            (z, y, x, v, v2, w, w2),  # x and z swap
            strict=True,
        ):
            lane[of] = value


def _weak_hash(words: Sequence[Words], a: Words, b: Words) -> tuple[Words, Words]:
    a = a + words[0]
    b = _rotate(b + a + words[3], 21)
    middle = a + words[1] + words[2]
    return middle + words[3], b + _rotate(middle, 44) + a


def _hash_long(part: _Packed) -> Words:
    # Longest first: the strings that still have blocks are then a prefix of the arrays.
    order = np.argsort(-part.lengths, kind="stable")
    part = part.at(order)
    blocks = (part.lengths - 1) // 64
    lanes = _Lanes(part)
    remaining = len(blocks)
    for block in range(int(blocks[0])):
        while blocks[remaining - 1] <= block:
            remaining -= 1
        lanes.take(part.at(np.arange(remaining)), 64 * block, _K1)
    last = (part.lengths - 1) & 63
    multiplier = _K1 + ((lanes.z & np.uint64(0xFF)) << np.uint64(1))
    lanes.w += _unsigned(last)
    lanes.v += lanes.w
    lanes.w += lanes.v
    lanes.take(part, part.lengths - 64, multiplier, nine=9)
    result = np.empty_like(lanes.x)
    result[order] = _hash_16(
        _hash_16(lanes.v, lanes.w, multiplier) + _shift_mix(lanes.y) * _K0 + lanes.z,
        _hash_16(lanes.v2, lanes.w2, multiplier) + lanes.x,
        multiplier,
    )
    return result


_CLASSES = (
    (1, 3, _hash_1_to_3),
    (4, 7, _hash_4_to_7),
    (8, 16, _hash_8_to_16),
    (17, 32, _hash_17_to_32),
    (33, 64, _hash_33_to_64),
    (65, np.iinfo(np.int64).max, _hash_long),
)


def fingerprint_cat64(first: Any, second: Any) -> Words:
    """TensorFlow's FingerprintCat64 of two uint64 arrays, broadcast; order-sensitive."""
    one, two = np.broadcast_arrays(np.asarray(first, np.uint64), np.asarray(second, np.uint64))
    with np.errstate(over="ignore"):  # scalars warn, arrays do not
        joined = (one ^ _MURMUR ^ (_shift_mix(two * _MURMUR) * _MURMUR)) * _MURMUR
        return _shift_mix(_shift_mix(joined) * _MURMUR)


def _descending(packed: _Packed) -> tuple[NDArray[Any], _Packed, NDArray[np.int64]]:
    """Sorts strings by descending length; returns the order and how many have each 8-byte block."""
    order = np.argsort(-packed.lengths, kind="stable")
    packed = packed.at(order)
    blocks = packed.lengths // 8
    most = int(blocks[0]) if len(blocks) else 0
    counts = np.searchsorted(-blocks, -np.arange(most), side="left")
    return order, packed, counts


def _tail(packed: _Packed) -> Words:
    """The bytes after the last full 8-byte block."""
    left = packed.lengths & 7
    # Shifting by 64 is undefined; this form of the mask gives 0 if no bytes are left.
    mask = (np.uint64(1) << _unsigned(8 * left)) - np.uint64(1)
    return packed.word(packed.lengths - left) & mask


def legacy_hash64(strings: Sequence[bytes]) -> Words:
    """MurmurHash64A with TensorFlow's seed: uint64 `(len(strings),)`."""
    order, packed, counts = _descending(_pack(strings))
    state = _MURMUR_SEED ^ (_unsigned(packed.lengths) * _MURMUR)
    for block, count in enumerate(counts):
        word = packed.at(np.arange(count)).word(8 * block) * _MURMUR
        state[:count] = (state[:count] ^ (_shift_mix(word) * _MURMUR)) * _MURMUR
    partial = (packed.lengths & 7) > 0
    state = np.where(partial, (state ^ _tail(packed)) * _MURMUR, state)
    result = np.empty_like(state)
    result[order] = _shift_mix(_shift_mix(state) * _MURMUR)
    return result


class _SipLanes:
    """SipHash's state: four words per string."""

    def __init__(self, count: int, key: tuple[int, int]) -> None:
        text = b"somepseudorandomlygeneratedbytes"
        words = [int.from_bytes(text[at : at + 8], "big") for at in range(0, 32, 8)]
        self.lanes = np.array(
            [[word ^ key[place % 2]] * count for place, word in enumerate(words)], np.uint64
        ).reshape(4, count)

    def rounds(self, count: int, number: int) -> None:
        """Applies `number` rounds to the first `count` strings."""
        a, b, c, d = self.lanes[:, :count]
        for _ in range(number):
            a = a + b
            c = c + d
            b = _rotate(b, 51) ^ a
            d = _rotate(d, 48) ^ c
            a = _rotate(a, 32)
            c = c + b
            a = a + d
            b = _rotate(b, 47) ^ c
            d = _rotate(d, 43) ^ a
            c = _rotate(c, 32)
        self.lanes[:, :count] = a, b, c, d

    def take(self, words: Words) -> None:
        """Mixes in eight bytes of each of the first `len(words)` strings."""
        count = len(words)
        self.lanes[3, :count] ^= words
        self.rounds(count, 2)
        self.lanes[0, :count] ^= words


def strong_hash64(strings: Sequence[bytes], key: tuple[int, int]) -> Words:
    """SipHash-2-4 of each string: uint64 `(len(strings),)`.

    `key` is two 64-bit words; collisions cannot be forced without knowing it.
    """
    order, packed, counts = _descending(_pack(strings))
    state = _SipLanes(len(packed.lengths), key)
    for block, count in enumerate(counts):
        state.take(packed.at(np.arange(count)).word(8 * block))
    state.take(_tail(packed) | (_unsigned(packed.lengths) << np.uint64(56)))
    state.lanes[2] ^= np.uint64(0xFF)
    state.rounds(len(packed.lengths), 4)
    result = np.empty(len(packed.lengths), np.uint64)
    result[order] = np.bitwise_xor.reduce(state.lanes)
    return result


def buckets(hashes: Words, num_buckets: int) -> NDArray[np.int64]:
    """The bucket of each hash: int64, from 0 to `num_buckets` - 1."""
    return (hashes % np.uint64(num_buckets)).astype(np.int64)


def as_bytes(strings: Iterable[Any]) -> list[bytes]:
    """Encodes strings as UTF-8 bytes."""
    return [each.encode() if isinstance(each, str) else bytes(each) for each in strings]


__all__ = [
    "as_bytes",
    "buckets",
    "fingerprint64",
    "fingerprint_cat64",
    "legacy_hash64",
    "strong_hash64",
]
