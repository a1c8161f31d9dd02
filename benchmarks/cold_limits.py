"""How fast the programs of `cold.py` could be: their matrix products and convolutions, and no more.

    PYTHONPATH=. python benchmarks/cold.py > times.txt
    PYTHONPATH=. python benchmarks/cold_limits.py times.txt [--only gcn ...] [--write]

Linux's `perf` samples each program's second start: what falls into the kernels of YNNPACK, oneDNN,
Eigen and OpenBLAS, their packing included, are products and convolutions (of small ones, XLA emits
code of its own, which counts as the rest). These are shares of processor time: other work on the
machine does not matter. The limit of a program is an import, then its products on all cores.
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

from benchmarks.cold import PROGRAMS, geometric_mean, names, use_of
from benchmarks.driver import ESTIMATORKIT, Entrant, FailedRunError
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
    *("program", "tensorflow", "second start", "processor time", "products", "share"),
    *("tensorflow / second", "tensorflow / limit"),
)
SAMPLES = "499"  # a second


@dataclass(frozen=True)
class Sampled(Entrant):
    """estimatorkit, sampled by `perf` into a file.

    Attributes:
        file: where the samples go.
    """

    file: Path = Path()

    def python(self) -> str:
        """Returns a program that starts Python below `perf`."""
        script = self.file.with_suffix(".sh")
        record = f"perf record -q -F {SAMPLES} -o {self.file}"
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
    cache = str(folder / path.stem)
    use_of(ESTIMATORKIT, path, cache)
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


def times_in(file: Path) -> Iterator[tuple[str, float, float]]:
    """Yields names of programs with the seconds of TensorFlow and of the second start."""
    for line in file.read_text("utf-8").splitlines():
        name, *cells = [each.strip() for each in line.strip("| ").split("|")]
        if name in names() and len(cells) > 2:
            yield name, *(float(cells[at].split()[0]) for at in (0, 2))


def main(arguments: Sequence[str] | None = None) -> int:
    """Samples the programs, prints the table, and keeps it where asked for.

    Returns:
        The exit status: 1 if a program failed.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("times", type=Path, help="what cold.py has printed")
    parser.add_argument("--only", action="append", choices=names(), help="may be repeated")
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    options = parser.parse_args(arguments)
    where = machine()
    lines = [f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    print(where, "\n", *lines, sep="\n", flush=True)
    ratios: list[list[float]] = [[], []]
    failed = 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        only_imports = folder / "imports.py"
        only_imports.write_text(IMPORT, "utf-8")
        imports = statistics.median(
            use_of(ESTIMATORKIT, only_imports, str(folder)).processor for _ in range(5)
        )
        for name, theirs, ours in times_in(options.times):
            if name not in (options.only or names()):
                continue
            try:
                seconds, share = measure(PROGRAMS / f"{name}.py", folder)
            except FailedRunError as error:
                print(error, file=sys.stderr)
                failed += 1
                continue
            limit = imports + share * seconds / (os.cpu_count() or 1)
            for into, mine in zip(ratios, (ours, limit), strict=True):
                into.append(theirs / mine)
            cells = [name, f"{theirs:.1f} s", f"{ours:.1f} s", f"{seconds:.1f} s"]
            cells += [f"{share * seconds:.2f} s", f"{share:.0%}"]
            cells += [f"{own[-1]:.2f}" for own in ratios]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    for kind, found in zip(("second start", "limit"), ratios, strict=True):
        lines.append(f"\n{geometric_mean(kind, found)}")
    of = options.times.read_text("utf-8").partition("\n")[0].strip()
    lines.append(f"\nAn import takes {imports:.2f} s. Times: {of}.")
    print(*lines[-3:], sep="\n")
    if options.write:
        title = "### Limits of whole programs, by `benchmarks/cold_limits.py`"
        keep(Path(__file__).parent / "RESULTS.md", where, ["\n".join([title, "", *lines])])
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
