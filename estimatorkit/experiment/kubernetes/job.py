"""`Job`: an experiment to run on Kubernetes, with its tasks and resources.

A job is validated on construction: names that operators would reject, misleading quantities,
folders outside any claim. `dns_name` converts any text to a valid name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from estimatorkit.experiment.errors import ConfigurationError

SHARED = "/shared"
"""Mount path of the shared claim: models in `runs`, data sets in `data`."""

MAX_NAME = 47
"""Maximum characters of a name; KubeRay, which appends to it, is the strictest operator."""

_NAME = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_IMAGE = (
    r"[a-z0-9]+([._-]+[a-z0-9]+)*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[\w][\w.-]{0,127})?"
)
_DIGEST = r"(@sha256:[0-9a-f]{64})?"
_CPU = r"[1-9][0-9]*m|[0-9]+(\.[0-9]{1,3})?"
_MEMORY = r"[0-9]+(\.[0-9]+)?([KMGTPE]i|[kMGTPE])"


@dataclass(frozen=True)
class Job:
    """An experiment as a job.

    Attributes:
        name: of the job and all its objects.
        image: the container image, `registry/name:tag`.
        config: the experiment's file in the image.
        changes: overrides, `a.b=value` each.
        model_dir: the model's folder, below `SHARED`.
        namespace: of all objects; None for kubectl's current one.
        workers: the number of worker tasks, including the chief.
        ps: the number of parameter servers.
        evaluator: whether to add a task that evaluates checkpoints.
        cpu: cores per task, such as '2' or '500m'.
        memory: per task, such as '4Gi'.
        gpus: per task, except parameter servers.
        claim: an existing claim that the tasks share; None creates one.
        storage: the size of the created claim.

    Raises:
        ConfigurationError: a value is invalid.
    """

    name: str
    image: str
    config: str
    changes: tuple[str, ...] = ()
    model_dir: str = f"{SHARED}/runs/model"
    namespace: str | None = None
    workers: int = 1
    ps: int = 0
    evaluator: bool = False
    cpu: str = "2"
    memory: str = "4Gi"
    gpus: int = 0
    claim: str | None = None
    storage: str = "10Gi"

    def __post_init__(self) -> None:
        _check_name("--name", self.name, MAX_NAME)
        for option, name in (("--namespace", self.namespace), ("--claim", self.claim)):
            if name is not None:
                _check_name(option, name, 63)
        _check_image(self.image)
        _check_cpu(self.cpu)
        _check_size("--memory", self.memory)
        _check_size("--storage", self.storage)
        _check_folder(self.model_dir)

    @property
    def command(self) -> list[str]:
        """The command line of each task."""
        words = ["estimatorkit", "run", self.config, *self.changes]
        return [*words, "--model-dir", self.model_dir]

    @property
    def claim_name(self) -> str:
        """The claim that the tasks share."""
        return self.claim or self.name


def dns_name(text: str) -> str:
    """Converts text to a job name: lower-case letters, digits and hyphens, starting with a letter.

    `Iris_DNN.2` becomes `iris-dnn-2`, and `7up` becomes `run-7up`.
    """
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not name[:1].isalpha():
        name = f"run-{name}"
    return name[:MAX_NAME].rstrip("-")


def _check_name(option: str, name: str, most: int) -> None:
    if not re.fullmatch(_NAME, name) or len(name) > most:
        raise ConfigurationError.explained(
            f"{option} {name}: not a valid Kubernetes name",
            expected=f"lower-case letters, digits and '-', a letter first, {most} at most",
            received=f"{name!r} ({len(name)} characters)",
            hint=f"{option} {dns_name(name)}",
        )


def _check_image(image: str) -> None:
    if not re.fullmatch(_IMAGE + _DIGEST, image):
        small = image.lower()
        raise ConfigurationError.explained(
            f"--image {image}: not a valid image name",
            expected="registry.example.com/team/name:tag, the name in small letters",
            received=repr(image),
            hint=f"--image {small}" if re.fullmatch(_IMAGE + _DIGEST, small) else None,
        )


def _check_cpu(cpu: str) -> None:
    if not re.fullmatch(_CPU, cpu) or not re.search("[1-9]", cpu):
        raise ConfigurationError.explained(
            f"--cpu {cpu}: not a valid number of cores",
            expected="2, 0.5, or thousandths of a core, 500m",
            received=repr(cpu),
        )


def _check_size(option: str, size: str) -> None:
    if re.fullmatch(_MEMORY, size) and re.search("[1-9]", size):
        return
    number = re.match(r"[0-9]+(\.[0-9]+)?", size)
    unit = re.search(r"[kmgtpe]", size, re.IGNORECASE)
    hint = None
    if number and number[0].strip("0."):
        letter = unit[0].upper() if unit else "G"
        hint = f"{option} {number[0]}{letter}i"
    raise ConfigurationError.explained(
        f"{option} {size}: not a valid Kubernetes quantity",
        expected="a number and Ki, Mi, Gi, Ti (powers of 1024) or k, M, G, T (of 1000)",
        received=repr(size),
        hint=hint,
    )


def _check_folder(model_dir: str) -> None:
    path = PurePosixPath(model_dir)
    if not path.is_relative_to(SHARED) or path == PurePosixPath(SHARED) or ".." in path.parts:
        raise ConfigurationError.explained(
            f"--model-dir {model_dir}: not on the claim that the tasks share",
            expected=f"a folder below {SHARED}",
            received=repr(model_dir),
            hint=f"--model-dir {SHARED}/runs/{path.name or 'model'}",
        )
