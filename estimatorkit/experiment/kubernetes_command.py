"""`estimatorkit k8s`: an experiment as a container image and Kubernetes manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_KINDS = ("tfjob", "trainjob", "rayjob")


@click.command("k8s")
@click.argument("config", metavar="CONFIG")
@click.argument("changes", metavar="[KEY=VALUE]...", nargs=-1)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(_KINDS),
    help="The kind of job (repeatable); by default all applicable ones.",
)
@click.option("--workers", type=click.IntRange(1), help="Number of workers, including the chief.")
@click.option("--ps", default=0, type=click.IntRange(0), help="Number of parameter servers.")
@click.option(
    "--evaluator/--no-evaluator",
    default=None,
    help="Add an evaluator; the default if there are several tasks.",
)
@click.option("--image", metavar="NAME", help="The image, as registry/name:tag; by default NAME:1.")
@click.option("--namespace", metavar="NAME", help="The namespace; by default kubectl's.")
@click.option("--name", metavar="NAME", help="Name of the job; by default that of the experiment.")
@click.option("--cpu", default="2", show_default=True, metavar="CORES", help="CPUs per task.")
@click.option("--memory", default="4Gi", show_default=True, metavar="SIZE", help="Memory per task.")
@click.option(
    "--gpus", default=0, type=click.IntRange(0), help="GPUs per task; none for parameter servers."
)
@click.option(
    "--model-dir", metavar="FOLDER", help="The model folder; by default /shared/runs/NAME."
)
@click.option(
    "--claim",
    metavar="NAME",
    help="An existing ReadWriteMany claim for /shared; by default one is created.",
)
@click.option(
    "--storage",
    default="10Gi",
    show_default=True,
    metavar="SIZE",
    help="Size of the created claim.",
)
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="The output folder; by default k8s/NAME.",
)
@click.option("--dry-run", is_flag=True, help="Print the files instead of writing them.")
def k8s(
    config: str,
    changes: tuple[str, ...],
    kinds: tuple[str, ...],
    workers: int | None,
    ps: int,
    evaluator: bool | None,
    image: str | None,
    name: str | None,
    gpus: int,
    model_dir: str | None,
    output: Path | None,
    dry_run: bool,
    **options: Any,
) -> None:
    """Write a Dockerfile and manifests that run an experiment on Kubernetes.

    For Kubeflow's Training Operator (tfjob: parameter servers, TF_CONFIG), Kubeflow's Trainer
    (trainjob: synchronous training) and KubeRay (rayjob). Nothing is sent anywhere.

    \b
    Example:
      estimatorkit k8s people.yaml --workers 3 --ps 2 --image registry.example.com/people:1
    """
    from estimatorkit.experiment.kubernetes.files import commands, files_of
    from estimatorkit.experiment.kubernetes.image import image_of
    from estimatorkit.experiment.kubernetes.job import SHARED, Job, dns_name
    from estimatorkit.experiment.kubernetes.manifests import RAYJOB, TRAINJOB
    from estimatorkit.experiment.load import load_experiment

    if ps and workers is None:
        raise click.UsageError(
            f"--ps {ps} without --workers: give the number of workers, including the chief"
        )
    count = workers or 1
    alone = [given for given, on in ((f"--ps {ps}", ps), ("--evaluator", evaluator)) if on]
    if alone and TRAINJOB in kinds:
        raise click.UsageError(f"a TrainJob has identical workers only; remove {alone[0]}")
    fitting = kinds or [kind for kind in _KINDS if kind != TRAINJOB or not alone]
    asked = [kind for kind in _KINDS if kind in fitting]
    if not kinds and alone:
        click.echo(
            f"note: no trainjob.yaml, because a TrainJob does not support {alone[0]}", err=True
        )
    experiment = load_experiment(config, changes)
    if experiment.train.steps is not None:
        steps = experiment.train.steps
        click.echo(
            f"note: train.steps counts anew when a task is started again; train.steps=null"
            f" train.max_steps={steps} counts all runs together",
            err=True,
        )
    name = name if name is not None else dns_name(experiment.name)
    content = image_of(experiment, config, changes, RAYJOB in asked, gpus)
    job = Job(
        name=name,
        image=image if image is not None else f"{name}:1",
        config=content.config_path,
        changes=changes,
        model_dir=model_dir if model_dir is not None else f"{SHARED}/runs/{name}",
        workers=count,
        ps=ps,
        evaluator=count + ps > 1 if evaluator is None else evaluator,
        gpus=gpus,
        **options,
    )
    folder = output or Path("k8s", name)
    files = files_of(job, content, asked, folder)
    if dry_run:
        for file, text in files.items():
            click.echo(f"==> {folder / file} <==\n{text}")
        return
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    click.echo(f"{folder} has {', '.join(files)}.\nNext:")
    for line in commands(job, content, asked[0], folder):
        click.echo(f"  {line}")
