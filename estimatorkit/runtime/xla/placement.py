"""Device placement: maps requested devices to devices of this process.

JAX's devices are named as in TensorFlow: '/device:CPU:0', '/device:GPU:1'. Operations without a
request run on the default device (the first GPU or TPU, else the CPU), or with the variable that
they use. With soft placement, missing devices are replaced by the default one.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import jax

from estimatorkit.core.devices import DeviceSpec
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.tensor import Operation
from estimatorkit.logger import logger

_TYPES = {"cuda": "GPU", "rocm": "GPU"}

DEFAULT = ""
"""The name that plans have for the default device."""


_cpu_names = 1


@functools.cache
def available() -> dict[str, Any]:
    """The devices of this process by name, the default one first.

    Initializes JAX, so the number of CPU devices is fixed afterwards.
    """
    named = {
        f"/device:{_TYPES.get(device.platform, device.platform.upper())}:{number}": device
        for devices in (jax.local_devices(), jax.local_devices(backend="cpu"))
        for number, device in enumerate(devices)
    }
    cpus = jax.local_devices(backend="cpu")
    for number in range(len(cpus), _cpu_names):
        named[f"/device:CPU:{number}"] = cpus[number % len(cpus)]
    return named


def default_name() -> str:
    """The name of the default device."""
    return next(iter(available()))


def device_named(name: str) -> Any:
    """The JAX device of a name in a plan."""
    return next(iter(available().values())) if name == DEFAULT else available()[name]


def is_cpu(device: Any) -> bool:
    """Whether a device (None: the default one) is a CPU."""
    return (jax.default_backend() if device is None else device.platform) == "cpu"


def on_host() -> AbstractContextManager[Any]:
    """A context manager in which executables run on the CPU unless their arguments are elsewhere.

    Functions of datasets run there: their arguments come from the host, and their results go back.
    """
    if jax.default_backend() == "cpu":
        return nullcontext()
    device: AbstractContextManager[Any] = jax.default_device(jax.local_devices(backend="cpu")[0])
    return device


def set_cpu_devices(count: int) -> None:
    """Requests several virtual CPU devices, which share the cores.

    Once JAX is initialized it cannot add devices: the names of missing ones then map to existing
    ones, with a warning.
    """
    global _cpu_names
    try:
        jax.config.update("jax_num_cpu_devices", count)  # type: ignore[no-untyped-call]
    except RuntimeError:
        present = len(jax.local_devices(backend="cpu"))
        if present < count:
            logger.warning(
                "The number of CPU devices cannot change once JAX has started: %d names share "
                "%d devices. Create the session that configures them before anything runs, or set "
                "the environment variable JAX_NUM_CPU_DEVICES=%d.",
                count,
                present,
                count,
            )
            _cpu_names = max(count, _cpu_names)
            available.cache_clear()


class Placer:
    """Maps operations to devices.

    Args:
        soft: replace missing devices by the default one.
        log: print placements to stderr.
    """

    def __init__(self, soft: bool = True, log: bool = False) -> None:
        self.soft = soft
        self.log = log
        self._reported: set[Operation] = set()

    def report(
        self, ops: Iterable[Operation], task_of: Callable[[Operation], str] | None = None
    ) -> None:
        """Prints placements, like TensorFlow's `log_device_placement`.

        Args:
            ops: the operations.
            task_of: maps an operation to its task; by default this process. For other tasks the
                requested device is printed, as theirs are not known here.
        """
        for op in ops if self.log else ():
            if op not in self._reported:
                self._reported.add(op)
                if task_of is None:
                    place = f"/job:localhost/replica:0/task:0{self(op) or default_name()}"
                else:
                    place = task_of(op) + _asked_processor(op)
                print(f"{op.name}: ({op.type}): {place}", file=sys.stderr)

    def __call__(self, op: Operation) -> str:
        """The device's name, `DEFAULT` for the default one.

        Raises:
            InvalidArgumentError: the device does not exist, and placement is not soft.
        """
        asked = _asked(op)
        if not asked:
            return DEFAULT
        spec = DeviceSpec.from_string(asked)
        if spec.device_type is None:
            return DEFAULT
        name = f"/device:{spec.device_type}:{spec.device_index or 0}"
        names = available()
        if name == next(iter(names)):
            return DEFAULT
        if name in names:
            return name
        if self.soft:
            return DEFAULT
        raise InvalidArgumentError.explained(
            f"Cannot assign a device for operation {op.name}: it was explicitly assigned to "
            f"{asked} but available devices are [ {', '.join(names)} ]. Make sure the device "
            "specification refers to a valid device",
            made_at=op.source,
            hint="use ConfigProto(allow_soft_placement=True)",
            op=op,
        )


def _asked(op: Operation) -> str:
    handle = next((tensor for tensor in op.inputs if tensor.dtype is resource), None)
    return op.device if handle is None else handle.op.device


def _asked_processor(op: Operation) -> str:
    spec = DeviceSpec.from_string(_asked(op))
    return DeviceSpec(device_type=spec.device_type, device_index=spec.device_index).to_string()


@dataclass(frozen=True)
class SessionDevice:
    """A device that a session can use.

    Attributes:
        name: its full name, '/job:localhost/replica:0/task:0/device:CPU:0'.
        device_type: 'CPU', 'GPU' or 'TPU'.
        device: the JAX device. Not in TensorFlow.
    """

    name: str
    device_type: str
    device: Any = field(repr=False)

    @property
    def memory_limit_bytes(self) -> int:
        """Bytes of memory for arrays; 0 if unknown."""
        return int((self.device.memory_stats() or {}).get("bytes_limit", 0))

    @property
    def incarnation(self) -> int:
        """A number that identifies the device in this process."""
        return int(self.device.id)


def session_devices() -> list[SessionDevice]:
    """This process's devices, the default one first."""
    return [
        SessionDevice(f"/job:localhost/replica:0/task:0{name}", name.split(":")[1], device)
        for name, device in available().items()
    ]
