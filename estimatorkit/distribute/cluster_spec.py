"""`ClusterSpec`: the tasks of a cluster by job, with their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimatorkit.core.errors import type_error


class ClusterSpec:
    """The tasks of a cluster, by job (`tf.train.ClusterSpec`).

    Args:
        cluster: by job, the tasks' addresses `host:port`: a list, or a dict by task index if not
            all are known; or another `ClusterSpec`, or a `ClusterDef`.

    Raises:
        TypeError: it is none of these.
    """

    def __init__(self, cluster: Any) -> None:
        self._jobs: dict[str, dict[int, str]]
        if isinstance(cluster, ClusterSpec):
            jobs: Mapping[Any, Any] = cluster._jobs
        elif isinstance(cluster, Mapping):
            jobs = cluster
        elif hasattr(cluster, "job"):
            jobs = {job.name: dict(job.tasks) for job in cluster.job}
        else:
            raise type_error(
                "`cluster` must be a dictionary mapping one or more job names to lists of "
                "network addresses, or a `ClusterDef` protocol buffer",
                received=repr(cluster),
            )
        self._jobs = {_name(job): _tasks(job, tasks) for job, tasks in jobs.items()}

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """The addresses by job: a list, or a dict if indices are missing."""
        return {
            job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> Any:
        """As a `ClusterDef` protocol buffer."""
        from tensorboard.compat.proto.cluster_pb2 import ClusterDef

        found = ClusterDef()
        for job, tasks in sorted(self._jobs.items()):
            made = found.job.add(name=job)
            made.tasks.update(tasks)
        return found

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """The number of tasks of a job.

        Raises:
            ValueError: there is no such job.
        """
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The indices of a job's tasks, in order.

        Raises:
            ValueError: there is no such job.
        """
        return list(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task.

        Raises:
            ValueError: there is no such job, or no such task in it.
        """
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job's tasks by index; None for missing indices.

        Raises:
            ValueError: there is no such job.
        """
        tasks = self._job(job_name)
        return [tasks.get(number) for number in range(max(tasks, default=-1) + 1)]

    def _job(self, job_name: str) -> dict[int, str]:
        if job_name not in self._jobs:
            raise ValueError(f"No such job in cluster: {job_name!r}")
        return self._jobs[job_name]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            other = ClusterSpec(other)
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __hash__(self) -> int:
        return hash(frozenset((job, *tasks.items()) for job, tasks in self._jobs.items()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{job!r}: {tasks!r}" for job, tasks in sorted(self.as_dict().items()))
        return f"ClusterSpec({{{shown}}})"


def _name(job: Any) -> str:
    if not isinstance(job, (str, bytes)):
        raise TypeError(f"Job name {job!r} must be bytes or unicode")
    return job if isinstance(job, str) else job.decode()


def _tasks(job: Any, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, (list, tuple)):
        tasks = dict(enumerate(tasks))
    if not isinstance(tasks, Mapping):
        raise TypeError(
            f"The tasks for job {job!r} must be a list or a dictionary from integers to strings."
        )
    for address in tasks.values():
        if not isinstance(address, (str, bytes)):
            raise TypeError(f"Task address {address!r} must be bytes or unicode")
    for number in tasks:
        if not isinstance(number, int) and not str(number).isdigit():
            raise TypeError(f"Keys in the task map must be integers, not {number!r}")
    numbered = {int(number): address for number, address in tasks.items()}
    return {
        number: address if isinstance(address, str) else address.decode()
        for number, address in sorted(numbered.items())
    }


__all__ = ["ClusterSpec"]
