"""`replica_device_setter`: variables on parameter servers, everything else on a worker.

Each process of a cluster builds the same graph under `tf.device(replica_device_setter(...))`.
Placement is consistent because variables are assigned to servers in creation order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.devices import DeviceSpec
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.shapes import as_shape
from estimatorkit.distribute.cluster_spec import ClusterSpec

_logger = logging.getLogger("estimatorkit")

STANDARD_PS_OPS = (
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "VarHandleOp",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "ResourceConditionalAccumulator",
)
"""The op types that go to parameter servers: those of TensorFlow that hold what is trained."""

Strategy = Callable[[Any], int]
"""From an operation to the number of the parameter server that gets it."""


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Strategy | None = None,
) -> Callable[[Any], str] | None:
    """Returns a device function for between-graph replication.

    Variables are placed on the tasks of the job `ps` round-robin, everything else on the worker.
    Inner device blocks take precedence. Slot variables are colocated with their variable, and do
    not count.

    Source: `tf.compat.v1.train.replica_device_setter`.

    Args:
        ps_tasks: the number of parameter servers; ignored if `cluster` is given.
        ps_device: the device of variables, without the task; '' for the worker's.
        worker_device: the device of everything else, for example '/job:worker/task:1'.
        merge_devices: whether to merge with an operation's requested device, rather than leave the
            operation alone.
        cluster: an argument of `ClusterSpec`, which gives the number of tasks of `ps_device`.
        ps_ops: the op types to place on parameter servers; `STANDARD_PS_OPS` by default.
        ps_strategy: maps an operation to the index of its parameter server; round-robin by default.

    Returns:
        The function, or None if there are no parameter servers.

    Raises:
        TypeError: `cluster` is invalid, or `ps_strategy` not callable.
        ValueError: a device name is malformed.
    """
    if cluster is not None:
        spec, job = ClusterSpec(cluster), DeviceSpec.from_string(ps_device).job
        ps_tasks = spec.num_tasks(job) if job in spec.jobs else 0
    if ps_tasks == 0:
        return None
    if not merge_devices:
        _logger.warning(
            "DEPRECATION: It is recommended to set merge_devices=true in replica_device_setter"
        )
    strategy = InTurn(ps_tasks) if ps_strategy is None else ps_strategy
    if not callable(strategy):
        raise type_error(
            "ps_strategy must be callable",
            expected="a function that maps an operation to a task number",
            received=repr(strategy),
        )
    at_servers = DeviceSpec.from_string(ps_device) if ps_device else None
    at_worker = DeviceSpec.from_string(worker_device or "")
    types = STANDARD_PS_OPS if ps_ops is None else tuple(ps_ops)

    def device(op: Any) -> str:
        asked: str = op.device
        if asked and not merge_devices:
            return asked
        own = DeviceSpec.from_string(asked or "")
        op_type = op.op if hasattr(op, "op") else op.type  # a NodeDef, or an operation
        if at_servers is None or op_type not in types:
            return at_worker.make_merged_spec(own).to_string()
        server = at_servers
        if server.job and own.job in (None, server.job):
            server = server.make_merged_spec(DeviceSpec(task=int(strategy(op))))
        return server.make_merged_spec(own).to_string()

    return device


class InTurn:
    """Round-robin: the default strategy of `replica_device_setter`.

    Args:
        num_tasks: the number of tasks.
    """

    def __init__(self, num_tasks: int) -> None:
        self._num_tasks = num_tasks
        self._next = 0

    def __call__(self, op: Any) -> int:
        """The index of the next task."""
        task = self._next
        self._next = (task + 1) % self._num_tasks
        return task


class GreedyLoadBalancingStrategy:
    """Chooses the least loaded task (`tf.contrib.training.GreedyLoadBalancingStrategy`).

    Args:
        num_tasks: the number of parameter servers.
        load_fn: maps an operation to its load, for example `byte_size_load_fn`.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Any], float]) -> None:
        self._loads = np.zeros(num_tasks)
        self._load_fn = load_fn

    def __call__(self, op: Any) -> int:
        """The index of the least loaded task, the first if several."""
        task = int(np.argmin(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


class RandomStrategy:
    """Chooses a random task (`tf.contrib.training.RandomStrategy`).

    Args:
        num_tasks: the number of parameter servers.
        seed: must be the same in all processes of the cluster.
    """

    def __init__(self, num_tasks: int, seed: int = 0) -> None:
        self._num_tasks = num_tasks
        self._random = np.random.RandomState(seed)

    def __call__(self, op: Any) -> int:
        """The index of a random task."""
        return int(self._random.randint(self._num_tasks))


def byte_size_load_fn(op: Any) -> int:
    """The size in bytes of a variable, or of an operation's only output.

    Raises:
        ValueError: there is not exactly one output, or its shape is unknown.
    """
    if len(op.outputs) != 1:
        raise value_error(
            f"Op {op.name} must have a single output",
            received=f"{len(op.outputs)} outputs",
            made_at=op.source,
        )
    (output,) = op.outputs
    dtype, shape = output.dtype, output.shape
    if role_of(op) is Role.VARIABLE:
        dtype, shape = op.attrs["dtype"], as_shape(op.attrs["shape"])
    shape.assert_is_fully_defined()
    return int(shape.num_elements()) * int(dtype.size)


__all__ = [
    "GreedyLoadBalancingStrategy",
    "RandomStrategy",
    "byte_size_load_fn",
    "replica_device_setter",
]
