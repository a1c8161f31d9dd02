"""The image of an experiment: its Dockerfile, and the files it contains.

The experiment names data files relative to itself, so the tree below their common folder is copied
to `/experiment`. The build context contains only these files. Files below `job.SHARED` are in the
claim, and URLs are read directly.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

import yaml
from pydantic import BaseModel

from estimatorkit.experiment.columns import VocabularyFile
from estimatorkit.experiment.errors import ConfigurationError, DataError
from estimatorkit.experiment.estimators import WarmStart
from estimatorkit.experiment.kubernetes.job import SHARED
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.sources import FILE_SOURCES, DataSetSource
from estimatorkit.version import __version__

FOLDER = "/experiment"
USER = 10001
"""The user and group id of the tasks, which no user of a machine has."""

RAY = "2.60.0"
"""The version of Ray in the image, which KubeRay must know; tokens need 2.52 or later."""

_PYTHON = "3.12"
_FILES: dict[type[Any], str] = {
    kind: key for key, kind in FILE_SOURCES.items() if kind is not DataSetSource
}


@dataclass(frozen=True)
class Image:
    """The content of an image.

    Attributes:
        context: the common folder of all files.
        config: the experiment, relative to the context.
        files: the data files, relative to the context.
        extras: extras of this package.
        requirements: other packages.
    """

    context: Path
    config: Path
    files: tuple[Path, ...]
    extras: tuple[str, ...]
    requirements: tuple[str, ...]

    @property
    def config_path(self) -> str:
        """The experiment's file in the image."""
        return str(PurePosixPath(FOLDER, self.config.as_posix()))

    def dockerfile(self, command: list[str]) -> str:
        """The Dockerfile of an image that runs a command."""
        package = f"estimatorkit[{','.join(self.extras)}]=={__version__}"
        packages = " ".join(json.dumps(each) for each in ("$PACKAGE", *self.requirements))
        user = f"--uid {USER} --gid {USER} --no-create-home --home-dir /tmp"
        lines = [
            f"FROM python:{_PYTHON}-slim",
            f"ARG PACKAGE={json.dumps(package)}",
            f"RUN python -m pip install --no-cache-dir {packages} \\",
            f" && groupadd --gid {USER} estimatorkit \\",
            f" && useradd {user} --shell /usr/sbin/nologin estimatorkit",
            "ENV HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1",
            f"WORKDIR {FOLDER}",
        ]
        for folder, files in groupby(self._all(), key=lambda each: each.parent):
            names = [glob.escape(each.as_posix()) for each in files]  # COPY takes patterns
            target = f"{PurePosixPath(FOLDER, folder.as_posix())}/"
            lines.append(f"COPY {json.dumps([*names, target])}")
        lines += [f"USER {USER}:{USER}", f"CMD {json.dumps(command)}"]
        return "\n".join(lines) + "\n"

    def dockerignore(self) -> str:
        """Excludes all other files from the build context."""
        return (
            "\n".join(["*", *(f"!{glob.escape(each.as_posix())}" for each in self._all())]) + "\n"
        )

    def _all(self) -> list[Path]:
        return sorted({self.config, *self.files}, key=lambda each: (each.parent, each))


def image_of(
    experiment: Experiment, config: str, changes: tuple[str, ...], ray: bool, gpus: int
) -> Image:
    """The image of an experiment.

    Args:
        config: the file from which it was loaded.
        changes: the overrides (`a.b=value`) with which it was loaded.
        ray: whether it runs on Ray.
        gpus: GPUs per task.

    Raises:
        ConfigurationError: a file of the experiment would not be found in the image.
        DataError: a file is missing.
    """
    path = Path(config)
    path = path.parent.resolve() / path.name
    names = list(_named_files(experiment))
    _check_relative(path, changes, [name for name in names if _is_copied(name)])
    _check_warm_start(experiment)
    files = [found for name in names if _is_copied(name) for found in _matching(name)]
    context = Path(os.path.commonpath([path.parent, *(each.parent for each in files)]))
    if context == Path(context.anchor):
        raise ConfigurationError.explained(
            f"{config}: the data are in another part of the file system",
            expected="data files near the experiment, which Docker is sent together with it",
            received=files[0],
            hint=f"or keep them on the claim that the tasks share: {SHARED}/data/...",
        )
    extras = ["arrow"]  # tasks talk by Arrow Flight
    if any("://" in name for name in names):
        extras.append("remote")
    # Ray without this extra has no job server: "Cannot include dashboard with missing packages".
    requirements = [f"ray[default]=={RAY}"] if ray else []
    requirements += ["jax[cuda12]"] if gpus else []
    return Image(
        context,
        path.relative_to(context),
        tuple(each.relative_to(context) for each in files),
        tuple(extras),
        tuple(requirements),
    )


def _parts(value: Any) -> Iterator[BaseModel]:
    """All sections of an experiment, outermost first."""
    if isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            yield from _parts(getattr(value, name))
    elif isinstance(value, Mapping):
        yield from _parts(tuple(value.values()))
    elif isinstance(value, tuple):
        for each in value:
            yield from _parts(each)


def _named_files(experiment: Experiment) -> Iterator[str]:
    """The files that an experiment names, including patterns and URLs."""
    for part in _parts(experiment):
        if isinstance(part, VocabularyFile):
            yield part.file
        elif isinstance(part, tuple(_FILES)):
            yield from getattr(part, _FILES[type(part)])


def _is_copied(name: str) -> bool:
    return "://" not in name and not Path(name).is_relative_to(SHARED)


def _matching(name: str) -> list[Path]:
    found = sorted(glob.glob(name, recursive=True))
    if not found:
        raise DataError.explained(
            f"{os.path.relpath(name)}: no such file",
            expected="a file that is copied into the image",
            hint=f"or one on the claim that the tasks share: {SHARED}/data/...",
        )
    return [Path(os.path.normpath(each)) for each in found]


def _check_relative(config: Path, changes: tuple[str, ...], names: list[str]) -> None:
    """Rejects absolute names, which refer to this machine instead of the image."""
    texts = [config.read_text("utf-8-sig"), *(each.partition("=")[2] for each in changes)]
    written = set(_texts([yaml.safe_load(each) for each in texts]))
    for name in names:
        given = next((each for each in written if str(Path(each).expanduser()) == name), None)
        if given is not None:
            raise ConfigurationError.explained(
                f"{config.name}: {given} is a place on this machine",
                expected="a path relative to the experiment's folder, which the image has too",
                received=given,
                hint=f"or keep it on the claim that the tasks share: {SHARED}/data/...",
            )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(list(value.values()))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _check_warm_start(experiment: Experiment) -> None:
    given = getattr(experiment.estimator, "warm_start_from", None)
    folder = given.ckpt_to_initialize_from if isinstance(given, WarmStart) else given
    if folder is not None and _is_copied(folder):
        raise ConfigurationError.explained(
            f"estimator.warm_start_from: the tasks do not have {folder}",
            expected=f"a model on the claim that they share, below {SHARED}",
            received=folder,
        )
