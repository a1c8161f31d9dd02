"""Partitioned variables and gradients in rows against TensorFlow 2.15.1
(tests/golden/partitioned.json): the programs of `snippets_partitioned.py` run here as there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import estimatorkit as tf
from tests.golden.snippets_partitioned import run_snippet
from tests.sweep import sweep

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/partitioned.json").read_text("utf-8"))


def check(found: Any, expected: Any, where: str) -> None:
    """Asserts that numbers are close and all else is equal."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            check(found[name], value, f"{where} {name}")
    elif isinstance(expected, list):
        for one, other in zip(found, expected, strict=True):
            check(one, other, where)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-5, nan_ok=True), where
    else:
        assert found == expected, where


@sweep("name", sorted(GOLDEN["snippets"]), quick=2)
def test_programs_match_tensorflow(name: str) -> None:
    check(run_snippet(tf, name), GOLDEN["snippets"][name], name)
