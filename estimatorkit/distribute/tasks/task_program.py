"""`Program`: a partition of a remote client's run, as a task holds and runs it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import float32
from estimatorkit.core.graph import Graph
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.distribute.tasks import rpc
from estimatorkit.distribute.tasks.row_messages import rounded, widened
from estimatorkit.distribute.tasks.serialized_partition import SerializedPartition
from estimatorkit.runtime.executor import PlanRunner
from estimatorkit.runtime.plan import make_plan
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.state import ProcessState
from estimatorkit.runtime.xla.placement import Placer, available


class Program:
    """A graph that this task runs for clients.

    Args:
        part: the serialized partition.
        held: the task's variables, tables and queues.

    Attributes:
        takes: the number of arrays that a call takes.
    """

    def __init__(self, part: SerializedPartition, held: ResourceStore) -> None:
        graph, fed, fetched, targets = part.load()
        self._part = part
        self._held = held
        self._given = [name for name in part.inputs if name not in part.kept]
        dtypes = {name: each.dtype for name, each in zip(part.inputs, fed, strict=True)}
        self._dtypes = [dtypes[name] for name in self._given]
        self._rows = {
            name
            for name, tensor in zip(part.outputs, fetched, strict=True)
            if tensor.op.type == "GatherV2" and tensor.dtype is float32
        }
        self.takes = len(self._given)
        self._state = ProcessState(graph, Placer(part.soft), held, len(available()) > 1)
        self._reads = _numbers_read(graph, fetched, targets, fed)
        plan = make_plan(graph, fetched, targets, fed, self._state.placer, part.optimize)
        self._runner = PlanRunner(plan, self._state)

    def __call__(
        self,
        arrays: Sequence[Any],
        kept: dict[str, Any],
        raise_if_cancelled: Callable[[], None],
        waits: list[Callable[[], None]],
        bfloat16_rows: bool = False,
    ) -> list[Any]:
        """Runs it, and returns the arrays to send back.

        Args:
            arrays: its inputs, except those in `kept`.
            kept: values from earlier partitions of the run, by tensor name; updated, and cleared by
                the last partition.
            raise_if_cancelled: called while waiting; may raise to cancel.
            waits: receives functions that block until the inputs have been read.
            bfloat16_rows: whether to round the rows of float32 tables to bfloat16.
        """
        given = dict(zip(self._given, map(widened, arrays, self._dtypes), strict=True))
        given.update((name, kept[name]) for name in self._part.kept)
        fed = [given[name] for name in self._part.inputs]
        if self._reads:
            found = self._state.read(self._reads)
        else:
            with self._state.cancellation.watched(raise_if_cancelled):
                found = self._runner.compute(fed, waits=waits)
        values = dict(zip(self._part.outputs, found, strict=True))
        if self._part.last:
            kept.clear()
        else:
            kept.update(values)
        sent = {name: np.asarray(values[name]) for name in self._part.sent}
        for name in self._rows.intersection(sent) if bfloat16_rows else ():
            sent[name] = rounded(sent[name])
        return list(sent.values())


def _numbers_read(
    graph: Graph, fetched: Sequence[Tensor], targets: Sequence[Operation], fed: Sequence[Tensor]
) -> list[str]:
    """The variables that a graph reads, if it does nothing else and they are scalars.

    The global step is read at each step, and an XLA call would double the time of that.
    """
    ops = graph.get_operations()
    is_read = {"VarHandleOp", "ReadVariableOp"}.issuperset(op.type for op in ops)
    if fed or targets or not is_read:
        return []
    handles = [tensor.op.inputs[0].op for tensor in fetched if tensor.op.inputs]
    are_numbers = all(handle.attrs["shape"].rank == 0 for handle in handles)
    return [handle.name for handle in handles] if are_numbers else []


def load_request(part: SerializedPartition, fresh: Sequence[str]) -> rpc.LoadProgram:
    """The request to load a partition, under a hash of its content as the program's name.

    Args:
        part: the partition.
        fresh: the names of the random operations to reset.
    """
    header = replace(part, graph_def=b"")
    digest = hashlib.sha256(part.graph_def)
    digest.update(repr(replace(header, sources={})).encode())
    graph = np.frombuffer(part.graph_def, np.uint8)
    return rpc.LoadProgram(digest.hexdigest(), header, tuple(fresh), arrays=[graph])


__all__ = ["Program", "load_request"]
