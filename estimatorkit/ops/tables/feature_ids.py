"""int64 ids of categorical features, one host operation per column.

Each kind has two ops: an elementwise one for dense values of any shape, and one for the components
of a sparse tensor (prefix 'Sparse'), which lays the ids out in rows `(..., width)`. The width is
the longest row's, rounded up to a power of two to limit recompilation. Negative ids are ignored;
ABSENT marks missing values, which crosses ignore, too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import float32, int32, int64
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.registry import Case, Infer, Spec, constant_value_as_shape, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.text import farmhash
from estimatorkit.ops.text.strings import string_array

Ids = NDArray[np.int64]

ABSENT = int(np.iinfo(np.int64).min)
"""The id of a missing value: '' or -1 in dense features, padding in sparse rows."""

_KNOWN_HASHES = 1 << 17
"""The capacity of a cache of hashes (15 MB); it is emptied when exceeded."""


# -- hashes of words


def _gathered(table: Mapping[Any, bytes], words: Sequence[Any]) -> NDArray[Any]:
    """Concatenates the eight bytes of each word; `itemgetter` and `join` are fastest."""
    eights = itemgetter(*words)(table) if len(words) > 1 else [table[word] for word in words]
    return np.frombuffer(b"".join(eights), np.int64)


class KnownHashes:
    """Memoized string hashes; only new words are hashed, in one batch.

    Thread-safe without a lock because equal words have equal hashes.

    Args:
        function: hashes words to uint64, one per word.
    """

    def __init__(self, function: Callable[[Sequence[bytes]], NDArray[np.uint64]]) -> None:
        self._function = function
        self._known: dict[bytes, bytes] = {}  # as bytes, which join faster than numbers

    def __call__(self, words: Sequence[bytes]) -> NDArray[np.uint64]:
        """Returns uint64 `(len(words),)`."""
        known = self._known
        try:
            return _gathered(known, words).view(np.uint64)
        except KeyError:
            pass
        new = [word for word in set(words) if word not in known]
        hashes = self._function(new).tobytes()
        found = {word: hashes[8 * at : 8 * at + 8] for at, word in enumerate(new)}
        eights = [found.get(word) or known[word] for word in words]
        if len(known) + len(found) > _KNOWN_HASHES:
            self._known = found
        else:
            known.update(found)
        return np.frombuffer(b"".join(eights), np.uint64)


fingerprints = KnownHashes(farmhash.fingerprint64)
"""FarmHash's Fingerprint64 of each word."""


# -- kinds: functions from values to ids
#
# Each takes the values as an array and as a list, and whether '' is a missing value (true for
# dense features, whose -1 is handled by the ops).


def _flat(values: Any) -> list[Any]:
    array = values if isinstance(values, np.ndarray) else _as_array(values)
    items: list[Any] = array.ravel().tolist()
    return items


def _as_array(values: Any) -> NDArray[Any]:
    return string_array(values) if isinstance(values, bytes) else np.asarray(values)


def _identity(
    values: NDArray[Any],
    words: Sequence[Any],
    dense: bool,
    key: str,
    num_buckets: int,
    default_value: int,
) -> Ids:
    ids = values.astype(np.int64)
    if default_value >= 0:
        outside = (ids < 0) | (ids >= num_buckets)
        return np.where(outside, default_value, ids) if outside.any() else ids
    if ids.size and ids.max() >= num_buckets:
        raise _out_of_range(ids, key, num_buckets)
    return ids


def _out_of_range(ids: Ids, key: str, num_buckets: int) -> InvalidArgumentError:
    flat = ids.reshape(-1)
    places = np.flatnonzero(flat >= num_buckets)
    first = int(places[0])
    shown = ", ".join(map(str, sorted(set(flat[places].tolist()))[:5]))
    return InvalidArgumentError.explained(
        f"indices[{first}] = {flat[first]} is not in [0, {num_buckets})",
        expected=f"feature {key!r} of categorical_column_with_identity({key!r}, {num_buckets})"
        f" below {num_buckets}",
        received=f"{len(places)} of {flat.size} values outside it, for example {shown}",
        hint=f"num_buckets={int(flat.max()) + 1} or more, or default_value=0 for such values",
    )


_EMPTY = farmhash.fingerprint64([b""])[0]


