"""The package works without `compat`, which has what only TensorFlow 1 programs use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
LEFT_OUT = ("estimatorkit/compat/", "tests/compat/")
SOME = (
    *("core/test_error_messages.py", "runtime/test_feeds.py", "storage/test_records.py"),
    *(
        "ops/array/test_arrays.py",
        "ops/nn/test_nn_names.py",
        "ops/variables",
        "interop/test_trust.py",
    ),
    *("data/test_positions.py", "layers/test_functional.py", "train/test_scaffold.py"),
    *(
        "keras/test_model_programs.py",
        "estimator/test_export_outputs.py",
        "slides/test_internals.py",
    ),
    *(
        "premade/test_estimators.py",
        "recommend/test_interactions.py",
        "experiment/test_hints.py",
    ),
    *("distribute/test_device_setter.py", "fuzz/test_fuzz.py", "test_wiring.py"),
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's files without `compat` and its tests."""
    folder = tmp_path_factory.mktemp("copy")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in listed.stdout.split("\0"):
        if (ROOT / name).is_file() and not name.startswith(LEFT_OUT):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def pytest_in(folder: Path, *arguments: str) -> None:
    """Runs pytest in a copy of the repository."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-5000:]


def test_every_test_is_collected(copy: Path) -> None:
    assert not (copy / "estimatorkit" / "compat").exists()
    pytest_in(copy, "--collect-only")


def test_some_tests_of_each_folder_pass(copy: Path) -> None:
    pytest_in(copy, "-m", "not slow", *(f"tests/{name}" for name in SOME))
