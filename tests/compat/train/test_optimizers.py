"""The tests of `tests/train/test_optimizers.py` for the optimizers of `contrib`."""

from __future__ import annotations

import pytest

from estimatorkit.compat.train.optimizers import contrib_rules
from estimatorkit.train.optimizers.update_rule import UpdateRule
from tests.train.test_optimizers import (
    check_examples,
    graph,
    rules_of,
    test_sparse_step_allocates_nothing_of_table_size as check_memory,
)

__all__ = ["graph"]

RULES = rules_of(contrib_rules)


def test_update_rule_examples() -> None:
    check_examples(RULES)


@pytest.mark.parametrize(
    "rule", [each for each in RULES if each.sparse_rows != "none"], ids=lambda rule: rule.name
)
def test_sparse_step_allocates_nothing_of_table_size(rule: UpdateRule) -> None:
    check_memory(rule)
