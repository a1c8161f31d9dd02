"""`AllReduce` sums all arrays in as few messages as their sizes allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from estimatorkit.core import registry
from estimatorkit.ops.control.collectives import AXIS, _messages
from tests.sweep import sweep

MEGABYTE = 1 << 18
"""Numbers of four bytes."""


def reduced(*values: Any) -> list[Any]:
    kernel = registry.lookup("AllReduce").kernel
    return list(kernel(*values, mean=False))


@sweep(
    ("lengths", "dtypes", "messages"),
    [
        ([3, 5, 1], "fff", [[0, 1, 2]]),
        ([3, 5, 1, 2], "fifi", [[0, 2], [1, 3]]),
        ([MEGABYTE, 1, 2 * MEGABYTE, 2], "ffff", [[0], [1, 3], [2]]),
        ([MEGABYTE // 2, 7, MEGABYTE // 2, 7], "ffff", [[0, 1, 3], [2]]),
        ([MEGABYTE // 2] * 4, "ffff", [[0, 1], [2, 3]]),
        ([0, 2, 0], "fff", [[0, 1, 2]]),
        ([], "", []),
    ],
    ids=["small ones", "of two types", "large ones alone", "full", "halves", "empty", "none"],
    quick=3,
)
def test_arrays_are_batched(lengths: Sequence[int], dtypes: str, messages: list[list[int]]) -> None:
    pairs = zip(lengths, dtypes, strict=True)
    values = [np.arange(2 * length).astype(dtype).reshape(2, -1) for length, dtype in pairs]
    assert _messages([each[0] for each in values]) == messages
    if values:
        traced = jax.make_jaxpr(reduced, axis_env=[(AXIS, 2)])(*[each[0] for each in values])
        assert str(traced).count("psum") == len(messages)
        found = jax.vmap(reduced, axis_name=AXIS)(*values)
        for value, (one, other) in zip(values, found, strict=True):
            np.testing.assert_array_equal(one, value.sum(0))
            np.testing.assert_array_equal(other, value.sum(0))


def test_shapes_are_preserved() -> None:
    values = [np.ones((2, 3, 4), np.float32), np.ones(2, np.float32), np.ones((2, 1), np.float32)]
    found = jax.vmap(reduced, axis_name=AXIS)(*values)
    assert [each.shape for each in found] == [each.shape for each in values]
