"""The tests of `tests/train/test_optimizer_laws.py` for the optimizers of `contrib`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from estimatorkit.compat.train.optimizers import contrib_optimizers, contrib_rules
from estimatorkit.core.graph import Graph
from tests.train.test_optimizer_laws import EXAMPLES, Array, check_restored, check_steps


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(**EXAMPLES)
def test_sparse_steps_match_dense_steps(**example: Array) -> None:
    check_steps((contrib_rules,), **example)


def test_restored_training_gives_same_bits() -> None:
    with Graph().as_default():
        check_restored({"nadam": lambda: contrib_optimizers.NadamOptimizer(0.1)})
