"""The tests of `tests/layers/test_layers_golden.py` that need names of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.golden_layers import CASES, LEGACY
from tests.layers.test_layers_golden import (
    check_cases,
    golden,
    test_constructor_arguments_match_tensorflow as check_arguments,
    test_mixed_precision_computes_in_16_bits_with_float32_variables as check_mixed_precision,
    test_output_shapes_are_known_before_call as check_shapes,
)

__all__ = ["golden"]

ALL = {
    name: case for cases in CASES.values() for name, case in cases.items() if case.kind in LEGACY
}
KINDS = {case.kind: case for case in ALL.values()}


def test_every_class_has_a_case() -> None:
    assert KINDS.keys() == LEGACY


@pytest.mark.slow
def test_layers_match_tensorflow(golden: dict[str, Any]) -> None:
    check_cases(ALL, golden)


@pytest.mark.parametrize("kind", sorted(LEGACY))
def test_layers_of_a_kind(kind: str) -> None:
    check_arguments(kind)
    check_mixed_precision(KINDS[kind])
    check_shapes(KINDS[kind])
