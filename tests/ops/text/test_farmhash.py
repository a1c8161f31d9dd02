"""Hashes of strings against TensorFlow 2.15.1 (tests/golden/string_hashes.json)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from estimatorkit.ops.text.farmhash import (
    buckets,
    fingerprint64,
    fingerprint_cat64,
    legacy_hash64,
    strong_hash64,
)
from tests.golden.golden_strings import KEY, NUM_BUCKETS, hashed_strings

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/string_hashes.json").read_text("utf-8"))
STRINGS = hashed_strings()


def crossed(strings: list[bytes]) -> NDArray[np.int64]:
    """As a crossed column does: the hash key, then each column's fingerprint, joined in order."""
    first, second = fingerprint64(strings), fingerprint64(strings[1:] + strings[:1])
    joined = fingerprint_cat64(fingerprint_cat64(np.uint64(0xDECAFCAFFE), first), second)
    return buckets(joined, NUM_BUCKETS)


HASHES: dict[str, Any] = {
    "fingerprint": fingerprint64,
    "fast": lambda strings: buckets(fingerprint64(strings), NUM_BUCKETS),
    "strong": lambda strings: buckets(strong_hash64(strings, KEY), NUM_BUCKETS),
    "legacy": lambda strings: buckets(legacy_hash64(strings), NUM_BUCKETS),
    "cross": crossed,
}


@pytest.mark.parametrize("name", HASHES)
def test_hash_matches_tensorflow(name: str) -> None:
    values = HASHES[name](STRINGS)
    first = GOLDEN[name]["first"]
    assert [str(value) for value in values[: len(first)]] == first
    digest = hashlib.sha256(values.astype("<u8").tobytes()).hexdigest()
    assert digest == GOLDEN[name]["sha256"]


@pytest.mark.parametrize("name", sorted(set(HASHES) - {"cross"}))
def test_hash_is_independent_of_batch(name: str) -> None:
    chosen = [*STRINGS[280:310], b""]
    together = HASHES[name](chosen)
    assert [HASHES[name]([each])[0] for each in chosen] == list(together)
    assert HASHES[name]([]).shape == (0,)


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_order_does_not_matter(strings: list[bytes]) -> None:
    for hashed in (fingerprint64, legacy_hash64):
        np.testing.assert_array_equal(hashed(strings)[::-1], hashed(strings[::-1]))


def test_buckets_are_in_range() -> None:
    found = buckets(fingerprint64(STRINGS), 7)
    assert found.dtype == np.int64
    assert set(found) == set(range(7))
