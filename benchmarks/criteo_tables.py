"""Criteo-shaped load: 26 tables of 10 million rows, beside TensorFlow's Estimator and PyTorch.

    PYTHONPATH=. python benchmarks/criteo_tables.py [--rounds 3] [--write]

Runs `criteo_tables_program.py`, each participant in a process of its own, in turn; with parameter
servers, in two (a chief and a server). The memory of the tables is the peak less that of the same
program with tables a thousand times smaller, relative to the bytes of the tables and their
accumulators.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.criteo_tables_program import DIMENSION, SIZES
from benchmarks.driver import ESTIMATORKIT, TENSORFLOW, Entrant
from benchmarks.report import keep, machine

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "benchmarks" / "criteo_tables_program.py"
PYTORCH = Entrant("pytorch", "", "ESTIMATORKIT_BENCH_TORCH", "torch==2.13.0 numpy")
ROWS = (
    ("tensorflow", TENSORFLOW, False),
    ("pytorch", PYTORCH, False),
    ("estimatorkit", ESTIMATORKIT, False),
    ("dynamic", ESTIMATORKIT, False),
    ("tensorflow", TENSORFLOW, True),
    ("estimatorkit", ESTIMATORKIT, True),
    ("ahead", ESTIMATORKIT, True),
    ("rounded", ESTIMATORKIT, True),
)
LABELS = {
    "dynamic": "estimatorkit, dynamic tables",
    "ahead": "estimatorkit, two steps in flight",
    "rounded": "estimatorkit, two steps in flight, rows as bfloat16",
}
TABLES = sum(SIZES) * DIMENSION * 4 * 2 / 2**20


def run(name: str, entrant: Entrant, servers: bool, divisor: int = 1) -> dict[str, Any] | None:
    """What the program prints, as the chief; None without an interpreter."""
    python = entrant.python()
    if python is None:
        print(entrant.how_to_get(), file=sys.stderr)
        return None
    environment = {**os.environ, **entrant.environment, "PYTHONPATH": str(ROOT)}
    words = [python, str(PROGRAM), name, str(divisor)]
    with tempfile.TemporaryDirectory() as folder:
        environment["MODEL_DIR"] = folder
        if not servers:
            return result(words, environment)
        cluster = {job: [f"127.0.0.1:{free_port()}"] for job in ("chief", "ps")}

        def of_task(job: str) -> dict[str, str]:
            config = {"cluster": cluster, "task": {"type": job, "index": 0}}
            return {**environment, "TF_CONFIG": json.dumps(config)}

        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen(words, env=of_task("ps"), **quiet)  # noqa: S603
        try:
            return result(words, of_task("chief"))
        finally:
            server.kill()
            server.wait()


def result(words: Sequence[str], environment: dict[str, str]) -> dict[str, Any]:
    """The last line of what a process prints."""
    done = subprocess.run(words, env=environment, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--servers", action="store_true", help="the rows with parameter servers")
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    options = parser.parse_args(arguments)
    where = machine()
    records: dict[int, list[dict[str, Any]]] = {}
    for _ in range(options.rounds):
        for number, row in enumerate(ROWS):
            found = run(*row) if row[2] or not options.servers else None
            if found is not None:
                records.setdefault(number, []).append(found)
    lines = [
        "| participant | examples a second | rounds | times tensorflow's | times pytorch's "
        "| peak MB | tables' memory / tables and accumulators |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]

    def rate(number: int) -> float | None:
        held = records.get(number)
        return statistics.median(each["examples"] for each in held) if held else None

    for number, (name, entrant, servers) in enumerate(ROWS):
        own = rate(number)
        if own is None:
            continue
        rates = [each["examples"] for each in records[number]]
        peak = statistics.median(each["megabytes"] for each in records[number])
        small = None if servers else run(name, entrant, False, 1000)
        share = "" if small is None else f"{(peak - small['megabytes']) / TABLES:.2f}"
        ratios = [rate(4 if servers else 0), None if servers else rate(1)]
        shown = [f"{own / each:.2f}" if each else "" for each in ratios]
        label = LABELS.get(name, name)
        label += ", chief and parameter server" if servers else ""
        spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
        cells = [label, f"{own:,.0f}", spread, *shown, f"{peak:,.0f}", share]
        lines.append(f"| {' | '.join(cells)} |")
    print(where, *lines, sep="\n")
    if options.write:
        part = "\n".join(["### Criteo-shaped tables, by `benchmarks/criteo_tables.py`", *lines])
        keep(ROOT / "benchmarks" / "RESULTS.md", where, [part])
    return 0


if __name__ == "__main__":
    sys.exit(main())
