"""Runs whole programs in fresh processes beside TensorFlow 2.15: time, processor time, memory.

    PYTHONPATH=. python benchmarks/cold.py [--only text_cnn ...] [--rounds 3] [--busy 2] [--write]

A program of `programs` is run as it stands; for TensorFlow its import line is changed. A round is
TensorFlow, then estimatorkit with an empty compilation cache (the first start), and once more with
what that has left (the second start). Times are those of the whole process, from its start to its
end, with its children; the figures are medians over the rounds. `--busy` keeps so many other
processes computing beside all of them.
"""

from __future__ import annotations

import argparse
import compileall
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import estimatorkit
from benchmarks.driver import ESTIMATORKIT, TENSORFLOW, Entrant, FailedRunError
from benchmarks.report import keep, machine

PROGRAMS = Path(__file__).parent / "programs"
IMPORT = "import estimatorkit.compat.v1 as tf\n"
TENSORFLOW_IMPORT = "import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()\n"
MEMORY = Path("/dev/shm")  # noqa: S108
"""For temporary files: to write 3,000 pictures on a disk takes 0.1 to 3 s, at any moment."""

HEAD = (
    *("program", "tensorflow", "first start", "second start"),
    *("tensorflow / first", "tensorflow / second", "figures"),
)


@dataclass(frozen=True)
class Use:
    """What a process has used.

    Attributes:
        wall: seconds by the clock.
        processor: seconds of all cores.
        memory: the most bytes that it, or one of its children, has held.
        figures: the lines 'figure NAME VALUE' that it printed, without that first word.
    """

    wall: float
    processor: float
    memory: int
    figures: tuple[str, ...]

    @property
    def figure(self) -> str:
        """The last figure that it printed."""
        return self.figures[-1]

    @staticmethod
    def median(rounds: Sequence[Use]) -> Use:
        """Returns the medians over rounds."""
        return Use(
            statistics.median(each.wall for each in rounds),
            statistics.median(each.processor for each in rounds),
            int(statistics.median(each.memory for each in rounds)),
            rounds[-1].figures,
        )

    def __str__(self) -> str:
        return f"{self.wall:.1f} s ({self.processor:.1f} s, {self.memory / 1e6:,.0f} MB)"


def names() -> list[str]:
    """Returns the names of the programs: of the files that import the package."""
    return sorted(path.stem for path in PROGRAMS.glob("*.py") if IMPORT in path.read_text("utf-8"))


def use_of(entrant: Entrant, path: Path, cache: str) -> Use:
    """Runs a program to its end.

    Raises:
        FailedRunError: it did not succeed, or printed no figure.
    """
    environment = entrant.whole_environment() | {"ESTIMATORKIT_COMPILATION_CACHE": cache}
    paths = filter(None, (str(PROGRAMS), environment.get("PYTHONPATH")))
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    if MEMORY.is_dir():
        environment["TMPDIR"] = str(MEMORY)
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
        started = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603 - a program beside this file
            [str(entrant.python()), str(path)], stdout=printed, stderr=errors, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        errors.seek(0)
        figures = tuple(
            line.removeprefix("figure ")
            for line in printed.read().splitlines()
            if line.startswith("figure ")
        )
        if process.returncode or not figures:
            raise FailedRunError(f"{path.name}: {errors.read()[-2000:] or 'no figure'}")
    return Use(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, figures)


def for_tensorflow(path: Path, folder: str) -> Path:
    """Writes a program into a folder with TensorFlow's import line, and returns where."""
    written = Path(folder, path.name)
    written.write_text(path.read_text("utf-8").replace(IMPORT, TENSORFLOW_IMPORT), "utf-8")
    return written


def geometric_mean(name: str, ratios: Sequence[float]) -> str:
    """Returns the line that sums up a column of ratios."""
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    return f"{name}: geometric mean {mean:.3g}, {sum(each < 1 for each in ratios)} below 1."


def measure(name: str, rounds: int) -> list[Use]:
    """Returns what a program uses: TensorFlow, estimatorkit's first start, its second."""
    path = PROGRAMS / f"{name}.py"
    used: list[list[Use]] = [[], [], []]
    with tempfile.TemporaryDirectory() as folder:
        theirs = for_tensorflow(path, folder)
        for number in range(rounds):
            cache = str(Path(folder, f"cache{number}"))
            used[0].append(use_of(TENSORFLOW, theirs, cache))
            used[1].append(use_of(ESTIMATORKIT, path, cache))
            used[2].append(use_of(ESTIMATORKIT, path, cache))
    return [Use.median(each) for each in used]


@contextmanager
def busy(count: int) -> Iterator[None]:
    """A context manager in which other processes compute without end."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the programs, prints the table, and keeps it where asked for.

    Returns:
        The exit status: 1 if a program failed.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=names(), help="may be repeated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside them")
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
    ratios: list[list[float]] = [[], []]
    failed = 0
    for name in options.only or names():
        try:
            with busy(options.busy):
                theirs, first, second = measure(name, options.rounds)
        except FailedRunError as error:
            print(error, file=sys.stderr)
            failed += 1
            continue
        cells = [name, *map(str, (theirs, first, second))]
        for into, ours in zip(ratios, (first, second), strict=True):
            into.append(theirs.wall / ours.wall)
            cells.append(f"{into[-1]:.2f}")
        cells.append(f"{theirs.figure}; {first.figure}")
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    for start, found in zip(("first", "second"), ratios, strict=True):
        if found:
            lines.append(f"\n{geometric_mean(f'{start} start', found)}")
            print(lines[-1])
    if options.write:
        beside = f" beside {options.busy} busy processes" if options.busy else ""
        title = (
            f"### Whole programs{beside}: seconds (of all cores, peak memory), "
            f"{options.rounds} rounds, by `benchmarks/cold.py`"
        )
        body = "\n".join([title, "", *lines])
        keep(Path(__file__).parent / "RESULTS.md", where, [body])
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
