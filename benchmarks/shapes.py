"""Runs programs whose shapes change at each step beside TensorFlow 2.15: what waits for a compiler.

    PYTHONPATH=. python benchmarks/shapes.py [--only gcn ...] [--rounds 3] [--write]

A program of `programs/shapes` goes through the same shapes twice: in its first epoch each is new,
in its second none is. It starts from given weights, so that both packages must reach the same
figures. A round is TensorFlow, then estimatorkit with an empty compilation cache, each in a fresh
process. Times are those that the program took by the clock, without import, building of the graph
and initializers; memory is the most that the process has held. Both are medians over the rounds.
"""

from __future__ import annotations

import argparse
import compileall
import math
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import estimatorkit
from benchmarks.cold import PROGRAMS, Use, for_tensorflow, geometric_mean, use_of
from benchmarks.driver import ESTIMATORKIT, TENSORFLOW, FailedRunError
from benchmarks.report import keep, machine

FOLDER = PROGRAMS / "shapes"
EPOCHS = ("first", "second")
HEAD = (
    *("program", "tensorflow: first, second epoch", "estimatorkit: first, second epoch"),
    *("tensorflow / first", "tensorflow / second", "tensorflow, estimatorkit: MB", "figures"),
)


@dataclass(frozen=True)
class Result:
    """What a package took for a program.

    Attributes:
        seconds: of the first epoch, and of the second.
        memory: the most bytes held.
        figures: what the program has computed, by name.
    """

    seconds: tuple[float, float]
    memory: int
    figures: dict[str, float]

    @staticmethod
    def of(rounds: Sequence[Use]) -> Result:
        """Returns the medians over rounds, and the last round's figures."""
        found = [dict(line.split() for line in use.figures) for use in rounds]
        first, second = (f"{epoch}_epoch_seconds" for epoch in EPOCHS)
        return Result(
            (
                statistics.median(float(each.pop(first)) for each in found),
                statistics.median(float(each.pop(second)) for each in found),
            ),
            Use.median(rounds).memory,
            {name: float(value) for name, value in found[-1].items()},
        )

    def agrees(self, other: Result) -> bool:
        """Tells whether the figures are the same, but for a thousandth."""
        return self.figures.keys() == other.figures.keys() and all(
            math.isclose(value, other.figures[name], rel_tol=1e-3)
            for name, value in self.figures.items()
        )

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.6g}" for name, value in self.figures.items())


def names() -> list[str]:
    """Returns the names of the programs."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def measure(name: str, rounds: int) -> tuple[Result, Result]:
    """Returns the results of TensorFlow and of estimatorkit."""
    path = FOLDER / f"{name}.py"
    theirs: list[Use] = []
    ours: list[Use] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            cache = str(Path(folder, f"cache{number}"))
            theirs.append(use_of(TENSORFLOW, for_tensorflow(path, folder), cache))
            ours.append(use_of(ESTIMATORKIT, path, cache))
    return Result.of(theirs), Result.of(ours)


def cells(name: str, theirs: Result, ours: Result) -> list[str]:
    """Returns a program's row."""
    seconds = [", ".join(f"{each:.3f} s" for each in found.seconds) for found in (theirs, ours)]
    ratios = [f"{a / b:.3g}" for a, b in zip(theirs.seconds, ours.seconds, strict=True)]
    memory = f"{theirs.memory / 1e6:,.0f}, {ours.memory / 1e6:,.0f}"
    return [name, *seconds, *ratios, memory, f"{theirs}; {ours}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the programs, prints the table, and keeps it where asked for.

    Returns:
        The exit status: 1 if a program failed, or the packages' figures differ.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=names(), help="may be repeated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    options = parser.parse_args(arguments)
    if TENSORFLOW.python() is None:
        print(TENSORFLOW.how_to_get(), file=sys.stderr)
        return 2
    compileall.compile_dir(Path(estimatorkit.__file__).parent, quiet=1)  # as pip does on installing
    where = machine()
    print(where, "\n")
    lines = [f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    print(*lines, sep="\n", flush=True)
    ratios: list[tuple[float, ...]] = []
    failed = 0
    for name in options.only or names():
        try:
            theirs, ours = measure(name, options.rounds)
        except FailedRunError as error:
            print(error, file=sys.stderr)
            failed += 1
            continue
        if not theirs.agrees(ours):
            print(f"{name}: the packages do not agree: {theirs}; {ours}", file=sys.stderr)
            failed += 1
        ratios.append(tuple(a / b for a, b in zip(theirs.seconds, ours.seconds, strict=True)))
        lines.append(f"| {' | '.join(cells(name, theirs, ours))} |")
        print(lines[-1], flush=True)
    for epoch, found in zip(EPOCHS, zip(*ratios, strict=True), strict=False):
        lines.append(f"\n{geometric_mean(f'{epoch} epoch', found)}")
        print(lines[-1])
    if options.write:
        title = (
            f"### Programs whose shapes change: two epochs, {options.rounds} rounds, "
            "by `benchmarks/shapes.py`"
        )
        keep(Path(__file__).parent / "RESULTS.md", where, ["\n".join([title, "", *lines])])
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
