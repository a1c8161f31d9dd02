"""`State`: what a session needs of its target. `ProcessState`: what one process keeps for it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import jax
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import FailedPreconditionError
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.runtime.execution_mode import default_executor
from estimatorkit.runtime.loop import StepLoop, StepSpec
from estimatorkit.runtime.plan import Segment
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.xla.cancellation import Cancellation
from estimatorkit.runtime.xla.compilation_cache import use_compilation_cache
from estimatorkit.runtime.xla.flags import compile_without_strength_reduction
from estimatorkit.runtime.xla.host_tuning import keep_freed_memory, run_in_calling_thread
from estimatorkit.runtime.xla.placement import Placer
from estimatorkit.runtime.xla.timeline import Trace

if TYPE_CHECKING:
    from estimatorkit.storage.tensor_slice import TensorSlice


class RunPlan(Protocol):
    """The plan of a run."""

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments that this process runs."""

    def describe(self) -> str:
        """The plan as text."""


class Runner(Protocol):
    """A planned run."""

    @property
    def plan(self) -> RunPlan:
        """What it does."""

    def run(self, feeds: Sequence[Any], trace: Trace | None = None) -> list[Any]:
        """Runs it (see `PlanRunner.run`)."""


class State(Protocol):
    """What a session needs of its target: it plans runs and loops, and has the variables.

    Attributes:
        graph: the session's graph.
        placer: maps operations to devices.
        cancellation: ends runs.
        values: this process's variables by name, and the counters of random operations (three
            uint32 words: seed, seed, count).
        resources: this process's host objects by name (iterators, ...).
        compilations: the number of XLA compilations, by name.
        most_executables: how many shapes of a segment's inputs keep their executable, which takes
            a few megabytes; None for all.
        executor: how device segments run: 'auto', 'xla' or 'interpret' (see `execution_mode`).
        is_brief: whether runs may be so few that compiling takes longer than NumPy.
        few_runs: whether executables run a few times only (see `compiler_options`).
        sharded: the shapes of the variables that replicas shard by rows, by name.
    """

    graph: Graph
    placer: Placer
    cancellation: Cancellation
    values: dict[str, Any]
    resources: dict[Any, Any]
    compilations: Counter[str]
    most_executables: int | None
    executor: str
    is_brief: bool
    few_runs: bool
    sharded: Mapping[str, tuple[int, ...]]

    def runner(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[Tensor],
        optimize: bool = True,
        elsewhere: Collection[Operation] = frozenset(),
    ) -> Runner:
        """Plans a run (see `make_plan`) and returns its runner."""

    def step_loop(self, spec: StepSpec) -> StepLoop:
        """The loop of many steps."""

    def cancel(self) -> None:
        """Cancels blocked runs, as the session closes."""

    def resource(self, name: Any, make: Callable[[], Any]) -> Any:
        """The host object `name`, created by `make` on first use.

        Raises:
            CancelledError: the session was closed, which discards its objects.
        """

    def uninitialized(self, names: Sequence[str]) -> list[str]:
        """The variables among `names` that have no value."""

    def read(self, names: Sequence[str]) -> list[Any]:
        """A consistent snapshot of the values of `names`, which later runs do not modify.

        Raises:
            FailedPreconditionError: a variable has none.
        """

    def put(self, name: str, value: Any) -> None:
        """Sets the value of a variable."""

    def initial(self, name: str, value: NDArray[Any], device: Any) -> Any:
        """Transfers the first value of a variable to a device (None: the default one)."""

    def to_save(self, names: Sequence[str]) -> list[Any]:
        """The values of variables, for a checkpoint."""

    def restore(self, path: str, parts: Mapping[str, TensorSlice]) -> set[str]:
        """Restores the variables that are not wholly in this process.

        Args:
            path: the checkpoint.
            parts: by variable, the slice of a tensor in the checkpoint.

        Returns:
            The names of the variables restored.
        """

    def variables_set(self) -> None:
        """Called when training has initialized or restored the variables, before its steps."""

    def random_counters(self) -> dict[str, Any]:
        """The counters of random operations that have run, by operation."""

    def restart_random(self) -> None:
        """Resets random operations, as in a new session."""


