"""The tests of `tests/core/test_complex_gradients.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit.compat.v1 as tf
from tests.core.test_complex_gradients import check_gradients
from tests.golden.snippets_complex import LEGACY


@pytest.mark.parametrize("name", sorted(LEGACY))
def test_gradients(name: str) -> None:
    check_gradients(tf, name)
