"""`CriticalSection`: subgraphs that concurrent runs execute one at a time.

Operations created inside `execute` form the section's body. They stay in the graph, but a run's
plan contains one host operation instead, which runs the body by its own plan while holding the
section's lock, a `Blocking` in the session. The body's variables are therefore read after the lock
is acquired and written before it is released, whatever else the run does; an error in the body
releases it too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.builtin_ops import no_op
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import UnimplementedError, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.nest import expand
from estimatorkit.core.registry import Role, Spec, apply, register, register_handle, role_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.queues.queue_resource import Blocking
from estimatorkit.runtime.executor import PlanRunner
from estimatorkit.runtime.plan import make_plan


def _execute(
    *captured: Any,
    section: str,
    feeds: tuple[str, ...],
    fetches: tuple[str, ...],
    targets: tuple[str, ...],
    context: Any,
) -> list[Any]:
    graph: Graph = context.graph
    if graph.outermost is not graph:
        raise UnimplementedError.explained(
            "a CriticalSection cannot be entered within a function (cond, while_loop, map_fn)",
            hint="let the section's own function hold the condition",
        )

    def prepare() -> PlanRunner:
        plan = make_plan(
            graph,
            [graph.get_tensor_by_name(name) for name in fetches],
            [graph.get_operation_by_name(name) for name in targets],
            [graph.get_tensor_by_name(name) for name in feeds],
            context.placer,
        )
        return PlanRunner(plan, context)

    runner = context.resource(("body", section, fetches, targets), prepare)
    shared = graph.get_operation_by_name(section).attrs["shared_name"] or section
    lock: Blocking = context.resource(shared, Blocking)
    with lock.alone(context, "Entering a critical section was cancelled"):
        results: list[Any] = runner.run(list(captured))
    return results


register_handle("MutexV2", "a critical section")
register(
    "ExecuteInCriticalSection",
    _execute,
    infer=lambda inputs, attrs: attrs["_specs"],
    gradient=None,
    where="host",
    context=True,
    pure=False,
    client_only=True,
)

_EXECUTIONS = "critical_section_executions"
"""The collection of (section, handles of variables, exclusive) of a graph."""


class CriticalSection:
    """A mutual-exclusion section of the graph: `execute` adds operations to it.

    Args:
        name: the name of its handle.
        shared_name: sections with equal `shared_name` are the same section in a session.
        critical_section_def, import_scope: not supported; refused.

    Source: `tf.CriticalSection`.
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if critical_section_def is not None:
            raise ValueError("CriticalSection: critical_section_def is not supported.")
        with get_default_graph().init_scope():
            attrs = {"shared_name": shared_name or ""}
            self._handle = apply("MutexV2", (), attrs, name or "CriticalSection")
        self._inside = False

    @property
    def name(self) -> str:
        """The name of its handle."""
        return self._handle.name

    def execute(
        self,
        fn: Callable[[], Any],
        exclusive_resource_access: bool = True,
        name: str | None = None,
    ) -> Any:
        """Returns the results of `fn`, computed by one run at a time.

        Args:
            fn: a function without arguments. Operations it creates run inside the section; tensors
                it captures are computed before.
            exclusive_resource_access: refuse variables that another section uses.

        Returns:
            The structure of tensors that `fn` returned; operations in it are replaced by the
            operation that runs the section. Gradients do not flow through.

        Raises:
            ValueError: `fn` re-enters the section, another section uses its variables, or the body
                has a control dependency on an operation outside.
        """
        graph = get_default_graph()
        if self._inside:
            raise value_error(
                f"Attempting to enter CriticalSection {self.name} while in it already",
                made_at=self._handle.source,
                hint="it would wait for itself: call the inner function directly",
            )
        before = graph.version
        with graph.name_scope(name or "critical_section_execute") as scope:
            self._inside = True
            try:
                # Under its own control edge, the body reads the variables again.
                with graph.control_dependencies(None), graph.control_dependencies([no_op("enter")]):
                    leaves, rebuild = expand(fn())
                    results = [
                        each if isinstance(each, Operation) else convert_to_tensor(each)
                        for each in leaves
                    ]
            finally:
                self._inside = False
            body = graph.get_operations()[before:]
            captured = _captured(self.name, body, results)
            self._check_exclusive(graph, body, exclusive_resource_access)
            tensors = [each for each in results if isinstance(each, Tensor)]
            attrs = {
                "section": self.name,
                "feeds": tuple(tensor.name for tensor in captured),
                "fetches": tuple(tensor.name for tensor in tensors),
                "targets": tuple(each.name for each in results if isinstance(each, Operation)),
                "_specs": [Spec(tensor.dtype, tensor.shape) for tensor in tensors],
            }
            op = apply("ExecuteInCriticalSection", captured, attrs, scope)
        outputs = iter(op.outputs)
        return rebuild([next(outputs) if isinstance(each, Tensor) else op for each in results])

    def _check_exclusive(self, graph: Graph, body: Sequence[Operation], exclusive: bool) -> None:
        handles = {tensor for op in body for tensor in op.inputs if tensor.dtype is resource}
        for name, others, other_exclusive in graph.get_collection(_EXECUTIONS):
            shared = handles & others
            if name != self.name and shared and (exclusive or other_exclusive):
                names = ", ".join(sorted(tensor.op.name for tensor in shared))
                raise value_error(
                    f"CriticalSections {self.name} and {name} use the same variables: {names}",
                    made_at=self._handle.source,
                    hint="use one section for both, or exclusive_resource_access=False in both",
                )
        graph.add_to_collection(_EXECUTIONS, (self.name, handles, exclusive))


def _captured(name: str, body: Sequence[Operation], results: Sequence[Any]) -> list[Tensor]:
    """The tensors that the body captures.

    Raises:
        ValueError: an operation of the body has a control input outside.
    """
    inside = set(body)
    found: dict[Tensor, None] = {}
    taken = [tensor for op in body for tensor in op.inputs]
    for tensor in (*taken, *(each for each in results if isinstance(each, Tensor))):
        known = tensor.dtype is resource or role_of(tensor.op) is Role.CONSTANT
        if tensor.op not in inside and not known:
            found[tensor] = None
    for op in body:
        outside = next((other for other in op.control_inputs if other not in inside), None)
        if outside is not None:
            raise value_error(
                f"in CriticalSection {name}, {op.name} waits for {outside.name}, which is outside",
                made_at=op.source,
                hint="put control_dependencies around execute(), not into its function",
            )
    return list(found)
