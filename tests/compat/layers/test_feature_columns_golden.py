"""The tests of `tests/layers/test_feature_columns_golden.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit.compat.v1 as tf
from tests.layers.test_feature_columns_golden import (
    LEGACY,
    check_case,
    check_error,
    snippets,
    words_file,
)
from tests.sweep import sweep

__all__ = ["words_file"]


@sweep("name", sorted(snippets.LEGACY), quick=1)
def test_values_variables_and_gradients(name: str, words_file: str) -> None:
    check_case(tf, name, words_file)


@pytest.mark.parametrize("name", sorted(LEGACY))
def test_errors(name: str) -> None:
    check_error(tf, name)
