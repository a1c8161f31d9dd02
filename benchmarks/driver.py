"""Runs the participants side by side: one process each a round, in turn, A B C A B C.

Round 0 calibrates: it finds how many units last `--seconds`, reports the loss, and its times are
thrown away. The figure of a participant is the median over the rounds that follow. The
participants' side is `participants/protocol.py`, the report `report.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.report import keep, load, machine, table
from benchmarks.workloads import WORKLOADS, Workload

ROOT = Path(__file__).resolve().parent.parent


class FailedRunError(Exception):
    """A participant's process ended with an error; the message is the end of what it wrote."""


@dataclass(frozen=True)
class Entrant:
    """A participant as the driver starts it.

    Attributes:
        name: as in `Workload.participants`.
        module: run with `python -m`.
        variable: the environment variable that gives its interpreter; none: this interpreter.
        packages: what that interpreter's environment must hold.
        environment: variables set for it.
        folder: the checkout that it runs in.
    """

    name: str
    module: str
    variable: str | None = None
    packages: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    folder: Path = ROOT

    def python(self) -> str | None:
        """Returns the interpreter, or None when it is not given."""
        return os.environ.get(self.variable) if self.variable else sys.executable

    def how_to_get(self) -> str:
        """Returns what to type so that the participant takes part."""
        return (
            f"{self.name} is skipped; to include it:\n"
            f"  python -m venv DIR && DIR/bin/pip install {self.packages}\n"
            f"  export {self.variable}=DIR/bin/python"
        )

    def whole_environment(self) -> dict[str, str]:
        """Returns the environment of its process."""
        # The peers' wheels have no accelerator: everybody is measured on the CPU.
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
        environment = os.environ | quiet | self.environment
        if self.variable:
            environment.pop("PYTHONPATH", None)  # it may name packages of this interpreter's Python
        return environment

    def run(self, *arguments: str, limit: float | None = None) -> dict[str, object]:
        """Runs one process, for at most `limit` seconds, and returns its JSON line.

        Raises:
            FailedRunError: the process did not succeed.
        """
        try:
            done = subprocess.run(  # noqa: S603 - an interpreter that the user named
                [str(self.python()), "-m", self.module, *arguments],
                cwd=self.folder,
                env=self.whole_environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=limit,
            )
        except subprocess.TimeoutExpired as error:
            raise FailedRunError(f"took more than {limit:g} seconds") from error
        if done.returncode:
            raise FailedRunError("\n".join(done.stderr.strip().splitlines()[-4:]))
        result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
        return result


_TORCH = ("benchmarks.participants.pytorch", "ESTIMATORKIT_BENCH_TORCH", "torch==2.13.0 numpy")
_OURS = "benchmarks.participants.estimatorkit_estimator"
BASELINE = "estimatorkit of --baseline"
TENSORFLOW = Entrant(
    "tensorflow",
    "benchmarks.participants.tensorflow_estimator",
    "ESTIMATORKIT_BENCH_TENSORFLOW",
    "tensorflow-cpu==2.15.1  # Python 3.9 to 3.11",
)
ESTIMATORKIT = Entrant("estimatorkit", _OURS)
ENTRANTS = (
    TENSORFLOW,
    Entrant(
        "keras 3",
        "benchmarks.participants.keras3",
        "ESTIMATORKIT_BENCH_KERAS",
        "'keras>=3.10' jax numpy",
    ),
    Entrant("pytorch", *_TORCH),
    Entrant("pytorch compiled", *_TORCH, {"ESTIMATORKIT_BENCH_TORCH_COMPILE": "1"}),
    ESTIMATORKIT,
)


@dataclass
class Record:
    """What was measured of one participant on one workload.

    Attributes:
        units: units a round.
        seconds: seconds a unit, one for each round.
        versions: package names and versions.
        loss: the loss after the warm steps, of a trainer.
    """

    units: int
    versions: dict[str, str]
    loss: float | None
    seconds: list[float] = field(default_factory=list)


