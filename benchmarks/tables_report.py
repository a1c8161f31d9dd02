"""The results of `tables.py` in a file, and the tables made of them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OWN = "estimatorkit "
LINEAR = "linear"
LOWEST = -1.0
"""No normalized score counts for less: a diverged network would outweigh the other tables."""
LEAST = 0.01
"""What the best method must gain on the linear one: less is noise of the test rows, and normalized
scores would magnify it."""


class Results:
    """Rows in a file of JSON lines; of two rows of one fit, the later counts.

    A row has `method`, `table`, `seed`, `day`, and either `failed` (a message) or `metric`,
    `score`, `seconds`, `cpu_seconds` and `versions`; ours also `commit`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[tuple[str, str, int], dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._hold(json.loads(line))

    def _hold(self, row: dict[str, Any]) -> None:
        self.rows[row["method"], row["table"], row["seed"]] = row

    def add(self, row: dict[str, Any]) -> None:
        """Appends a row."""
        self._hold(row)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def fits(self, method: str | None = None, table: str | None = None) -> Iterator[dict[str, Any]]:
        """The rows of a method, of a table."""
        for row in self.rows.values():
            if method in (None, row["method"]) and table in (None, row["table"]):
                yield row

    def methods(self) -> list[str]:
        """The methods in the order in which they came, ours last."""
        return sorted({row["method"]: 0 for row in self.fits()}, key=lambda each: OWN in each)

    def tables(self) -> list[str]:
        """The tables in the order in which they came."""
        return list({row["table"]: 0 for row in self.fits()})

    def score(self, method: str, table: str) -> float | None:
        """The mean over the seeds that did not fail; None if there is none."""
        scores = [row["score"] for row in self.fits(method, table) if "score" in row]
        return statistics.mean(scores) if scores else None


@dataclass(frozen=True)
class Standing:
    """A method among those that were asked for the same table.

    Attributes:
        rank: from 1; equals share the mean of their ranks, and failures share the last ones.
        normalized: 0 is the linear model, or a failure, 1 the best method; None where the best
            gains less than `LEAST`, or the linear model is absent.
        best: whether no method has a higher score.
    """

    rank: float
    normalized: float | None
    best: bool


def standings(scores: dict[str, float | None]) -> dict[str, Standing]:
    """How the methods of one table stand, by their scores; None: failed."""
    compared = {name: float("-inf") if each is None else each for name, each in scores.items()}
    highest = max(compared.values())
    base = scores.get(LINEAR)
    found = {}
    for name, own in compared.items():
        above = sum(each > own for each in compared.values())
        equal = sum(each == own for each in compared.values())
        normalized = None
        if base is not None and highest - base >= LEAST:
            given = scores[name]
            normalized = 0.0 if given is None else (given - base) / (highest - base)
            normalized = max(LOWEST, normalized)
        succeeded = scores[name] is not None
        found[name] = Standing(above + (equal + 1) / 2, normalized, succeeded and own == highest)
    return found


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table; the first line is its head."""
    whole = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in whole)


def summary(results: Results) -> str:
    """Means over the tables, a line for each method, the best mean rank first."""
    of_tables = {table: standings(asked(results, table)) for table in results.tables()}
    lines = []
    for method in results.methods():
        own = [each[method] for each in of_tables.values() if method in each]
        scaled = [each.normalized for each in own if each.normalized is not None]
        done = [row for row in results.fits(method) if "score" in row]
        rank = statistics.mean(each.rank for each in own)
        cells = [
            method,
            str(len(own)),
            f"{rank:.2f}",
            f"{statistics.mean(scaled):.3f}" if scaled else "",
            str(sum(each.best for each in own)),
            str(sum("failed" in row for row in results.fits(method))),
            *(
                f"{statistics.median(row[key] for row in done):.1f}" if done else ""
                for key in TIMES
            ),
            versions(results, method),
        ]
        lines.append((rank, cells))
    head = "method,tables,mean rank,mean normalized score,wins,failures,median seconds a fit,"
    head += "median processor seconds,versions"
    return markdown([head.split(","), *(cells for _, cells in sorted(lines))])


TIMES = ("seconds", "cpu_seconds")


def versions(results: Results, method: str) -> str:
    """The versions that a method was run with."""
    found: dict[str, None] = {}
    for row in results.fits(method):
        found |= {f"{name} {each}": None for name, each in row.get("versions", {}).items()}
        if "commit" in row:
            found[f"commit {row['commit']}"] = None
    return ", ".join(found)


def asked(results: Results, table: str) -> dict[str, float | None]:
    """The scores of the methods that were run on a table."""
    return {
        method: results.score(method, table)
        for method in results.methods()
        if any(results.fits(method, table))
    }


def cell(results: Results, method: str, table: str, best: bool) -> str:
    """A mean score and, of several seeds, its deviation."""
    rows = list(results.fits(method, table))
    if not rows:
        return ""
    scores = [row["score"] for row in rows if "score" in row]
    if not scores:
        return "failed"
    shown = f"{statistics.mean(scores):.3f}"
    shown = f"**{shown}**" if best else shown
    return f"{shown} ± {statistics.stdev(scores):.3f}" if len(scores) > 1 else shown


def by_table(results: Results) -> str:
    """The scores, a line for each table."""
    methods = results.methods()
    lines = [["table", "metric", *methods]]
    for table in results.tables():
        of_table = standings(asked(results, table))
        metric = next((row["metric"] for row in results.fits(None, table) if "metric" in row), "")
        best = {name for name, each in of_table.items() if each.best}
        cells = [cell(results, name, table, name in best) for name in methods]
        lines.append([table, metric, *cells])
    return markdown(lines)


def report(results: Results) -> str:
    """All tables, below a heading."""
    days = sorted({row["day"] for row in results.fits()})
    seeds = sorted({row["seed"] for row in results.fits()})
    failures = [
        f"* {row['method']}, {row['table']}, seed {row['seed']}: {row['failed']}"
        for row in results.fits()
        if "failed" in row
    ]
    between = " to ".join(sorted({days[0], days[-1]}))
    parts = [
        "### Default models on tables, by `benchmarks/tables.py`: the best of each table in bold",
        f"Fits of {between}; seeds {', '.join(map(str, seeds))}. A failure has the last rank and "
        f"the normalized score 0; no normalized score counts for less than {LOWEST:g}, and none "
        f"where the best method gains less than {LEAST:g} on the linear one.",
        summary(results),
        by_table(results),
        *(["Failures:", "\n".join(failures)] if failures else []),
    ]
    return "\n\n".join(parts)
