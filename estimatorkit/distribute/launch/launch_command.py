"""`estimatorkit launch`: a cluster on this machine, by one command."""

from __future__ import annotations

import click

from estimatorkit.distribute.launch.launchers import Launcher, LocalLauncher
from estimatorkit.distribute.launch.launching import Launch, tasks_of


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--ps", default=0, type=click.IntRange(0), help="How many parameter servers.")
@click.option("--workers", type=click.IntRange(1), help="How many compute, the chief among them.")
@click.option("--evaluator", is_flag=True, help="An evaluator beside them.")
@click.option("--sync", type=click.IntRange(1), help="So many equal processes, and nothing else.")
@click.option(
    "--restarts",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="How often a process is started again that a signal or exit code 138 ended.",
)
@click.option(
    "--grace",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Seconds that the others have to end after the chief.",
)
@click.option(
    "--ray",
    "with_ray",
    is_flag=True,
    help="Let Ray place them: the cluster of RAY_ADDRESS, or one on this machine for the launch.",
)
@click.option(
    "--cpus",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0),
    help="How many processors Ray keeps for each.",
)
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def launch(
    ctx: click.Context,
    ps: int,
    workers: int | None,
    evaluator: bool,
    sync: int | None,
    restarts: int,
    grace: float,
    with_ray: bool,
    cpus: float,
    command: tuple[str, ...],
) -> None:
    """Start a cluster, here or by Ray: one process a task, each with its TF_CONFIG.

    Lines come with the task's name before them; the exit code is the chief's. For example:

    estimatorkit launch --ps 2 --workers 3 --evaluator -- python program.py
    """
    if sync is not None and (ps or workers is not None):
        raise click.UsageError("--sync starts equal processes: give it without --ps and --workers")
    count = sync if sync is not None else workers or 1
    tasks = tasks_of(ps, count, synchronous=sync is not None)
    launcher: Launcher = LocalLauncher()
    if with_ray:
        from estimatorkit.distribute.launch.ray_launcher import RayLauncher

        launcher = RayLauncher(cpus)
    ctx.exit(Launch(command, tasks, evaluator, restarts, grace, launcher=launcher).run())
