"""What it costs that every step is counted: real servers and workers of this machine.

    PYTHONPATH=. python benchmarks/counting.py [--seconds 5] [--rounds 3]

Each worker's steps read and update 16 rows of one table. The first server holds the global step
alone, the others the tables; a single server holds all. Steps are counted each ("each"; a bound on
staleness that nobody reaches is what asks for it) or leased. Rounds are interleaved; the median
counts.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
import time
from pathlib import Path

import estimatorkit.compat.v1 as tf
from benchmarks.report import machine
from estimatorkit.distribute import local_cluster
from estimatorkit.distribute.tasks.task_cluster import TaskCluster, serve_target
from estimatorkit.distribute.tasks.task_placement import HERE
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.targets import Target
from estimatorkit.train.training import training_loop

ROOT = Path(__file__).parents[1]
WARM_SECS = 2.0
ROWS, WIDTH, BATCH = 10_000, 16, 16
COUNTED = ("each", "leased")


def serve(addresses: list[str], index: int) -> None:
    """Serves a task until it is killed."""
    server = tf.train.Server({"ps": addresses}, "ps", index)
    print("ready", flush=True)
    server.join()


def work(addresses: list[str], index: int) -> None:
    """Trains for a while when told to, and prints how many steps a second it made."""
    tasks = {f"/job:ps/task:{at}": address for at, address in enumerate(addresses)}
    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
    holders = range(1, len(addresses)) if len(addresses) > 1 else [0]
    with tf.device(f"/job:ps/task:{holders[index % len(holders)]}"):
        table = tf.get_variable(f"table_{index}", [ROWS, WIDTH])
    ids = tf.data.Dataset.range(10**9).map(lambda at: at * 7919 + tf.range(BATCH, dtype=tf.int64))
    rows = tf.nn.embedding_lookup(table, tf.data.make_one_shot_iterator(ids).get_next() % ROWS)
    loss = tf.reduce_mean(tf.square(rows))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    loops = {}
    for counted in COUNTED:
        bound = 10**9 if counted == "each" else None
        cluster = TaskCluster(tasks, HERE, f"/job:worker/task:{index}", bound=bound)
        session = tf.Session(serve_target(counted, Target(ResourceStore(), cluster, shared=False)))
        session.run([table.initializer, *([] if index else [step.initializer])])
        loops[counted] = training_loop(session, train, loss)
    print("ready", flush=True)
    for line in sys.stdin:
        counted, seconds = line.split()
        loop = loops[counted]
        started = time.monotonic()
        while time.monotonic() - started < WARM_SECS:
            loop.run(10**6)
        started, done = time.monotonic(), 0
        while (passed := time.monotonic() - started) < float(seconds):
            done += loop.run(10**6).count
        print(done / passed, flush=True)


def rates(servers: int, workers: int, seconds: float, rounds: int) -> dict[str, float]:
    """Steps a second of all workers, by how they are counted."""
    addresses = list(local_cluster(ps=servers, workers=2)["ps"])
    environment = {
        **os.environ,
        "ESTIMATORKIT_TOKEN": secrets.token_hex(16),
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
    }
    started: list[subprocess.Popen[str]] = []

    def start(*words: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(  # noqa: S603 - this program
            [sys.executable, __file__, "--task", json.dumps([addresses, *words])],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        started.append(process)
        return process

    def heard(processes: list[subprocess.Popen[str]]) -> list[str]:
        found = [process.stdout.readline().strip() for process in processes if process.stdout]
        if not all(found):
            raise RuntimeError("a process ended early")
        return found

    try:
        heard([start("ps", index) for index in range(servers)])
        working = []
        for index in range(workers):
            working.append(start("worker", index))
            heard(working[-1:])  # the first gives the step its value
        found: dict[str, list[float]] = {counted: [] for counted in COUNTED}
        for _ in range(rounds):
            for counted in COUNTED:
                for process in working:
                    print(counted, seconds, file=process.stdin, flush=True)
                found[counted].append(sum(map(float, heard(working))))
        return {counted: statistics.median(each) for counted, each in found.items()}
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def main(seconds: float, rounds: int) -> None:
    """Measures all sizes, and prints the table."""
    print(machine(), flush=True)
    print("| servers | workers | each step counted | leased | ratio |", flush=True)
    print("| --- | --- | --- | --- | --- |")
    for servers in (1, 2, 4):
        for workers in (1, 2, 4):
            found = rates(servers, workers, seconds, rounds)
            each, leased = (found[counted] for counted in COUNTED)
            cells = f"{each:,.0f} | {leased:,.0f} | {leased / each:.2f}"
            print(f"| {servers} | {workers} | {cells} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="measured, each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        given, job, *rest = json.loads(options.task)
        (serve if job == "ps" else work)(given, *rest)
    else:
        main(options.seconds, options.rounds)
