"""`Session.partial_run`: a run in several stages, each with further feeds.

Values that later stages need are kept and replace their operations there, so that nothing runs
twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.graph import Graph
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.runtime.plan import needed_operations
from estimatorkit.runtime.prepared_run import (
    Feeds,
    Fetches,
    converted_feed_keys,
    converted_feeds,
)
from estimatorkit.runtime.state import State


class PartialRun:
    """The state of a partial run.

    Args:
        graph: the session's graph.
        state: the session's state.
        fetches: everything that the parts will fetch.
        feeds: the keys of all that they will feed.

    Raises:
        InvalidArgumentError: nothing will be fetched or run.
    """

    def __init__(self, graph: Graph, state: State, fetches: Any, feeds: Sequence[Any]) -> None:
        wanted = Fetches(graph, fetches)
        given = Feeds(graph, converted_feed_keys(feeds))
        if not wanted.tensors and not wanted.targets:
            raise _refused("Must specify at least one target to fetch or execute.")
        self._graph = graph
        self._fetches, self._targets = wanted.tensors, wanted.targets
        self._feeds = set(given.tensors)
        self._state = state
        self._known: dict[Tensor, Any] = {}
        self._ops = needed_operations(self._fetches, self._targets, self._feeds, must_feed=False)
        self._done: set[Operation] = set()
        self._given: set[Tensor | Operation] = set()

    def __call__(self, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
        """Runs the next part.

        Raises:
            InvalidArgumentError: a fetch or feed was not declared, or is repeated.
        """
        packed = Fetches(self._graph, fetches)
        feed_dict = converted_feeds(feed_dict) or {}
        given = Feeds(self._graph, tuple(feed_dict))
        feeds = dict(zip(given.tensors, given.convert(list(feed_dict.values())), strict=True))
        return packed.pack(self._run(packed.tensors, packed.targets, feeds))

    def _run(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Mapping[Tensor, Any],
    ) -> list[Any]:
        self._check("fetch", [*fetches, *targets], {*self._fetches, *self._targets}, self._given)
        self._check("feed", list(feeds), self._feeds, self._known)
        self._known.update(feeds)
        rest = [op for op in targets if op not in self._done]
        known = list(self._known)
        running = set(needed_operations(fetches, rest, known, elsewhere=self._done))
        later = [op for op in self._ops if op not in running and op not in self._done]
        kept = {
            tensor
            for op in later
            for tensor in op.inputs
            if tensor.op in running and tensor not in self._known
        }
        wanted = list(
            dict.fromkeys([*fetches, *kept, *(t for t in self._fetches if t.op in running)])
        )
        runner = self._state.runner(wanted, rest, known, False, self._done)
        values = dict(zip(wanted, runner.run([self._known[t] for t in known]), strict=True))
        self._known.update(values)
        self._done.update(running)
        self._given.update([*fetches, *targets])
        return [values[tensor] for tensor in fetches]

    @staticmethod
    def _check(
        what: str,
        asked: Sequence[Tensor | Operation],
        announced: Collection[Tensor | Operation],
        done: Collection[Tensor | Operation],
    ) -> None:
        """Rejects fetches and feeds that were not declared, or are repeated."""
        for each in asked:
            if each not in announced:
                raise _refused(f"The {what} {each.name} was not specified in partial_run_setup.")
            if each in done:
                past = "fed" if what == "feed" else "fetched"
                raise _refused(f"The {what} {each.name} has already been {past}.")


def run_part(handle: PartialRun, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
    """Runs the next part (see `Session.partial_run`)."""
    if not isinstance(handle, PartialRun):
        raise _refused(
            f"Must run 'setup' before performing partial runs! Received handle {handle!r}"
        )
    return handle(fetches, feed_dict)


def _refused(problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, problem)
