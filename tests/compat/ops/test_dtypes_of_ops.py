"""The tests of `tests/ops/test_dtypes_of_ops.py` for rows that need names of TensorFlow 1."""

from __future__ import annotations

from tests.golden.snippets_dtypes import LEGACY
from tests.ops.test_dtypes_of_ops import test_every_dtype as check_every_dtype
from tests.sweep import sweep


@sweep("name", sorted(LEGACY), quick=1)
def test_every_dtype(name: str) -> None:
    check_every_dtype(name)
