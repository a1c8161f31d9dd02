"""The requests that a task serves, and their replies: a frozen dataclass each.

A message is sent as the name of its class and its fields in JSON; `arrays` are sent beside them
(see `array_messages`). Only `encode` and `decode` know that. `decode` checks every field, so that
handlers get values of the declared types.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args

from estimatorkit.core.errors import OpError, UnknownError, exception_type_from_error_code, explain
from estimatorkit.data.sharded_dataset import Order
from estimatorkit.distribute.tasks.serialized_partition import SerializedPartition
from estimatorkit.storage.tensor_slice import TensorSlice
from estimatorkit.version import __version__

if TYPE_CHECKING:
    from pydantic import ConfigDict, TypeAdapter


class MalformedMessage(ValueError):
    """A message has unknown, missing or wrong fields."""


@dataclass(frozen=True)
class Message:
    """What processes of a cluster send each other.

    Attributes:
        arrays: NumPy or device arrays; read-only where they were received.
    """

    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}

    arrays: Sequence[Any] = field(default=(), kw_only=True)


# -- replies


@dataclass(frozen=True)
class Done(Message):
    """The request was executed."""


@dataclass(frozen=True)
class Values(Message):
    """The `arrays` that were asked for, in order."""


@dataclass(frozen=True)
class Handshake(Message):
    """The first message of a stream.

    Attributes:
        version: of the package and its messages; see `VERSION`.
        task: the task's name.
        incarnation: changes when the task loses its state.
        addresses: `host:port` of the cluster's tasks, by name.
        is_resumed: whether the task still has the replies of this channel.
    """

    version: str
    task: str
    incarnation: str
    addresses: dict[str, str]
    is_resumed: bool


@dataclass(frozen=True)
class Failure(Message):
    """The request failed.

    Attributes:
        code: the status code of the error.
        message: its text.
        op: the name of the operation that failed.
        state_lost: whether the task has lost its state since the stream began.
    """

    code: int
    message: str
    op: str | None = None
    state_lost: bool = False

    @staticmethod
    def of(error: OpError, state_lost: bool = False) -> Failure:
        """The reply for an error."""
        op = getattr(error.op, "name", error.op)
        message = str(error).encode(errors="backslashreplace").decode()  # may quote a file name
        return Failure(error.error_code, message, op, state_lost)

    def error(self) -> OpError:
        """The error, whose operation is a name."""
        try:
            kind = exception_type_from_error_code(self.code)
        except KeyError:
            kind = UnknownError
        return kind(None, self.op, self.message)


@dataclass(frozen=True)
class SharedMemoryOpened(Message):
    """Whether the task has opened the areas."""

    is_open: bool


@dataclass(frozen=True)
class StepLease(Message):
    """The counter, and how many steps are leased."""

    count: int
    leased: int


@dataclass(frozen=True)
class Initialized(Message):
    """Whether each variable has a value."""

    flags: tuple[bool, ...]


@dataclass(frozen=True)
class SavedVariables(Message):
    """The dtype name and shape of each tensor written, by name in the checkpoint."""

    tensors: dict[str, tuple[str, list[int]]]


@dataclass(frozen=True)
class TrainingStatus(Message):
    """The status of a training, as a parameter server has it.

    Attributes:
        name_taken_secs: not None if another process has the sender's name: seconds since its last
            heartbeat. All other fields have their defaults then.
        ready: the fingerprint of the initialized model, or None.
        is_ending: whether the chief has ended the training.
        is_done: whether parameter servers are to shut down.
        workers: the workers that take steps.
        staleness: a report of the staleness of updates.
        coverage: a report of the shards trained, once the training is ending.
    """

    name_taken_secs: float | None = None
    ready: dict[str, str] | None = None
    is_ending: bool = False
    is_done: bool = False
    workers: tuple[str, ...] = ()
    staleness: str = ""
    coverage: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShardQueueState:
    """The state of a shard queue.

    Attributes:
        count, seed: those of the `Order`.
        dealt: how many shards have been assigned at least once.
        open: the shards, (epoch, index), that are assigned or returned, and not trained.
        again: the shards that were reassigned, with the number of times: (epoch, index, times).
    """

    count: int
    seed: int | None
    dealt: int
    open: tuple[tuple[int, int], ...]
    again: tuple[tuple[int, int, int], ...]

    def as_json(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        found: dict[str, Any] = _adapter(ShardQueueState).dump_python(self, mode="json")
        return found

    @staticmethod
    def of_json(state: Any) -> ShardQueueState:
        """The state of a checkpoint.

        Raises:
            MalformedMessage: it is not one.
        """
        found: ShardQueueState = _validated(ShardQueueState, json.dumps(state))
        return found


@dataclass(frozen=True)
class Shard(Message):
    """The shard taken, (epoch, index), or None if there is none at present."""

    unit: tuple[int, int] | None


@dataclass(frozen=True)
class ShardsLeft(Message):
    """See `ShardQueue.has_more`."""

    has_more: bool | None


@dataclass(frozen=True)
class SavedShards(Message):
    """The state of the queue."""

    state: ShardQueueState


@dataclass(frozen=True)
class Restored(Message):
    """Whether the state was restored."""

    is_restored: bool


# -- requests

R = TypeVar("R", bound=Message)


@dataclass(frozen=True)
class Request(Message, Generic[R]):
    """A request whose reply is an `R`, or a `Failure`.

    Attributes:
        zero_copy: whether the reply's arrays are valid only until the next request, so that they
            may be in shared memory.
    """

    zero_copy: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class OpenSharedMemory(Request[SharedMemoryOpened]):
    """Opens shared memory for this stream: (name, secret) of the areas for requests and replies."""

    areas: tuple[tuple[str, str], tuple[str, str]]


@dataclass(frozen=True)
class LoadProgram(Request[Done]):
    """Loads a partition's graph, which the task compiles once for all clients.

    Attributes:
        name: the program's name from now on.
        partition: the partition without its graph, whose bytes are the only array.
        fresh: random operations whose counters are reset.
    """

    name: str
    partition: SerializedPartition
    fresh: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunPrograms(Request[Values]):
    """Runs programs in order, each on the next of the arrays.

    Attributes:
        programs: their names.
        worker: the worker whose training step this is, or None.
        updates: how many of the first programs update; the others read for the next step.
        bound: the most steps that the worker may be ahead of the slowest; None for no bound.
        ahead: its steps in flight: they have read and not updated. bfloat16_rows: rows sent so.
    """

    programs: tuple[str, ...]
    worker: str | None = None
    updates: int = 0
    bound: int | None = None
    ahead: int = 0
    bfloat16_rows: bool = False


@dataclass(frozen=True)
class LeaseSteps(Request[StepLease]):
    """Reports a worker's steps, and leases it more (see `StepLeases`).

    Attributes:
        worker: the worker.
        counter: the variable that counts steps.
        done: the steps to add to it.
        wanted: the most steps to lease; 0 for none.
        until: the count to stop at; None for no limit.
    """

    worker: str
    counter: str
    done: int
    wanted: int
    until: int | None


@dataclass(frozen=True)
class ReadVariables(Request[Values]):
    """Reads variables."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class WriteVariables(Request[Done]):
    """Sets variables to the arrays."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class AreInitialized(Request[Initialized]):
    """Asks which variables have values."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class SaveVariables(Request[SavedVariables]):
    """Writes a shard of a checkpoint: `names` are variables, by name in the checkpoint."""

    path: str
    names: dict[str, str]


