"""Ids of crossed features by TensorFlow's hash, one host operation per cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import int64
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import UNKNOWN
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.tables.feature_ids import ABSENT, KnownHashes, infer_dense
from estimatorkit.ops.text import farmhash

HASH_KEY = 0xDECAFCAFFE
"""The default seed of the hash, as in TensorFlow."""


_MURMUR = np.uint64(0xC6A4A7935BD1E995)
_47 = np.uint64(47)


def _mixed(fingerprints: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The cacheable part of FingerprintCat64, which depends only on its second argument."""
    first = fingerprints * _MURMUR
    first ^= first >> _47
    first *= _MURMUR
    first ^= _MURMUR
    return first


_mixed_words = KnownHashes(lambda words: _mixed(farmhash.fingerprint64(words)))


def join_fingerprint(
    before: NDArray[np.uint64], fingerprints: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """FingerprintCat64, elementwise."""
    return _joined(before, _mixed(fingerprints))


def _joined(before: Any, mixed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """FingerprintCat64 of `before` and an argument to which `_mixed` was applied."""
    result: NDArray[np.uint64] = before ^ mixed
    result *= _MURMUR
    result ^= result >> _47
    result *= _MURMUR
    result ^= result >> _47
    return result


def _crossed(
    *parents: NDArray[Any],
    num_buckets: int,
    hash_key: int,
    expand: tuple[int, ...],
    mixed: tuple[bool, ...],
) -> NDArray[np.int64]:
    hashes: Any = np.uint64(hash_key)
    absent: Any = None
    for parent, widen, is_mixed in zip(parents, expand, mixed, strict=True):
        missing = None
        if parent.dtype == object:
            feature = _mixed_words(parent.ravel().tolist()).reshape(parent.shape)
        elif is_mixed:
            feature = parent.view(np.uint64)
        else:
            ids = parent.astype(np.int64, copy=False)
            feature = _mixed(ids.view(np.uint64))
            gone = ids == ABSENT
            if np.count_nonzero(gone):
                missing = gone
        if widen > 0 or (widen and parent.ndim == 1):  # -1: only if the batch is the only axis
            feature = feature[..., None]
            missing = None if missing is None else missing[..., None]
        if absent is not None or missing is not None:
            before = np.zeros(np.shape(hashes), np.bool_) if absent is None else absent
            here = np.zeros(feature.shape, np.bool_) if missing is None else missing
            absent = _each_with_each(before, here, np.logical_or)
        hashes = _each_with_each(hashes, feature, _joined)
    hashes %= np.uint64(num_buckets)
    ids = hashes.view(np.int64)
    return ids if absent is None else np.where(absent, ABSENT, ids)


def _mixed_ids(words: Any, *, expand: int) -> NDArray[np.int64]:
    mixed = _mixed_words(words.ravel().tolist()).view(np.int64)
    return mixed.reshape(*words.shape, *[1] * expand)


register(
    "MixedIds",  # hashed once for several crosses, which pass them as `mixed`
    _mixed_ids,
    where="host",
    rowwise=True,
    infer=infer_dense,
    gradient=None,
    cases=lambda: [
        Case(
            (np.array([b"a", b""], object),),
            {"expand": 1},
            np.array([[-5046063932562413183], [8159297023016824184]]),
        )
    ],
)


def _each_with_each(first: Any, second: Any, function: Any) -> Any:
    """Applies `function` to all pairs in a row; the second argument varies fastest."""
    if np.ndim(first) == 0 or first.shape[-1] == 1 == second.shape[-1]:
        return function(first, second)
    joined = function(first[..., :, None], second[..., None, :])
    return joined.reshape(*joined.shape[:-2], -1)


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    shape, width = UNKNOWN, 1
    known: int | None = width
    for tensor, widen in zip(inputs, attrs["expand"], strict=True):
        if tensor.shape.rank is None:
            return [Spec(int64, UNKNOWN)]
        rows = tensor.shape if widen else tensor.shape[:-1]
        last = 1 if widen else tensor.shape[-1]
        shape = shape.merge_with(rows)
        known = None if known is None or last is None else known * last
    return [Spec(int64, shape.concatenate([known]))]


register(
    "CrossedIds",
    _crossed,
    where="host",
    rowwise=lambda attrs: min(attrs["expand"]) >= 0,
    infer=_infer,
    gradient=None,
    cases=lambda: [
        Case(
            (
                np.array([[b"a", b"b"], [b"", b"c"]], object),
                np.array([[7, ABSENT], [1, 2]]),
                np.array([b"x", b"y"], object),
            ),
            {
                "num_buckets": 1000,
                "hash_key": HASH_KEY,
                "expand": (0, 0, 1),
                "mixed": (False, False, False),
            },
            np.array([[454, ABSENT, 995, ABSENT], [378, 614, 580, 244]]),
        )
    ],
)
