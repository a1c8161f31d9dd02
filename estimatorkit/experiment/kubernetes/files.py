"""The files of an experiment on Kubernetes, and the commands that deploy them.

The secret's template does not end in `.yaml`, so that `kubectl apply --filename FOLDER` cannot
replace the real token by a known one.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from estimatorkit.experiment.kubernetes.image import Image
from estimatorkit.experiment.kubernetes.job import Job
from estimatorkit.experiment.kubernetes.manifests import (
    TOKEN_KEY,
    Manifest,
    common_manifests,
    job_manifest,
    secret_template,
)

COMMON = "common.yaml"
SECRET = "secret.yaml.template"  # noqa: S105 (a file's name)


def files_of(job: Job, image: Image, kinds: Sequence[str], folder: Path) -> dict[str, str]:
    """The texts of the files, by name.

    Args:
        kinds: the operators, as in `manifests`.
        folder: the destination of the files.
    """
    return {
        "Dockerfile": image.dockerfile(job.command),
        "Dockerfile.dockerignore": image.dockerignore(),
        SECRET: _text([secret_template(job)]),
        COMMON: _text(common_manifests(job, kinds)),
        **{f"{kind}.yaml": _text([job_manifest(kind, job)]) for kind in kinds},
        "README.md": _readme(job, image, kinds, folder),
    }


def commands(job: Job, image: Image, kind: str, folder: Path) -> list[str]:
    """The command lines that build, deploy and run a job of a kind."""
    near = f"{os.path.relpath(image.context)}"
    names = [] if job.namespace is None else ["--namespace", job.namespace]
    applied = [word for each in (COMMON, f"{kind}.yaml") for word in ("-f", str(folder / each))]
    selector = f"app.kubernetes.io/instance={job.name}"
    lines = [
        ["docker", "build", "--file", str(folder / "Dockerfile"), "--tag", job.image, near],
        ["docker", "push", job.image],
        ["kubectl", "create", "secret", "generic", job.name, *names],
        ["kubectl", "apply", *applied],
        ["kubectl", "logs", *names, "--selector", selector, "--follow", "--prefix"],
    ]
    texts = [shlex.join(line) for line in lines]
    texts[2] += f" --from-literal={TOKEN_KEY}=$(openssl rand -hex 32)"
    return texts


def _text(manifests: Iterable[Manifest]) -> str:
    return yaml.safe_dump_all(manifests, sort_keys=False, width=1000)


def _readme(job: Job, image: Image, kinds: Sequence[str], folder: Path) -> str:
    lines = "\n".join(commands(job, image, kinds[0], folder))
    others = [f"`{kind}.yaml`" for kind in kinds[1:]]
    instead = (
        f"\n{' or '.join(others)} in place of `{kinds[0]}.yaml`; only one.\n" if others else ""
    )
    return f"# {job.name} on Kubernetes\n\n```sh\n{lines}\n```\n{instead}"
