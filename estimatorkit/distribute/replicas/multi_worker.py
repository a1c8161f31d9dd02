"""`MultiWorkerMirroredStrategy`: replicas in several processes, on one host or many.

All processes run the same program; the environment gives each its rank (`cluster_task`). They join
at the address of the first (`rendezvous`) and then run the same steps, with collectives by gloo on
CPUs and NCCL on GPUs. A process has a replica on each of its GPUs, or one on its CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import cached_property
from typing import Any

import jax

from estimatorkit.core.errors import value_error
from estimatorkit.distribute import rendezvous
from estimatorkit.distribute.cluster_task import EVALUATOR, PS, ClusterTask
from estimatorkit.distribute.launch.cpu_budget import share_processors
from estimatorkit.distribute.replicas.replicas import Replicas
from estimatorkit.distribute.replicas.strategies import InputContext, Strategy

WAIT_SECS = 7200.0
"""How long processes wait for each other, where nobody says otherwise."""


class CommunicationImplementation(Enum):
    """The implementation of collectives; without effect, as it depends on the devices."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class MultiWorkerMirroredStrategy(Strategy):
    """Replicas in all processes of a cluster
    (`tf.distribute.experimental.MultiWorkerMirroredStrategy`,
    `tf.contrib.distribute.CollectiveAllReduceStrategy`).

    The environment defines the cluster; without other processes, only this one has replicas. JAX
    must connect to the other processes before it is used. `connect` does that, and so do the first
    training and reading the number of replicas.

    Args:
        cluster_resolver: accepted for compatibility only; the environment defines the cluster.
        communication_options, communication: accepted for compatibility onlys; gloo is used on
            CPUs, NCCL on GPUs.
        num_gpus_per_worker: the number of GPUs to use per process; all by default.
        shard_rows_above: see `MirroredStrategy`. `model_dir` must be on storage that all processes
            share.

    Raises:
        ValueError: the environment is invalid, or the cluster has parameter servers.
    """

    def __init__(
        self,
        cluster_resolver: Any = None,
        communication_options: Any = None,
        communication: Any = None,
        num_gpus_per_worker: int | None = None,
        *,
        shard_rows_above: int | None = None,
    ) -> None:
        self.shard_rows_above = shard_rows_above
        self._gpus = num_gpus_per_worker
        self._task = task = ClusterTask.of_environment()
        if task.num_ps_replicas:
            raise value_error(
                "synchronous training has no parameter servers",
                expected="jobs 'worker' and 'chief' in TF_CONFIG",
                received=f"{task.cluster}, with a job {PS!r}",
                hint="leave out train_distribute to train on parameter servers",
            )

    @property
    def has_others(self) -> bool:
        """Whether there are replicas in other processes."""
        return not self._task.is_alone and self._task.type != EVALUATOR

    @property
    def is_chief(self) -> bool:
        """Whether this process saves checkpoints."""
        return not self.has_others or self._task.is_chief

    def connect(self, seconds: float | None = None) -> None:
        """Connects to the other processes.

        Args:
            seconds: the timeout, for connecting and for every collective; two hours by default.

        Raises:
            SystemExit: 138: they did not join in time.
            RuntimeError: JAX has been used in this process before.
        """
        if self.has_others:
            share_processors(self._task.cluster, self._task.address)
            spec = rendezvous.RendezvousSpec.of(self._task)
            rendezvous.join(spec, WAIT_SECS if seconds is None else seconds)

    @contextmanager
    def together(self, seconds: float) -> Iterator[None]:
        """A context manager for collective work (see `Strategy.together`)."""
        if not self.has_others:
            yield
            return
        with rendezvous.synchronized_exit():
            self.connect(seconds)
            yield

    @cached_property
    def replicas(self) -> Replicas | None:
        """The replicas of all processes; None for a single one."""
        self.connect()
        devices = jax.devices() if self.has_others else jax.local_devices()
        most = self._gpus if devices[0].platform != "cpu" else None
        if self.has_others and devices[0].platform == "cpu":
            most = 1  # gloo with several devices a process: a segmentation fault (openxla#16430)
        by_process: dict[int, list[Any]] = {}
        for each in sorted(devices, key=lambda each: (each.process_index, each.id)):
            by_process.setdefault(each.process_index, []).append(each)
        chosen = [each for own in by_process.values() for each in own[: most or None]]
        return Replicas(chosen) if len(chosen) > 1 else None

    @property
    def input_context(self) -> InputContext:
        """The `InputContext` for this process's `input_fn`."""
        if not self.has_others or self.replicas is None:
            return super().input_context
        spec = rendezvous.RendezvousSpec.of(self._task)
        return InputContext(spec.count, spec.number, self.replicas.count)


__all__ = ["CommunicationImplementation", "MultiWorkerMirroredStrategy"]