def _hashed(values: NDArray[Any], words: Sequence[Any], dense: bool, num_buckets: int) -> Ids:
    if values.dtype != object:
        words = [b"%d" % number for number in words]
    hashes = fingerprints(words)
    ids: Ids = (hashes % np.uint64(num_buckets)).view(np.int64)
    if dense and values.dtype == object:
        empty = hashes == _EMPTY
        if np.count_nonzero(empty):  # five times as fast as `any`
            ids[empty] = ABSENT
    return ids.reshape(values.shape)


def _fingerprinted(values: NDArray[Any], words: Sequence[Any], dense: bool) -> Ids:
    hashes = fingerprints(words)
    ids = np.where(hashes == _EMPTY, ABSENT, hashes.view(np.int64)) if dense else hashes
    return ids.view(np.int64).reshape(values.shape)


def _plain(values: NDArray[Any], words: Sequence[Any], dense: bool) -> Ids:
    return values.astype(np.int64)


class _Places(dict[Any, bytes]):
    """Maps each word of a vocabulary to its index as eight bytes; other words to `other`."""

    other = (-1).to_bytes(8, "little", signed=True)

    def __missing__(self, word: Any) -> bytes:
        return self.other


_OUTSIDE = ABSENT + 1
_places: dict[tuple[int, int, bool], _Places] = {}


def _places_of(vocabulary: NDArray[Any], other: int, dense: bool) -> _Places:
    """The index of a vocabulary, cached while the array lives."""
    key = (id(vocabulary), other, dense)
    held = _places.get(key)
    if held is None:
        numbers = np.arange(len(vocabulary)).astype("<i8").tobytes()
        eights = [numbers[8 * at : 8 * at + 8] for at in range(len(vocabulary))]
        held = _Places(zip(vocabulary.tolist(), eights, strict=True))
        held.other = other.to_bytes(8, "little", signed=True)
        if dense:
            held[b"" if vocabulary.dtype == object else -1] = _ABSENT_BYTES
        weakref.finalize(vocabulary, _places.pop, key, None)
        _places[key] = held
    return held


_ABSENT_BYTES = ABSENT.to_bytes(8, "little", signed=True)


def _looked_up(
    values: NDArray[Any],
    words: Sequence[Any],
    dense: bool,
    vocabulary: NDArray[Any],
    num_oov_buckets: int,
    default_value: int,
    source: tuple[str, ...],
) -> Ids:
    places = _places_of(vocabulary, _OUTSIDE if num_oov_buckets else default_value, dense)
    ids = _gathered(places, words)
    if num_oov_buckets:
        outside = np.flatnonzero(ids == _OUTSIDE)
        if len(outside):
            new = [words[place] for place in outside.tolist()]
            if values.dtype != object:
                new = [b"%d" % number for number in new]
            ids = ids.copy()
            ids[outside] = farmhash.buckets(fingerprints(new), num_oov_buckets) + len(vocabulary)
    return ids.reshape(values.shape)


# -- layouts


def power_of_two(length: int) -> int:
    """Rounds up to a power of two, at least 1."""
    return 1 << max(length - 1, 0).bit_length()


def laid_out(
    indices: NDArray[np.int64], values: NDArray[Any], shape: Any, fill: Any, steps: bool = False
) -> NDArray[Any]:
    """Densifies a sparse tensor, left-aligning the values of each row.

    Args:
        indices: `(n, rank)`, grouped by row.
        values: `(n,)`.
        shape: `(rank,)`.
        fill: the padding value.
        steps: whether a rank-2 tensor has one value per step; the result is `(batch, steps, 1)`.

    Returns:
        `(*shape[:-1], width)`, the width a power of two.
    """
    indices, dims = np.asarray(indices), [int(size) for size in shape]
    if len(dims) == 1 or (steps and len(dims) == 2):
        indices = np.column_stack([indices, np.zeros(len(indices), np.int64)])
        dims.append(1)
    outer = dims[:-1]
    row = indices[:, 0]
    for axis, size in enumerate(outer[1:], start=1):
        row = row * size + indices[:, axis]
    rows = 1
    for size in outer:
        rows *= size
    if len(row) > 1 and (row[1:] < row[:-1]).any():
        order = np.argsort(row, kind="stable")
        row, values = row[order], values[order]
    counts = np.bincount(row, minlength=rows)
    width = power_of_two(int(counts.max(initial=1)))
    starts = np.cumsum(counts) - counts
    result = np.full(rows * width, fill, values.dtype)
    result[row * width + np.arange(len(row)) - starts[row]] = values
    return result.reshape(*outer, width)


