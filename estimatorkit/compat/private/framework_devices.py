"""`tensorflow.python.framework.device`: names of devices and their merging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimatorkit.core.devices import DeviceLike, DeviceSpec, device_function


def is_device_spec(obj: Any) -> bool:
    """Whether an object is a `DeviceSpec`."""
    return isinstance(obj, DeviceSpec)


def check_valid(spec: str) -> None:
    """Checks the name of a device.

    Raises:
        ValueError: it is malformed.
    """
    DeviceSpec.from_string(spec)


def canonical_name(device: str | DeviceSpec | None) -> str:
    """The full form of a device's name: '/job:foo/device:CPU:0' for '/job:foo/cpu:0'.

    Raises:
        ValueError: it is malformed.
    """
    if device is None:
        return ""
    spec = DeviceSpec.from_string(device) if isinstance(device, str) else device
    return spec.to_string()


def merge_device(spec: DeviceLike | None) -> Callable[[Any], str]:
    """A function of an operation, to be given to `tf.device`: the operation's own device, where it
    says nothing completed by `spec`.

    Raises:
        ValueError: the name is malformed.
    """
    return device_function(spec or "")


__all__ = ["DeviceSpec", "canonical_name", "check_valid", "is_device_spec", "merge_device"]
