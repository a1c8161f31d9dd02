"""Parameter servers beside TensorFlow's: steps a second of all workers together.

    PYTHONPATH=. python benchmarks/clusters.py [--only iris] [--seconds 10] [--rounds 3] [--write]

A cluster of a chief, a worker and a parameter server runs on this machine, its processes started by
TF_CONFIG; the program is `cluster_program.py`, the same for both packages. The figure is what the
chief's log says of the global step, which all workers move, from `WARM_SECS` after the first lines
of all on. Rounds are interleaved; the median counts. TensorFlow's interpreter is given by
ESTIMATORKIT_BENCH_TENSORFLOW. The seconds from the start of the processes to the chief's first line
are told, too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from benchmarks.report import keep, machine
from estimatorkit.distribute import local_cluster

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "benchmarks" / "cluster_program.py"
LOG_STEPS = {"iris": 500, "mnist_dnn": 200}
GOAL = 2.0
WARM_SECS = 5.0
_COMPUTING = ("chief", "worker")
_STEP = re.compile(r"loss = .*step = ")
_RATE = re.compile(r"global_step/sec: ([0-9.]+)")


@dataclass(frozen=True)
class Participant:
    """A package: its name, its interpreter and the module that programs import."""

    name: str
    python: str
    module: str


@dataclass(frozen=True)
class Round:
    """What a run of a cluster showed: steps a second, and the seconds to the first line."""

    rate: float
    start: float


def run(participant: Participant, model: str, seconds: float) -> Round:
    """Runs a cluster for a while.

    Raises:
        RuntimeError: it did not come to train within two minutes.
    """
    cluster = local_cluster(ps=1, workers=2)
    tasks = [(job, at) for job, addresses in cluster.items() for at in range(len(addresses))]
    token = secrets.token_hex(16)
    first: dict[str, float] = {}
    rates: list[float] = []
    lines: list[str] = []
    over = threading.Event()

    def read(job: str, process: subprocess.Popen[str]) -> None:
        for line in process.stderr or ():
            lines.append(line)
            now = time.monotonic()
            if _STEP.search(line):
                first.setdefault(job, now)
            found = _RATE.search(line)
            if found is None:
                continue
            # TensorFlow's workers look every 30 seconds whether the chief has begun.
            since = now - max(first.values()) if len(first) == len(_COMPUTING) else 0.0
            if job == "chief" and since > WARM_SECS:
                rates.append(float(found[1]))
            if since > WARM_SECS + seconds:
                over.set()

    with tempfile.TemporaryDirectory() as folder:
        processes = []
        readers = []
        started = time.monotonic()
        for job, index in tasks:
            config = {"cluster": cluster, "task": {"type": job, "index": index}}
            process = subprocess.Popen(  # noqa: S603 - the program beside this
                [
                    *(participant.python, str(PROGRAM), participant.module, model),
                    *(f"{folder}/model", str(LOG_STEPS[model])),
                ],
                env={
                    **os.environ,
                    "TF_CONFIG": json.dumps(config),
                    "ESTIMATORKIT_TOKEN": token,
                    "TF_CPP_MIN_LOG_LEVEL": "2",
                    "PYTHONPATH": str(ROOT),
                },
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE if job in _COMPUTING else subprocess.DEVNULL,
                text=True,
            )
            processes.append(process)
            if job in _COMPUTING:
                readers.append(threading.Thread(target=read, args=(job, process)))
                readers[-1].start()
        over.wait(120 + seconds)
        for process in processes:
            process.send_signal(signal.SIGKILL)
        for process in processes:
            process.wait()
        for reader in readers:
            reader.join()
    if not rates:
        raise RuntimeError(f"{participant.name} did not train:\n{''.join(lines[-30:])}")
    # Lines come after equal numbers of steps: their mean time counts.
    return Round(statistics.harmonic_mean(rates), first["chief"] - started)


def main(only: list[str] | None, seconds: float, rounds: int, write: bool) -> int:
    """Runs all, prints the table, and keeps it where asked for.

    Returns:
        The exit status: 1 where a goal is missed.
    """
    participants = [Participant("estimatorkit", sys.executable, "estimatorkit.compat.v1")]
    peer = os.environ.get("ESTIMATORKIT_BENCH_TENSORFLOW")
    if peer:
        participants.append(Participant("tensorflow", peer, "tensorflow.compat.v1"))
    else:
        print("tensorflow is left out: ESTIMATORKIT_BENCH_TENSORFLOW=DIR_TF/bin/python")
    where = machine()
    lines = [
        "| cluster of chief, worker and ps | participant | steps a second | rounds | times "
        "tensorflow's | seconds to the first line |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    missed = False
    for model in only or LOG_STEPS:
        found: dict[str, list[Round]] = {each.name: [] for each in participants}
        for _ in range(rounds):
            for each in participants:
                found[each.name].append(run(each, model, seconds))
                print(model, each.name, found[each.name][-1], flush=True)
        middle = {
            name: statistics.median(each.rate for each in done) for name, done in found.items()
        }
        for name, done in found.items():
            ratio = middle[name] / middle["tensorflow"] if "tensorflow" in middle else None
            missed |= name == "estimatorkit" and ratio is not None and ratio < GOAL
            rates = sorted(each.rate for each in done)
            start = statistics.median(each.start for each in done)
            cells = (
                *(model, name, f"{middle[name]:,.0f}", f"{rates[0]:,.0f} to {rates[-1]:,.0f}"),
                *("" if ratio is None else f"{ratio:.2f}", f"{start:.1f}"),
            )
            lines.append(f"| {' | '.join(cells)} |")
    print("\n".join(lines))
    if write:
        versions = f"jax {metadata.version('jax')}, pyarrow {metadata.version('pyarrow')}"
        python = sys.version.split()[0]
        about = f"### Parameter servers, by `benchmarks/clusters.py`: python {python}, {versions}"
        text = f"{about}, tensorflow 2.15.1\n\n" + "\n".join(lines)
        keep(ROOT / "benchmarks" / "RESULTS.md", where, [text])
    return int(missed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(LOG_STEPS), help="one of them")
    parser.add_argument("--seconds", type=float, default=10.0, help="measured, each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    options = parser.parse_args()
    sys.exit(main(options.only, options.seconds, options.rounds, options.write))
