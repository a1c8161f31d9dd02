"""The workshop's slides that compute one loss per worker and average them on the master.

The workers are CPU devices here; their number is settled before JAX starts, so in a new process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

PROGRAM = """
    import json
    import numpy as np
    import estimatorkit as tf

    workers, master = ["/cpu:1", "/cpu:2", "/cpu:3"], "/cpu:0"
    data = np.random.default_rng(3).normal(size=(3, 8, 2)).astype(np.float32)

    with tf.Graph().as_default():
        global_step = tf.Variable(0, trainable=False)
        with tf.device(master):
            beta = tf.Variable([0.5, -1.0])
        losses = []
        for worker, rows in zip(workers, data):
            with tf.device(worker):
                # Computationally expensive model section
                loss = tf.reduce_mean(tf.square(tf.constant(rows) * beta - 1.0))
                losses.append(loss)
        with tf.device(master):
            losses_avg = tf.add_n(losses) / len(workers)
            train_op = tf.train.AdagradOptimizer(1.0, use_locking=False).minimize(
                losses_avg, global_step=global_step)
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 4})) as sess:
            sess.run(tf.global_variables_initializer())
            told = sess.plan([train_op, losses_avg]).describe()
            first = sess.run(losses_avg)
            step = 0
            while step < 50:
                _, step = sess.run([train_op, global_step])
            last, found = sess.run([losses_avg, beta])
    print(json.dumps([told, float(first), float(last), found.tolist()]))
"""


@pytest.mark.slow
def test_losses_of_workers_are_averaged_on_master() -> None:
    """Sub-graph replication with one synchronized step: the weights reach their closed form."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    told, first, last, found = json.loads(done.stdout)
    for part in ("CPU:1", "CPU:2", "CPU:3", "Send", "Recv"):
        assert part in told
    assert last < first
    rows = np.random.default_rng(3).normal(size=(3, 8, 2)).astype(np.float32).reshape(-1, 2)
    np.testing.assert_allclose(found, rows.mean(0) / (rows**2).mean(0), rtol=1e-3)
