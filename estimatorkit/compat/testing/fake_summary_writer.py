"""`FakeSummaryWriter`: a `FileWriter` that records its calls, for tests of hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from estimatorkit.compat.testing.test_case import TestCase
from estimatorkit.interop import summary_writer
from estimatorkit.interop.summary_writer import FileWriter
from estimatorkit.lazy import listing
from estimatorkit.summary import Summary

__dir__ = listing(__name__)


class FakeSummaryWriter:
    """Records summaries, graphs and session logs in memory (TensorFlow's helper of this name).

    Args:
        logdir: the directory that a `FileWriter` would write to.
        graph: a graph.
    """

    _replaced: ClassVar[Any] = None

    def __init__(self, logdir: Any, graph: Any = None) -> None:
        self._logdir = logdir
        self._graph = graph
        self._summaries: dict[int, list[Any]] = {}
        self._added_graphs: list[Any] = []
        self._added_meta_graphs: list[Any] = []
        self._added_session_logs: list[Any] = []
        self._added_run_metadata: dict[str, Any] = {}

    @classmethod
    def install(cls) -> None:
        """Makes `FileWriterCache` create such writers.

        Raises:
            ValueError: it is already installed.
        """
        if cls._replaced is not None:
            raise ValueError("FakeSummaryWriter already installed.")
        cls._replaced = FileWriter
        summary_writer.FileWriter = cls  # type: ignore[assignment,misc]

    @classmethod
    def uninstall(cls) -> None:
        """Undoes `install`.

        Raises:
            ValueError: it is not installed.
        """
        if cls._replaced is None:
            raise ValueError("FakeSummaryWriter not installed.")
        summary_writer.FileWriter = cls._replaced  # type: ignore[misc]
        cls._replaced = None

    @property
    def summaries(self) -> dict[int, list[Any]]:
        """The `Summary` protos by step."""
        return self._summaries

    def assert_summaries(
        self,
        test_case: TestCase,
        expected_logdir: Any = None,
        expected_graph: Any = None,
        expected_summaries: Mapping[int, Mapping[str, float]] | None = None,
        expected_added_graphs: Any = None,
        expected_added_meta_graphs: Any = None,
        expected_session_logs: Any = None,
    ) -> None:
        """Asserts the recorded calls; None skips a check.

        Args:
            test_case: the test case that asserts.
            expected_logdir, expected_graph: the constructor's arguments.
            expected_summaries: simple values by tag by step, except 'global_step/sec'.
            expected_added_graphs, expected_added_meta_graphs, expected_session_logs: lists.
        """
        if expected_logdir is not None:
            test_case.assertEqual(expected_logdir, self._logdir)
        if expected_graph is not None:
            test_case.assertIs(expected_graph, self._graph)
        for step, expected in (expected_summaries or {}).items():
            test_case.assertIn(step, self._summaries)
            values = [value for each in self._summaries[step] for value in each.value]
            found = {each.tag: each.simple_value for each in values}
            found.pop("global_step/sec", None)
            test_case.assertEqual(dict(expected), found)
        for expected_list, added in (
            (expected_added_graphs, self._added_graphs),
            (expected_added_meta_graphs, self._added_meta_graphs),
            (expected_session_logs, self._added_session_logs),
        ):
            if expected_list is not None:
                test_case.assertEqual(list(expected_list), added)

    def add_summary(self, summ: Any, current_global_step: int) -> None:
        """Records a `Summary`, or a serialized one."""
        if isinstance(summ, bytes):
            summ = Summary.FromString(summ)
        self._summaries.setdefault(current_global_step, []).append(summ)

    def add_graph(self, graph: Any, global_step: int | None = None, graph_def: Any = None) -> None:
        """Records a graph.

        Raises:
            ValueError: the step is negative, or `graph_def` is given.
        """
        self._check(global_step)
        if graph_def is not None:
            raise ValueError(f"Unexpected graph_def {graph_def}.")
        self._added_graphs.append(graph)

    def add_meta_graph(self, meta_graph_def: Any, global_step: int | None = None) -> None:
        """Records a meta graph.

        Raises:
            ValueError: the step is negative.
        """
        self._check(global_step)
        self._added_meta_graphs.append(meta_graph_def)

    def add_session_log(self, session_log: Any, global_step: int | None = None) -> None:
        """Records a session log."""
        self._added_session_logs.append(session_log)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: int | None = None) -> None:
        """Records a run's metadata by tag.

        Raises:
            ValueError: the step is negative.
        """
        self._check(global_step)
        self._added_run_metadata[tag] = run_metadata

    @staticmethod
    def _check(global_step: int | None) -> None:
        if global_step is not None and global_step < 0:
            raise ValueError(f"Invalid global_step {global_step}.")

    def flush(self) -> None:
        """Does nothing."""

    def reopen(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""
