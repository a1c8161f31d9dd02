"""The tests of `tests/layers/test_layer_programs.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

from tests.golden.snippets_layers import LEGACY, SNIPPETS
from tests.layers.test_layer_programs import test_facts as check_facts


@pytest.mark.parametrize("name", sorted(SNIPPETS.keys() & LEGACY))
def test_facts(name: str) -> None:
    check_facts(name)
