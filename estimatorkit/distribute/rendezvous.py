"""`jax.distributed`: rendezvous at startup and coordinated shutdown.

A process joins once in its life. Every step is a collective, so when one process is lost, the
exchange fails in the others; they exit with code 138 to be restarted (134 when JAX itself is the
first to notice that the coordinator is gone). A process whose own program fails exits at once,
without waiting for peers. Processes that have finished wait for each other and exit together.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import jax

from estimatorkit.core.errors import explain
from estimatorkit.distribute.addresses import (
    LISTEN_SECS,
    check_answered,
    check_free,
    claim,
    keep_trying,
)
from estimatorkit.distribute.cluster_task import ClusterTask
from estimatorkit.distribute.exit_codes import RETRY, Interrupted
from estimatorkit.distribute.launch.cpu_budget import batch_scheduling
from estimatorkit.distribute.tls import check_encrypted
from estimatorkit.logger import logger

_T = TypeVar("_T")

_FLAG = "--xla_cpu_collective_timeout_seconds"
"""The timeout of gloo's collectives; XLA's default is half an hour."""

_LOST = re.compile(
    r"\bgloo\b|\bnccl\b|coordination service|connection (closed|reset)", re.IGNORECASE
)
"""Matches JAX's errors that mean a lost peer; some of them are `ValueError`s."""


@dataclass(frozen=True)
class RendezvousSpec:
    """A rendezvous, and this process's rank in it.

    Attributes:
        address: `host:port` of process 0, the coordinator.
        count: the number of processes.
        number: the rank of this process.
        own: this process's own address, `host:port`, or None.
    """

    address: str
    count: int
    number: int
    own: str | None = None

    @staticmethod
    def of(task: ClusterTask) -> RendezvousSpec:
        """The rendezvous of a task's cluster: at the chief's address, unless the environment names
        another.
        """
        if task.coordinator is not None:
            return RendezvousSpec(task.coordinator, task.processes, task.index)
        tasks = [(job, at) for job in task.cluster.jobs for at in task.cluster.task_indices(job)]
        tasks.sort(key=lambda each: (each != task.chief, each))
        number = tasks.index((task.type, task.index))
        return RendezvousSpec(
            task.cluster.task_address(*task.chief), len(tasks), number, task.address
        )


_exit_code = 0
_claims: list[Any] = []
"""The sockets that reserve this process's own address."""


def join(spec: RendezvousSpec, seconds: float) -> None:
    """Joins the rendezvous; no effect if it has been joined.

    Args:
        spec: the rendezvous.
        seconds: the timeout, for joining and for every collective.

    Raises:
        SystemExit: 138: peers did not join in time, or the address is in use.
        RuntimeError: JAX has been used before.
    """
    if jax.distributed.is_initialized():
        return
    flags = os.environ.get("XLA_FLAGS", "")
    if _FLAG not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_FLAG}={int(seconds)}".strip()
    # The program handles SIGTERM, not JAX.
    jax.config.update("jax_enable_preemption_service", False)  # type: ignore[no-untyped-call]
    logger.info("Process %d of %d joins the others at %s.", spec.number, spec.count, spec.address)
    # If one of these checks would fail, JAX ends the process by SIGABRT.
    if spec.number == 0:
        # JAX does not encrypt its collectives.
        check_encrypted(spec.address, "synchronous training", is_encrypted=False)
        _check("process 0 cannot use its address", check_free, spec.address, LISTEN_SECS)
    else:
        if spec.own is not None:
            # A second process with the same rank would end them all.
            problem = f"process {spec.number} cannot use its address; is it already running?"
            _claims.append(_check(problem, claim, spec.own, LISTEN_SECS))
        _check("process 0 cannot be reached", check_answered, spec.address, seconds)
    try:
        jax.distributed.initialize(
            spec.address,
            spec.count,
            spec.number,
            cluster_detection_method="deactivate",
            initialization_timeout=int(seconds),
            shutdown_timeout_seconds=int(seconds),
            coordinator_bind_address=spec.address if spec.number == 0 else None,
        )
    except RuntimeError as error:
        if "must be called before" not in str(error):
            raise
        raise RuntimeError(
            explain(
                "JAX was used before this process joined the others",
                expected="a call of the strategy's connect() first",
                hint="call strategy.connect() at the start of the program",
            )
        ) from error
    atexit.register(_end)
    with batch_scheduling():
        jax.local_devices()  # starts the threads of JAX and gloo


@contextmanager
def synchronized_exit() -> Iterator[None]:
    """A context manager for collective work: an error in one process ends all of them.

    Raises:
        SystemExit: 138, if a peer is lost.
    """
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        if not _LOST.search(str(error)):
            _exit_without_peers(1)
            raise
        logger.error("Lost another process: %s", str(error).splitlines()[0])
        _exit_without_peers(RETRY)
        raise SystemExit(RETRY) from error
    except Interrupted:
        raise  # all processes end together
    except SystemExit as error:
        _exit_without_peers(error.code if isinstance(error.code, int) else 1)
        raise
    except BaseException:
        _exit_without_peers(1)
        raise


def _exit_without_peers(code: int) -> None:
    """Makes this process exit without waiting for its peers, which will notice.

    Args:
        code: its exit code.
    """
    global _exit_code
    _exit_code = code


def _check(problem: str, check: Callable[[str], _T], address: str, seconds: float) -> _T:
    """Retries a check of an address until it succeeds, and returns its result.

    Raises:
        SystemExit: 138: it timed out.
    """
    try:
        return keep_trying(
            lambda: check(address),
            seconds,
            log=lambda error: logger.info("Still waiting: %s, %s: %s", problem, address, error),
        )
    except OSError as error:
        logger.error("Timed out after %g s: %s, %s: %s", seconds, problem, address, error)
        raise SystemExit(RETRY) from error


def _end() -> None:
    """Called at exit, before JAX waits for peers."""
    if _exit_code and jax.distributed.is_initialized():
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_exit_code)


__all__ = ["RendezvousSpec", "join", "synchronized_exit"]
