"""Clusters whose servers are all in one process, and how that process ends."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import estimatorkit.compat.v1 as tf
from tests.distribute.processes import known_token

pytestmark = pytest.mark.multiprocess


def test_tasks_of_one_process_share_resources() -> None:
    with known_token():
        workers, servers = tf.test.create_local_cluster(num_workers=2, num_ps=1)
        try:
            with tf.Graph().as_default():
                with tf.device("/job:ps/task:0"):
                    count = tf.get_variable("count", (), initializer=tf.zeros_initializer())
                add = tf.assign_add(count, 1.0)
                with tf.Session(workers[0].target) as session:
                    session.run(count.initializer)
                    session.run(add)
                with tf.Session(workers[1].target) as session:
                    assert session.run(add) == 2.0
                with tf.Session(servers[0].target) as session:
                    assert session.run(count) == 2.0
        finally:
            for server in (*workers, *servers):
                server.stop()


# A run that waits, a queue runner that waits, or nothing but an open session: none keeps the
# servers from ending. What a hang would be, is the time limit's to say.
PROGRAM = """
import threading
import estimatorkit.compat.v1 as tf

workers, _ = tf.test.create_local_cluster(1, 2)
with tf.device("/job:ps/task:0"):
    empty = tf.FIFOQueue(1, tf.float32, [()])
    taken = empty.dequeue()
with tf.device("/job:ps/task:1"):
    full = tf.FIFOQueue(1, tf.float32, [()])
    runner = tf.train.QueueRunner(full, [full.enqueue(1.0)])
    size = full.size()
session = tf.Session(workers[0].target)
coordinator = tf.train.Coordinator()
{waiting}
while {awaited} and not session.run(size):
    pass
print("done")
"""

WAITING = {
    "nothing": ("", False),
    "a run": ("threading.Thread(target=session.run, args=(taken,), daemon=True).start()", False),
    "a queue runner": (
        "runner.create_threads(session, coordinator, daemon=True, start=True)",
        True,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WAITING)
def test_process_exits_with_its_servers(name: str) -> None:
    waiting, awaited = WAITING[name]
    program = textwrap.dedent(PROGRAM).format(waiting=waiting, awaited=awaited)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["done"]
    assert "Traceback" not in done.stderr
