"""`TrainingCluster`: the parameter servers and workers that an estimator trains with.

The chief initializes and saves the parameters, and ends the training; workers wait until the model
is ready. Every parameter server holds the training's status (`TrainingStatus`): heartbeats return
it, and those of the chief change it. If a parameter server is lost, the chief resets all of them
and restores the latest checkpoint; workers, whose next step fails, wait until it is ready.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from estimatorkit.core.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    OpError,
    UnavailableError,
)
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Role, role_of
from estimatorkit.distribute.cluster_task import PS, ClusterTask
from estimatorkit.distribute.device_setter import replica_device_setter
from estimatorkit.distribute.exit_codes import Interrupted
from estimatorkit.distribute.launch.cpu_budget import share_processors
from estimatorkit.distribute.tasks import membership as members
from estimatorkit.distribute.tasks.task_placement import HERE, task_name
from estimatorkit.estimator.evaluation.completion import completion_time, read_completion
from estimatorkit.layers.feature_column import column_texts
from estimatorkit.logger import logger
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.targets import Target
from estimatorkit.runtime.xla.at_exit import counted, idle

LOST = (AbortedError, UnavailableError)
"""What a step raises when a parameter server was lost or put back."""

_POLL_SECS = 0.1
_LOG_SECS = 30.0

_sessions = itertools.count(1)


class TrainingCluster:
    """The cluster of a training process.

    Args:
        task: the task of this process.
        model_dir: the model folder.
        wait_secs: how long to wait for peers.
        bound: the staleness bound in steps; None for no bound.
        ahead, bfloat16_rows: see `TaskCluster`.
        grace_secs: how long the chief waits at the end for workers to finish their steps.
    """

    def __init__(
        self,
        task: ClusterTask,
        model_dir: str,
        wait_secs: float,
        bound: int | None = None,
        ahead: int = 0,
        bfloat16_rows: bool = False,
        grace_secs: float = 10.0,
    ) -> None:
        # Imported here: programs without a cluster need none of the messages between tasks.
        from estimatorkit.distribute.tasks.task_cluster import TaskCluster, addresses_of

        self.is_chief = task.is_chief
        self._model_dir = model_dir
        self._wait_secs = wait_secs
        self._grace_secs = grace_secs
        share_processors(task.cluster, task.address)
        addresses = addresses_of(task.cluster)
        servers = {name: at for name, at in addresses.items() if name.startswith(f"/job:{PS}/")}
        self._own = task_name(task.type, task.index)
        self._tasks = TaskCluster(servers, HERE, self._own, wait_secs, bound, ahead, bfloat16_rows)
        self._tasks.shard_server = next(iter(servers), None)
        self._tasks.raise_if_cancelled = self._raise_if_cancelled
        self._is_terminated = False
        # When a completion was last written: a later one is that of this training.
        self._completion = completion_time(model_dir)

    @staticmethod
    def device_function(task: ClusterTask) -> Callable[[Any], str] | None:
        """The device function: variables on the parameter servers, round-robin."""
        return replica_device_setter(
            worker_device=task_name(task.type, task.index), cluster=task.cluster
        )

    def open_target(self) -> str:
        """Opens a target for one session."""
        from estimatorkit.distribute.tasks.task_cluster import serve_target

        name = f"{self._own.removeprefix('/')}/{next(_sessions)}"
        return serve_target(name, Target(ResourceStore(), self._tasks))

    def terminate(self) -> None:
        """Handles SIGTERM: cancels all waiting for peers."""
        self._is_terminated = True

    def _raise_if_cancelled(self) -> None:
        if self._is_terminated:
            raise Interrupted
        if self._has_ended():
            raise UnavailableError(None, None, "Training has ended.")

    def wait_for_servers(self) -> None:
        """Waits until all parameter servers have started.

        Raises:
            DeadlineExceededError: one did not start in time.
        """
        self._tasks.heartbeat()

    @contextmanager
    def heartbeats(self) -> Iterator[None]:
        """A context manager that sends heartbeats in the background."""
        over = threading.Event()

        def send() -> None:
            while not _is_over():
                with suppress(OpError):  # the training's own requests fail, too
                    self._tasks.heartbeat_reachable()

        def _is_over() -> bool:
            with idle():
                return over.wait(members.SILENT_SECS / 3)

        threading.Thread(target=counted(send), daemon=True).start()
        try:
            yield
        finally:
            over.set()

    # -- chief

    def begin(self, graph: Graph) -> bool:
        """Checks whether the parameter servers already hold this model, from before this process
        was restarted or disconnected.

        If they hold another model, or only a part, they are reset.
        """
        own = self._fingerprint(graph)
        ready = [status.ready for status in self._tasks.heartbeat().values()]
        if all(each == own for each in ready):
            self._tasks.heartbeat(is_ending=False)  # the chief may have been lost while ending
            return True
        if any(each is not None for each in ready):
            self._tasks.reset()
        return False

    def announce_ready(self, graph: Graph) -> None:
        """Tells workers that the model is ready."""
        self._tasks.heartbeat(ready=self._fingerprint(graph), is_ending=False)

    def drain(self) -> None:
        """Tells workers that the training ends, and waits for them to leave, up to the grace
        period.
        """
        deadline = time.monotonic() + self._grace_secs
        while True:
            found = self._tasks.heartbeat(is_ending=True)
            left = {worker for each in found.values() for worker in each.workers} - {self._own}
            if not left:
                break
            if time.monotonic() > deadline:
                logger.warning(
                    "%s did not finish their steps within %g seconds: the last checkpoint does not "
                    "include these steps.",
                    ", ".join(sorted(left)),
                    self._grace_secs,
                )
                break
            time.sleep(_POLL_SECS)
        for server, each in found.items():
            if each.staleness:
                logger.info("%s: %s.", server, each.staleness)
            for line in each.coverage:
                logger.info("Dynamic sharding: %s.", line)

    def announce_done(self) -> None:
        """Tells parameter servers to shut down; some may have done so already."""
        self._tasks.heartbeat_reachable(is_done=True)

    # -- workers

    @property
    def is_ending(self) -> bool:
        """Whether the chief has ended the training."""
        return any(each.is_ending for each in self._tasks.heartbeat().values())

    def wait_until_ready(self, graph: Graph) -> bool:
        """Waits until the chief's model is ready; False if the training ends.

        Raises:
            DeadlineExceededError: it was not ready in time.
            FailedPreconditionError: the chief's model differs.
        """
        own = self._fingerprint(graph)
        started = logged = time.monotonic()
        while not self._has_ended():
            try:
                found = list(self._tasks.heartbeat().values())
            except LOST:
                found = []
            if any(each.is_ending or each.is_done for each in found):
                return False
            if found and all(each.ready == own for each in found):
                self._completion = completion_time(self._model_dir)
                return True
            for each in found:
                if each.ready is not None and each.ready != own:
                    raise _different(own, each.ready)
            if self._is_terminated:
                raise Interrupted
            now = time.monotonic()
            if now - started > self._wait_secs:
                raise DeadlineExceededError.explained(
                    f"the chief did not initialize the model within {self._wait_secs:g} seconds",
                    hint="is its process running? RunConfig(session_creation_timeout_secs=...)",
                )
            if now - logged > _LOG_SECS:
                logged = now
                logger.info("Waiting for the chief to initialize the model.")
            time.sleep(_POLL_SECS)
        return False

    def _has_ended(self) -> bool:
        """Whether this training is done, so that the parameter servers are gone for good."""
        if self._completion == completion_time(self._model_dir):
            return False
        found = read_completion(self._model_dir)
        return found is not None and found.reason is not None

    def leave(self) -> None:
        """Leaves the training, so that nobody waits for this process."""
        self._completion = completion_time(self._model_dir)
        self._tasks.renew()

    def renew(self) -> None:
        """Reconnects to the parameter servers, which may have been restarted."""
        self._tasks.renew()

    def _fingerprint(self, graph: Graph) -> dict[str, str]:
        """A fingerprint of what must be equal in all processes: the folder, the variables with
        their tasks, and the feature columns.
        """
        variables = {
            op.name: f"{op.attrs['dtype'].name}{op.attrs['shape']} {op.device}"
            for op in graph.get_operations()
            if role_of(op) is Role.VARIABLE and self._tasks.placer(op) != HERE
        }
        parts = dict(sorted({**variables, **column_texts(graph)}.items()))
        digest = hashlib.sha256(repr(parts).encode()).hexdigest()
        shown = parts if len(parts) <= 1000 else {}
        return {"model_dir": self._model_dir, "digest": digest, **shown}


def _different(own: Mapping[str, str], chief: Mapping[str, str]) -> FailedPreconditionError:
    names = [name for name in {**own, **chief} if own.get(name) != chief.get(name)]
    names = [name for name in names if name != "digest"] or ["digest"]
    shown = [
        f"{name}: {own.get(name, 'not there')}, with the chief {chief.get(name, 'not there')}"
        for name in names[:5]
    ]
    return FailedPreconditionError.explained(
        "this process's model differs from the chief's",
        expected="the same program, data columns and model_dir in every process",
        received="; ".join(shown) + (f" and {len(names) - 5} more" if len(names) > 5 else ""),
    )


__all__ = ["LOST", "TrainingCluster"]