@dataclass(frozen=True)
class RestoreVariables(Request[Done]):
    """Restores variables from `slices` of a checkpoint's tensors."""

    path: str
    slices: dict[str, TensorSlice]


@dataclass(frozen=True)
class ClearResources(Request[Done]):
    """Clears variables, queues and tables."""


@dataclass(frozen=True)
class ResetTask(Request[Done]):
    """Clears all state; clients must begin anew."""


@dataclass(frozen=True)
class Heartbeat(Request[TrainingStatus]):
    """A sign of life of a process, with changes of the training status.

    Attributes:
        member: the name of its task.
        process: a unique name of the process.
        ready, is_ending, is_done: see `TrainingStatus`; None leaves them unchanged.
    """

    member: str
    process: str
    ready: dict[str, str] | None = None
    is_ending: bool | None = None
    is_done: bool | None = None


@dataclass(frozen=True)
class ShardRequest(Request[R]):
    """A request to a shard queue, which the order of its shards identifies."""

    worker: str
    order: Order


@dataclass(frozen=True)
class TakeShard(ShardRequest[Shard]):
    """Takes the next shard."""


@dataclass(frozen=True)
class CompleteShards(ShardRequest[Done]):
    """Reports shards, (epoch, index), as trained."""

    units: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class HasShards(ShardRequest[ShardsLeft]):
    """Asks whether there are shards left."""


