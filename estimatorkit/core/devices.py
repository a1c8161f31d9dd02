"""Device names: `DeviceSpec`, as in `tf.device("/job:ps/task:1/device:CPU:0")`, and merging them.

Nested `with device(...)` blocks are merged; inner blocks take precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from estimatorkit.core.errors import value_error

if TYPE_CHECKING:
    from estimatorkit.core.tensor import Operation


@dataclass(unsafe_hash=True)
class DeviceSpec:
    """A partial specification of a device.

    Attributes:
        job: the job's name in a cluster, for example 'ps'.
        replica: the replica's index.
        task: the task's index within the job.
        device_type: 'CPU', 'GPU' or 'TPU'.
        device_index: the device's index within its task.
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Reads '/job:<name>/replica:<id>/task:<id>/device:<type>:<id>', or parts of it.

        '/cpu:0' and '/gpu:1' are short for '/device:CPU:0' and '/device:GPU:1'.

        Raises:
            ValueError: a component is invalid or repeated.
        """
        found = cls()
        for part in filter(None, spec.split("/")):
            fields = _fields_of(part, spec)
            if found.device_type is not None and "device_type" in fields:
                raise ValueError(f"Multiple device types are not allowed: {spec!r}")
            found = replace(found, **fields)
        return found

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Overwrites this spec with what `from_string` reads, and returns it."""
        vars(self).update(vars(DeviceSpec.from_string(spec)))
        return self

    def merge_from(self, other: DeviceSpec) -> None:
        """Merges `other` into this spec; `other` takes precedence."""
        vars(self).update(vars(self.make_merged_spec(other)))

    def to_string(self) -> str:
        """The string form that `from_string` reads; '' if nothing is specified."""
        parts = [
            f"/{name}:{value}"
            for name, value in (("job", self.job), ("replica", self.replica), ("task", self.task))
            if value is not None
        ]
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            parts.append(f"/device:{self.device_type}:{index}")
        return "".join(parts)

    def make_merged_spec(self, inner: DeviceSpec) -> DeviceSpec:
        """This spec merged with `inner`, which takes precedence."""
        said = {name: value for name, value in vars(inner).items() if value is not None}
        return replace(self, **said)


def _fields_of(part: str, spec: str) -> dict[str, Any]:
    match part.split(":"):
        case ["job", name]:
            return {"job": name}
        case ["replica" | "task" as name, number] if number.isdigit():
            return {name: int(number)}
        case ["device", *rest] | [*rest] if 1 <= len(rest) <= 2 and rest[0].upper() in _TYPES:
            index = rest[1] if len(rest) == 2 else "*"
            if index == "*" or index.isdigit():
                at = None if index == "*" else int(index)
                return {"device_type": rest[0].upper(), "device_index": at}
    raise value_error(
        f"Unknown attribute '{part.partition(':')[0]}' is encountered while parsing the device "
        f"spec: '{spec}'",
        expected="/job:<name>/replica:<id>/task:<id>/device:<CPU|GPU|TPU>:<id>, or parts of it",
    )


_TYPES = ("CPU", "GPU", "TPU", "XLA_CPU", "XLA_GPU")

DeviceLike: TypeAlias = "str | DeviceSpec | Callable[[Operation], str | None]"
"""What `with device(...)` takes; a function gives the device of each operation made inside."""


def device_function(device: DeviceLike) -> Callable[[Operation], str]:
    """Converts a device argument to a function of an operation, whose `device` is that of inner
    blocks.

    Raises:
        ValueError: the name is malformed.
    """
    if callable(device):
        return lambda op: DeviceSpec.from_string(device(op) or "").to_string()
    outer = DeviceSpec.from_string(device) if isinstance(device, str) else device

    def merged(op: Operation) -> str:
        return outer.make_merged_spec(DeviceSpec.from_string(op.device)).to_string()

    return merged


def place(op: Operation, blocks: Sequence[Callable[[Operation], str]]) -> None:
    """Sets `op.device` from the enclosing blocks, which are listed outermost first."""
    for block in reversed(blocks):
        op.device = block(op)
