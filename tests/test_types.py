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
import types
import venv
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import estimatorkit
from estimatorkit.compat import stubs
from estimatorkit.compat.v1.contrib import layers as contrib_layers
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


def expected() -> set[tuple[str, int]]:
    """The lines marked as wrong."""
    lines = (FILES / "wrong.py").read_text("utf-8").splitlines()
    return {("wrong.py", at) for at, line in enumerate(lines, 1) if line.endswith("# wrong")}


def checked(folder: Path) -> Path:
    """A copy of the files of `types` outside the repository, as a user has them."""
    for name in ("right.py", "wrong.py"):
        shutil.copy(FILES / name, folder)
    return folder


def test_enough_uses_are_checked() -> None:
    assert len(expected()) >= LEAST
    right = (FILES / "right.py").read_text("utf-8")
    assert len(re.findall(r"\b(?:tf1?|rnn)\.\w", right)) >= LEAST


@pytest.mark.slow
@pytest.mark.parametrize("run", [run_mypy, run_pyright])
def test_checkers_report_wrong_uses_only(
    run: Callable[[Path, Path], set[tuple[str, int]]], tmp_path: Path
) -> None:
    assert run(Path(sys.executable), checked(tmp_path)) == expected()


@pytest.mark.slow
def test_wheel_has_types(tmp_path: Path) -> None:
    """In an environment that has the wheel and, of its requirements, those of this one."""
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path)]
    subprocess.run([*wheel, str(ROOT)], check=True, capture_output=True)
    venv.create(tmp_path / "env", symlinks=True)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (built,) = tmp_path.glob("*.whl")
    shutil.unpack_archive(built, site, "zip")
    assert list(site.glob("estimatorkit/compat/private/*.json"))
    others = next(path for path in map(Path, sys.path) if (path / "numpy").is_dir())
    for name in ("numpy", "pandas"):
        (site / name).symlink_to(others / name)
    python = tmp_path / "env" / "bin" / "python"
    folder = tmp_path / "uses"
    folder.mkdir()
    for run in (run_mypy, run_pyright):
        assert run(python, checked(folder)) == expected()


def test_compat_stubs_match_tables() -> None:
    """Installing the package writes them; `python -m estimatorkit.compat.stubs` does it again."""
    folder = ROOT / "estimatorkit" / "compat" / "v1"
    for path, text in stubs.stubs():
        assert (folder / path).read_text("utf-8") == text, path


def test_compat_stubs_name_existing_objects() -> None:
    def check(module: types.ModuleType, path: str) -> None:
        (text,) = (text for name, text in stubs.stubs() if name == path)
        names = re.findall(r"^from estimatorkit\S* import \w+ as ([a-z]\w+)$", text, re.MULTILINE)
        assert len(names) > 20
        assert not [name for name in names if not hasattr(module, name)]

    check(estimatorkit.compat.v1, "__init__.pyi")
    check(contrib_layers, "contrib/layers/__init__.pyi")


def parameters(of: Mapping[str, inspect.Parameter]) -> list[tuple[str, object, object]]:
    return [(each.name, each.kind, each.default) for each in of.values()]


def test_layer_function_stub_matches_parameters() -> None:
    space: dict[str, object] = {}
    text = Path(functional.__file__).with_suffix(".pyi").read_text("utf-8")
    exec(compile(text, "stub", "exec"), space)  # noqa: S102
    for name, function in functional.FUNCTIONS.items():
        described = space[name]
        assert callable(described)
        own = inspect.signature(function).parameters
        assert parameters(inspect.signature(described).parameters) == parameters(own), name
