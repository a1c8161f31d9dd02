"""`Server`: this process as a task of a cluster (`tf.train.Server`)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NoReturn

from estimatorkit.core.devices import DeviceSpec
from estimatorkit.core.errors import UnavailableError, value_error
from estimatorkit.distribute.addresses import (
    LISTEN_SECS,
    check_free,
    keep_trying,
)
from estimatorkit.distribute.cluster_spec import ClusterSpec
from estimatorkit.distribute.launch.cpu_budget import share_processors
from estimatorkit.distribute.launch.launchers import LocalLauncher
from estimatorkit.distribute.tasks.task_cluster import (
    WAIT_SECS,
    TaskCluster,
    addresses_of,
    serve_target,
    stop_serving,
)
from estimatorkit.distribute.tasks.task_placement import HERE, task_name
from estimatorkit.distribute.tasks.token import cluster_token
from estimatorkit.distribute.tls import check_encrypted, identity
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.targets import Target, open_target


class Server:
    """This process as a task of a cluster (`tf.train.Server`).

    Sessions on its `target` share variables, tables and queues by name, across graphs, until
    `Session.reset(target)`. Sessions of one graph also share the counters of random operations,
    unlike in TensorFlow. Operations run on the task requested by `tf.device('/job:ps/task:1')`, by
    default on this one.

    Other tasks and clients connect to its address, which is bound exactly as given, and must
    present the cluster's token (see `token`). A task at port 0 is only reachable from this process.

    Args:
        server_or_cluster_def: an argument of `ClusterSpec`, or a `ServerDef`.
        job_name: the job of this task; by default the only one, or that of the `ServerDef`.
        task_index: its index; by default the job's only one.
        protocol, config: without effect.
        start: whether to start serving.
        wait_secs: how long sessions wait for tasks that have not started yet. Not in TensorFlow.

    Raises:
        ValueError: the job or the task is not in the cluster.
        UnavailableError: the address cannot be bound.
        ImportError: Arrow, which the extra `ray` brings, is not installed.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
        wait_secs: float = WAIT_SECS,
    ) -> None:
        if hasattr(server_or_cluster_def, "cluster"):  # a ServerDef
            job_name = server_or_cluster_def.job_name if job_name is None else job_name
            task_index = server_or_cluster_def.task_index if task_index is None else task_index
            server_or_cluster_def = server_or_cluster_def.cluster
        cluster = ClusterSpec(server_or_cluster_def)
        job = job_name or (cluster.jobs[0] if len(cluster.jobs) == 1 else None)
        indices = cluster.task_indices(job) if job in cluster.jobs else []
        index = indices[0] if task_index is None and len(indices) == 1 else task_index
        if job is None or index not in indices:
            problem = f"No such task in job {job!r}: {index}"
            if job is None:
                problem = "Must specify an explicit `job_name`"
            elif not indices:
                problem = f"No such job in cluster: {job!r}"
            elif index is None:
                problem = "Must specify an explicit `task_index`"
            raise value_error(
                problem,
                expected=f"a job and a task of {cluster!r}",
                received=f"job_name={job_name!r}, task_index={task_index!r}",
            )
        self._cluster = cluster
        self._task = task_name(job, index)
        self._address = cluster.task_address(job, index)
        self._wait_secs = wait_secs
        self._endpoint: Any = None
        self._tasks: TaskCluster
        self._target = ""
        if start:
            self.start()

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A server of a single-task cluster with job `local`, reachable only from this process."""
        return Server({"local": ["localhost:0"]}, config=config, start=start)

    @property
    def server_def(self) -> Any:
        """The cluster and this task, as a `ServerDef`."""
        from estimatorkit.distribute.tasks.server_def import ServerDef

        task = DeviceSpec.from_string(self._task)
        return ServerDef(
            cluster=self._cluster.as_cluster_def(),
            job_name=task.job,
            task_index=task.task,
            protocol="grpc",
        )

    @property
    def target(self) -> str:
        """The target for sessions on this server."""
        return self._target

    def start(self) -> None:
        """Starts serving, unless started."""
        if self._target:
            return
        if self._address.endswith(":0"):
            self._target = open_target()
            return
        share_processors(self._cluster, self._address)
        store, addresses = ResourceStore(), addresses_of(self._cluster)
        self._endpoint = bound_endpoint(self._address, self._task, store, addresses)
        self._tasks = TaskCluster(addresses, HERE, self._task, self._wait_secs)
        self._target = serve_target(self._address, Target(store, self._tasks))

    def join(self) -> NoReturn:
        """Blocks for ever; the server ends with its process."""
        while True:
            threading.Event().wait()

    def stop(self) -> None:
        """Stops serving. Not in TensorFlow, whose servers end with their process."""
        if self._endpoint is not None:
            self._tasks.close()  # other servers of this process may stop next
            self._endpoint.stop()
            stop_serving(self._target)


def create_local_cluster(
    num_workers: int,
    num_ps: int,
    protocol: str = "grpc",
    worker_config: Any = None,
    ps_config: Any = None,
) -> tuple[list[Server], list[Server]]:
    """Starts a cluster on free local ports, with all servers in this process, for tests.

    Args:
        num_workers: the number of tasks of the job `worker`.
        num_ps: the number of tasks of the job `ps`.
        protocol, worker_config, ps_config: see `Server`.

    Returns:
        The workers and the parameter servers.

    Source: `tf.test.create_local_cluster`.
    """
    cluster = LocalLauncher().open({"worker": num_workers, "ps": num_ps})
    workers = [
        Server(cluster, "worker", index, protocol, worker_config) for index in range(num_workers)
    ]
    return workers, [Server(cluster, "ps", index, protocol, ps_config) for index in range(num_ps)]


def bound_endpoint(
    address: str,
    task: str,
    store: ResourceStore,
    addresses: Mapping[str, str],
    folder: str | None = None,
) -> Any:
    """A `TaskEndpoint` at an address; retries for a while if it is in use.

    Args:
        address: `host:port`.
        task: the task's name.
        store: its variables, tables and queues.
        addresses: `host:port` of the cluster's tasks, by name.
        folder: where checkpoints are written; any if None.

    Raises:
        UnavailableError: the address cannot be bound.
        ValueError: others reach it, and traffic would not be encrypted (see `tls`).
    """
    from estimatorkit.distribute.tasks.task_endpoint import TaskEndpoint
    from estimatorkit.distribute.tasks.task_service import TaskService

    found = identity()
    check_encrypted(address, task, found is not None)
    service = TaskService(task, store, folder)

    def served() -> TaskEndpoint:
        check_free(address)
        return TaskEndpoint(address, service, addresses, cluster_token(), found)

    try:
        return keep_trying(served, LISTEN_SECS)
    except OSError as error:
        raise UnavailableError.explained(
            f"{task} cannot listen on its address",
            received=f"{address}: {error.strerror or error}",
            hint="is the port in use, and does the address belong to this host?",
        ) from error
