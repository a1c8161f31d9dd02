"""Programs that end in the middle of the work of their threads have their own exit status."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BEGIN = """
import os, signal, sys, threading, time
import numpy as np
import estimatorkit.compat.v1 as tf
signal.signal(signal.SIGINT, signal.default_int_handler)  # programs of a background job ignore it
"""

KINDS = {
    "queues": """
source = tf.train.range_input_producer(1000)
x = tf.random.normal([32, 32, 3]) + tf.cast(source.dequeue(), tf.float32)
xs = tf.train.batch([x], batch_size=8, capacity=64, num_threads=4)
y = tf.reduce_sum(tf.layers.conv2d(xs, 8, 5))
session = tf.Session()
session.run(tf.global_variables_initializer())
with session.as_default():
    tf.train.start_queue_runners()
for _ in range(3):
    session.run(y)
""",
    "queues_of_xla": """
x = tf.reduce_sum(tf.matmul(tf.random.normal([200, 200]), tf.random.normal([200, 200])))
xs = tf.train.batch([x], batch_size=8, capacity=1000, num_threads=4)
session = tf.Session()
with session.as_default():
    tf.train.start_queue_runners()
for _ in range(3):
    session.run(xs)
""",
    "prefetching": """
data = tf.data.Dataset.range(10**9).map(lambda k: tf.reduce_sum(tf.random.normal([50, 50])) + 1.0)
step = data.batch(16).prefetch(64).make_one_shot_iterator().get_next()
session = tf.Session()
for _ in range(20):
    session.run(step)
""",
    "training": """
features, labels = np.ones([1000, 4], "f"), np.zeros(1000, "i")
def input_fn():
    data = tf.data.Dataset.from_tensor_slices(({"x": features}, labels)).repeat().shuffle(100)
    return data.batch(16).prefetch(8)
class Ending(tf.train.SessionRunHook):
    def before_run(self, context):
        self.steps = getattr(self, "steps", 0) + 1
    def after_run(self, context, values):
        if self.steps > 5:
            end()
columns = [tf.feature_column.numeric_column("x", [4])]
model = tf.estimator.LinearClassifier(columns)
end_of_work = lambda: model.train(input_fn, steps=100, hooks=[Ending()])
""",
    "own_threads": """
x = tf.placeholder(tf.float32, [None, 100])
y = tf.reduce_sum(tf.matmul(x, x, transpose_a=True))
session = tf.Session()
def work(size):
    while True:
        session.run(y, {x: np.ones([size, 100])})
for size in (10, 100, 300, 1000):
    threading.Thread(target=work, args=(size,), daemon=True).start()
time.sleep(0.2)
""",
    "servers": """
server = tf.train.Server({"worker": ["localhost:0"]})
(worker,), (ps,) = tf.test.create_local_cluster(1, 1)
with tf.device("/job:ps/task:0"):
    v = tf.Variable(np.zeros([300, 300], "f"))
    more = v.assign_add(tf.random.normal([300, 300]))
session = tf.Session(worker.target)
session.run(v.initializer)
def work():
    while True:
        session.run(more)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
""",
    "blocked_generator": """
def elements():
    yield from np.ones(1000, "f")
    while True:
        time.sleep(0.5)
step = tf.data.Dataset.from_generator(elements, tf.float32, []).prefetch(1)
step = step.make_one_shot_iterator().get_next()
session = tf.Session()
session.run(step)
time.sleep(1)
""",
}

ENDS = {
    "return": ("pass", 0),
    "error": ("raise ValueError('the end')", 1),
    "exit": ("sys.exit(3)", 3),
    "raise_exit": ("raise SystemExit(4)", 4),
    "interrupt": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(1)", -signal.SIGINT),
}

# Each kind with one end, and each end with two kinds: all 35 pairs take four minutes.
PAIRS = sorted(
    {(kind, "exit") for kind in KINDS}
    | {(kind, end) for kind in ("queues", "training") for end in ENDS}
)


@pytest.fixture(scope="module")
def load() -> Iterator[None]:
    """Two processes that keep two processors busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for process in busy:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.usefixtures("load")
@pytest.mark.parametrize(("kind", "end"), PAIRS)
def test_threads_do_not_change_the_exit_status(kind: str, end: str, tmp_path: Path) -> None:
    statement, status = ENDS[end]
    program = (
        f"{BEGIN}\ndef end():\n    {statement}\nend_of_work = end\n{KINDS[kind]}\nend_of_work()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=100,
    )
    assert done.returncode == status, done.stderr
    expected = {"error": "ValueError: the end", "interrupt": "KeyboardInterrupt"}.get(end, "")
    lines = [line for line in done.stderr.splitlines() if line]
    assert lines[-1:] == ([expected] if expected else lines[:0]) or kind == "training", done.stderr
