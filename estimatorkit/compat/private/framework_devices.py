"""`tensorflow.python.framework.device`: parses and merges device names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimatorkit.core.devices import DeviceLike, DeviceSpec, device_function


def is_device_spec(obj: Any) -> bool:
    """Whether an object is a `DeviceSpec`."""
    return isinstance(obj, DeviceSpec)


def check_valid(spec: str) -> None:
    """Checks a device name.

    Raises:
        ValueError: it is malformed.
    """
    DeviceSpec.from_string(spec)


def canonical_name(device: str | DeviceSpec | None) -> str:
    """The canonical form of a device name: '/job:foo/device:CPU:0' for '/job:foo/cpu:0'.

    Raises:
        ValueError: it is malformed.
    """
    if device is None:
        return ""
    spec = DeviceSpec.from_string(device) if isinstance(device, str) else device
    return spec.to_string()


def merge_device(spec: DeviceLike | None) -> Callable[[Any], str]:
    """Returns a device function for `tf.device` that fills in missing parts of an operation's
    device from `spec`.

    Raises:
        ValueError: the name is malformed.
    """
    return device_function(spec or "")


__all__ = ["DeviceSpec", "canonical_name", "check_valid", "is_device_spec", "merge_device"]
