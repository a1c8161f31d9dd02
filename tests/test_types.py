"""Type checkers know the public API: mypy and Pyright report wrong uses only.

basedpyright is Pyright from the Python Package Index; the other needs npm.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

import pytest

from estimatorkit.layers import functional

ROOT = Path(__file__).parent.parent
FILES = Path(__file__).parent / "types"
LEAST = 40
"""How many right and wrong uses there are at least."""


def run_mypy(python: Path, folder: Path) -> set[tuple[str, int]]:
    """File and line of each error that mypy reports in the files of `types`."""
    command = [sys.executable, "-m", "mypy", "--python-executable", str(python)]
    options = ["--ignore-missing-imports", "--no-error-summary", "right.py", "wrong.py"]
    printed = subprocess.run(
        [*command, *options], cwd=folder, capture_output=True, text=True, check=False
    ).stdout
    found = re.findall(r"^(\w+\.py):(\d+): error", printed, re.MULTILINE)
    return {(name, int(line)) for name, line in found}


def run_pyright(python: Path, folder: Path) -> set[tuple[str, int]]:
    """File and line of each error that Pyright reports, in its standard mode."""
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", str(python), "--outputjson"]
    printed = subprocess.run(
        [*command, "right.py", "wrong.py"], cwd=folder, capture_output=True, text=True, check=False
    ).stdout
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
        for each in json.loads(printed)["generalDiagnostics"]
        if each["severity"] == "error"
    }


def expected(files: Path = FILES) -> set[tuple[str, int]]:
    """The lines marked as wrong."""
    lines = (files / "wrong.py").read_text("utf-8").splitlines()
    return {("wrong.py", at) for at, line in enumerate(lines, 1) if line.endswith("# wrong")}


def checked(folder: Path, files: Path = FILES) -> Path:
    """A copy of the files of `types` outside the repository, as a user has them."""
    for name in ("right.py", "wrong.py"):
        shutil.copy(files / name, folder)
    return folder


def test_enough_uses_are_checked() -> None:
    assert len(expected()) >= LEAST
    right = (FILES / "right.py").read_text("utf-8")
    assert len(re.findall(r"\btf\.\w", right)) >= LEAST


def installed(tmp_path: Path) -> tuple[Path, Path]:
    """Python and its packages: the wheel and, of its requirements, those of this environment."""
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path)]
    subprocess.run([*wheel, str(ROOT)], check=True, capture_output=True)
    venv.create(tmp_path / "env", symlinks=True)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (built,) = tmp_path.glob("*.whl")
    shutil.unpack_archive(built, site, "zip")
    others = next(path for path in map(Path, sys.path) if (path / "numpy").is_dir())
    for name in ("numpy", "pandas"):
        (site / name).symlink_to(others / name)
    return tmp_path / "env" / "bin" / "python", site


@pytest.mark.slow
def test_checkers_report_wrong_uses_of_wheel_only(tmp_path: Path) -> None:
    python, _ = installed(tmp_path)
    folder = tmp_path / "uses"
    folder.mkdir()
    for run in (run_mypy, run_pyright):
        assert run(python, checked(folder)) == expected()


def parameters(of: Mapping[str, inspect.Parameter]) -> list[tuple[str, object, object]]:
    return [(each.name, each.kind, each.default) for each in of.values()]


def test_layer_function_stub_matches_parameters() -> None:
    space: dict[str, object] = {}
    text = Path(functional.__file__).with_suffix(".pyi").read_text("utf-8")
    exec(compile(text, "stub", "exec"), space)  # noqa: S102
    for name in functional._TABLE:
        function = getattr(functional, name)
        described = space[name]
        assert callable(described)
        own = inspect.signature(function).parameters
        assert parameters(inspect.signature(described).parameters) == parameters(own), name
