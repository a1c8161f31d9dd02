"""After XLA has been used, a forked process is told so instead of waiting for ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, warnings
import numpy as np
import estimatorkit as tf

warnings.simplefilter("ignore")  # JAX warns of every fork
x = tf.placeholder(tf.float32, [None])
y = tf.reduce_sum(tf.sin(x) * 2.0)
numbers = tf.data.Dataset.range(10).map(lambda each: each * 2)

def session_of_the_parent():
    session.run(y, {x: np.ones(7)})

def callable_of_the_parent():
    called(np.ones(7))

def session_of_the_child():
    tf.Session()

def dataset():
    list(numbers)

def training():
    features = {"x": np.ones([8, 1], "f")}
    data = lambda: tf.data.Dataset.from_tensors((features, np.zeros(8, "i")))
    tf.estimator.LinearClassifier([tf.feature_column.numeric_column("x")]).train(data, steps=1)

if sys.argv[2] == "used":
    session = tf.Session()
    session.run(y, {x: np.ones(5)})
    called = session.make_callable(y, [x])
pid = os.fork()
if pid == 0:
    globals()[sys.argv[1]]()
    print("done")
    sys.exit(0)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""

USES = (
    "session_of_the_parent",
    "callable_of_the_parent",
    "session_of_the_child",
    "dataset",
    "training",
)


def forked(use: str, before: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, use, before],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize("use", USES)
def test_use_in_a_forked_process_is_refused(use: str) -> None:
    done = forked(use, "used")
    assert done.returncode == 1
    assert "this process was forked from one that has used XLA" in done.stderr
    assert "spawn" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize("use", USES[2:])
def test_first_use_after_the_fork_works(use: str) -> None:
    done = forked(use, "not yet")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
