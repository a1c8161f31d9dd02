"""`read_eval_metrics`: reads the metrics of earlier evaluations from their folders.

`metrics.jsonl` has the exact numbers, event files (also TensorFlow's) have them in float32. Damaged
or incomplete records, left by a killed writer, are skipped.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from estimatorkit.interop.summary_writer import summary_iterator
from estimatorkit.logger import logger
from estimatorkit.storage.atomic_files import read_plain

EVENT_FILES = "*.tfevents.*"
LINES = "metrics.jsonl"
_NOT_METRICS = ("step", "time")


def read_eval_metrics(eval_dir: str | os.PathLike[str]) -> OrderedDict[int, dict[str, float]]:
    """Reads the metrics of evaluations from their folder.

    Args:
        eval_dir: see `Estimator.eval_dir`.

    Returns:
        Metrics by name, by global step in increasing order; empty if there is no such folder.
    """
    found: dict[int, dict[str, float]] = {}
    folder = Path(eval_dir)
    files = sorted(folder.glob(EVENT_FILES))
    for step, metrics in [*events(files), *lines(folder / LINES)]:
        found.setdefault(step, {}).update(metrics)
    return OrderedDict(sorted(found.items()))


def events(files: list[Path]) -> Iterator[tuple[int, dict[str, float]]]:
    """Yields the step and scalars of each event that has any."""
    for file in files:
        try:
            for event in summary_iterator(file):
                metrics = {
                    value.tag: value.simple_value
                    for value in event.summary.value
                    if value.HasField("simple_value")
                }
                if metrics:
                    yield event.step, metrics
        except FileNotFoundError:
            logger.warning("%s disappeared before it was read", file)


def lines(file: Path) -> Iterator[tuple[int, dict[str, float]]]:
    """Yields the step and scalars of each line of a `metrics.jsonl`, if it exists."""
    try:
        text = read_plain(file).decode("utf-8", "replace")
    except FileNotFoundError:
        return
    for number, line in enumerate(text.splitlines(), start=1):
        record = _parsed(line)
        if record is None:
            logger.warning("%s:%d is damaged or truncated; ignored", file, number)
            continue
        yield (
            record["step"],
            {
                name: float(value)
                for name, value in record.items()
                if name not in _NOT_METRICS and isinstance(value, int | float)
            },
        )


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line, parse_int=_integer)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(record, dict) and isinstance(record.get("step"), int)
    return record if whole else None


def _integer(text: str) -> int | float:
    return int(text) if len(text) < 20 else float(text)  # infinite, or not a step


class EvaluationRecords:
    """Cached reader of a folder's evaluations, which re-reads after changes."""

    def __init__(self, eval_dir: str | os.PathLike[str]) -> None:
        self._folder = Path(eval_dir)
        self._seen: list[tuple[str, int, int]] | None = None
        self._metrics: OrderedDict[int, dict[str, float]] = OrderedDict()

    def read(self) -> OrderedDict[int, dict[str, float]]:
        """The metrics by global step; see `read_eval_metrics`."""
        seen = [
            (file.name, status.st_size, status.st_mtime_ns)
            for pattern in (EVENT_FILES, LINES)
            for file in sorted(self._folder.glob(pattern))
            for status in [file.stat()]
        ]
        if seen != self._seen:
            self._metrics = read_eval_metrics(self._folder)
            self._seen = seen
        return self._metrics
