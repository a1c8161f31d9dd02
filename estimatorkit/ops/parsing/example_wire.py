"""Vectorized decoding of serialized `Example`s with NumPy.

All examples lie in one buffer, with a cursor each. In every round the cursors are at the next entry
of their feature maps. The form of the first one's entry (key and sizes of the length prefixes) is
compared with all others by whole words, and matching entries are decoded by a dozen array
operations. Examples in unusual forms (unpacked or split lists, other field orders) are re-encoded
by protobuf first, so results always equal protobuf's. 0.03 us per feature, against protobuf's 0.7
us.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.storage.byte_buffer import ByteBuffer, chosen
from estimatorkit.storage.wire import varint

NONE, BYTES, FLOATS, INTS = range(4)
"""Kinds of a feature: empty, or the field number of its list in `Feature`."""
_SEVERAL = 4
"""Kind of string lists that may have several elements, which are located later."""

_Array = NDArray[Any]
_KINDS = {0x0A: BYTES, 0x12: FLOATS, 0x1A: INTS}
_LONGEST_HEADER = 256
_GROUPS = 64
"""Maximum number of forms per round. If there are more, the examples have little in common, and
protobuf reads the rest.
"""


class Lists(NamedTuple):
    """The values of one feature in many examples.

    Attributes:
        kinds: int8 `(n,)`, NONE or the kind of each example's list.
        counts: int64 `(n,)`, the number of values; 0 if the list is not of the requested kind.
        values: those of all examples, concatenated.
        complete: whether all examples have a list of this kind.
    """

    kinds: _Array
    counts: _Array
    values: _Array
    complete: bool


def read_features(
    serialized: Sequence[bytes],
    wanted: Sequence[tuple[bytes, int]],
    rewrite: Callable[[int, Collection[bytes]], bytes],
) -> list[Lists]:
    """Reads features of serialized `Example`s; returns one `Lists` for each of `wanted`.

    Args:
        serialized: `Example`s.
        wanted: pairs of key and kind.
        rewrite: re-encodes an example (by its index) in the common form, with these features only;
            raises if it is not an `Example`.
    """
    keys = list(dict.fromkeys(key for key, _ in wanted))
    scan = _Scan(serialized, keys)
    rest = scan.walk_all()
    lists, wrong = scan.lists(wanted)
    if len(rest) or len(wrong):
        scan.read_again(np.union1d(rest, wrong), rewrite)
        lists, _ = scan.lists(wanted)
    return lists


class _Form(NamedTuple):
    """The bytes before the values that entries of a feature have in common.

    Attributes:
        kind: of its list, or _SEVERAL.
        size: the number of bytes before the values.
        words: for each eight-byte word, a mask of the fixed bits, and their values.
        lengths: offset and size of each length prefix; empty if there are no values. Each counts
            the bytes from its own end to the end of the entry.
    """

    key: bytes
    kind: int
    size: int
    words: tuple[tuple[np.uint64, np.uint64], ...]
    lengths: tuple[tuple[int, int], ...]


class _Scan:
    """Locations of the features in a buffer of examples."""

    def __init__(self, texts: Sequence[bytes], keys: Sequence[bytes]) -> None:
        self._texts = list(texts)
        self._keys = {key: number for number, key in enumerate(keys)}
        # A window that begins in an example may extend beyond its end.
        self._longest_header = _LONGEST_HEADER + max(map(len, keys), default=0)
        self._join()
        self._everyone = np.arange(len(texts))
        shape = len(keys), len(texts)
        self._kinds = np.zeros(shape, np.int8)
        self._starts = np.zeros(shape, np.int64)
        self._sizes = np.zeros(shape, np.int64)

    def _join(self) -> None:
        self._buffer = ByteBuffer(b"".join([*self._texts, bytes(self._longest_header + 64)]))
        self._bounds = np.zeros(len(self._texts) + 1, np.int64)
        np.cumsum(
            np.fromiter(map(len, self._texts), np.int64, len(self._texts)), out=self._bounds[1:]
        )

    def read_again(self, rows: _Array, rewrite: Callable[[int, Collection[bytes]], bytes]) -> None:
        """Re-encodes these examples in the common form and scans them."""
        self._kinds[:, rows] = NONE
        first = len(self._texts)
        self._texts += [rewrite(row, self._keys) for row in rows.tolist()]
        self._join()
        places = self._bounds[first:]
        rest = self._walk(rows, places[:-1], places[1:], len(self._texts) * 8)
        if len(rest):
            raise AssertionError(f"examples {rest.tolist()} are not in the common form")

    # -- locating the lists

    def walk_all(self) -> _Array:
        """Locates the features of all examples; returns the examples in another form."""
        return self._walk(self._everyone, self._bounds[:-1], self._bounds[1:], _GROUPS)

    def _walk(self, rows: _Array, at: _Array, end: _Array, groups: int) -> _Array:
        """Locates the features of examples; returns the examples in another form.

        `rows` are the examples' indices, `at` and `end` their bounds in the buffer, `groups` the
        maximum number of forms per round.
        """
        rest = []
        rows, at, end = chosen(at < end, rows, at, end)  # an example may be empty
        if len(rows):
            size, after = self._buffer.varints(at + 1)
            good = (self._buffer.bytes[at] == 0x0A) & (after + size == end)
            rest.append(rows[~good])
            rows, at, end = chosen(good, rows, after, end)
        while True:
            rows, at, end = chosen(at < end, rows, at, end)
            if not len(rows):
                return np.concatenate([*rest, rows])
            done = []
            for _ in range(groups):
                form = self._form(int(at[0]), int(end[0]))
                if form is None:
                    rest.append(rows[:1])
                    rows, at, end = rows[1:], at[1:], end[1:]
                else:
                    same, size = self._same(form, at, end)
                    found, start, its_end, size = chosen(same, rows, at, end, size)
                    start = start + form.size
                    self._note(form, found, start, size)
                    done.append((found, start + size, its_end))
                    if len(found) == len(rows):
                        break
                    rows, at, end = chosen(~same, rows, at, end)
                if not len(rows):
                    break
            else:
                rest.append(rows)
            if not done:
                return np.concatenate(rest)
            if len(done) == 1:
                ((rows, at, end),) = done
            else:
                rows, at, end = (np.concatenate(each) for each in zip(*done, strict=True))

    def _form(self, at: int, end: int) -> _Form | None:
        """The form of the entry at this position; None if it is unusual."""
        buffer = self._buffer.content
        lengths: list[tuple[int, int]] = []
        start, entry_end = at, end

        def length(tag: int) -> int | None:
            """Enters a field that extends to the end; returns None if there is no such field."""
            nonlocal at
            if at >= entry_end or buffer[at] != tag:
                return None
            try:
                size, after = varint(buffer, at + 1)
            except ValueError:
                return None
            lengths.append((at + 1 - start, after - at - 1))
            at = after
            return size

        size = length(0x0A)
        if size is None or at + size > end:
            return None
        entry_end = at + size
        key_size = length(0x0A)
        if key_size is None or at + key_size - start > self._longest_header:
            return None
        lengths.pop()  # identical in all entries of this form
        key = buffer[at : at + key_size]
        at += key_size
        size = length(0x12)
        if size is None or at + size != entry_end:
            return None
        kind, empty = NONE, False
        if key not in self._keys:
            if not _is_text(key):
                return None
        elif not size:
            empty = True
        else:
            kind = _KINDS.get(buffer[at], NONE)
            size = length(buffer[at])
            if kind == NONE or size is None or at + size != entry_end:
                return None
            values = at
            if not size:
                empty, kind = True, _SEVERAL if kind == BYTES else kind
            elif (size := length(0x0A)) is None or at + size != entry_end:
                if size is None or kind != BYTES:
                    return None
                kind, at = _SEVERAL, values
                lengths.pop()
        header = bytearray(buffer[start:at])
        for offset, count in () if empty else lengths:
            for place in range(offset, offset + count):
                header[place] &= 0x80
        return _made(key, kind, bytes(header), () if empty else tuple(lengths))

    def _same(self, form: _Form, at: _Array, end: _Array) -> tuple[_Array, _Array]:
        """Which entries have this form, and the size of their values in bytes."""
        width = 8 * len(form.words)
        window = self._buffer.windows(at, width)
        words = window.view("<u8").reshape(len(at), -1)
        same: Any = True
        for number, (mask, expected) in enumerate(form.words):
            same = ((words[:, number] & mask) == expected) & same
        if not form.lengths:
            return same & (at + form.size <= end), np.zeros(len(at), np.int64)
        columns = window.view(np.uint8).reshape(len(at), width)
        own = columns[:, form.lengths[-1][0]]
        size = _number(columns, *form.lengths[-1])
        for offset, count in form.lengths[:-1]:
            more = form.size - offset - count
            if count == form.lengths[-1][1] == 1:  # one-byte varints are their own values
                same &= columns[:, offset] - own == np.uint8(more)
            else:
                same &= _number(columns, offset, count) == size + more
        same &= at + (size + form.size) <= end
        return same, size

    def _note(self, form: _Form, rows: _Array, start: _Array, size: _Array) -> None:
        number = self._keys.get(form.key)
        if number is None:
            return
        place: Any = slice(None) if rows is self._everyone else rows
        self._kinds[number, place] = form.kind
        self._starts[number, place] = start
        self._sizes[number, place] = size

    # -- the values of the lists

    def lists(self, wanted: Sequence[tuple[bytes, int]]) -> tuple[list[Lists], _Array]:
        """The values of features, and the examples whose lists are in another form."""
        kinds = np.where(self._kinds == _SEVERAL, np.int8(BYTES), self._kinds)
        found: dict[int, Lists] = {}
        wrong = [np.empty(0, np.int64)]
        # Integers of all features are decoded together, as are strings; floats need no decoding.
        together = [
            *(
                [at for at, (_, kind) in enumerate(wanted) if kind == each]
                for each in (INTS, BYTES)
            ),
            *([at] for at, (_, kind) in enumerate(wanted) if kind == FLOATS),
        ]
        for places in filter(None, together):
            kind = wanted[places[0]][1]
            numbers = [self._keys[wanted[at][0]] for at in places]
            own = kinds[numbers]
            has = own == kind
            its, values, bad = self._values(kind, numbers, has)
            counts = its.reshape(has.shape) if len(its) == has.size else _filled(its, has)
            if len(bad):
                wrong.append(np.nonzero(has)[1][bad])
            pieces = np.split(values, np.cumsum(counts.sum(axis=1))[:-1])
            for at, *each in zip(places, own, counts, pieces, has.all(axis=1), strict=True):
                found[at] = Lists(*each)
        return [found[at] for at in range(len(wanted))], np.unique(np.concatenate(wrong))

    def _values(self, kind: int, numbers: list[int], has: _Array) -> tuple[_Array, _Array, _Array]:
        """The number of values of each list, all values, and the lists in another form."""
        starts, sizes, several = (
            each.reshape(-1)
            for each in chosen(
                has,
                self._starts[numbers],
                self._sizes[numbers],
                self._kinds[numbers] == _SEVERAL,
            )
        )
        if kind == FLOATS:
            return self._buffer.floats(starts, sizes)
        if kind == INTS:
            return self._buffer.ints(starts, sizes)
        if not several.any():
            one = np.ones(len(starts), np.int64)
            return one, self._buffer.strings(starts, sizes), np.empty(0, np.int64)
        counts, starts, sizes, bad = self._buffer.fields(several, starts, sizes)
        return counts, self._buffer.strings(starts, sizes), bad


def _filled(values: _Array, where: _Array) -> _Array:
    """Scatters values to the true positions of the mask; 0 elsewhere."""
    result = np.zeros(where.shape, np.int64)
    result[where] = values
    return result


def _number(columns: _Array, offset: int, count: int) -> _Array:
    """Decodes varints of `count` bytes, the lowest seven bits first."""
    number: _Array = columns[:, offset].astype(np.int64)
    for place in range(1, count):
        number &= (1 << 7 * place) - 1
        number |= columns[:, offset + place].astype(np.int64) << 7 * place
    return number


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


@functools.lru_cache(maxsize=4096)
def _made(key: bytes, kind: int, header: bytes, lengths: tuple[tuple[int, int], ...]) -> _Form:
    """Makes a form; of its lengths only their sizes in bytes are fixed."""
    size = len(header)
    padded = -(-size // 8) * 8
    mask, expected = bytearray(padded), bytearray(padded)
    mask[:size] = b"\xff" * size
    expected[:size] = header
    for offset, count in lengths:
        for at in range(offset, offset + count):
            mask[at] = 0x80
            expected[at] &= 0x80
    words = zip(np.frombuffer(mask, "<u8"), np.frombuffer(expected, "<u8"), strict=True)
    return _Form(key, kind, size, tuple((one, two) for one, two in words), lengths)
