"""The tests of `tests/ops/test_refusals.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

from tests.golden.snippets_refusals import LEGACY
from tests.ops.test_refusals import test_raises_same_error_class as check_raises_same_error_class


@pytest.mark.parametrize("name", sorted(LEGACY))
def test_raises_same_error_class(name: str) -> None:
    check_raises_same_error_class(name)
