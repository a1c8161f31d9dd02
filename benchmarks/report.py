"""Tables of what was measured, the machine they were measured on, and the file that keeps them."""

from __future__ import annotations

import datetime
import os
import platform
import re
import shutil
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.workloads import Classification, Workload

if TYPE_CHECKING:
    from benchmarks.driver import Record

OWN = "estimatorkit"


def processor() -> str:
    """Returns the CPU's model name, from Linux's own table where there is one."""
    table_of_processors = Path("/proc/cpuinfo")
    if table_of_processors.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", table_of_processors.read_text(), re.MULTILINE)
        if found:
            return found.group(1)
    return platform.processor() or platform.machine()


def commit() -> str:
    """Returns the short name of the commit that is checked out, "unknown" outside a checkout."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    done = subprocess.run(  # noqa: S603 - git, with constant arguments
        [git, "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def load() -> float:
    """Returns how many processes wanted a core in the last minute, 0 where that is unknown."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def machine() -> str:
    """Returns the line that says when, on what, beside how much other work, and of which commit."""
    today = datetime.date.today().isoformat()
    busy = f"load {load():.1f} at the start"
    return f"{today}, {processor()}, {os.cpu_count()} cores, {busy}, commit {commit()}"


def duration(seconds: float) -> str:
    """Returns a time in the unit in which it is easiest to read."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def row(workload: Workload, name: str, record: Record, own: float | None) -> list[str]:
    """Returns one participant's cells."""
    if not record.seconds:
        return [name, *["-"] * (7 if isinstance(workload, Classification) else 4)]
    median = statistics.median(record.seconds)
    cells = [
        name,
        duration(median),
        f"{duration(min(record.seconds))} to {duration(max(record.seconds))}",
        "-" if own is None else f"{median / own:.2f}",
    ]
    if isinstance(workload, Classification):
        cells += [
            f"{1 / median:,.0f}",
            f"{workload.batch_size / median:,.0f}",
            "-" if record.loss is None else f"{record.loss:.3f}",
        ]
    versions = ", ".join(f"{package} {version}" for package, version in record.versions.items())
    return [*cells, versions]


def table(workload: Workload, records: Mapping[str, Record]) -> str:
    """Returns the workload's table, in Markdown, medians over the rounds."""
    head = ["participant", f"time per {workload.unit}", "rounds", f"time / {OWN}'s"]
    if isinstance(workload, Classification):
        head += ["steps/s", "examples/s", f"loss after {workload.warm_steps} steps"]
    head.append("versions")
    own_seconds = records[OWN].seconds if OWN in records else []
    own = statistics.median(own_seconds) if own_seconds else None
    rows = [row(workload, name, record, own) for name, record in records.items()]
    lines = [head, ["---"] * len(head), *rows]
    body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"### {workload.name}: {workload.about}\n\n{body}"


def keep(path: Path, where: str, parts: Sequence[str]) -> None:
    """Writes tables into the file, in place of older ones of the same name, which go to `history`.

    Args:
        path: the Markdown file, made when absent; `history` is the folder beside it.
        where: the line of `machine`.
        parts: the tables, each below a heading: '### name' or '### name: what is measured'.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else "# Results\n"
    heading, *sections = re.split(r"^(?=### )", text, flags=re.MULTILINE)
    found = {_name(section): section for section in sections}
    for part in parts:
        title, _, body = part.partition("\n")
        older = found.get(_name(part))
        found[_name(part)] = f"{title}\n\n{where}.\n\n{body.strip()}\n\n"
        if older is not None:
            _append(path.parent / "history" / f"{_slug(_name(part))}.md", older)
    whole = "\n\n".join(each.rstrip() for each in (heading, *found.values()))
    path.write_text(f"{whole}\n", encoding="utf-8")


def _name(section: str) -> str:
    return section.removeprefix("### ").splitlines()[0].partition(":")[0].strip()


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _append(path: Path, section: str) -> None:
    """Adds a section to a file of older tables, newest first."""
    path.parent.mkdir(exist_ok=True)
    older = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text((section.rstrip() + "\n\n" + older).rstrip() + "\n", encoding="utf-8")
