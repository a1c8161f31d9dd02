"""Metrics of a run: event files for TensorBoard, and `metrics.jsonl`.

The `summary_writer.FileWriter` opens its file on the first value.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from estimatorkit.core.nest import map_structure
from estimatorkit.interop.summary_writer import FileWriter
from estimatorkit.logger import logger
from estimatorkit.storage.atomic_files import os_errors, plain
from estimatorkit.storage.tensor_proto import tensor_proto


class MetricsWriter:
    """Writes metrics to an event file, and one line of `metrics.jsonl` per call.

    `directory` is created if missing.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = os.fspath(directory)
        self._events: FileWriter | None = None

    @property
    def events(self) -> FileWriter:
        """The event file's writer, which is opened."""
        if self._events is None:
            self._events = FileWriter(self._directory)
        return self._events

    def write(
        self, step: int, values: Mapping[str, Any], texts: Mapping[str, str] | None = None
    ) -> None:
        """Writes the metrics of a step.

        `values` are numbers, arrays, or serialized `Summary` protos as bytes, whose values are
        renamed to `<name>/<number>`. Summaries are omitted from `metrics.jsonl`; other types, such
        as nested structures, are only there. `texts` are only in the event file.
        """
        line: dict[str, Any] = {"step": step, "time": round(time.time(), 3)}
        for name, value in values.items():
            if not isinstance(value, bytes):
                line[name] = map_structure(lambda each: np.asarray(each).tolist(), value)
        path = os.path.join(self._directory, "metrics.jsonl")
        with os_errors("write the metrics", path):
            os.makedirs(self._directory, exist_ok=True)
            with open(path, "a", encoding="utf-8", opener=plain) as file:
                file.write(json.dumps(line, default=repr) + "\n")
        self._write_event(step, values, texts or {})

    def _write_event(self, step: int, values: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        events = self.events
        summary = Summary()
        for name, given in values.items():
            value = given[()] if isinstance(given, np.ndarray) and given.ndim == 0 else given
            if isinstance(value, bytes):
                summary.value.extend(_named_values(name, value))
            elif isinstance(value, (int, float, np.number)):
                summary.value.add(tag=name, simple_value=float(value))
            elif isinstance(value, np.ndarray):
                summary.value.add(tag=name, node_name=name, tensor=tensor_proto(value))
            else:
                logger.warning("Skipping summary for %s, must be a number or an array.", name)
        events.add_summary(summary, step)
        for name, text in texts.items():
            value = Summary.Value(tag=name, tensor=tensor_proto(np.array(text.encode(), object)))
            events.add_summary(Summary(value=[value]), step)

    def close(self) -> None:
        """Flushes and closes; may be called again."""
        if self._events is not None:
            self._events.close()
            self._events = None


def _named_values(name: str, serialized: bytes) -> list[Any]:
    """Returns the values of a serialized `Summary`, named after a metric; [] if it is not one."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.summary_pb2 import Summary

    try:
        summary = Summary.FromString(serialized)
    except DecodeError:
        logger.warning("Skipping summary for %s, cannot parse string to Summary.", name)
        return []
    for number, value in enumerate(summary.value):
        value.tag = f"{name}/{number}"
    return list(summary.value)
