"""`estimatorkit migrate`: lists what a TensorFlow 1 script needs, and changes its imports."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from estimatorkit.storage.atomic_files import temporary_beside

if TYPE_CHECKING:
    from estimatorkit.compat.migrate import Examined, Finding


@click.command()
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option("--write", is_flag=True, help="Change the imports in the files.")
@click.pass_context
def migrate(ctx: click.Context, files: tuple[Path, ...], write: bool) -> None:
    """Report what TensorFlow 1 scripts need in order to run on estimatorkit.

    Lists, with line numbers, what is not supported and what behaves differently; with --write
    changes TensorFlow's imports to estimatorkit.compat.v1, and nothing else. A folder stands for
    the Python files in it. Scripts are not executed. Exit code 1: something is not supported.

    \b
    Example:
      estimatorkit migrate train.py models/
    """
    from estimatorkit.compat.migrate import examine

    scripts: list[Examined] = []
    for path in _scripts(files):
        source = path.read_bytes()
        examined = examine(source, str(path))
        scripts.append(examined)
        for line in _report(path, examined.findings, write):
            click.echo(line)
        if write and examined.migrated != source:
            _replace(path, examined.migrated)
            click.echo(f"{path}: imports changed")
        elif not examined.findings:
            click.echo(f"{path}: nothing to do")
    click.echo(_summary(scripts, write))
    if not all(each.is_supported for each in scripts):
        ctx.exit(1)


def _summary(scripts: list[Examined], written: bool) -> str:
    """How many scripts run, run with other imports, or do not; and what to do next."""
    supported = [each for each in scripts if each.is_supported]
    to_change = [each for each in supported if each.migrated != each.source and not written]
    counts = {
        "ready": len(supported) - len(to_change),
        "ready once the imports are changed": len(to_change),
        "with something that is not supported": len(scripts) - len(supported),
    }
    listed = ", ".join(f"{count} {words}" for words, count in counts.items() if count)
    told = f"{len(scripts)} file{'s' * (len(scripts) != 1)}: {listed or 'no Python files'}."
    if eager := sum(each.is_eager for each in scripts):
        told += (
            f"\n{eager} use{'s' * (eager == 1)} TensorFlow 2's eager execution: programs here "
            "build a graph and run it in a session, or train Estimators and Keras models."
        )
    if not written and any(each.migrated != each.source for each in scripts):
        told += "\n--write changes the imports as shown (->)."
    return told


def _scripts(files: tuple[Path, ...]) -> list[Path]:
    found: list[Path] = []
    for path in files:
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


_TITLES: dict[str, str] = {
    "syntax": "cannot be read",
    "unsupported": "not supported",
    "different": "differs",
}


def _report(path: Path, findings: tuple[Finding, ...], written: bool) -> list[str]:
    """One line per finding; a difference is listed once, with all its lines."""
    lines: dict[tuple[str, str, str], list[int]] = {}
    for each in findings:
        lines.setdefault((each.kind, each.name, each.text), []).append(each.line)
    told = []
    for (kind, name, text), where in lines.items():
        if kind == "import":
            told += [] if written else [f"{path}:{where[0]}: {name}  ->  {text}"]
            continue
        others = sorted(set(where) - {where[0]})
        more = f" (also on {', '.join(map(str, others))})" if others else ""
        named = f"{name}: " if name and not text.startswith(name) else ""
        told.append(f"{path}:{where[0]}: {_TITLES[kind]}: {named}{text}{more}")
    return told


def _replace(path: Path, content: bytes) -> None:
    """Replaces a file atomically, keeping its permissions."""
    path = path.resolve()  # keeps links
    with temporary_beside(path) as temporary:
        temporary.write_bytes(content)
        shutil.copymode(path, temporary)
        os.replace(temporary, path)
