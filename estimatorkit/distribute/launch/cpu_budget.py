"""CPU budget: how processes of a cluster on one host divide its processors.

Otherwise each process would use all cores and contend with the others' threads. gloo's socket
thread gets batch scheduling, so that it does not preempt the thread that writes to the socket.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from estimatorkit.distribute.cluster_spec import ClusterSpec
from estimatorkit.distribute.cluster_task import PS
from estimatorkit.logger import logger
from estimatorkit.runtime.xla.processors import processors

VARIABLE = "NPROC"
"""XLA's number of CPU threads, which it reads when JAX starts."""


def share_processors(cluster: ClusterSpec, address: str | None) -> None:
    """Limits this process to its share of the host's cores, before JAX is initialized.

    Workers wait while parameter servers compute, so servers do not reduce the workers' share. No
    effect if `NPROC` is set.

    Args:
        cluster: the tasks; those with the same host name share its cores.
        address: this task's address, `host:port`, or None.
    """
    if address is None or VARIABLE in os.environ:
        return
    host = address.rpartition(":")[0]
    tasks = {
        cluster.task_address(job, index): job
        for job in cluster.jobs
        for index in cluster.task_indices(job)
    }
    is_server = tasks.get(address) == PS
    sharing = sum(
        each.rpartition(":")[0] == host and (is_server or job != PS) for each, job in tasks.items()
    )
    if sharing > 1:
        os.environ[VARIABLE] = str(max(1, processors() // sharing))


@contextmanager
def batch_scheduling() -> Iterator[None]:
    """A context manager in which new threads get batch scheduling (Linux's SCHED_BATCH).

    They do not preempt other threads on waking up, but get the same share of time. No effect on
    other systems, or without permission.
    """
    if not hasattr(os, "SCHED_BATCH") or os.sched_getscheduler(0) != os.SCHED_OTHER:
        yield
        return
    usual = os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, usual)
    except OSError as error:
        logger.debug("Cannot change the scheduling of threads: %s", error)
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, usual)
