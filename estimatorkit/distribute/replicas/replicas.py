"""`Replicas`: the device mesh of all processes, and consensus on each call.

Between calls, a variable has the same value in all replicas: for collective calls an array
replicated on all devices (`everywhere`), for local work that of this process's first replica
(`here`).

Calls with collectives must be the same in all processes, but the number of available steps and the
shapes of batches differ. So before each call the processes exchange proposals (`StepProposal`),
from which all derive the same decision (`reach_consensus`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from estimatorkit.core.errors import InternalError, OutOfRangeError
from estimatorkit.core.x64 import x64
from estimatorkit.ops.control.collectives import AXIS
from estimatorkit.runtime.resource_store import finished

_PROCESS = "process"

_T = TypeVar("_T")

ENDED, INTERRUPTED, _GATHER = 1, 2, 3
"""Reasons to stop: the steps are done, the process was interrupted, or it first needs the rows of a
sharded variable."""


def axes(*names: str | None) -> PartitionSpec:
    """The mesh axes that an array's dimensions are sharded over."""
    return PartitionSpec(*names)  # type: ignore[no-untyped-call]


class PeerStopped(Exception):
    """Another process has stopped.

    Attributes:
        reason: its reason (see `StepProposal.stop`).
    """

    def __init__(self, reason: int) -> None:
        super().__init__("another process has ended the steps that all ran together")
        self.reason = reason


@dataclass(frozen=True)
class StepProposal:
    """A process's proposal for the next call.

    Attributes:
        steps: the number of steps it could run in one call; may be 0.
        elements: the number of its replicas that have an input element, for at least one step.
        shape: a fingerprint of the call, which must be equal in all processes.
        exchanges: a fingerprint of the collectives of its steps, which must be equal.
        stop: 0, or the reason why it stops.
    """

    steps: int
    elements: int
    shape: int = 0
    exchanges: int = 0
    stop: int = 0

    def words(self) -> list[int]:
        """The proposal as integers."""
        return [self.steps, self.elements, self.shape, self.exchanges, self.stop]


@dataclass(frozen=True)
class Agreement:
    """The decision on the next call.

    Attributes:
        steps: the number of steps in one call; 0 for a single step whose replicas' batches have
            different shapes or are missing.
        elements: the number of replicas that have an element.
    """

    steps: int
    elements: int


