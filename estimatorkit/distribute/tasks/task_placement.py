"""Which task of a cluster runs an operation.

Tasks are named as in TensorFlow, '/job:ps/task:1'; `HERE` is the session's process. Operations run
on the requested task, with three exceptions: operations on variables, queues and tables are
colocated with them, as are operations that read a few rows of a variable; operations on objects of
this process (datasets, Python functions) run here. An operation that holds functions (cond,
while_loop, map_fn) is placed with the resources in them; if these are on several tasks, it is
*spread*: it runs here, and the operations of its functions are placed by the same rules.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.devices import DeviceSpec
from estimatorkit.core.dtypes import DType, resource
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.function_graph import GraphFunction, functions_held, operations_within
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.interop import attr_values

HERE = ""
"""The session's own process, whether or not it is a task."""


def task_name(job: str, index: int) -> str:
    """The name of a task."""
    return f"/job:{job}/task:{index}"


class TaskPlacer:
    """Maps operations to tasks.

    Args:
        tasks: the names of the cluster's tasks.
        default: the task of operations that request none, or `HERE`.
        own: the name of this process's task, or None.
    """

    def __init__(self, tasks: Collection[str], default: str, own: str | None) -> None:
        self._tasks = list(tasks)
        self._default = default
        self._own = own

    def described(self, op: Operation) -> str:
        """An operation's task in TensorFlow's notation, without the device."""
        task = self(op)
        name = (self._own or task_name("localhost", 0)) if task == HERE else task
        return name.replace("/task:", "/replica:0/task:")

    def __call__(self, op: Operation) -> str:
        """The task's name, or `HERE`.

        Raises:
            InvalidArgumentError: the task does not exist, or the operation uses resources on
                several tasks without holding functions.
        """
        row = registry.lookup(op.type)
        if row.placement.colocate_with_input and role_of(op.inputs[0].op) is Role.READ:
            return self(op.inputs[0].op)
        places = self._places(op)
        if not places:
            return self._requested(op)
        if len(places) == 1:
            return next(iter(places))
        if any(True for _ in functions_held(op.attrs)):
            return HERE
        where = [f"{each.name} on {at or 'this process'}" for at, each in places.items()]
        raise InvalidArgumentError.explained(
            f"the inputs of {op.name} are on different tasks, and it must run where they are",
            received=", ".join(where),
            made_at=op.source,
            hint="place them on one task with tf.device; py_func and iterators run in this process",
            op=op,
        )

    def is_spread(self, op: Operation) -> bool:
        """Whether an operation uses resources on several tasks."""
        return len(self._places(op)) > 1

    def _places(self, op: Operation) -> dict[str, Operation]:
        """The tasks of an operation's resources, with an example of each."""
        places = {self._requested(each): each for each in holders(op)}
        if is_of_this_process(op):
            places.setdefault(HERE, op)
        return places

    def _requested(self, op: Operation) -> str:
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
        raise InvalidArgumentError.explained(
            f"Cannot assign a device for operation {op.name}: it was explicitly assigned to "
            f"{op.device} but the cluster has no such task",
            expected=f"one of {', '.join(self._tasks)}",
            received=op.device,
            made_at=op.source,
            op=op,
        )


def holders(op: Operation) -> list[Operation]:
    """The handles of an operation's resources: variables, queues, tables."""
    found = [tensor.op for tensor in op.inputs if tensor.dtype is resource]
    for each in (op, *operations_within(op)):
        names = each.attrs.get(registry.lookup(each.type).placement.holder, ())
        for name in (names,) if isinstance(names, str) else names:
            handle = each.graph.find_operation(name)
            if handle is not None:
                found.append(handle)
    return found


def is_of_this_process(op: Operation) -> bool:
    """Whether an operation uses objects that cannot be serialized."""
    return any(
        registry.lookup(each.type).placement.client_only
        or any(_is_in_memory(value) for name, value in each.attrs.items() if name[0] != "_")
        for each in (op, *operations_within(op))
    )


def _is_in_memory(value: Any) -> bool:
    if isinstance(value, _PLAIN) or value is None:
        return False
    if isinstance(value, dict):
        return any(map(_is_in_memory, value.values()))
    if isinstance(value, (tuple, list)):
        return any(map(_is_in_memory, value))
    return not attr_values.is_plain(value)


_PLAIN = (str, bytes, int, float, np.ndarray, DType, TensorShape, GraphFunction)
"""Types whose values are not checked further."""


def readable_tensors(tensors: Collection[Tensor]) -> list[Tensor]:
    """The tensors that are values rather than handles."""
    return [tensor for tensor in tensors if tensor.dtype is not resource]
