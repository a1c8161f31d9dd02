"""What compilation and interpretation free goes back to the system, steps' memory does not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime import executor
from estimatorkit.runtime.xla import host_tuning

needs_glibc = pytest.mark.skipif(
    not host_tuning.keep_freed_memory(), reason="no glibc, or the environment tunes its malloc"
)


def resident() -> int:
    """The bytes of this process in memory."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) << 10


@needs_glibc
def test_freed_memory_is_kept_until_it_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [np.ones(1 << 20, np.uint8) for _ in range(200)]
    pins = arrays[::20]  # else what follows them could go back with the end of the heap
    full = resident()
    arrays.clear()
    assert resident() > full - (20 << 20)
    monkeypatch.setattr(host_tuning, "_released", -host_tuning._SECS_BETWEEN)
    host_tuning.release_freed_memory()
    assert resident() < full - (150 << 20)
    assert len(pins) == 10


@pytest.mark.usefixtures("compiled")
def test_memory_is_released_once_per_executable(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[bool] = []
    monkeypatch.setattr(executor, "release_freed_memory", lambda: released.append(True))
    x = tf.placeholder(tf.float32, [None])
    step = tf.get_variable("v", [4], initializer=tf.zeros_initializer()).assign_add(x)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            session.run(step, {x: np.ones(4, np.float32)})
    assert len(released) == 1
