"""CPU budget: how processes of a cluster on one host divide its processors.

Without it each process would compute on all of them and wait for the others' threads. gloo's
socket thread gets batch scheduling, so that it does not spin on the processor of the thread that
writes to the socket.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from estimatorkit.distribute.cluster_spec import ClusterSpec
from estimatorkit.logger import logger

VARIABLE = "NPROC"
"""XLA's: how many threads its CPU client makes. It is read when JAX starts."""


def share_processors(cluster: ClusterSpec, address: str | None) -> None:
    """Gives this process its share of the host's processors, before JAX starts.

    Where `NPROC` is set already, it counts.

    Args:
        cluster: the tasks; those with this one's host name share its processors.
        address: this task's own, `host:port`; None where it has none.
    """
    if address is None or VARIABLE in os.environ:
        return
    host = address.rpartition(":")[0]
    addresses = [
        cluster.task_address(job, index)
        for job in cluster.jobs
        for index in cluster.task_indices(job)
    ]
    sharing = sum(each.rpartition(":")[0] == host for each in addresses)
    if sharing > 1:
        os.environ[VARIABLE] = str(max(1, _processors() // sharing))


@contextmanager
def batch_scheduling() -> Iterator[None]:
    """Threads that start inside interrupt no other when they wake (Linux's SCHED_BATCH).

    They get as much time as others. On other systems, or where it is forbidden, nothing changes.
    """
    if not hasattr(os, "SCHED_BATCH") or os.sched_getscheduler(0) != os.SCHED_OTHER:
        yield
        return
    usual = os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, usual)
    except OSError as error:
        logger.debug("Threads keep their scheduling: %s", error)
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, usual)


def _processors() -> int:
    """How many this process may use; macOS does not say, and has what the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
