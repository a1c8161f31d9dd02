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
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook

ON_DEMAND = "estimatorkit/summaries_on_demand"
"""The collection of summaries that a training does not write for their own sake: the loss, which
`RecordHook` writes, and values of whole layers.
"""


def on_demand(summary: Tensor) -> Tensor:
    """Puts a summary into the collection `ON_DEMAND`."""
    summary.graph.add_to_collection(ON_DEMAND, summary)
    return summary


def has_summaries(graph: Graph) -> bool:
    """Whether a graph has summaries that a training should write."""
    written = set(graph.get_collection(GraphKeys.SUMMARIES))
    return bool(written - set(graph.get_collection(ON_DEMAND)))


class RecordHook(SessionRunHook):
    """Writes 'loss' every so many steps, 'global_step/sec' with it, and the graph at the end.

    Args:
        directory: the model's directory.
        every_n_steps: steps between values; the first step has one.
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
        """Starts the clock."""
        self._written_at = time.monotonic()

    def after_steps(self, steps: FinishedSteps) -> None:
        """Writes those of the steps whose turn it is."""
        first = -(-steps.first // self._every) * self._every
        due = range(first, steps.last, self._every)
        if not due:
            return
        now = time.monotonic()
        values: dict[str, Any] = {}
        if self._written_step is not None:
            spent = max(now - self._written_at, 1e-9)
            values["global_step/sec"] = (due[-1] - self._written_step) / spent
        for step in due:
            last = values if step == due[-1] else {}
            self._writer.write(step, {"loss": steps.losses[step - steps.first], **last})
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
