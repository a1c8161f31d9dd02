"""The tests of `tests/distribute/test_sharded_tables.py` that need names of TensorFlow 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.distribute.processes import Processes
from tests.distribute.test_sharded_tables import EIGHT, PROGRAM, check_alike


@pytest.mark.slow
def test_eight_devices_match_one(tmp_path: Path) -> None:
    with Processes(tmp_path, JAX_NUM_CPU_DEVICES="8") as processes:
        answers = []
        for kind, options in (("one", {}), ("eight", EIGHT)):
            given = {"optimizer": "lazy_adam", **options, "model_dir": str(tmp_path / kind)}
            (found,) = processes.program(kind, PROGRAM, json.dumps(given)).answer()
            answers.append(found)
    one, eight = answers
    assert eight["whole"]
    check_alike(eight, one)
