"""A process that ends while XLA compiles ends cleanly, without what is queued."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import atexit, sys, threading
import numpy as np
import estimatorkit as tf
from estimatorkit.runtime import executor, interpreted
from estimatorkit.runtime.xla import compiler_thread

interpreted.START = interpreted.START_OF_FEW = 0.0
interpreted.ENOUGH = 1e9
begun, left = threading.Event(), threading.Event()
ahead = executor.CompiledSegment._compile_ahead

def slow(*arguments):
    begun.set()
    left.wait()  # until the program ends
    return ahead(*arguments)

executor.CompiledSegment._compile_ahead = slow
session = tf.Session()
x = tf.placeholder(tf.float32, [None])
y = tf.reduce_sum(tf.sin(x) * 2.0)
for length in range(2, 10):
    for _ in range(2):
        session.run(y, {x: np.ones(length)})
begun.wait()
leave = compiler_thread._leave

def leaving(thread):
    threading.Timer(0.05, left.set).start()
    leave(thread)
    print("compiled", session.state.compilations.total())
    interpreted.ENOUGH = 0.0
    print("later", session.run(y, {x: np.zeros(5)}), session.state.compilations.total() > 1)

atexit.unregister(leave)
atexit.register(leaving, next(t for t in threading.enumerate() if t.name == compiler_thread.NAME))
"""

ENDS = {
    "end": ("", 0),
    "exit": ("sys.exit(3)", 3),
    "daemon": (
        "threading.Thread(target=lambda: [session.run(y, {x: np.ones(20)}) for _ in iter(int, 1)],"
        " daemon=True).start()",
        0,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", ENDS)
def test_what_is_compiled_is_kept_and_what_is_queued_is_dropped(how: str, tmp_path: Path) -> None:
    end, code = ENDS[how]
    keys = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
    environment = {key: value for key, value in os.environ.items() if key not in keys}
    environment["ESTIMATORKIT_COMPILATION_CACHE"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", PROGRAM + end],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=300,
    )
    assert done.stderr == ""
    assert done.returncode == code
    assert done.stdout.splitlines() == ["compiled 1", "later 0.0 True"]
    assert len(list(tmp_path.glob("*/jit_segment-*-cache"))) >= 2


def test_end_of_python_collects_nothing_and_writes_files(tmp_path: Path) -> None:
    """Going through all objects three times took a quarter of a small program's time."""
    program = f"""
import atexit, gc
atexit.register(lambda: print(len(gc.get_objects()) < gc.get_freeze_count() / 10))  # called last
import estimatorkit as tf

class Log:
    def __init__(self):
        self.own, self.file = self, open({str(tmp_path / "log")!r}, "w")

with tf.Session() as session:
    print(session.run(tf.constant(1) + 1), file=Log().file)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
    assert (tmp_path / "log").read_text() == "2\n"


def test_what_has_a_finalizer_is_finalized_at_the_end() -> None:
    program = """
import estimatorkit as tf

class Ends:
    def __init__(self):
        self.own = self

    def __del__(self):
        print("finalized")

Ends()
with tf.Session() as session:
    session.run(tf.constant(1) + 1)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "finalized\n"
