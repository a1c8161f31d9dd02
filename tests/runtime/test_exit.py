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
interpreted.ENOUGH = interpreted.ENOUGH_OF_FEW = 1e9
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
    interpreted.ENOUGH = interpreted.ENOUGH_OF_FEW = 0.0
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


ONE = """
with tf.Session() as session:
    session.run(tf.constant(1) + 1)
"""

CYCLE = """
class Cycle:
    def __init__(self, kept):
        self.own, self.kept = self, kept
"""

FINALIZED = """
class Finalized:
    def __del__(self):
        print("finalized")
"""

GARBAGE: dict[str, tuple[str, str]] = {
    "finalizer in a cycle made after the first run": (ONE + "Cycle(Finalized())", "finalized"),
    "finalizer in a cycle made before it": ("Cycle(Finalized())" + ONE, "finalized"),
    "finalizer that only the main module holds": ("kept = Finalized()" + ONE, "finalized"),
    "file in a cycle made after the first run": (ONE + "Cycle(Written())", "written"),
    "file in a cycle made before it": ("Cycle(Written())" + ONE, "written"),
    "file in a cycle that the main module holds": ("kept = Cycle(Written())" + ONE, "written"),
    "file that only the main module holds": ("kept = Written()" + ONE, "written"),
    "files and finalizers": (
        "kept = Cycle(Written()); Cycle(Finalized())" + ONE + "Cycle(Finalized())",
        "finalized finalized written",
    ),
    "a full collection": (
        """
import gc, weakref
seen = weakref.ref(Cycle(None))"""
        + ONE
        + """
assert gc.get_freeze_count() and seen() is not None
gc.collect()
assert not gc.get_freeze_count() and seen() is None
kept = Finalized()
""",
        "finalized",
    ),
    "collections that Python makes": (
        "import gc"
        + ONE
        + """
def cycle():
    made = []
    made.append(made)
    return made

frozen, kept = gc.get_freeze_count(), []
before = gc.get_stats()[2]["collections"]
while gc.get_freeze_count():
    kept += [cycle() for _ in range(10_000)]
assert len(kept) > frozen and gc.get_stats()[2]["collections"] > before + 1
""",
        "",
    ),
    "imports at exit": (
        """
import atexit, sys
def imports():
    import numpy
    print(numpy is sys.modules["numpy"] is before)
atexit.register(imports)
"""
        + ONE
        + "before = sys.modules['numpy']",
        "True",
    ),
    "objects frozen after the first run": (
        "import gc" + ONE + "gc.freeze(); gc.collect(); assert gc.get_freeze_count()",
        "",
    ),
    "objects frozen before it": (
        "import gc; gc.freeze()" + ONE + "kept = []; assert kept in gc.get_objects()",
        "",
    ),
}


@pytest.mark.parametrize("case", GARBAGE)
def test_garbage_is_finalized_as_by_python(case: str, tmp_path: Path) -> None:
    program, expected = GARBAGE[case]
    path = tmp_path / "file"
    written = f"""
def Written():
    file = open({str(path)!r}, "w")
    file.write("written")
    return file

"""
    done = subprocess.run(
        [sys.executable, "-c", "import estimatorkit as tf" + FINALIZED + CYCLE + written + program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [*done.stdout.split(), *([path.read_text()] if path.exists() else [])] == (
        expected.split()
    )


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
