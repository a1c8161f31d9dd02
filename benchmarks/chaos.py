"""A cluster whose processes are killed at random, and what comes of its training.

    PYTHONPATH=. python benchmarks/chaos.py [--minutes 10] [--every 20] [--seed 0]

Two parameter servers, a chief, two workers and an evaluator train on this machine, started again by
`estimatorkit launch --restarts`; every so many seconds a process, drawn at random, gets SIGKILL. At
the end the model must be right and every unit of the data trained in every epoch. The log is told,
and a summary.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import psutil

from benchmarks.chaos_program import BATCHES
from estimatorkit.storage.checkpoint import latest_checkpoint, load_variable

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "benchmarks" / "chaos_program.py"
_TASK = re.compile(r'"task": \{"type": "(\w+)", "index": (\d+)\}')


def tasks_below(pid: int) -> dict[int, str]:
    """The processes of tasks below one, by their numbers: 'ps 0'."""
    found = {}
    for process in psutil.Process(pid).children(recursive=True):
        try:
            match = _TASK.search(process.environ().get("TF_CONFIG", ""))
        except psutil.Error:  # it has ended
            continue
        if match:
            found[process.pid] = f"{match[1]} {match[2]}"
    return found


def main(minutes: float, every: float, seed: int, units: int, epochs: int) -> int:
    """Runs it.

    Returns:
        The exit status: 1 where something was lost.
    """
    chance = random.Random(seed)
    killed: Counter[str] = Counter()
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(sys.executable, "-m", "estimatorkit", "launch", "--ps", "2", "--workers", "3"),
            *("--evaluator", "--restarts", "1000", "--grace", "60", "--"),
            *(sys.executable, str(PROGRAM), f"{folder}/model", str(units), str(epochs)),
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        launch = subprocess.Popen(  # noqa: S603 - this package, on the program beside this
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )

        def read() -> None:
            for line in launch.stdout or ():
                lines.append(line.rstrip())
                print(line, end="", flush=True)

        reader = threading.Thread(target=read)
        reader.start()
        started = time.monotonic()
        following = started + every
        while launch.poll() is None:
            now = time.monotonic()
            if now >= following and now - started < minutes * 60:
                following = now + every
                tasks = tasks_below(launch.pid)
                if tasks:
                    pid = chance.choice(sorted(tasks))
                    killed[tasks[pid]] += 1
                    print(f"== {now - started:.0f} s: SIGKILL to {tasks[pid]}", flush=True)
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.2)
        reader.join()
        seconds = time.monotonic() - started
        path = latest_checkpoint(f"{folder}/model")
        trained = load_variable(path, "trained") if path else None
        step = int(load_variable(path, "global_step")) if path else 0
    accuracy = [line for line in lines if "ACCURACY" in line]
    coverage = [line for line in lines if " units" in line]
    least = 0 if trained is None else int(trained.min())
    print(f"\n{seconds:.0f} seconds, exit code {launch.returncode}, {step} steps")
    print(f"killed: {', '.join(f'{name} {times} times' for name, times in sorted(killed.items()))}")
    print("\n".join([*accuracy, *coverage]))
    print(f"each unit was trained {least} times or more, of {epochs * BATCHES} wanted")
    good = launch.returncode == 0 and accuracy and least >= epochs * BATCHES
    right = good and float(accuracy[-1].split()[-1]) > 0.95
    print("right" if right else "WRONG")
    return 0 if right else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--every", type=float, default=20.0, help="seconds between kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--units", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    sys.exit(main(options.minutes, options.every, options.seed, options.units, options.epochs))
