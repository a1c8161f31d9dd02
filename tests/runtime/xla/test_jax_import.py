"""JAX's import reads only the metadata of ROCm's plugins, and loads seldom used modules later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from estimatorkit.runtime.xla.jax_import import plugins

PROGRAM = """
import sys
from importlib import metadata

def distributions(**context):
    asked.append(sys._getframe(1).f_globals["__name__"])
    return iter(())

asked, metadata.distributions = [], distributions
import estimatorkit, jax
assert metadata.distributions is distributions
print([name for name in asked if name.startswith("jax")])
"""


def test_import_reads_no_metadata() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def test_plugins_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("jax_rocm7_plugin", "jax_rocm60_plugin", "other"):
        folder = tmp_path / f"{name}-0.1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\n")
    monkeypatch.setattr(sys, "path", ["", str(tmp_path)])
    names = sorted(found.metadata["Name"] for found in plugins())
    assert names == ["jax-rocm60-plugin", "jax-rocm7-plugin"]


LATER = """
import sys
import estimatorkit.compat.v1 as tf
from estimatorkit.runtime.xla.jax_import import _SELDOM_USED

with tf.Session() as session:
    session.run(tf.constant(1.0) + 1.0)
import scipy.sparse
waiting = {name for name in _SELDOM_USED if "__getattr__" in vars(sys.modules[name])}
assert waiting == _SELDOM_USED, waiting
import jax.extend
assert jax.extend.pallas.GridMapping
import numpy.testing
numpy.testing.assert_equal(1, 1)
"""


def test_seldom_used_modules_are_loaded_when_used() -> None:
    subprocess.run([sys.executable, "-c", LATER], check=True)
