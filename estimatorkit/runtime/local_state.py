"""`LocalState`: the state of a session whose runs and loops are all in this process."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.lazy import Port
from estimatorkit.runtime.executor import PlanRunner
from estimatorkit.runtime.loop import StepLoop, StepSpec
from estimatorkit.runtime.plan import make_plan, small_between_hosts
from estimatorkit.runtime.state import ProcessState, Runner

_local_loop = Port("local_loop")


class LocalState(ProcessState):
    """The state of a session of one process."""

    def runner(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[Tensor],
        optimize: bool = True,
        elsewhere: Collection[Operation] = frozenset(),
    ) -> Runner:
        """Plans a run (see `State`)."""
        placer = self.placer
        plan = make_plan(self.graph, fetches, targets, feeds, placer, optimize, elsewhere)
        if small := small_between_hosts(plan):
            plan = plan.with_on_host(small)
        placer.report(op for segment in plan.segments for op in segment.ops)
        return PlanRunner(plan, self)

    def step_loop(self, spec: StepSpec) -> StepLoop:
        """The loop of many steps."""
        loop: StepLoop = _local_loop.LocalStepLoop(self, spec)
        return loop
