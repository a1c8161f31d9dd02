"""The tests of `tests/ops/variables/test_variables_golden.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit.compat.v1 as tf
from tests.golden.snippets_variables import ERRORS, LEGACY, SNIPPETS
from tests.ops.variables.test_variables_golden import check_error, check_facts


@pytest.mark.parametrize("name", sorted(SNIPPETS.keys() & LEGACY))
def test_facts(name: str) -> None:
    check_facts(tf, name)


@pytest.mark.parametrize("name", sorted(ERRORS.keys() & LEGACY))
def test_errors(name: str) -> None:
    check_error(tf, name)
