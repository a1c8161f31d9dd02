"""Which task of a cluster runs an operation.

A task is called as in TensorFlow, '/job:ps/task:1'; `HERE` is the process of the session. What an
operation asks for counts, but for three: one that works on a variable, a queue or a table runs
where that is; one that takes a few rows of a variable, too; one whose attributes hold objects of
this process (datasets, Python functions) runs here.
"""

from __future__ import annotations

from collections.abc import Collection

from estimatorkit.core import attr_values, registry
from estimatorkit.core.devices import DeviceSpec
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import InvalidArgumentError, explain
from estimatorkit.core.graph import Graph
from estimatorkit.core.tensor import Operation, Tensor

HERE = ""
"""The task that a session's own process is, or the process itself, if it is none."""


def task_name(job: str, index: int) -> str:
    """A task's name."""
    return f"/job:{job}/task:{index}"


class TaskPlacer:
    """Gives each operation its task.

    Args:
        tasks: the names of the cluster's tasks.
        default: where operations run that ask for none: a task's name, or `HERE`.
        own: the name of the task that this process is; None where it is none.
    """

    def __init__(self, tasks: Collection[str], default: str, own: str | None) -> None:
        self._tasks = list(tasks)
        self._default = default
        self._own = own
        self._known: dict[Operation, str] = {}

    def __call__(self, op: Operation) -> str:
        """The task's name, or `HERE`.

        Raises:
            InvalidArgumentError: the cluster has no such task.
        """
        if op not in self._known:
            self._known[op] = self._placed(op)
        return self._known[op]

    def _placed(self, op: Operation) -> str:
        row = registry.lookup(op.type)
        if row.stays or any(map(_is_of_this_process, op.attrs.items())):
            return HERE
        if row.beside and op.inputs[0].op.type == "ReadVariableOp":
            return self(op.inputs[0].op)
        held = holders(op)
        if held:
            places = {self._asked(each): each for each in held}
            if len(places) > 1:
                raise InvalidArgumentError(
                    None,
                    op,
                    explain(
                        f"{op.name} works on variables of several tasks at once",
                        received=", ".join(f"{each.name} on {at}" for at, each in places.items()),
                        made_at=op.source,
                        hint="read the variables before, outside of cond, while_loop and map_fn; "
                        "or put them on one task",
                    ),
                )
            return next(iter(places))
        return self._asked(op)

    def _asked(self, op: Operation) -> str:
        if not op.device:
            return self._default
        spec = DeviceSpec.from_string(op.device)
        if spec.job is None:
            return self._default
        at = [name for name in self._tasks if name.startswith(f"/job:{spec.job}/")]
        if spec.task is not None:
            at = [name for name in at if name == task_name(str(spec.job), spec.task)]
        if at:
            return HERE if at[0] == self._own else at[0]
        raise InvalidArgumentError(
            None,
            op,
            explain(
                f"Cannot assign a device for operation {op.name}: it was explicitly assigned to "
                f"{op.device} but the cluster has no such task",
                expected=f"one of {', '.join(self._tasks)}",
                received=op.device,
                made_at=op.source,
            ),
        )


def holders(op: Operation) -> list[Operation]:
    """The handles of what an operation works on: variables, queues, tables."""
    found = [tensor.op for tensor in op.inputs if tensor.dtype is resource]
    names = op.attrs.get(registry.lookup(op.type).holder, ())
    for name in (names,) if isinstance(names, str) else names:
        handle = named_operation(op.graph, name)
        if handle is not None:
            found.append(handle)
    return found


def named_operation(graph: Graph, name: str) -> Operation | None:
    """The operation of a name, if there is one: a table may be shared under another name."""
    try:
        return graph.get_operation_by_name(name)
    except KeyError:
        return None


def _is_of_this_process(attr: tuple[str, object]) -> bool:
    name, value = attr
    if name.startswith("_") or isinstance(value, (str, int, float, bool)):
        return False
    return not attr_values.is_plain(value)


def readable_tensors(tensors: Collection[Tensor]) -> list[Tensor]:
    """Those that are values: handles are names."""
    return [tensor for tensor in tensors if tensor.dtype is not resource]
