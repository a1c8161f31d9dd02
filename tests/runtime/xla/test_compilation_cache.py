"""The compilation cache: a second start compiles nothing, and an unusable cache is harmless."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from estimatorkit.ops.nn import convolution_onednn
from estimatorkit.runtime.xla import compilation_cache

_COUNT = """
import json
import jax

counts = {"hits": 0, "misses": 0}

def count(event, **_):
    name = event.removeprefix("/jax/compilation_cache/cache_")
    if name in counts:
        counts[name] += 1

jax.monitoring.register_event_listener(count)
import estimatorkit as tf
"""

_PROGRAM = """
x = tf.placeholder(tf.float32, [None, 3])
w = tf.get_variable("w", [3, 2])
step = tf.train.AdamOptimizer().minimize(tf.reduce_sum(tf.square(tf.matmul(x, w))))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(step, {x: [[1.0, 2.0, 3.0]]})
print(json.dumps(counts))
"""

_CONVOLUTION = """
import numpy as np

x = tf.placeholder(tf.float32, [None, None, None, None])
y = tf.nn.conv2d(x, tf.ones([3, 3, 32, 32]), 1, "SAME")
z = tf.reduce_sum(tf.square(x))
with tf.Session() as session:
    for each in y, z:
        session.run(each, {x: np.ones([8, 64, 64, 32], np.float32)})
print(json.dumps(counts))
"""


def _run(home: Path, program: str = _PROGRAM, **environment: str) -> dict[str, Any]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", _COUNT + program],
        env={**kept, "JAX_PLATFORMS": "cpu", "XDG_CACHE_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    counts: dict[str, Any] = json.loads(done.stdout)
    return counts


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_second_start_compiles_nothing(tmp_path: Path) -> None:
    first = _run(tmp_path)
    assert first["misses"] > 0
    assert _run(tmp_path) == {"hits": first["misses"] + first["hits"], "misses": 0}
    entries = list(tmp_path.glob("estimatorkit/*/*-cache"))
    assert len(entries) == first["misses"]
    assert entries[0].parent.stat().st_mode & 0o777 == 0o700
    if importlib.util.find_spec("zstandard") is None:
        assert {each.read_bytes()[:2] for each in entries} == {b"\x78\x01"}  # zlib's fastest level
    for each in entries:
        each.write_bytes(each.read_bytes()[:1000])
    assert _run(tmp_path)["hits"] == 0  # compiled again, without a word


@pytest.mark.slow
def test_disabled_by_environment(tmp_path: Path) -> None:
    assert _run(tmp_path, ESTIMATORKIT_COMPILATION_CACHE="0") == {"hits": 0, "misses": 0}
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_programs_of_onednn_are_not_stored(tmp_path: Path) -> None:
    if not convolution_onednn.is_available():
        pytest.skip("oneDNN is not used")
    given = {"JAX_RAISE_PERSISTENT_CACHE_ERRORS": "1"}  # serializing fails
    assert _run(tmp_path, _CONVOLUTION, **given) == {"hits": 0, "misses": 1}


@pytest.fixture
def unused_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No cache is in use yet, and JAX's options are not changed."""
    compilation_cache.use_compilation_cache.cache_clear()
    monkeypatch.setenv("ESTIMATORKIT_COMPILATION_CACHE", str(tmp_path))
    config: dict[str, Any] = {}

    class Config:
        jax_compilation_cache_dir = None

        def update(self, name: str, value: Any) -> None:
            config[name] = value

    monkeypatch.setattr(compilation_cache.jax, "config", Config())
    return tmp_path


def test_cache_writable_by_others_is_ignored(
    unused_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = compilation_cache.use_compilation_cache()
    assert folder is not None
    assert folder.parent == unused_cache
    folder.chmod(0o770)
    compilation_cache.use_compilation_cache.cache_clear()
    assert compilation_cache.use_compilation_cache() is None
    assert "users other than its owner can write to it" in caplog.text
    compilation_cache.use_compilation_cache.cache_clear()


def test_unwritable_home_is_harmless(unused_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (unused_cache / "file").touch()
    monkeypatch.setenv("ESTIMATORKIT_COMPILATION_CACHE", str(unused_cache / "file"))
    assert compilation_cache.use_compilation_cache() is None
    compilation_cache.use_compilation_cache.cache_clear()


def test_evicts_least_recently_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        path = tmp_path / f"{number}-cache"
        path.write_bytes(bytes(100))
        os.utime(path, (number, 0))
    monkeypatch.setattr(compilation_cache, "MOST_BYTES", 700)
    compilation_cache._remove_old(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [f"{at}-cache" for at in range(3, 8)]
