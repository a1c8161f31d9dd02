"""`estimatorkit compare`: runs side by side."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from estimatorkit.experiment.command import Failure


@click.command()
@click.argument(
    "folders", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--metric", metavar="NAME", help="Order by this metric, not by that of most runs.")
@click.option(
    "--html",
    "output",
    metavar="FILE.html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with all metrics and learning curves, too.",
)
def compare(folders: tuple[Path, ...], metric: str | None, output: Path | None) -> None:
    """Compare runs: the settings that differ, metrics and learning curves.

    RUN is the folder of a trained model; other files and folders are left out.

    \b
    Example:
      estimatorkit compare runs/* --html compare.html
    """
    from estimatorkit.experiment import compare as comparison

    runs = comparison.runs_in(folders)
    by = comparison.judge(runs, metric)
    runs = comparison.ordered(runs, by)
    width = shutil.get_terminal_size((100, 24)).columns
    click.echo("\n".join(comparison.text_lines(runs, by, width)))
    if output is None:
        return
    try:
        comparison.write_page(runs, by, output)
    except ImportError as error:  # matplotlib is an extra
        raise Failure(str(error), 1) from error
    click.echo(f"The page is in {output}.")
