"""The tests of `tests/ops/control/test_control_flow_golden.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

from tests.golden.snippets_control_flow import FUNCTIONS, GRAPHS, LEGACY, REFUSALS
from tests.ops.control.test_control_flow_golden import (
    GOLDEN,
    assert_same,
    run,
    test_errors as check_errors,
    test_loops_gradients_and_graphs as check_loops_gradients_and_graphs,
)


@pytest.mark.parametrize("name", sorted(GRAPHS.keys() & LEGACY))
def test_loops_gradients_and_graphs(name: str) -> None:
    check_loops_gradients_and_graphs(name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    assert_same(run(FUNCTIONS[name]), GOLDEN["functions"][name])


@pytest.mark.parametrize("name", sorted(REFUSALS.keys() & LEGACY))
def test_errors(name: str) -> None:
    check_errors(name)
