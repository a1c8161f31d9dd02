"""The tests of `tests/fuzz/test_fuzz.py` for readers that have names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.fuzz.targets import TARGETS
from tests.fuzz.test_fuzz import check_inputs, check_mutations, pytestmark

__all__ = ["pytestmark"]

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_are_read_or_refused(name: str, tmp_path: Path) -> None:
    check_inputs(TARGETS[name], CORPUS / name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_mutations_are_read_or_refused(name: str, tmp_path: Path) -> None:
    check_mutations(TARGETS[name], name, tmp_path)
