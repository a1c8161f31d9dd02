"""How well default models predict: 18 tables, beside forests and networks of other libraries.

    export ESTIMATORKIT_DATA_DIR=FOLDER                  # with tables/load_tables.py and its tables
    export ESTIMATORKIT_BENCH_TABLES=DIR/bin/python      # with the peers' packages
    PYTHONPATH=. python benchmarks/tables.py --results FILE [--ours run,DNN] [--seeds 1,2,3]
    PYTHONPATH=. python benchmarks/tables.py --results FILE --summary [--write]

Every method gets the training rows (20,000 at most) and the validation rows of a table, fits with
its defaults (how it divides them is its affair), and predicts the test rows once, in a process of
its own, on two cores. Each result is a line of FILE as soon as it is there; what FILE has is not
run again. What a method cannot fit is recorded with its message.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.driver import ESTIMATORKIT, ROOT, Entrant, FailedRunError
from benchmarks.programs import tables_ours, tables_peers
from benchmarks.programs.tables_data import loader
from benchmarks.report import commit, keep, load, machine
from benchmarks.tables_report import OWN, Results, report

PEERS = Entrant(
    "the peers",
    "benchmarks.programs.tables_peers",
    "ESTIMATORKIT_BENCH_TABLES",
    "scikit-learn lightgbm xgboost catboost ydf pandas pyarrow  # RealMLP and TabM: pytabkit",
)
OURS = Entrant(ESTIMATORKIT.name, "benchmarks.programs.tables_ours")
SLOW = ("RealMLP", "TabM")


def fit(method: str, table: str, seed: int, limit: float) -> dict[str, Any]:
    """The row of one fit: its figures, or the message of its failure."""
    own = method.startswith(OWN)
    entrant, name = (OURS, method.removeprefix(OWN)) if own else (PEERS, method)
    row: dict[str, Any] = {"method": method, "table": table, "seed": seed}
    row["day"] = datetime.date.today().isoformat()
    if own:
        row["commit"] = commit()
    try:
        return row | entrant.run(name, table, str(seed), limit=limit)
    except FailedRunError as error:
        return row | {"failed": str(error)}


def run(results: Results, options: argparse.Namespace) -> None:
    """Fits what the results lack."""
    for seed in options.seeds:
        for table in options.tables:
            for method in options.methods + [f"{OWN}{name}" for name in options.ours]:
                if (method, table, seed) in results.rows and not options.again:
                    continue
                row = fit(method, table, seed, options.limit)
                results.add(row)
                shown = row.get("failed") or f"{row['score']:.4f} in {row['seconds']:.1f} s"
                print(f"{table}, {method}, seed {seed}: {shown}", file=sys.stderr, flush=True)


def words(given: str) -> list[str]:
    """The words between commas."""
    return [word for word in given.split(",") if word]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked."""
    fast = [name for name in tables_peers.METHODS if name not in SLOW]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=Path, required=True, help="JSON lines, one a fit")
    parser.add_argument(
        "--methods", type=words, help=f"peers, or an empty word for none ({','.join(fast)})"
    )
    parser.add_argument("--ours", type=words, default=["run"], help="`run`, DNN, Linear, ... (run)")
    parser.add_argument("--tables", type=words, help="all, unless given")
    parser.add_argument("--seeds", type=lambda given: [int(each) for each in words(given)])
    parser.add_argument("--limit", type=float, default=3600, help="seconds of a process (3600)")
    parser.add_argument("--again", action="store_true", help="also what the results have")
    parser.add_argument("--summary", action="store_true", help="run nothing")
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    options = parser.parse_args(arguments)
    if options.methods is None:
        options.methods = fast
    known = {"--methods": tables_peers.METHODS, "--tables": loader().SOURCES}
    for option, names in known.items():
        for name in vars(options)[option.removeprefix("--")] or ():
            if name not in names:
                parser.error(f"{option}: {name!r} is none of {', '.join(names)}")
    for name in options.ours:
        if name != tables_ours.COMMAND_LINE and not tables_ours.maker(name, "binary"):
            parser.error(f"--ours: there is no estimator {name}Classifier")
    options.tables = options.tables or list(loader().SOURCES)
    options.seeds = options.seeds or [1]
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 0."""
    options = parse(arguments)
    where = machine()
    results = Results(options.results)
    if not options.summary:
        if options.methods and not PEERS.python():
            print(PEERS.how_to_get(), file=sys.stderr)
            options.methods = []
        if load() > 0.5:
            print(f"The machine is busy (load {load():.1f}): times are too long.", file=sys.stderr)
        run(results, options)
    part = report(results)
    print(part)
    if options.write:
        keep(ROOT / "benchmarks" / "RESULTS.md", where, [part])
    return 0


if __name__ == "__main__":
    sys.exit(main())
