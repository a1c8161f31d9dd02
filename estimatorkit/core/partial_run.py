"""`Session.partial_run`: one run in several parts, each fed with more than the one before.

What a part has computed for later ones is kept and stands in for its operations there, so that
nothing runs twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from estimatorkit.core.errors import explain
from estimatorkit.core.plan import Plan, make_plan
from estimatorkit.core.tensor import Operation, Tensor


class PartialRun:
    """The state of a run in parts.

    Args:
        fetches: all tensors that will be fetched.
        targets: all operations that will be run.
        feeds: all tensors that will be fed.
        run: runs a plan on the values of its feeds.
    """

    def __init__(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[Tensor],
        run: Callable[[Plan, Sequence[Any]], list[Any]],
    ) -> None:
        self._fetches = list(fetches)
        self._targets = list(targets)
        self._feeds = set(feeds)
        self._run = run
        self._known: dict[Tensor, Any] = {}
        graph = (fetches[0].op if fetches else targets[0]).graph
        self._graph = graph
        whole = make_plan(graph, self._fetches, self._targets, list(feeds), optimize=False)
        self._ops = [op for segment in whole.segments for op in segment.ops]
        self._done: set[Operation] = set()

    def __call__(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Mapping[Tensor, Any],
    ) -> list[Any]:
        """Runs the next part.

        Raises:
            ValueError: something is fetched or fed that was not announced, or a second time.
        """
        for what, given, announced in (
            ("fetch", [*fetches, *targets], {*self._fetches, *self._targets}),
            ("feed", feeds, self._feeds),
        ):
            for each in given:
                if each not in announced:
                    raise ValueError(
                        explain(
                            f"partial_run: {each} is no {what} of this partial run",
                            hint="name it in partial_run_setup",
                        )
                    )
                if what == "feed" and each in self._known:
                    raise ValueError(f"partial_run: {each} was fed before.")
        self._known.update(feeds)
        rest = [op for op in targets if op not in self._done]
        known = list(self._known)
        plan = make_plan(self._graph, list(fetches), rest, known, optimize=False)
        running = {op for segment in plan.segments for op in segment.ops}
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
        plan = make_plan(self._graph, wanted, rest, known, optimize=False)
        values = dict(zip(wanted, self._run(plan, [self._known[t] for t in known]), strict=True))
        self._known.update(values)
        self._done.update(running)
        return [values[tensor] for tensor in fetches]
