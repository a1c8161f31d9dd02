"""`TaskService`: executes the requests of clients on this process's state.

`_HANDLERS` lists the requests (see `rpc`); `task_endpoint` receives them.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from estimatorkit.core.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    UnknownError,
)
from estimatorkit.core.x64 import x64
from estimatorkit.distribute.dynamic_sharding import ShardQueues
from estimatorkit.distribute.tasks import rpc
from estimatorkit.distribute.tasks.membership import TRAINING_ENDED, Membership
from estimatorkit.distribute.tasks.staleness import StalenessTracker
from estimatorkit.distribute.tasks.step_leases import StepLeases
from estimatorkit.distribute.tasks.task_program import Program
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.storage.atomic_files import is_temporary, os_errors
from estimatorkit.storage.checkpoint import read_checkpoint_parts
from estimatorkit.storage.checkpoint_format import write_shard
from estimatorkit.storage.checkpoint_manifest import is_checkpoint_file

_logger = logging.getLogger("estimatorkit")

_POLL_SECS = 0.05
"""Seconds after which a request that waits for others checks whether it was cancelled."""

_LEASE_SECS = 1.0
"""How long a worker waits for steps that others have leased: these may wait for their input. After
that it runs one step more, which the total may then exceed.
"""


@dataclass(frozen=True)
class Call:
    """The context of a request.

    Attributes:
        kept: values of earlier requests of the channel that later ones need, by tensor name.
        raise_if_cancelled: called while waiting; raises if the client is gone.
    """

    kept: dict[str, Any]
    raise_if_cancelled: Callable[[], None]


class TaskService:
    """Runs partitions of clients' runs on this process's state.

    Args:
        task: the task's name, '/job:ps/task:0'.
        store: the variables, tables and queues.
        folder: where checkpoints are written; any if None.

    Attributes:
        incarnation: changes when the state is reset.
    """

    def __init__(self, task: str, store: ResourceStore, folder: str | None = None) -> None:
        self.task = task
        self.incarnation = uuid.uuid4().hex
        self._store = store
        self._folder = folder
        self._programs: dict[str, Program] = {}
        self._loading = threading.Lock()
        self._members = Membership()
        self._updates = StalenessTracker()
        self._leases = StepLeases()
        self._shards = ShardQueues()
        self._progress = threading.Condition()
        self._status = rpc.TrainingStatus()
        # Not `_progress`, which would wake the thread that waits for the end at each step.
        self._status_changed = threading.Condition()

    def execute(self, request: rpc.Request[Any], call: Call) -> rpc.Message:
        """The reply to a request, which may be a `Failure`."""
        try:
            reply: rpc.Message = _HANDLERS[type(request)](self, request, call)
            return reply
        except OpError as error:
            return rpc.Failure.of(error)
        except Exception as error:
            # The client gets the error, whatever it is; the task continues to serve the others.
            _logger.exception("A request of another task failed: %s", type(request).__name__)
            return rpc.Failure.of(UnknownError(None, None, f"{type(error).__name__}: {error}"))

    def left(self, workers: Iterable[str], members: Iterable[tuple[str, str]]) -> None:
        """Removes the workers and member processes of a stream that has ended."""
        with self._status_changed:
            for member in members:
                self._members.left(*member)
        with self._progress:
            for worker in workers:
                self._updates.left(worker)
                self._leases.left(worker)
                self._shards.left(worker)
            self._progress.notify_all()

    def wait_until_done(self, seconds: float) -> bool:
        """Waits until the training is done; returns whether it is."""
        with self._status_changed:
            return self._status_changed.wait_for(lambda: self._status.is_done, seconds)

    # -- programs

    def _load_program(self, request: rpc.LoadProgram, call: Call) -> rpc.Done:
        _check_arrays(request, 1)
        with self._loading:
            if request.name not in self._programs:
                graph_def = request.arrays[0].tobytes()
                partition = replace(request.partition, graph_def=graph_def)
                self._programs[request.name] = Program(partition, self._store)
        with self._store.lock:
            for fresh in request.fresh:
                self._store.values.pop(fresh, None)
        return rpc.Done()

    def _run_programs(self, request: rpc.RunPrograms, call: Call) -> rpc.Values:
        """Between a worker's updates and its reads it may have to wait for slower workers; waiting
        is cancelled when the training ends.
        """
        programs = [self._program(name) for name in request.programs]
        _check_arrays(request, sum(program.takes for program in programs))
        given, found = iter(request.arrays), []
        worker = request.worker

        def raise_if_ended() -> None:
            call.raise_if_cancelled()
            if worker is not None and self._status.is_ending:
                raise self._ended()

        waits: list[Callable[[], None]] = []
        try:
            for number, program in enumerate(programs):
                if worker is not None and number == request.updates:
                    self._wait_to_read(worker, request, call)
                inputs = list(itertools.islice(given, program.takes))
                found += program(inputs, call.kept, raise_if_ended, waits, request.bfloat16_rows)
                if worker is not None and number == request.updates - 1:
                    with self._progress:
                        self._updates.updated(worker)
                        self._progress.notify_all()
        finally:
            for wait in waits:  # the client may overwrite the arrays when it has the reply
                wait()
        return rpc.Values(arrays=found)

    def _program(self, name: str) -> Program:
        program = self._programs.get(name)
        if program is None:
            raise NotFoundError.explained(f"{self.task} has no such program", received=name)
        return program

    def _ended(self) -> AbortedError:
        return AbortedError(None, None, f"{self.task}: {TRAINING_ENDED}.")

    def _wait_to_read(self, worker: str, request: rpc.RunPrograms, call: Call) -> None:
        with self._progress:
            if self._status.is_ending and worker not in self._updates.workers:
                raise self._ended()  # the chief waits only for workers that were there
            while not self._updates.can_start(worker, request.bound):
                self._wait_for_progress(call)
            self._updates.read(worker, request.ahead)

    def _wait_for_progress(self, call: Call) -> None:
        call.raise_if_cancelled()
        self._progress.wait(_POLL_SECS)
        self._drop_silent()

    def _drop_silent(self) -> None:
        """Drops the workers of silent processes, whose connections look open."""
        with self._status_changed:
            silent = self._members.silent(time.monotonic())
        for name in silent:
            self._updates.left(name)
            self._leases.left(name)
            self._shards.process_left(name)

    def _lease_steps(self, request: rpc.LeaseSteps, call: Call) -> rpc.StepLease:
        worker, counter, wanted = request.worker, request.counter, request.wanted
        if request.done:
            with self._store.lock:
                self._check_initialized([counter])
                counted = np.asarray(self._store.values[counter])
                self._put([counter], [np.asarray(counted + request.done, counted.dtype)])
        deadline = time.monotonic() + _LEASE_SECS
        with self._progress:
            self._leases.left(worker)
            self._progress.notify_all()
            while True:
                count = int(self._read([counter], call)[0])
                leased = wanted and self._leases.lease(worker, wanted, count, request.until)
                if wanted and not leased and time.monotonic() > deadline:
                    leased = self._leases.lease(worker, 1, count, None)
                if leased or not wanted:
                    return rpc.StepLease(count, leased)
                self._wait_for_progress(call)

    # -- variables

    def _check_initialized(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._store.values:
                raise FailedPreconditionError.explained(
                    f"Attempting to use uninitialized value {name}",
                    hint="run global_variables_initializer() or restore a checkpoint first",
                    op=name,
                )

    def _read(self, names: Sequence[str], call: Call) -> list[Any]:
        def take(names: Sequence[str]) -> list[Any]:
            self._check_initialized(names)
            return [self._store.values[name] for name in names]

        return self._store.read(names, take, call.raise_if_cancelled)

    def _put(self, names: Iterable[str], values: Iterable[Any]) -> None:
        with self._store.lock, x64():
            for name, value in zip(names, values, strict=True):
                is_text = value.dtype.hasobject
                self._store.values[name] = value if is_text else jax.device_put(value)

    def _read_variables(self, request: rpc.ReadVariables, call: Call) -> rpc.Values:
        return rpc.Values(arrays=self._read(request.names, call))

    def _write_variables(self, request: rpc.WriteVariables, call: Call) -> rpc.Done:
        _check_arrays(request, len(request.names))
        self._put(request.names, map(np.array, request.arrays))
        return rpc.Done()

    def _are_initialized(self, request: rpc.AreInitialized, call: Call) -> rpc.Initialized:
        return rpc.Initialized(tuple(name in self._store.values for name in request.names))

    def _save_variables(self, request: rpc.SaveVariables, call: Call) -> rpc.SavedVariables:
        """Writes a checkpoint file from a consistent snapshot."""
        path = Path(request.path)
        _check_shard(path, self._folder)
        found = self._read(list(request.names.values()), call)
        with os_errors("write the checkpoint", path):
            written = write_shard(path, dict(zip(request.names, found, strict=True)))
        return rpc.SavedVariables(written)

    def _restore_variables(self, request: rpc.RestoreVariables, call: Call) -> rpc.Done:
        slices = request.slices
        self._put(slices, read_checkpoint_parts(request.path, slices.values()))
        return rpc.Done()

    def _clear_resources(self, request: rpc.ClearResources, call: Call) -> rpc.Done:
        with self._store.lock:
            self._store.clear()
        return rpc.Done()

    # -- the training

    def _reset(self, request: rpc.ResetTask, call: Call) -> rpc.Done:
        with self._status_changed:
            self._status = replace(self._status, ready=None)
        with self._store.lock:
            self.incarnation = uuid.uuid4().hex
            self._store.clear()
        with self._progress:
            self._shards.clear()
            self._leases.clear()
        return rpc.Done()

    def _heartbeat(self, request: rpc.Heartbeat, call: Call) -> rpc.TrainingStatus:
        with self._status_changed:
            taken = self._members.heartbeat(request.member, request.process, time.monotonic())
            if taken is not None:
                return rpc.TrainingStatus(name_taken_secs=taken)
            known = self._status
            status = self._status = replace(
                known,
                ready=known.ready if request.ready is None else request.ready,
                is_ending=known.is_ending if request.is_ending is None else request.is_ending,
                is_done=known.is_done if request.is_done is None else request.is_done,
            )
            self._status_changed.notify_all()
        with self._progress:
            return replace(
                status,
                workers=tuple(self._updates.workers),
                staleness=self._updates.report(),
                coverage=tuple(self._shards.report()) if status.is_ending else (),
            )

    def _shard_request(self, request: rpc.ShardRequest[Any], call: Call) -> rpc.Message:
        with self._progress:
            self._drop_silent()
            return self._shards.execute(request)


def _check_arrays(request: rpc.Request[Any], count: int) -> None:
    if len(request.arrays) != count:
        raise InvalidArgumentError.explained(
            f"{type(request).__name__} has the wrong number of arrays",
            expected=count,
            received=len(request.arrays),
        )


def _check_shard(path: Path, folder: str | None) -> None:
    """Checks that a path names a new shard of a checkpoint in progress.

    Raises:
        PermissionDeniedError: it is not, or not below `folder`.
    """
    real = Path(os.path.realpath(path))
    is_shard = is_temporary(real.parent.name) and is_checkpoint_file(real.name)
    inside = folder is None or real.is_relative_to(os.path.realpath(folder))
    if not (is_shard and inside) or os.path.lexists(path):
        raise PermissionDeniedError.explained(
            "a task writes only new files of checkpoints",
            expected=f"a path below {folder!r}" if folder else "a checkpoint that is being written",
            received=str(path),
        )


_HANDLERS: dict[type[rpc.Request[Any]], Callable[..., rpc.Message]] = {
    rpc.LoadProgram: TaskService._load_program,
    rpc.RunPrograms: TaskService._run_programs,
    rpc.LeaseSteps: TaskService._lease_steps,
    rpc.ReadVariables: TaskService._read_variables,
    rpc.WriteVariables: TaskService._write_variables,
    rpc.AreInitialized: TaskService._are_initialized,
    rpc.SaveVariables: TaskService._save_variables,
    rpc.RestoreVariables: TaskService._restore_variables,
    rpc.ClearResources: TaskService._clear_resources,
    rpc.ResetTask: TaskService._reset,
    rpc.Heartbeat: TaskService._heartbeat,
    rpc.TakeShard: TaskService._shard_request,
    rpc.CompleteShards: TaskService._shard_request,
    rpc.HasShards: TaskService._shard_request,
    rpc.SaveShards: TaskService._shard_request,
    rpc.RestoreShards: TaskService._shard_request,
}
