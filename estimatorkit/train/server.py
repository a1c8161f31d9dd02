"""`Server`: a target whose sessions share their variables, in this process."""

from __future__ import annotations

import threading
from typing import Any, NoReturn

from estimatorkit.core.errors import UnimplementedError, explain
from estimatorkit.core.targets import open_target
from estimatorkit.train.cluster_spec import ClusterSpec


class Server:
    """A server of a cluster of one task, within this process (`tf.train.Server`).

    Sessions of its `target` share variables, tables and queues by name, whatever their graphs are;
    these stay when a session closes, until `Session.reset(target)`. Two sessions of one graph
    share the counters of random operations, too (TensorFlow's have one each). Nothing listens on
    the network.

    Args:
        server_or_cluster_def: what `ClusterSpec` takes: one job of one task.
        job_name: its name.
        task_index: 0.
        protocol, config, start: accepted without effect.

    Raises:
        UnimplementedError: the cluster has several tasks.
        ValueError: the job or the task is not in the cluster.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        cluster = ClusterSpec(server_or_cluster_def)
        if sum(map(cluster.num_tasks, cluster.jobs)) > 1:
            raise UnimplementedError(
                None,
                None,
                explain(
                    "Server: clusters of several tasks come with a later release",
                    expected="one job with one task",
                    received=repr(cluster),
                ),
            )
        job = job_name or next(iter(cluster.jobs), None)
        if job not in cluster.jobs or (task_index or 0) not in cluster.task_indices(job):
            raise ValueError(
                explain(
                    "Server: this task is not in the cluster",
                    expected=f"a job and a task of {cluster!r}",
                    received=f"job_name={job_name!r}, task_index={task_index!r}",
                )
            )
        self._target = open_target()

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A server of a cluster of one job `local` with one task."""
        return Server({"local": ["localhost:0"]}, config=config, start=start)

    @property
    def target(self) -> str:
        """What `Session` takes to be one of this server's."""
        return self._target

    def start(self) -> None:
        """Nothing: the server runs from its making on."""

    def join(self) -> NoReturn:
        """Waits, for ever: the server ends with its process."""
        while True:
            threading.Event().wait()
