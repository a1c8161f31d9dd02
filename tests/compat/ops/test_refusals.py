"""The tests of `tests/ops/test_refusals.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit.compat.v1 as tf
from tests.golden.snippets_refusals import LEGACY
from tests.ops.test_refusals import check_class


@pytest.mark.parametrize("name", sorted(LEGACY))
def test_raises_same_error_class(name: str) -> None:
    check_class(tf, name)
