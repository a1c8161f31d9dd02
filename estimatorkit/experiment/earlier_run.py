"""The earlier run in an experiment's `model_dir`: whether its settings are those asked for now."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from estimatorkit.estimator.evaluation.completion import read_completion
from estimatorkit.estimator.serving.exporters import BEST
from estimatorkit.experiment import document
from estimatorkit.experiment.errors import ConfigurationError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.sections import leaves
from estimatorkit.storage.checkpoint import latest_checkpoint

FILE = "config.yaml"

_MAY_CHANGE = (
    "name",
    "model_dir",
    "export",
    "run",
    "predict",
    "evaluate.batch_size",
    "evaluate.steps",
    "evaluate.every",
    "evaluate.training",
    "tune",
    "train.steps",
    "train.max_steps",
    "train.epochs",
    "train.hooks",
)
"""Settings that a training goes on with; the others make another model."""

_SHOWN = 6

Choice = Literal["ask", "restart", "resume", "replace"]


def reconcile(experiment: Experiment, choice: Choice) -> str | None:
    """Makes `model_dir` ready for a training with these settings.

    Args:
        choice: what to do if a model was trained there with other settings: refuse, begin a new one
            ('restart' even with the same settings, 'replace' only with others) and keep the old
            one next to it, or continue training the old one.

    Returns:
        The folder that now has the old model, if it was moved.

    Raises:
        ConfigurationError: the settings differ and `choice` is 'ask'.
    """
    folder = Path(experiment.model_dir)
    path = folder / FILE
    if latest_checkpoint(str(folder)) is None:
        return None
    if choice == "restart":
        return str(move_aside(folder))
    if not path.is_file():  # a model created by a script
        return None
    found = differences(path, experiment)
    crucial = [each for each in found if not any(_is_within(each[0], name) for name in _MAY_CHANGE)]
    if crucial and choice == "replace":
        return str(move_aside(folder))
    if crucial and choice == "ask":
        shown = [f"{name}: {new} (there {old})" for name, old, new in crucial[:_SHOWN]]
        if len(crucial) > _SHOWN:
            shown.append(f"and {len(crucial) - _SHOWN} more")
        raise ConfigurationError.explained(
            f"{experiment.model_dir}: the model there was trained with other settings",
            expected=f"those of {path}",
            received=", ".join(shown),
            hint="--restart trains a new model and keeps the old one beside it, --resume "
            "trains the old one on; name=... or --model-dir puts the new one elsewhere",
        )
    if found:
        _forget_results(str(folder))
    if any(_is_within(name, "predict.threshold") for name, *_ in found):
        for record in folder.glob(f"export/*/{BEST}"):
            record.unlink()  # the model of this checkpoint is another one now
    return None


def _is_within(name: str, section: str) -> bool:
    return name == section or name.startswith(f"{section}.")


def differences(path: Path, experiment: Experiment) -> list[tuple[str, str, str]]:
    """The settings that differ from those in a file: name, value there, value now."""
    try:  # with the defaults of settings that have come since
        there = load_experiment(path).model_dump(mode="json")
    except ConfigurationError:
        there = document.to_data(document.parse(document.read_text(path), str(path)))
    old, new = dict(leaves(there)), dict(leaves(experiment.model_dump(mode="json")))
    names = dict.fromkeys((*new, *old))
    return [
        (name, _shown(old.get(name)), _shown(new.get(name)))
        for name in names
        if old.get(name) != new.get(name) and not _has_moved(old.get(name), new.get(name))
    ]


def _shown(value: Any) -> str:
    return "not set" if value is None else document.shorten(document.dump(value, flow=True))


def _has_moved(old: Any, new: Any) -> bool:
    """Whether the old files no longer exist, and the new ones have the same names."""
    if not (isinstance(old, list) and isinstance(new, list) and len(old) == len(new)):
        return False
    return all(
        isinstance(one, str)
        and isinstance(other, str)
        and os.path.isabs(one)
        and os.path.basename(one) == os.path.basename(other)
        and not os.path.exists(one)
        for one, other in zip(old, new, strict=True)
    )


def _forget_results(model_dir: str) -> None:
    """Makes a finished training evaluate and export again."""
    done = read_completion(model_dir)
    if done is not None and done.results is not None:
        replace(done, results=None).write(model_dir)


def move_aside(folder: Path) -> Path:
    """Renames a folder to NAME-1, or the next number that is free."""
    number = 1
    while (target := folder.with_name(f"{folder.name}-{number}")).exists():
        number += 1
    folder.rename(target)
    return target
