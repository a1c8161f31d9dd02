"""Runs the examples whole, and says whether they reach what they promise.

    PYTHONPATH=. python benchmarks/examples.py [--only mnist_softmax ...] [--write]

Each example's `main` runs in a process of its own, with a seed and otherwise as a reader would run
it; the figure is what it returns, the seconds are all of it: imports, compilation, training,
evaluation, export. The data sets are found by ESTIMATORKIT_DATA_DIR or fetched.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.report import keep, machine

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Promise:
    """What an example is to reach.

    Attributes:
        figure: the key in what `main` returns.
        goal: what it must reach.
        most: whether it may be at most that, instead of at least.
        arguments: of `main`, beside its defaults.
    """

    figure: str
    goal: float
    most: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def is_kept(self, value: float) -> bool:
        """Whether the figure is as good as the goal."""
        return value <= self.goal if self.most else value >= self.goal

    def __str__(self) -> str:
        return f"{'<=' if self.most else '>='} {self.goal:g}"


SEEDED = {"seed": 1}
QUESTIONS = os.path.join(os.environ.get("ESTIMATORKIT_DATA_DIR", ""), "text/questions-words.txt")
PROMISES = {
    "ridge_regression": Promise("difference", 1e-3, most=True),
    "mnist_softmax": Promise("accuracy", 0.915),
    "mnist_dnn": Promise("accuracy", 0.97, arguments=SEEDED),
    "mnist_cnn": Promise("accuracy", 0.985, arguments=SEEDED),
    "mnist_keras": Promise("accuracy", 0.98, arguments=SEEDED),
    "census_wide_deep": Promise("accuracy", 0.85, arguments=SEEDED),
    # The mean of squared differences in thousands of dollars; the mean price's is 75.
    "automobile": Promise("network, by hand", 10.0, most=True, arguments=SEEDED),
    # Of the 6,571 analogies whose words the first million words of text8 have five times or more.
    "word2vec": Promise("right", 200, arguments={**SEEDED, "questions": QUESTIONS}),
    "sentence_cnn": Promise("accuracy", 0.72, arguments=SEEDED),
    "text_lstm": Promise("accuracy", 0.72, arguments=SEEDED),
}

_PROGRAM = """
import importlib.util, json, sys
path, arguments = sys.argv[1], json.loads(sys.argv[2])
spec = importlib.util.spec_from_file_location("example", path)
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)
print(json.dumps({key: float(value) for key, value in example.main(**arguments).items()}))
"""


def result_of(name: str, promise: Promise) -> dict[str, float]:
    """What an example's `main` returned: the last line that its process printed.

    Raises:
        RuntimeError: it failed.
    """
    path, arguments = ROOT / "examples" / f"{name}.py", json.dumps(dict(promise.arguments))
    done = subprocess.run(  # noqa: S603 - this interpreter, on the examples beside this file
        [sys.executable, "-c", _PROGRAM, str(path), arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{path} failed:\n{done.stderr[-4000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def row(name: str) -> tuple[str, bool]:
    """A line of the table, and whether the example has kept its promise."""
    promise = PROMISES[name]
    start = time.perf_counter()
    value = result_of(name, promise)[promise.figure]
    seconds = time.perf_counter() - start
    kept = promise.is_kept(value)
    cells = (name, promise.figure, f"{value:.4g}", str(promise), "yes" if kept else "NO")
    return f"| {' | '.join(cells)} | {seconds:,.0f} |", kept


def main(only: Sequence[str] | None, write: bool) -> int:
    """Runs them, prints the table, and keeps it where asked for.

    Returns:
        The exit status: 1 where a promise is not kept.
    """
    where = machine()
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("jax", "numpy", "pandas"))
    lines = [
        "| example | figure | reached | goal | kept | seconds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    all_kept = True
    for name in only or PROMISES:
        line, kept = row(name)
        all_kept = all_kept and kept
        lines.append(line)
        print(line, flush=True)
    if write:
        python = sys.version.split()[0]
        about = f"### Examples, run whole by `benchmarks/examples.py`: python {python}, {versions}"
        path = ROOT / "benchmarks" / "RESULTS.md"
        keep(path, where, [f"{about}\n\n" + "\n".join(lines)])
    return 0 if all_kept else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(PROMISES), help="one of them")
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    options = parser.parse_args()
    sys.exit(main(options.only, options.write))
