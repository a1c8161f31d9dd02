"""Core works without the rest of the package: it can be copied out."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import estimatorkit

PACKAGE = Path(estimatorkit.__file__).parent

PROGRAM = """
import importlib, pkgutil, sys
import estimatorkit
import estimatorkit.core

for module in pkgutil.walk_packages(estimatorkit.core.__path__, "estimatorkit.core."):
    importlib.import_module(module.name)

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import make
from estimatorkit.core.dtypes import float32
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import lookup, register
from estimatorkit.core.verify import verify_new

register("Twice", kernel=lambda x: x + x, accepts="f")
with Graph().as_default() as graph:
    x = placeholder(float32, [None, 3], name="x")
    y = make("Twice", {"x": x}, name="y")
    assert y.shape.as_list() == [None, 3] and y.dtype is float32
    verify_new(graph)
assert lookup("Twice").kernel(2) == 4
assert [op.name for op in graph.get_operations()] == ["x", "y"]
others = [name for name in sys.modules if name.startswith("estimatorkit.")]
print(*sorted({name.split(".")[1] for name in others}))
"""


def test_core_runs_in_a_copy(tmp_path: Path) -> None:
    copy = tmp_path / "estimatorkit"
    shutil.copytree(PACKAGE / "core", copy / "core")
    for module in ("__init__.py", "garbage.py", "lazy.py", "html.py"):
        text = "" if module == "__init__.py" else (PACKAGE / module).read_text("utf-8")
        (copy / module).write_text(text, "utf-8")
    (copy / "core" / "__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["core", "garbage", "lazy"]
