"""`tensorflow.python.client.device_lib`: the devices of this process."""

from __future__ import annotations

from typing import Any, NamedTuple

from estimatorkit.runtime.xla.placement import available


class DeviceAttributes(NamedTuple):
    """A device.

    Attributes:
        name: as in `tf.device`.
        device_type: 'CPU', 'GPU' or 'TPU'.
        memory_limit: bytes, 0 if unknown.
        physical_device_desc: JAX's name of the device.
    """

    name: str
    device_type: str
    memory_limit: int
    physical_device_desc: str


def list_local_devices(session_config: Any = None) -> list[DeviceAttributes]:
    """The devices, the default one first."""
    found = []
    for name, device in available().items():
        stats = device.memory_stats() or {}
        limit = int(stats.get("bytes_limit", 0))
        kind = name.split(":")[1]
        found.append(DeviceAttributes(name, kind, limit, str(device.device_kind)))
    return found
