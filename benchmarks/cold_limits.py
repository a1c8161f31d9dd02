"""How fast the programs of `cold.py` could be: their matrix products and convolutions, and no more.

    PYTHONPATH=. python benchmarks/cold.py > times.txt
    PYTHONPATH=. python benchmarks/cold_limits.py times.txt [--only gcn ...] [--write]

Linux's `perf` samples each program's second start: what falls into the kernels of YNNPACK, oneDNN,
Eigen and OpenBLAS, their packing included, are products and convolutions (of small ones, XLA emits
code of its own, which counts as the rest). These are shares of processor time: other work on the
machine does not matter, since seconds are those that `cold.py` has printed. The limit of a program
is an import, then its products on all cores.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cold import PROGRAMS, geometric_mean, names, use_of
from benchmarks.driver import ESTIMATORKIT, Entrant
from benchmarks.report import keep, machine

PRODUCTS = re.compile(
    r"ynn::(dot|transpose|pack|im2col|conv)|xnn_\w*gemm|dnnl::|gemm|gemv|gebp|[cC]ontraction"
    r"|\[JIT\].*\b(jit_|brgemm|bwd_|fwd_)"  # oneDNN names its code if it is asked to
)
IMPORT = """import estimatorkit.compat.v1 as tf
with tf.Session() as session:
    print("figure imports", session.run(tf.constant(1.0) + 1.0))
"""
HEAD = (
    *("program", "tensorflow", "second start", "its processor time", "products", "share"),
    *("tensorflow / second", "tensorflow / limit"),
)


@dataclass(frozen=True)
class Sampled(Entrant):
    """estimatorkit, sampled by `perf` into a file."""

    file: Path = Path()

    def python(self) -> str:
        """Returns a program that starts Python below `perf`."""
        script = self.file.with_suffix(".sh")
        record = f"perf record -q -F 499 -o {self.file}"
        script.write_text(f'#!/bin/sh\nexec {record} -- {sys.executable} "$@"\n', "utf-8")
        script.chmod(0o700)
        return str(script)


def share_of_products(file: Path) -> float:
    """Returns the share of the samples that matrix products and convolutions have."""
    command = ["perf", "report", "-i", str(file), "--sort", "dso,symbol", "-F", "sample,dso,symbol"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    found = [0, 0]
    for line in shown.splitlines():
        count, _, rest = line.strip().partition(" ")
        if count.isdecimal():
            found[bool(PRODUCTS.search(rest))] += int(count)
    return found[1] / sum(found)


def measure(path: Path, folder: Path) -> tuple[float, float]:
    """Returns the processor seconds of a program's second start, and the share of products."""
    use_of(ESTIMATORKIT, path, cache := str(folder / path.stem))
    before = set(Path(tempfile.gettempdir()).glob("perf-*.map"))
    sampled = Sampled(
        **{**vars(ESTIMATORKIT), "environment": {"ONEDNN_JIT_PROFILE": "2"}},
        file=folder / "samples",
    )
    used = use_of(sampled, path, cache)
    share = share_of_products(sampled.file)
    for each in set(Path(tempfile.gettempdir()).glob("perf-*.map")) - before:
        each.unlink(missing_ok=True)
    return used.processor, share


def times_in(file: Path) -> Iterator[tuple[str, float, float, float]]:
    """Yields programs, seconds of TensorFlow and of the second start, and its processor seconds."""
    for line in file.read_text("utf-8").splitlines():
        name, *cells = [each.strip() for each in line.strip("| ").split("|")]
        if name in names() and len(cells) > 2:
            theirs, ours = (re.findall(r"[\d.]+", cells[at]) for at in (0, 2))
            yield name, float(theirs[0]), float(ours[0]), float(ours[1])


def table(measured: Sequence[tuple[Any, ...]], imports: float) -> list[str]:
    """Returns the lines of the table.

    Args:
        measured: what `times_in` yields and `measure` returns, of each program.
        imports: the processor seconds of an import, measured beside them.
    """
    lines = [f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    imports *= statistics.median(cpu / sampled for _, _, _, cpu, sampled, _ in measured)
    ratios: list[list[float]] = [[], []]
    for name, theirs, ours, cpu, _, share in measured:
        limit = imports + share * cpu / (os.cpu_count() or 1)
        for into, mine in zip(ratios, (ours, limit), strict=True):
            into.append(theirs / mine)
        cells = [name, *(f"{each:.1f} s" for each in (theirs, ours, cpu))]
        cells += [f"{share * cpu:.2f} s", f"{share:.0%}", *(f"{own[-1]:.2f}" for own in ratios)]
        lines.append(f"| {' | '.join(cells)} |")
    for kind, found in zip(("second start", "limit"), ratios, strict=True):
        lines.append(f"\n{geometric_mean(kind, found)}")
    return [*lines, f"\nAn import takes {imports:.2f} s."]


def main(arguments: Sequence[str] | None = None) -> int:
    """Samples the programs, prints the table, and keeps it where asked for; returns 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("times", type=Path, help="what cold.py has printed")
    parser.add_argument("--only", action="append", choices=names(), help="may be repeated")
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    options = parser.parse_args(arguments)
    where = machine()
    measured = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        only_imports = folder / "imports.py"
        only_imports.write_text(IMPORT, "utf-8")
        imports = statistics.median(
            use_of(ESTIMATORKIT, only_imports, str(folder)).processor for _ in range(5)
        )
        for name, *times in times_in(options.times):
            if name not in (options.only or names()):
                continue
            print(name, file=sys.stderr)
            measured.append((name, *times, *measure(PROGRAMS / f"{name}.py", folder)))
    lines = table(measured, imports)
    lines.append(f"\nTimes: {options.times.read_text('utf-8').splitlines()[0].strip()}.")
    print(*lines, sep="\n")
    if options.write:
        title = "### Limits of whole programs, by `benchmarks/cold_limits.py`"
        keep(Path(__file__).parent / "RESULTS.md", where, ["\n".join([title, "", *lines])])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
