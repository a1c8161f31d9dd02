"""Event files for TensorBoard, and their plain twin `metrics.jsonl`.

Events go through `summary_writer.FileWriter`, which opens its file when the first value is written.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from estimatorkit.core.summary_writer import FileWriter


class MetricsWriter:
    """Writes scalars of a run: an event file, and a line of `metrics.jsonl` for each call.

    Args:
        directory: made where it is not there.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = os.fspath(directory)
        self._events: FileWriter | None = None

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Writes scalars.

        Args:
            step: the global step they belong to.
            values: numbers by name. Anything but a single number goes to `metrics.jsonl` only.
        """
        line: dict[str, Any] = {"step": step, "time": round(time.time(), 3)}
        line.update({name: np.asarray(value).tolist() for name, value in values.items()})
        os.makedirs(self._directory, exist_ok=True)
        with open(os.path.join(self._directory, "metrics.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._write_event(step, values)

    def _write_event(self, step: int, values: Mapping[str, Any]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        if self._events is None:
            self._events = FileWriter(self._directory)
        scalars = [
            Summary.Value(tag=name, simple_value=float(np.asarray(value)))
            for name, value in values.items()
            if np.ndim(value) == 0
        ]
        self._events.add_summary(Summary(value=scalars), step)

    def close(self) -> None:
        """Writes out what is waiting; closing twice is no error."""
        if self._events is not None:
            self._events.close()
            self._events = None
