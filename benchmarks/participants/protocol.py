"""How a participant is asked, `python -m benchmarks.participants.X WORKLOAD --units N`.

It answers with one JSON line: `seconds` (of the N units together), `warm_seconds` (what a trainer
took for the shorter of its two runs), `units`, `versions` and, from a trainer asked with `--check`,
`loss`. A participant hands `answer` what it can do; the timing is here, the same for all.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.workloads import WORKLOADS, CensusTraining, Classification, Workload


class Trainer(Protocol):
    """Trains a classifier; made once a process, with its data loaded."""

    def train(self, steps: int) -> None:
        """Trains a fresh model, from nothing, for `steps` steps."""

    def loss_after(self, steps: int) -> float:
        """Returns a fresh model's mean loss on `CHECKED_EXAMPLES` examples, after `steps` steps."""


CHECKED_EXAMPLES = 10_000


@dataclass(frozen=True)
class Participant:
    """What a participant can do.

    Attributes:
        imports: by workload's name, the statements that are timed in a fresh interpreter.
        versions: package names and versions, for the report.
        trainer: makes the `Trainer` of a `Classification` or a `CensusTraining`.
        calls: by workload's name, a function that returns the call to time.
    """

    imports: dict[str, str]
    versions: dict[str, str]
    trainer: Callable[[Any], Trainer]
    calls: dict[str, Callable[[], Callable[[], object]]]


def wall_seconds(work: Callable[[], object]) -> float:
    """Returns the wall time of one call of `work`."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def time_training(trainer: Trainer, warm_steps: int, steps: int) -> dict[str, float]:
    """Times steady-state training.

    `seconds` is the difference between a run of `warm_steps + steps` and one of `warm_steps`, both
    from nothing, so that what a run costs once (graph, compilation, first steps) falls out. The
    caller has trained once before: what a *process* costs once would otherwise fall into the
    shorter run only, and flatter whoever has most of it.
    """
    short = wall_seconds(lambda: trainer.train(warm_steps))
    long = wall_seconds(lambda: trainer.train(warm_steps + steps))
    return {"seconds": long - short, "warm_seconds": short}


def seconds_per_call(call: Callable[[], object], calls: int, block: int) -> float:
    """Returns the median over blocks of `block` calls of the mean time of a call."""

    def run_block() -> None:
        for _ in range(block):
            call()

    run_block()
    blocks = max(1, calls // block)
    return statistics.median(wall_seconds(run_block) for _ in range(blocks)) / block


def seconds_per_import(statements: str, imports: int) -> float:
    """Returns the median time of `statements` in so many fresh interpreters, and one before."""
    program = f"import time; t = time.perf_counter(); {statements}; print(time.perf_counter() - t)"
    times = [
        float(
            subprocess.run(  # noqa: S603 - this interpreter, our own program
                [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
            ).stdout
        )
        for _ in range(imports + 1)
    ]
    return statistics.median(times[1:])


def measure(
    participant: Participant, workload: Workload, units: int, check: bool
) -> dict[str, float]:
    """Measures `units` units of `workload`; returns the figures of the JSON line."""
    if isinstance(workload, (Classification, CensusTraining)):
        trainer = participant.trainer(workload)
        loss = {}
        if check:
            loss["loss"] = trainer.loss_after(workload.warm_steps)
        else:
            trainer.train(workload.warm_steps)
        return time_training(trainer, workload.warm_steps, units) | loss
    if workload.unit == "import":
        return {"seconds": units * seconds_per_import(participant.imports[workload.name], units)}
    call = participant.calls[workload.name]()
    return {"seconds": units * seconds_per_call(call, units, workload.granule)}


def answer(participant: Participant, arguments: list[str] | None = None) -> None:
    """Runs the workload that the command line names and prints the JSON line."""
    parser = argparse.ArgumentParser(description="Measures one participant on one workload.")
    parser.add_argument("workload", choices=sorted(WORKLOADS))
    parser.add_argument("--units", type=int, help="steps, calls or imports to measure")
    parser.add_argument("--check", action="store_true", help="report the loss after the warm steps")
    options = parser.parse_args(arguments)
    workload = WORKLOADS[options.workload]
    units = options.units or workload.trial
    result = measure(participant, workload, units, options.check)
    versions = {"python": platform.python_version()} | participant.versions
    print(json.dumps(result | {"units": units, "versions": versions}))
