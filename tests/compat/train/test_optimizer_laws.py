"""The tests of `tests/train/test_optimizer_laws.py` for the optimizers of `contrib`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from estimatorkit.compat.train.optimizers import contrib_rules
from tests.train.test_optimizer_laws import EXAMPLES, Array, check_steps


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(**EXAMPLES)
def test_sparse_steps_match_dense_steps(**example: Array) -> None:
    check_steps((contrib_rules,), **example)
