"""`estimatorkit launch`: a cluster on this machine, by one command."""

from __future__ import annotations

import os

import click

from estimatorkit.distribute.launch.launchers import Launcher, LocalLauncher
from estimatorkit.distribute.launch.launching import Launch, tasks_of
from estimatorkit.distribute.tls import INSECURE


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--ps", default=0, type=click.IntRange(0), help="Number of parameter servers.")
@click.option("--workers", type=click.IntRange(1), help="Number of workers, including the chief.")
@click.option("--evaluator", is_flag=True, help="Also start an evaluator.")
@click.option(
    "--sync", type=click.IntRange(1), help="Number of processes of a synchronous training."
)
@click.option(
    "--restarts",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="How often to restart a process that a signal or exit code 138 ended.",
)
@click.option(
    "--grace",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Seconds that the others have to exit after the chief.",
)
@click.option(
    "--ray",
    "with_ray",
    is_flag=True,
    help="Start them by Ray: on the cluster at RAY_ADDRESS, or on a temporary local one.",
)
@click.option(
    "--cpus",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0),
    help="CPUs that Ray reserves for each process.",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Allow traffic between hosts without TLS (ESTIMATORKIT_INSECURE=1).",
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
    insecure: bool,
    command: tuple[str, ...],
) -> None:
    """Start a cluster, locally or by Ray: one process per task, each with its TF_CONFIG.

    Output lines are prefixed with the task's name; the exit code is the chief's.

    \b
    Example:
      estimatorkit launch --ps 2 --workers 3 --evaluator -- python program.py
    """
    if sync is not None and (ps or workers is not None):
        raise click.UsageError("--sync cannot be combined with --ps or --workers")
    if insecure:
        os.environ[INSECURE] = "1"
    count = sync if sync is not None else workers or 1
    tasks = tasks_of(ps, count, synchronous=sync is not None)
    launcher: Launcher = LocalLauncher()
    if with_ray:
        from estimatorkit.distribute.launch.ray_launcher import RayLauncher

        launcher = RayLauncher(cpus)
    ctx.exit(Launch(command, tasks, evaluator, restarts, grace, launcher=launcher).run())
