"""Type checkers know the names of TensorFlow 1: mypy and Pyright report wrong uses only."""

from __future__ import annotations

import re
import types
from pathlib import Path

import pytest

import estimatorkit
from estimatorkit.compat import stubs
from estimatorkit.compat.v1.contrib import layers as contrib_layers
from tests.test_types import ROOT, checked, expected, installed, run_mypy, run_pyright

FILES = Path(__file__).parent / "types"


@pytest.mark.slow
def test_checkers_report_wrong_uses_of_wheel_only(tmp_path: Path) -> None:
    python, site = installed(tmp_path)
    assert list(site.glob("estimatorkit/compat/private/*.json"))
    folder = tmp_path / "uses"
    folder.mkdir()
    for run in (run_mypy, run_pyright):
        assert run(python, checked(folder, FILES)) == expected(FILES)


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
