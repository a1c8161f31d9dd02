"""Range tests find the same elements in all integer dtypes."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from estimatorkit.core.faults import in_range, outside
from estimatorkit.core.x64 import x64

BOUNDS = (-3, 0, 1, 5, 127, 128, 200, 255, 256, 300, 70_000, 1 << 40)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("bound", BOUNDS)
def test_range_is_the_same_for_all_integers(dtype: str, bound: int) -> None:
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    known = [least, most, *(each for each in (-1, 0, 1, 4, 5, 6, 127) if each >= least)]
    ids = np.array(known, dtype)
    expected = [not 0 <= each < bound for each in known]
    assert outside(ids, bound).tolist() == expected
    with x64():
        # known before a run, and not; sizes are not negative
        for given in (ids, jnp.asarray(ids))[: 1 + (bound >= 0)]:
            bad = np.zeros(len(ids), bool)
            for fault in in_range(0, given, bound):
                bad |= np.asarray(fault.bad)
            assert bad.tolist() == expected