@dataclass(frozen=True)
class SaveShards(ShardRequest[SavedShards]):
    """Asks for the queue's state."""


@dataclass(frozen=True)
class RestoreShards(ShardRequest[Restored]):
    """Restores the queue's state."""

    state: ShardQueueState


# -- the format

M = TypeVar("M", bound=Message)


def encode(message: Message) -> bytes:
    """The header of a message: everything but its arrays."""
    kind: Any = type(message)
    fields: bytes = _adapter(kind).dump_json(message, exclude=_ARRAYS)
    return b" ".join([kind.__name__.encode(), fields])


def decode(header: bytes, arrays: Sequence[Any], *expected: type[M]) -> M:
    """Restores a message.

    Args:
        header: of `encode`.
        arrays: the arrays received with it.
        expected: classes of messages; subclasses are expected, too.

    Raises:
        MalformedMessage: it is none of these, or a field is missing, unknown or of another type.
    """
    name, _, values = header.partition(b" ")
    kinds = _kinds(expected)
    kind = kinds.get(name)
    if kind is None:
        names = ", ".join(sorted(each.decode() for each in kinds))
        raise _malformed(f"{name[:_SHOWN]!r}", f"one of {names}")
    message: M = _validated(kind, values)
    object.__setattr__(message, "arrays", arrays)  # `replace` would take 3 us
    return message


@cache
def reply_type(request: Any) -> type[Message]:
    """The class of the replies to a class of requests."""
    reply: type[Message] = get_args(request.__orig_bases__[0])[0]
    return reply


_ARRAYS = {"arrays"}
_SHOWN = 200  # characters of what is wrong with a message


def _validated(kind: Any, text: str | bytes) -> Any:
    try:
        return _adapter(kind).validate_json(text, strict=True)
    except ValueError as error:  # pydantic's
        raise _malformed(f"{kind.__name__}{_first_problem(error)}"[:_SHOWN]) from None


def _first_problem(error: Any) -> str:
    first = error.errors(include_url=False)[0]
    return "".join(f".{part}" for part in first["loc"]) + f": {first['msg']}"


def _malformed(received: str, expected: str | None = None) -> MalformedMessage:
    return MalformedMessage(
        explain(
            "a message of another process is malformed",
            expected=expected,
            received=received,
            hint="does every process of the cluster run the same version of this package?",
        )
    )


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # takes 0.1 s, which a program without a cluster need not wait

    return TypeAdapter(kind)


@cache
def _kinds(bases: Any) -> dict[bytes, Any]:
    """The classes without subclasses, by name."""
    found: dict[bytes, Any] = {}
    for base in bases:
        inner = tuple(base.__subclasses__())
        found.update(_kinds(inner) if inner else {base.__name__.encode(): base})
    return found


def _version() -> str:
    declared = [
        (kind.__name__, [(each.name, str(each.type)) for each in fields(kind)])
        for kind in _kinds((Message,)).values()
    ]
    digest = hashlib.sha256(repr(sorted(declared)).encode()).hexdigest()
    return f"{__version__} (messages {digest[:8]})"


VERSION = _version()
"""The version of the package and of the message fields, which must match in a cluster."""
