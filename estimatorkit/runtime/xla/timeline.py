"""Profiles of runs: `Trace` collects spans, `Timeline` writes them as a Chrome trace.

Spans are segments, as XLA runs their operations as a unit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax


@dataclass(frozen=True)
class Span:
    """One segment's run.

    Attributes:
        name: the segment's last operation.
        device: where it ran.
        label: a summary of the segment's operations.
        start, end: microseconds since the epoch.
    """

    name: str
    device: str
    label: str
    start: int
    end: int


@dataclass
class Trace:
    """The spans of one run."""

    spans: list[Span] = field(default_factory=list)

    @contextmanager
    def span(self, name: str, device: str, label: str, values: dict[Any, Any]) -> Iterator[None]:
        """A context manager that times a segment, and waits for its outputs in `values`."""
        before = set(values)
        start = time.time_ns()
        yield
        made = [value for key, value in values.items() if key not in before]
        jax.block_until_ready(made)  # type: ignore[no-untyped-call]
        self.add(name, device, label, start)

    def add(self, name: str, device: str, label: str, start: int) -> None:
        """Adds a span from `start`, in nanoseconds since the epoch, until now. For other tasks this
        includes the round trip.
        """
        self.spans.append(Span(name, device, label, start // 1000, time.time_ns() // 1000))

    def fill(self, run_metadata: Any) -> None:
        """Writes the spans into a `RunMetadata` as step statistics."""
        for span in self.spans:
            stats = run_metadata.step_stats
            device = next((each for each in stats.dev_stats if each.device == span.device), None)
            if device is None:
                device = stats.dev_stats.add(device=span.device)
            device.node_stats.add(
                node_name=span.name,
                all_start_micros=span.start,
                op_end_rel_micros=span.end - span.start,
                all_end_rel_micros=span.end - span.start,
                timeline_label=span.label,
            )


class Timeline:
    """Step statistics as a Chrome trace (`tensorflow.python.client.timeline.Timeline`).

    Args:
        step_stats: `run_metadata.step_stats` of a traced run.
        graph: accepted for compatibility only.
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._step_stats = step_stats

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """The trace as JSON, for chrome://tracing or Perfetto.

        Args:
            show_dataflow, show_memory, op_time: accepted for compatibility only.
        """
        events: list[dict[str, Any]] = []
        for number, device in enumerate(self._step_stats.dev_stats):
            events.append(
                {
                    "name": "process_name",
                    "ph": "M",
                    "pid": number,
                    "args": {"name": f"{device.device} Compute"},
                }
            )
            events.extend(
                {
                    "ph": "X",
                    "cat": "Op",
                    "name": node.node_name,
                    "pid": number,
                    "tid": 0,
                    "ts": node.all_start_micros,
                    "dur": node.all_end_rel_micros,
                    "args": {"name": node.node_name, "op": node.timeline_label},
                }
                for node in device.node_stats
            )
        return json.dumps({"traceEvents": events}, indent=2)