def fingerprint(value: Any) -> int:
    """31-bit hash of `repr(value)`."""
    digest = hashlib.blake2b(repr(value).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little") >> 1


class Replicas:
    """The replicas of a training.

    Args:
        devices: the device of each, grouped by process; the same in all processes.

    Attributes:
        mesh: the one-dimensional device mesh.
        count: the number of replicas.
        own: the devices of this process's replicas.
        first: the index of this process's first replica.
        processes: the number of processes.
        is_chief: whether the first replica is in this process.
        by_rows: the sharding of arrays whose rows are divided among the devices.
        gather: gathers a variable, by number, when another process requests it (see
            `gather_variable`).
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
        self.gather: Callable[[int], object] | None = None
        ordered = [device for device in devices if leaders[device.process_index] is device]
        self._leaders = Mesh(np.array(ordered), (_PROCESS,))
        self._same = NamedSharding(self.mesh, axes())
        self.by_rows = NamedSharding(self.mesh, axes(AXIS))
        self._compiled_all_reduce, self._compiled_all_gather = (
            jax.jit(
                jax.shard_map(
                    function,
                    mesh=self._leaders,
                    in_specs=axes(_PROCESS),
                    out_specs=axes(),
                    check_vma=False,
                )
            )
            for function in (_all_reduce, _all_gather)
        )

    # -- values

    def everywhere(self, value: Any) -> Any:
        """Replicates a value on the devices of all replicas.

        A collective: the other processes must call it with an equal value.
        """
        if isinstance(value, jax.Array) and value.sharding == self._same:
            return value
        parts = [jax.device_put(value, device) for device in self.own]
        return jax.make_array_from_single_device_arrays(parts[0].shape, self._same, parts)

    def row_sharded(self, part: Callable[[int, int], Any], shape: Sequence[int]) -> Any:
        """An array sharded by rows over all replicas.

        Args:
            part: `part(start, stop)` returns these rows of it; called for this process's devices.
            shape: of the array. The result has more rows, if the number of replicas does not
                divide them: those are zeros.
        """
        size = -(-shape[0] // self.count)
        parts = []
        for number, device in enumerate(self.own, self.first):
            bounds = [min(at * size, shape[0]) for at in (number, number + 1)]
            rows = np.asarray(part(*bounds))
            missing = [(0, size - len(rows)), *[(0, 0)] * (rows.ndim - 1)]
            padded = np.pad(rows, missing) if missing[0][1] else rows
            with x64():
                parts.append(jax.device_put(padded, device, may_alias=False))
        padded_shape = (size * self.count, *shape[1:])
        with x64():
            return jax.make_array_from_single_device_arrays(padded_shape, self.by_rows, parts)

    def own_rows(self, array: Any, rows: int) -> list[NDArray[Any]]:
        """The rows of a `row_sharded` array of each device of this process, without padding."""
        size = array.shape[0] // self.count
        return [
            np.asarray(finished(array.addressable_data(at)))[: max(rows - number * size, 0)]
            for at, number in enumerate(range(self.first, self.first + len(self.own)))
        ]

    def here(self, value: Any) -> Any:
        """The shard of an array that is on this process's first device."""
        if isinstance(value, jax.Array) and len(value.sharding.device_set) > 1:
            return value.addressable_data(0)
        return value

    def sharded(self, columns: NDArray[Any]) -> Any:
        """Shards columns `(length, own replicas, ...)` over all replicas, along axis 1.

        Args:
            columns: not modified afterwards; of the same length in all processes.
        """
        shape = (len(columns), self.count, *columns.shape[2:])
        sharding = NamedSharding(self.mesh, axes(None, AXIS))
        with x64():  # else JAX would truncate int64 to 32 bits, and the mark of missing ids to 0
            parts = [
                jax.device_put(columns[:, at : at + 1], device, may_alias=True)
                for at, device in enumerate(self.own)
            ]
            return jax.make_array_from_single_device_arrays(shape, sharding, parts)

    def for_each(self, value: Any) -> Any:
        """An array `(count, ...)` sharded over all replicas, with this value in those of the
        process.
        """
        sharding = NamedSharding(self.mesh, axes(AXIS))
        part = np.asarray(value)[None]
        parts = [jax.device_put(part, device) for device in self.own]
        shape = (self.count, *part.shape[1:])
        return jax.make_array_from_single_device_arrays(shape, sharding, parts)

    def own_parts(self, array: Any) -> list[NDArray[Any]]:
        """The shards of an array `(count, ...)` that are in this process."""
        return [np.asarray(array.addressable_data(at))[0] for at in range(len(self.own))]

    # -- collectives of processes

    def reach_consensus(self, proposal: StepProposal) -> Agreement:
        """Decides the next call; a collective.

        Raises:
            PeerStopped: another process has stopped.
            OutOfRangeError: no replica has an element.
            InternalError: the processes run different programs.
        """
        table = self._all_gather_ready(proposal.words())
        steps, elements, shape, exchanges, stop = table.T
        if proposal.stop:
            return Agreement(0, 0)
        if stop.any():
            raise PeerStopped(int(stop.max()))
        if not elements.any():
            raise OutOfRangeError(None, None, "End of sequence")
        if (exchanges != exchanges[0]).any():
            raise different_programs()
        is_equal = (shape == shape[0]).all()
        return Agreement(int(steps.min()) if is_equal else 0, int(elements.sum()))

    def gather_variable(self, number: int, gather: Callable[[int], _T]) -> _T:
        """Gathers a sharded variable. The other processes take part in their next `reach_consensus`
        or `wait_for_all`.

        Args:
            number: of the variable; the same in all processes.
            gather: the collective that gathers the variable of a number.
        """
        while True:
            table = self.all_gather(StepProposal(0, 0, number, stop=_GATHER).words())
            chosen = _first_requested(table)
            found = gather(number if chosen is None else chosen)
            if chosen == number:
                return found

    def _all_gather_ready(self, words: Sequence[int]) -> NDArray[np.int32]:
        """`all_gather`, after the variables that other processes request were gathered."""
        while True:
            table = self.all_gather(words)
            chosen = _first_requested(table)
            if chosen is None:
                return table
            if self.gather is None:
                raise different_programs("a process gathers a variable that others do not have")
            self.gather(chosen)

    def all_gather(self, words: Sequence[int]) -> NDArray[np.int32]:
        """Gathers integers of all processes: int32 `(processes, numbers)`."""
        own = np.array([words], np.int32)
        if self.processes == 1:
            return own
        return np.asarray(self._compiled_all_gather([self._part(own)])[0])

    def wait_for_all(self) -> None:
        """A barrier for all processes."""
        self._all_gather_ready(StepProposal(0, 0).words())

    def all_reduce(self, arrays: Sequence[Any]) -> list[Any]:
        """Sums arrays over all processes; the results are on this process's first device."""
        if self.processes == 1:
            return list(arrays)
        with x64():
            found = self._compiled_all_reduce(
                [self._part(jnp.asarray(each)[None]) for each in arrays]
            )
        return [each.addressable_data(0) for each in found]

    def broadcast(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Broadcasts the chief's values of named arrays that all processes have."""
        names = sorted(values)
        arrays = [jnp.asarray(values[name]) for name in names]
        if not self.is_chief:
            arrays = [jnp.zeros_like(each) for each in arrays]
        return dict(zip(names, self.all_reduce(arrays), strict=True))

    def broadcast_text(self, text: str) -> str:
        """Broadcasts a string of the chief."""
        own = np.frombuffer(text.encode(), np.uint8)
        length = int(self.all_gather([len(own)])[0, 0])
        padded = np.zeros(1 << length.bit_length(), np.uint8)
        if self.is_chief:
            padded[:length] = own
        return bytes(np.asarray(self.all_reduce([padded])[0])[:length]).decode()

    def all_gather_rows(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Concatenates the rows of arrays of all processes, which may have different lengths.

        Args:
            arrays: of the same dtypes and row shapes in all processes.
        """
        if self.processes == 1 or not arrays:
            return list(arrays)
        counts = self.all_gather([len(each) for each in arrays])
        longest = counts.max(axis=0)
        padded = [
            np.concatenate([each, np.zeros((most - len(each), *each.shape[1:]), each.dtype)])
            for each, most in zip(arrays, longest, strict=True)
        ]
        with x64():
            found = self._compiled_all_gather([self._part(each[None]) for each in padded])
        whole = []
        for every, lengths in zip(map(np.asarray, found), counts.T, strict=True):
            parts = [part[:length] for part, length in zip(every, lengths, strict=True)]
            whole.append(np.concatenate(parts))
        return whole

    def _part(self, own: Any) -> Any:
        """An array over all processes, of which this process's shard is `(1, ...)`."""
        sharding = NamedSharding(self._leaders, axes(_PROCESS))
        shape = (self.processes, *own.shape[1:])
        part = jax.device_put(own, self.own[0])
        return jax.make_array_from_single_device_arrays(shape, sharding, [part])


def _first_requested(table: NDArray[np.int32]) -> int | None:
    """The number of the variable that the first process to request one requests."""
    for _, _, number, _, stop in table.tolist():
        if stop == _GATHER:
            return int(number)
    return None


def different_programs(received: str | None = None) -> InternalError:
    """The error for processes that run different programs."""
    return InternalError.explained(
        "the processes of this synchronous training run different programs",
        expected="the same program, model and input structure in each process",
        received=received,
        hint="does a model_fn or input_fn depend on the task index, or does a hook run part of the "
        "training in one process only?",
    )


def _all_reduce(parts: list[Any]) -> list[Any]:
    psum: Any = jax.lax.psum
    return [
        psum(part[0].astype(jnp.int8), _PROCESS).astype(bool)
        if part.dtype == bool
        else psum(part[0], _PROCESS)
        for part in parts
    ]


def _all_gather(parts: list[Any]) -> list[Any]:
    return [jax.lax.all_gather(part, _PROCESS, tiled=True) for part in parts]


__all__ = [
    "ENDED",
    "INTERRUPTED",
    "Agreement",
    "StepProposal",
    "PeerStopped",
    "Replicas",
    "axes",
    "different_programs",
    "fingerprint",
]
