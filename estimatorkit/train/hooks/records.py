"""`RecordHook`: a training's loss, speed and graph, for TensorBoard and `metrics.jsonl`."""

from __future__ import annotations

import time
from typing import Any

from estimatorkit.core.graph import Graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.interop.events import MetricsWriter
from estimatorkit.interop.summary_writer import FileWriter
from estimatorkit.logger import logger
from estimatorkit.ops.files import summary
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook

ON_DEMAND = "estimatorkit/summaries_on_demand"
"""The collection of summaries that a training does not write for their own sake: scalars, which
`RecordHook` writes, and values of whole layers.
"""


_RECORDED = "estimatorkit/recorded_scalars"


def on_demand(written: Tensor) -> Tensor:
    """Puts a summary into the collection `ON_DEMAND`."""
    written.graph.add_to_collection(ON_DEMAND, written)
    return written


def recorded_scalar(tag: str, value: Tensor) -> None:
    """Adds a summary of a scalar, which a training's `RecordHook` also writes with the loss."""
    value.graph.add_to_collection(_RECORDED, on_demand(summary.scalar(tag, value)))


def recorded_scalars(graph: Graph) -> dict[str, Tensor]:
    """The scalars that `RecordHook` writes besides the loss, by tag."""
    ops = [each.op for each in graph.get_collection(_RECORDED)]
    return {op.attrs["tag"]: op.inputs[0] for op in ops if op.attrs["tag"] != "loss"}


def has_summaries(graph: Graph) -> bool:
    """Whether a graph has summaries that a training should write."""
    written = set(graph.get_collection(GraphKeys.SUMMARIES))
    return bool(written - set(graph.get_collection(ON_DEMAND)))


class RecordHook(SessionRunHook):
    """Writes 'loss' and other scalars at the first step and then every so many steps,
    'global_step/sec' with them, and the graph at the end.

    A step's values are written under the global step after it, as those of `SummarySaverHook`.

    Args:
        directory: the model's directory.
        every_n_steps: steps between values.
    """

    def __init__(self, directory: str, every_n_steps: int) -> None:
        self._writer = MetricsWriter(directory)
        self._every = every_n_steps
        self._written_at = 0.0
        self._written_step: int | None = None

    @property
    def events(self) -> FileWriter:
        """The writer of its event file, which is opened."""
        return self._writer.events

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts the clock: the next step is written."""
        self._written_at, self._written_step = time.monotonic(), None

    def after_steps(self, steps: FinishedSteps) -> None:
        """Writes those of the steps whose turn it is."""
        next_step = 0 if self._written_step is None else self._written_step + self._every
        due = range(max(next_step, steps.first + 1), steps.last + 1, self._every)
        if not due:
            return
        now = time.monotonic()
        values: dict[str, Any] = {}
        if self._written_step is not None:
            spent = max(now - self._written_at, 1e-9)
            values["global_step/sec"] = (due[-1] - self._written_step) / spent
        for step in due:
            last = values if step == due[-1] else {}
            found = {"loss": steps.losses, **steps.scalars}
            row = {tag: each[step - steps.first - 1] for tag, each in found.items()}
            self._writer.write(step, {**row, **last})
        self._written_at, self._written_step = now, due[-1]

    def end(self, session: Any) -> None:
        """Writes the graph, after the training in order not to delay its first step."""
        if self._written_step is not None:
            try:
                self.events.add_graph(session.graph)
            except (TypeError, ValueError) as error:  # as for a checkpoint's graph
                logger.warning("The graph was not written for TensorBoard: %s", error)
        self.close()

    def close(self) -> None:
        """Closes the files; closing twice is not an error."""
        self._writer.close()
