"""Operations of every dtype against TensorFlow: values, result dtypes and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
from tests.golden.snippets_dtypes import DTYPES, LEGACY, ROWS, run
from tests.sweep import sweep

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "dtypes.json").read_text("utf-8"))
_NARROW = ("float16", "bfloat16")

# TensorFlow subtracts neighbours, and differences of unsigned integers are never negative.
ALWAYS_TRUE_IN_TENSORFLOW = ("math.is_non_decreasing", "math.is_strictly_increasing")


@sweep("name", sorted(ROWS.keys() - LEGACY), quick=15)
def test_every_dtype(name: str) -> None:
    for dtype in DTYPES:
        expected, found = GOLDEN["rows"][name][dtype], run(tf, ROWS[name], dtype)
        if name in ALWAYS_TRUE_IN_TENSORFLOW and dtype.startswith("uint"):
            assert found[0]["values"] == [False]
            continue
        if found == "TypeError" and "values" not in expected[0]:
            continue  # TensorFlow has no kernel for it
        assert isinstance(found, str) == isinstance(expected, str), (dtype, found, expected)
        if isinstance(expected, str):
            assert found == expected, dtype
            continue
        for ours, theirs in zip(found, expected, strict=True):
            assert ours["dtype"] == theirs["dtype"], dtype
            if "values" in theirs:
                compare(ours, theirs, dtype)


def compare(ours: dict[str, Any], theirs: dict[str, Any], dtype: str) -> None:
    assert ours["shape"] == theirs["shape"], dtype
    if theirs["dtype"] in ("string", "bool"):
        assert ours["values"] == theirs["values"], dtype
    else:
        values = (np.array(each["values"], float) for each in (ours, theirs))
        np.testing.assert_allclose(*values, rtol=2e-2 if dtype in _NARROW else 1e-5, atol=1e-6)
