"""`Replicas`: the device mesh of all processes, and how they agree on each call.

Between calls a variable has one value for all replicas. Where they compute, it is one array on all
their devices (`everywhere`); where this process does something alone, it is that of its own first
replica (`here`).

Calls that hold exchanges between replicas must be the same in all processes. How many steps a
process would take, and of which shapes its batches are, differs: so before each call all say what
they would do (`StepProposal`), and all draw the same conclusion from what all have said (`agree`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from estimatorkit.core.errors import InternalError, OutOfRangeError
from estimatorkit.core.x64 import x64
from estimatorkit.ops.control.collectives import AXIS

_PROCESS = "process"

ENDED, INTERRUPTED = 1, 2
"""The reasons that a process gives the others: the steps are done, or it is to end before that."""


def axes(*names: str | None) -> PartitionSpec:
    """Which axes of a mesh the dimensions of an array are spread over."""
    return PartitionSpec(*names)  # type: ignore[no-untyped-call]


class PeerStopped(Exception):
    """Another process has ended what all did together.

    Attributes:
        reason: the number that it gave (see `StepProposal.stop`).
    """

    def __init__(self, reason: int) -> None:
        super().__init__("another process has ended the steps that all ran together")
        self.reason = reason


@dataclass(frozen=True)
class StepProposal:
    """What a process would do next.

    Attributes:
        steps: how many steps it could run in one call; 0 where none.
        elements: for how many of its replicas it has an element of the input, at least for one
            step.
        shape: a fingerprint of the call: only equal ones can be one call.
        exchanges: a fingerprint of what its steps exchange, which must be equal.
        stop: 0, or another number where it takes no further step: the reason, for the others.
    """

    steps: int
    elements: int
    shape: int = 0
    exchanges: int = 0
    stop: int = 0

    def words(self) -> list[int]:
        """As numbers."""
        return [self.steps, self.elements, self.shape, self.exchanges, self.stop]


@dataclass(frozen=True)
class Agreement:
    """What all processes do next.

    Attributes:
        steps: how many steps in one call; 0 for one step whose replicas' batches are of several
            shapes, or are missing.
        elements: how many replicas have an element.
    """

    steps: int
    elements: int


def fingerprint(value: Any) -> int:
    """31-bit hash of `repr(value)`."""
    digest = hashlib.blake2b(repr(value).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little") >> 1


class Replicas:
    """The replicas that run steps together.

    Args:
        devices: the device of each, those of a process next to each other; the same in all
            processes.

    Attributes:
        mesh: these devices along one axis.
        count: how many replicas there are.
        own: the devices of this process's replicas.
        first: the number of the first of these among all.
        processes: how many processes there are.
        is_chief: whether the first replica of all is of this process.
    """

    def __init__(self, devices: Sequence[Any]) -> None:
        self.mesh = Mesh(np.array(devices), (AXIS,))
        self.count = len(devices)
        here = jax.process_index()
        self.own = [device for device in devices if device.process_index == here]
        self.first = next(at for at, each in enumerate(devices) if each.process_index == here)
        leaders = {each.process_index: each for each in reversed(devices)}
        self.processes = len(leaders)
        self.is_chief = self.first == 0
        ordered = [device for device in devices if leaders[device.process_index] is device]
        self._leaders = Mesh(np.array(ordered), (_PROCESS,))
        self._same = NamedSharding(self.mesh, axes())
        self._total = jax.jit(
            jax.shard_map(
                _total,
                mesh=self._leaders,
                in_specs=axes(_PROCESS),
                out_specs=axes(),
                check_vma=False,
            )
        )
        self._table = jax.jit(
            jax.shard_map(
                _table,
                mesh=self._leaders,
                in_specs=axes(_PROCESS),
                out_specs=axes(),
                check_vma=False,
            )
        )

    # -- values

    def everywhere(self, value: Any) -> Any:
        """A value of this process as one array on the devices of all replicas.

        The other processes must do the same with an equal value.
        """
        if isinstance(value, jax.Array) and value.sharding == self._same:
            return value
        parts = [jax.device_put(value, device) for device in self.own]
        return jax.make_array_from_single_device_arrays(parts[0].shape, self._same, parts)

    def here(self, value: Any) -> Any:
        """The part of an array on all replicas' devices that is on the first of this process."""
        if isinstance(value, jax.Array) and len(value.sharding.device_set) > 1:
            return value.addressable_data(0)
        return value

    def sharded(self, columns: NDArray[Any]) -> Any:
        """Columns `(length, own replicas, ...)` as an array over all replicas, along axis 1.

        Args:
            columns: nobody writes to it any more. As long in all processes.
        """
        parts = [
            jax.device_put(columns[:, at : at + 1], device, may_alias=True)
            for at, device in enumerate(self.own)
        ]
        shape = (len(columns), self.count, *columns.shape[2:])
        sharding = NamedSharding(self.mesh, axes(None, AXIS))
        return jax.make_array_from_single_device_arrays(shape, sharding, parts)

    def for_each(self, value: Any) -> Any:
        """A value of this process for each of its replicas: an array `(count, ...)` over all."""
        sharding = NamedSharding(self.mesh, axes(AXIS))
        part = np.asarray(value)[None]
        parts = [jax.device_put(part, device) for device in self.own]
        shape = (self.count, *part.shape[1:])
        return jax.make_array_from_single_device_arrays(shape, sharding, parts)

    def own_parts(self, array: Any) -> list[NDArray[Any]]:
        """The parts of an array `(count, ...)` over all replicas that are of this process's."""
        return [np.asarray(array.addressable_data(at))[0] for at in range(len(self.own))]

    # -- what processes tell each other

    def reach_consensus(self, offer: StepProposal) -> Agreement:
        """What all processes do next; all must ask.

        Raises:
            PeerStopped: another process takes no further step.
            OutOfRangeError: no replica has an element.
            InternalError: the processes run different programs.
        """
        said = self.table(offer.words())
        steps, elements, shape, exchanges, stop = said.T
        if offer.stop:
            return Agreement(0, 0)
        if stop.any():
            raise PeerStopped(int(stop.max()))
        if not elements.any():
            raise OutOfRangeError(None, None, "End of sequence")
        if (exchanges != exchanges[0]).any():
            raise different_programs()
        alike = (shape == shape[0]).all()
        return Agreement(int(steps.min()) if alike else 0, int(elements.sum()))

    def table(self, words: Sequence[int]) -> NDArray[np.int32]:
        """The numbers of all processes, int32 `(processes, numbers)`."""
        own = np.array([words], np.int32)
        if self.processes == 1:
            return own
        return np.asarray(self._table([self._part(own)])[0])

    def wait_for_all(self) -> None:
        """Waits until all processes are here."""
        self.table([0])

    def total(self, arrays: Sequence[Any]) -> list[Any]:
        """The sums of arrays over all processes, on the first device of this one."""
        if self.processes == 1:
            return list(arrays)
        with x64():
            found = self._total([self._part(jnp.asarray(each)[None]) for each in arrays])
        return [each.addressable_data(0) for each in found]

    def of_chief(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The chief's values of arrays that all processes have, by name."""
        names = sorted(values)
        arrays = [jnp.asarray(values[name]) for name in names]
        if not self.is_chief:
            arrays = [jnp.zeros_like(each) for each in arrays]
        return dict(zip(names, self.total(arrays), strict=True))

    def text_of_chief(self, text: str) -> str:
        """The chief's text."""
        own = np.frombuffer(text.encode(), np.uint8)
        length = int(self.table([len(own)])[0, 0])
        padded = np.zeros(1 << length.bit_length(), np.uint8)
        if self.is_chief:
            padded[:length] = own
        return bytes(np.asarray(self.total([padded])[0])[:length]).decode()

    def rows(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The rows of all processes' arrays, one after the other; they may be of several numbers.

        Args:
            arrays: of one dtype and shape of row in all processes.
        """
        if self.processes == 1 or not arrays:
            return list(arrays)
        counts = self.table([len(each) for each in arrays])
        longest = counts.max(axis=0)
        padded = [
            np.concatenate([each, np.zeros((most - len(each), *each.shape[1:]), each.dtype)])
            for each, most in zip(arrays, longest, strict=True)
        ]
        with x64():
            found = self._table([self._part(each[None]) for each in padded])
        whole = []
        for every, lengths in zip(map(np.asarray, found), counts.T, strict=True):
            parts = [part[:length] for part, length in zip(every, lengths, strict=True)]
            whole.append(np.concatenate(parts))
        return whole

    def _part(self, own: Any) -> Any:
        """An array `(1, ...)` of this process as its part of one over all processes."""
        sharding = NamedSharding(self._leaders, axes(_PROCESS))
        shape = (self.processes, *own.shape[1:])
        part = jax.device_put(own, self.own[0])
        return jax.make_array_from_single_device_arrays(shape, sharding, [part])


def different_programs(received: str | None = None) -> InternalError:
    """The error of processes that do not do the same."""
    return InternalError.explained(
        "the processes that train together do different things",
        expected="the same program, model and structure of the input in each",
        received=received,
        hint="does a model_fn or input_fn depend on the task's number, or does a hook run part "
        "of the training in one process only?",
    )


def _total(parts: list[Any]) -> list[Any]:
    psum: Any = jax.lax.psum
    return [
        psum(part[0].astype(jnp.int8), _PROCESS).astype(bool)
        if part.dtype == bool
        else psum(part[0], _PROCESS)
        for part in parts
    ]


def _table(parts: list[Any]) -> list[Any]:
    return [jax.lax.all_gather(part, _PROCESS, tiled=True) for part in parts]


__all__ = [
    "ENDED",
    "INTERRUPTED",
    *("Agreement", "StepProposal", "PeerStopped", "Replicas", "axes", "different_programs"),
    "fingerprint",
]
