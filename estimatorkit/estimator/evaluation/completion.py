"""`Completion`: the file in `model_dir` that records the progress of `train_and_evaluate`.

It is written atomically when training begins, when it ends, and after each later stage. A killed
program thus resumes at the same stage, and one restarted after the end returns the same metrics.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimatorkit.core.errors import InvalidArgumentError, OpError
from estimatorkit.logger import logger
from estimatorkit.storage.atomic_files import read_plain, write_durably
from estimatorkit.storage.checkpoint_state import check_name

FILE = "train_and_evaluate.json"
_VERSION = 1


@dataclass(frozen=True)
class Completion:
    """The state of a training.

    Attributes:
        step: the global step at which it ended, or began if unfinished.
        max_steps: the intended last step; None if there was none.
        reason: why it ended; None if it is running or was killed.
        checkpoint: the name of its last checkpoint; empty if unfinished.
        restored: the name of the best checkpoint, if it is to be restored.
        results: metrics and exports by evaluation label (see `result_record`); None before the last
            evaluations.
    """

    step: int
    max_steps: int | None
    reason: str | None
    checkpoint: str
    restored: str | None = None
    results: Mapping[str, Any] | None = None

    def write(self, model_dir: str) -> None:
        """Writes the file."""
        content = json.dumps({"version": _VERSION, **asdict(self)}, indent=1)
        write_durably(Path(model_dir) / FILE, content.encode())

    def is_of(self, max_steps: int | None, latest: str | None) -> bool:
        """Whether it belongs to the requested training, with no training since.

        Args:
            max_steps: the last step of the requested training.
            latest: the path of the latest checkpoint.
        """
        newest = None if latest is None else os.path.basename(latest)
        ends = (self.checkpoint, self.restored)
        return self.reason is not None and self.max_steps == max_steps and newest in ends

    def was_killed_after(self, start: int) -> bool:
        """Whether training was killed after saving checkpoints; `start` is the latest checkpoint's
        step.
        """
        return self.reason is None and start > self.step


def completion_time(model_dir: str) -> float:
    """The time of the last write in seconds since 1970; 0 if there is no file."""
    try:
        return (Path(model_dir) / FILE).stat().st_mtime
    except FileNotFoundError:
        return 0.0


def read_completion(model_dir: str) -> Completion | None:
    """Reads the file; None if there is none or, with a warning, if it is damaged."""
    path = Path(model_dir) / FILE
    try:
        content = json.loads(read_plain(path))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError, OpError):
        content = None
    if isinstance(content, dict) and content.pop("version", None) == _VERSION:
        fields = _checked(content)
        if fields is not None:
            return Completion(**fields)
    logger.warning("%s is damaged or of another version; ignored", path)
    return None


_KINDS: Mapping[str, tuple[type, ...]] = {
    "step": (int,),
    "max_steps": (int, type(None)),
    "reason": (str, type(None)),
    "checkpoint": (str,),
    "restored": (str, type(None)),
    "results": (dict, type(None)),
}


def _checked(content: dict[str, Any]) -> dict[str, Any] | None:
    if content.keys() != _KINDS.keys():
        return None
    if not all(isinstance(content[name], kinds) for name, kinds in _KINDS.items()):
        return None
    names = [content[each] for each in ("checkpoint", "restored") if content[each]]
    try:
        for name in names:
            check_name(name)  # it becomes part of a path
    except InvalidArgumentError:
        return None
    results = content["results"] or {}
    whole = all(
        isinstance(each, dict)
        and isinstance(each.get("metrics"), dict)
        and all(
            isinstance(metric, dict) and metric.keys() == {"dtype", "value"}
            for metric in each["metrics"].values()
        )
        and isinstance(each.get("exports"), list)
        for each in results.values()
    )
    return content if whole else None


def result_record(
    metrics: Mapping[str, Any], exports: Sequence[Any], model_dir: str
) -> dict[str, Any]:
    """Metrics and exports of an evaluation as JSON.

    Args:
        metrics: numbers and arrays of numbers, by name.
        exports: results of exporters; paths below `model_dir` are stored relative to it, other
            values than paths as null.
    """
    arrays = {name: np.asarray(value) for name, value in metrics.items()}
    return {
        "metrics": {
            name: {"dtype": array.dtype.name, "value": array.tolist()}
            for name, array in arrays.items()
            if array.dtype.kind in "biuf"
        },
        "exports": [
            _relative(os.fsdecode(each), model_dir) if isinstance(each, str | bytes) else None
            for each in exports
        ],
    }


def _relative(path: str, folder: str) -> str:
    relative = os.path.relpath(path, folder)
    return os.path.abspath(path) if relative.startswith(os.pardir) else relative


def recorded_result(
    record: Mapping[str, Any], model_dir: str
) -> tuple[dict[str, Any], list[bytes | None]]:
    """The metrics and exports of a `result_record`."""
    metrics = {
        name: np.asarray(each["value"], np.dtype(each["dtype"]))[()]
        for name, each in record["metrics"].items()
    }
    exports = [
        None if each is None else os.fsencode(os.path.join(model_dir, each))
        for each in record["exports"]
    ]
    return metrics, exports
