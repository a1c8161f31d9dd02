"""Memory that steps have freed is there for the next ones, without page faults.

The first runs may still map more, until a free part fits.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from estimatorkit.runtime.xla.flags import share_arenas

PROGRAM = """
import resource
import estimatorkit as tf

left, right = (tf.placeholder(tf.float32, shape) for shape in ([5000, 4], [4, 5000]))
total = tf.reduce_sum(tf.cos(tf.matmul(left, right)))  # 100 MB

def faults(session):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    session.run(total, {left: [[1.0] * 4] * 5000, right: [[2.0] * 5000] * 4})
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with tf.Session() as session:
    print(min(faults(session) for _ in range(9)))
"""


@pytest.mark.slow
@pytest.mark.skipif(not share_arenas(), reason="glibc alone, and few cores")
def test_large_temporaries_are_mapped_once() -> None:
    environment = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
    environment["ESTIMATORKIT_EXECUTOR"] = "xla"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 2_000  # of 24,400 pages
