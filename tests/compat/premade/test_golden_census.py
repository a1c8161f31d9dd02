"""The tests of `tests/premade/test_golden_census.py` for the estimators of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import estimatorkit.compat.v1 as tf_v1
from tests.golden import snippets_premade as snippets
from tests.premade.test_golden_census import TF, check_case
from tests.sweep import sweep

MODULE = SimpleNamespace(**{**vars(TF), "compat": SimpleNamespace(v1=tf_v1)})


@sweep("name", [name for name in snippets.CASES if name.startswith("v1_")], quick=1)
def test_training_matches_tensorflow(name: str, tmp_path: Path) -> None:
    check_case(name, tmp_path, MODULE)
