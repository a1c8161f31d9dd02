"""`MirroredStrategy`: one replica per device of this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax

from estimatorkit.core.errors import value_error
from estimatorkit.distribute.replicas.replicas import Replicas
from estimatorkit.distribute.replicas.strategies import Strategy, full_device_name
from estimatorkit.runtime.xla.placement import available


class MirroredStrategy(Strategy):
    """Replicas on devices of this process (`tf.distribute.MirroredStrategy`).

    Without accelerators, set `JAX_NUM_CPU_DEVICES=2` in the environment for two virtual CPU
    devices.

    Args:
        devices: their names, such as '/gpu:0'; by default all accelerators of this process, or else
            its CPU devices.
        cross_device_ops: accepted for compatibility only; XLA chooses.
        num_gpus, num_gpus_per_worker: the number of GPUs, instead of `devices` (`tf.contrib`).
        auto_shard_dataset, cross_tower_ops: accepted for the signature of `tf.contrib`.
        shard_rows_above: variables of at least so many bytes are sharded by rows over all devices:
            each device holds and updates a part of the rows of the variable and of its optimizer
            slots, and a step exchanges the ids and rows that a batch uses. By default, and where
            `Variable.shard_rows` says False, every device holds a copy. Row-wise sharding as in
            TorchRec and HugeCTR.

    Raises:
        ValueError: one of several devices does not exist, or is repeated.
    """

    def __init__(
        self,
        devices: Sequence[str] | None = None,
        cross_device_ops: Any = None,
        num_gpus: int | None = None,
        num_gpus_per_worker: int | None = None,
        auto_shard_dataset: bool = False,
        cross_tower_ops: Any = None,
        *,
        shard_rows_above: int | None = None,
    ) -> None:
        self.shard_rows_above = shard_rows_above
        count = num_gpus if num_gpus_per_worker is None else num_gpus_per_worker
        if devices is not None and count is not None:
            raise ValueError("Must only specify one of `devices` and `num_gpus`.")
        if count:
            devices = [f"/device:GPU:{number}" for number in range(count)]
        self._names = None if devices is None else list(map(full_device_name, devices))
        if self._names is not None and len(set(self._names)) < len(self._names):
            raise value_error(
                "No duplicates allowed in the devices of a MirroredStrategy",
                received=", ".join(self._names),
            )

    @property
    def device(self) -> str | None:
        """The device of a single replica."""
        return self._names[0] if self._names and len(self._names) == 1 else None

    @cached_property
    def replicas(self) -> Replicas | None:
        """The replicas; None for a single device, which may be missing (see
        `OneDeviceStrategy`).
        """
        if self.device is not None:
            return None
        found = jax.local_devices() if self._names is None else list(map(_device, self._names))
        return Replicas(found) if len(found) > 1 else None


class CentralStorageStrategy(MirroredStrategy):
    """Replicas on devices of this process (`tf.distribute.experimental.CentralStorageStrategy`).

    The same as `MirroredStrategy`, as XLA places the variables.

    Args:
        compute_devices: see `MirroredStrategy`.
        parameter_device: accepted for compatibility only.
    """

    def __init__(
        self, compute_devices: Sequence[str] | None = None, parameter_device: str | None = None
    ) -> None:
        super().__init__(compute_devices)


def _device(name: str) -> Any:
    names = available()
    if name not in names:
        raise value_error(
            f"MirroredStrategy: there is no device {name}",
            expected=", ".join(names),
            received=name,
            hint="set JAX_NUM_CPU_DEVICES=2 for two CPU devices",
        )
    return names[name]


__all__ = ["CentralStorageStrategy", "MirroredStrategy"]