def _expanded(ids: Ids, count: int) -> Ids:
    """Appends `count` axes of length 1; -1 appends one if the batch is the only axis."""
    count = int(ids.ndim == 1) if count < 0 else count
    return ids.reshape(*ids.shape, *[1] * count) if count else ids


def _keeps_axes(attrs: Mapping[str, Any]) -> bool:
    """Whether the rank of the ids is independent of that of the values."""
    return int(attrs["expand"]) >= 0


def infer_dense(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    """Infers ids of the first input's shape with `expand` axes appended."""
    shape = inputs[0].shape
    if shape.rank is None or attrs["expand"] < 0:
        return [Spec(int64, UNKNOWN)]
    return [Spec(int64, shape.concatenate([1] * attrs["expand"]))]


def _rows_of(shape: TensorShape, steps: bool) -> TensorShape:
    """The static shape of `laid_out`."""
    if shape.rank is None:
        return UNKNOWN
    if shape.rank == 1:
        return shape.concatenate([1])
    if steps and shape.rank == 2:
        return shape.concatenate([1])
    return TensorShape([*shape[:-1], None])


def _infer_sparse(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(int64, _rows_of(constant_value_as_shape(inputs[2]), attrs["steps"]))]


def _register_kind(
    name: str, ids_of: Callable[..., Ids], attrs: Mapping[str, Any], values: Any, expected: Any
) -> None:
    """Registers the dense and the sparse op of a kind.

    Args:
        name: of the dense op.
        ids_of: `ids_of(values, values as a list, dense, **attrs)`; preserves the shape.
        attrs: of the test case.
        values: the test case's values, `(n,)`, the last one missing if dense.
        expected: their ids.
    """

    def dense(values: Any, *, expand: int, **rest: Any) -> Ids:
        array = _as_array(values)
        ids = ids_of(array, _flat(array), True, **rest)
        if array.dtype != object and np.count_nonzero(array == -1):
            ids = np.where(array == -1, ABSENT, ids)
        return _expanded(ids, expand)

    def sparse(indices: Any, values: Any, shape: Any, *, steps: bool, **rest: Any) -> Ids:
        array = _as_array(values)
        return laid_out(indices, ids_of(array, _flat(array), False, **rest), shape, ABSENT, steps)

    row: dict[str, Any] = {"where": "host", "gradient": None}
    ids = np.array(expected, np.int64)
    missing = np.append(values, np.array([b"" if values.dtype == object else -1], values.dtype))
    register(
        name,
        dense,
        infer=infer_dense,
        rowwise=_keeps_axes,
        cases=lambda: [
            Case((missing,), {"expand": 1, **attrs}, np.append(ids, ABSENT)[:, None]),
            Case((values[None],), {"expand": 0, **attrs}, ids[None]),
        ],
        **row,
    )
    count = len(ids)
    indices = np.column_stack([np.r_[0, np.full(count - 1, 2)], np.r_[1, np.arange(count - 1)]])
    laid = np.full((3, power_of_two(count - 1)), ABSENT)
    laid[0, 0] = ids[0]
    laid[2, : count - 1] = ids[1:]
    register(
        f"Sparse{name}",
        sparse,
        infer=_infer_sparse,
        cases=lambda: [
            Case(
                (indices.astype(np.int64), values, np.array([3, 9], np.int64)),
                {"steps": False, **attrs},
                laid,
            )
        ],
        **row,
    )


_WORDS = np.array([b"a", "é".encode(), b"c"], object)

_register_kind(
    "IdentityIds",
    _identity,
    {"key": "x", "num_buckets": 3, "default_value": 2},
    np.array([1, 7, 0], np.int64),
    [1, 2, 0],
)
_register_kind("HashedIds", _hashed, {"num_buckets": 1000}, _WORDS, [939, 25, 872])
_register_kind(
    "VocabularyIds",
    _looked_up,
    {"vocabulary": _WORDS[1:], "num_oov_buckets": 0, "default_value": -1, "source": ()},
    _WORDS,
    [-1, 0, 1],
)
_register_kind(
    "FingerprintIds", _fingerprinted, {}, _WORDS[:2], [-5528939962900187677, 693143013273849025]
)
_register_kind("PlainIds", _plain, {}, np.array([5, 9, 2], np.int32), [5, 9, 2])


# -- weights of ids, steps of sequences


def _weights(ids_indices: Any, indices: Any, values: Any, shape: Any, *, key: str) -> NDArray[Any]:
    if not np.array_equal(ids_indices, indices):
        raise InvalidArgumentError.explained(
            f"weight feature {key!r} does not have the indices of the values",
            expected=f"{len(ids_indices)} weights, at the indices of the values",
            received=f"{len(indices)} weights, or others of the indices",
            hint="give each value its weight, with the same SparseTensor indices",
        )
    return laid_out(indices, values.astype(np.float32), shape, np.float32(0))


register(
    "SparseFeatureWeights",
    _weights,
    where="host",
    gradient=None,
    infer=lambda inputs, attrs: [
        Spec(float32, _rows_of(constant_value_as_shape(inputs[3]), False))
    ],
    cases=lambda: [
        Case(
            (
                np.array([[0, 0], [1, 0], [1, 2]]),
                np.array([[0, 0], [1, 0], [1, 2]]),
                np.array([0.5, 2.0, 3.0], np.float32),
                np.array([2, 3]),
            ),
            {"key": "w"},
            np.array([[0.5, 0], [2, 3]], np.float32),
        )
    ],
)


def _sequence_lengths(indices: Any, shape: Any, *, num_elements: int) -> Ids:
    lengths = np.zeros(int(shape[0]), np.int64)
    np.maximum.at(lengths, indices[:, 0], indices[:, 1] + 1)
    return -(-lengths // num_elements)


register(
    "SparseSequenceLengths",
    _sequence_lengths,
    where="host",
    gradient=None,
    infer=lambda inputs, attrs: [Spec(int64, constant_value_as_shape(inputs[1])[:1])],
    cases=lambda: [
        Case(
            (np.array([[0, 0], [0, 2], [2, 1]]), np.array([3, 4])),
            {"num_elements": 2},
            np.array([2, 0, 1]),
        )
    ],
)


# -- bucketized numbers, on the device and (for crosses) on the host


def _bucketize(x: Any, boundaries: tuple[float, ...]) -> Any:
    # NaN is below no boundary, so it falls into the last bucket, as in TensorFlow.
    return jnp.sum(~(x[..., None] < jnp.asarray(boundaries, x.dtype)), -1, dtype=np.int32)


def _bucketize_numpy(x: Any, boundaries: tuple[float, ...]) -> NDArray[np.int32]:
    limits = np.asarray(boundaries, np.asarray(x).dtype)
    buckets: NDArray[np.int32] = np.searchsorted(limits, x, side="right").astype(np.int32)
    return buckets  # NaN sorts last here, too


def _infer_bucketize(dtype: Any) -> Infer:
    return lambda inputs, attrs: [Spec(dtype, inputs[0].shape)]


_NUMBERS = np.array([[-1.0, 0.0], [0.5, np.nan]], np.float32)

register(
    "Bucketize",
    _bucketize,
    infer=_infer_bucketize(int32),
    numpy_kernel=_bucketize_numpy,
    gradient=None,
    accepts="fi",
    cases=lambda: [Case((_NUMBERS[0],), {"boundaries": (0.0, 1.0)}, np.array([0, 1], np.int32))],
)


def _bucket_ids(x: Any, *, boundaries: tuple[float, ...], expand: int) -> Ids:
    buckets = _bucketize_numpy(np.asarray(x, np.float32), boundaries).astype(np.int64)
    ids = _expanded(buckets, expand)
    width = ids.shape[-1]
    return ids if width == 1 else ids + (len(boundaries) + 1) * np.arange(width)


register(
    "BucketIds",
    _bucket_ids,
    where="host",
    rowwise=_keeps_axes,
    infer=infer_dense,
    gradient=None,
    accepts="fi",
    cases=lambda: [
        Case((_NUMBERS,), {"boundaries": (0.0, 1.0), "expand": 0}, np.array([[0, 4], [1, 5]])),
        Case((_NUMBERS[0],), {"boundaries": (0.0, 1.0), "expand": 1}, np.array([[0], [1]])),
    ],
)
