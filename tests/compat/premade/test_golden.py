"""The tests of `tests/premade/test_golden.py` for the estimators of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path

import estimatorkit.compat.v1 as tf
from tests.premade.test_golden import CASES, check_case
from tests.sweep import sweep


@sweep("name", [name for name, case in CASES.items() if case["api"] == "v1"], quick=1)
def test_training_evaluation_and_prediction_match_tensorflow(name: str, tmp_path: Path) -> None:
    check_case(name, tmp_path, tf.estimator)