def calibrate(entrant: Entrant, workload: Workload, seconds: float) -> Record:
    """Runs round 0 and returns a record without figures.

    The units to measure last about `seconds`, and no less than what a trainer takes for its shorter
    run: the figure is a difference of two runs, and what differs from run to run is mostly the
    start (15 s of graph constants on one machine, for TensorFlow and 188 MB of pixels).
    """
    result = entrant.run(workload.name, "--check")
    trial = float(result["seconds"])  # type: ignore[arg-type]
    warm = float(result.get("warm_seconds", 0.0))  # type: ignore[arg-type]
    # The trial's own difference may drown in noise: a twentieth of the run is the least believed.
    per_unit = max(trial, (trial + warm) / 20) / workload.trial
    return Record(
        units=workload.units_lasting(max(seconds, warm), per_unit),
        versions=result["versions"],  # type: ignore[arg-type]
        loss=result.get("loss"),  # type: ignore[arg-type]
    )


def compare(
    workload: Workload, entrants: Sequence[Entrant], rounds: int, seconds: float
) -> tuple[dict[str, Record], list[str]]:
    """Measures every entrant on one workload.

    Returns:
        The records by participant, and a line for each run that failed.
    """
    records: dict[str, Record] = {}
    failures: list[str] = []
    for number in range(rounds + 1):
        for entrant in entrants:
            if entrant.name not in (*workload.participants, BASELINE) or (
                number and entrant.name not in records
            ):
                continue
            print(f"{workload.name}: round {number} of {rounds}, {entrant.name}", file=sys.stderr)
            try:
                if number == 0:
                    records[entrant.name] = calibrate(entrant, workload, seconds)
                    continue
                record = records[entrant.name]
                result = entrant.run(workload.name, "--units", str(record.units))
            except FailedRunError as error:
                failures.append(f"{workload.name}, {entrant.name}, round {number}: {error}")
                continue
            taken = float(result["seconds"])  # type: ignore[arg-type]
            if taken > 0:
                record.seconds.append(taken / record.units)
            else:
                failures.append(
                    f"{workload.name}, {entrant.name}, round {number}: "
                    f"{record.units} more steps took no longer than none: the noise is larger than "
                    "the figure; give more --seconds or a quieter machine"
                )
    return records, failures


def main(arguments: list[str] | None = None) -> int:
    """Runs the benchmark; returns 1 when a run failed, else 0."""
    parser = argparse.ArgumentParser(
        description="Measures estimatorkit beside TensorFlow's Estimator and PyTorch, on the CPU."
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=list(WORKLOADS),
        metavar="NAME",
        help=f"a workload ({', '.join(WORKLOADS)}); may be repeated",
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds after round 0 (5)")
    parser.add_argument("--seconds", type=float, default=4.0, help="time measured a round (4)")
    parser.add_argument("--quick", action="store_true", help="2 rounds of 1 second: does it work?")
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="FOLDER",
        help="compare with another checkout of estimatorkit only, in place of the peers",
    )
    options = parser.parse_args(arguments)
    if options.quick and options.write:
        parser.error("--quick figures are too rough to keep: leave out one of --quick and --write")
    rounds, seconds = (2, 1.0) if options.quick else (options.rounds, options.seconds)

    candidates = list(ENTRANTS)
    if options.baseline:
        candidates = [ESTIMATORKIT, Entrant(BASELINE, _OURS, folder=options.baseline)]
    entrants = [entrant for entrant in candidates if entrant.python()]
    absent = {entrant.variable: entrant for entrant in reversed(candidates) if not entrant.python()}
    for entrant in absent.values():
        print(entrant.how_to_get(), file=sys.stderr)

    where = machine()
    if load() > 0.5:
        print(
            f"The machine is busy (load {load():.1f}): thread pools that spin, PyTorch's above "
            "all, suffer many times over from it, so that ratios will be wrong, not only noisy.",
            file=sys.stderr,
        )
    parts: list[str] = []
    failures: list[str] = []
    for name in options.only or WORKLOADS:
        records, failed = compare(WORKLOADS[name], entrants, rounds, seconds)
        parts.append(table(WORKLOADS[name], records))
        failures += failed
        print(f"\n{parts[-1]}\n")
    print(where)
    if failures:
        print("\nFailed:", *failures, sep="\n", file=sys.stderr)
    if options.write:
        keep(ROOT / "benchmarks" / "RESULTS.md", where, parts)
    return 1 if failures else 0