class ProcessState:
    """What this process keeps for a session, as segments and host kernels use it.

    The other attributes are those of `State`.

    Attributes:
        held: the part that other sessions may share (see `targets`).
        lock: held while state changes.
        several_devices: whether values may be on other devices than the default one.
        functions: runners of function bodies on the host, by function.
    """

    largest_interpreted = 1 << 24
    """Elements of a variable whose initializer NumPy runs rather than XLA. NumPy draws a normal
    number in 26 ns, and XLA on all cores in 5."""

    def __init__(
        self,
        graph: Graph,
        placer: Placer | None = None,
        held: ResourceStore | None = None,
        several_devices: bool = False,
    ) -> None:
        keep_freed_memory()
        compile_without_strength_reduction()
        run_in_calling_thread()
        use_compilation_cache()
        self.held = held = held or ResourceStore()
        self.graph = graph
        self.placer = placer or Placer()
        self.several_devices = several_devices
        self.most_executables: int | None = None
        self.executor = default_executor()
        self.is_brief = self.few_runs = False
        self.cancellation = Cancellation()
        self.values = held.values
        self.resources = held.resources
        self.compilations: Counter[str] = Counter()
        self.functions: dict[Any, Any] = {}
        self.sharded: Mapping[str, tuple[int, ...]] = {}
        self.lock = held.lock
        self._of_function: ProcessState | None = None

    def for_function(self, graph: Graph) -> ProcessState:
        """The state for a function's body: its own variables, shared host objects."""
        held = ResourceStore(resources=self.resources, making=self.held.making)
        inner = ProcessState(graph, self.placer, held)
        inner.compilations, inner.cancellation = self.compilations, self.cancellation
        inner.executor = self.executor
        inner.is_brief, inner.few_runs = self.is_brief, self.few_runs
        inner._of_function = self.variables
        return inner

    def body_of(self, function: Any) -> Any:
        """The runner of a function's body that uses variables of other tasks; else None."""
        return None

    def own(self, names: Sequence[str]) -> list[str]:
        """The variables among `names` that this process holds."""
        return list(names)

    @property
    def variables(self) -> ProcessState:
        """The state that holds the variables, for host kernels (see `uninitialized`)."""
        return self._of_function or self

    def raise_if_cancelled(self) -> None:
        """Cancellation check, for operations that block.

        Raises:
            CancelledError: the session was closed.
            DeadlineExceededError: the run's deadline has passed.
        """
        self.cancellation.check()

    def cancel(self) -> None:
        """Cancels blocked runs (see `State`)."""
        self.cancellation.close()

    def resource(self, name: Any, make: Callable[[], Any]) -> Any:
        """The host object `name` (see `State`)."""
        with self.held.making:
            if name not in self.resources:
                self.raise_if_cancelled()
                self.resources[name] = make()
            return self.resources[name]

    def uninitialized(self, names: Sequence[str]) -> list[str]:
        """The variables among `names` that have no value."""
        return [name for name in names if name not in self.values]

    def take(self, names: Sequence[str]) -> list[Any]:
        """The values of `names`; the caller holds the lock, as the next run may donate them.

        Raises:
            FailedPreconditionError: a variable has none.
        """
        try:
            if self.held.before_take is not None:
                self.held.before_take(self.values, names)
            return [self.values[name] for name in names]
        except KeyError:
            self.raise_if_cancelled()  # a session that closes forgets its values
            return [self._value_or_counter(name) for name in names]

    def read(self, names: Sequence[str]) -> list[Any]:
        """A snapshot of the values of `names` (see `State`)."""
        return self.held.read(names, self.take, self.cancellation.check_of_thread())

    def put(self, name: str, value: Any) -> None:
        """Sets the value of a variable."""
        with self.lock:
            self.values[name] = value

    def initial(self, name: str, value: NDArray[Any], device: Any) -> Any:
        """Transfers the first value of a variable to a device (see `State`)."""
        return jax.device_put(value, device, may_alias=False)  # runs donate it

    def to_save(self, names: Sequence[str]) -> list[Any]:
        """The values of variables, for a checkpoint."""
        return self.read(names)

    def restore(self, path: str, parts: Mapping[str, TensorSlice]) -> set[str]:
        """None: all variables are wholly in this process (see `State`)."""
        return set()

    def variables_set(self) -> None:
        """Nobody else needs to know (see `State`)."""

    def random_counters(self) -> dict[str, Any]:
        """The counters of random operations that have run, by operation."""
        own = {op.name: op.type for op in self.graph.get_operations()}
        with self.lock:
            found = [name for name in self.values if own.get(name, "VarHandleOp") != "VarHandleOp"]
        return dict(zip(found, self.read(found), strict=True))

    def restart_random(self) -> None:
        """Resets random operations, as in a new session."""
        with self.lock:
            for name in self.random_counters():
                del self.values[name]

    def _value_or_counter(self, name: str) -> Any:
        if name not in self.values:
            op = self.graph.get_operation_by_name(name)
            if role_of(op) is Role.VARIABLE:
                raise uninitialized(op)
            words = op.attrs["_seed"] or tuple(np.frombuffer(os.urandom(8), np.uint32))
            self.values[name] = np.array([*words, 0], np.uint32)
        return self.values[name]


def uninitialized(handle: Operation) -> FailedPreconditionError:
    """The error for a variable that is not initialized."""
    name = handle.name
    return FailedPreconditionError.explained(
        f"Attempting to use uninitialized value {name}",
        received=f"variable {name!r}, which has no value in this session",
        made_at=handle.source,
        hint="run global_variables_initializer() or restore a checkpoint first",
        op=handle,
    )
