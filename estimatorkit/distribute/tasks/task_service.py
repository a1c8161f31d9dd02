"""`TaskService`: the Arrow Flight service of a task.

A stream is a channel of alternating requests and replies (`array_messages`). Requests are numbered,
so that one retried after a broken connection executes at most once (`ReplyCache`). `_QUESTIONS`
lists the kinds of requests.
"""

from __future__ import annotations

import hmac
import itertools
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import jax
import numpy as np

from estimatorkit.core.errors import (
    AbortedError,
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    PermissionDeniedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
    explain,
)
from estimatorkit.core.x64 import x64
from estimatorkit.distribute.dynamic_sharding import Deals
from estimatorkit.distribute.tasks.array_messages import SCHEMA, BrokenMessage, receive, send
from estimatorkit.distribute.tasks.arrow import flight
from estimatorkit.distribute.tasks.membership import Membership
from estimatorkit.distribute.tasks.reply_cache import Channels
from estimatorkit.distribute.tasks.shared_memory import SharedMemory
from estimatorkit.distribute.tasks.staleness import StalenessTracker
from estimatorkit.distribute.tasks.step_leases import StepLeases
from estimatorkit.distribute.tasks.task_program import Program, part_of
from estimatorkit.distribute.tasks.task_protocols import ENDED
from estimatorkit.distribute.tls import Identity
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.storage.atomic_files import is_temporary, os_errors
from estimatorkit.storage.checkpoint import read_checkpoint_parts
from estimatorkit.storage.checkpoint_format import write_shard
from estimatorkit.storage.checkpoint_manifest import is_checkpoint_file
from estimatorkit.storage.tensor_slice import TensorSlice

_logger = logging.getLogger("estimatorkit")

AUTHORIZATION = "authorization"
"""The header with the token."""

Arrays = list[Any]

RECONNECT_SECS = 10.0
"""How long a broken channel can be taken up."""

_LOOK_SECS = 0.05
"""Seconds after which one who waits for others looks whether it was given up."""

_LEASE_SECS = 1.0
"""How long a worker waits for steps that others have leased: these may wait for their input. After
that it runs one step more, which the total may then exceed.
"""


class TaskService(flight.FlightServerBase):  # type: ignore[misc]
    """Runs partitions of clients' runs on this process's state.

    Args:
        address: `host:port`, bound exactly as given; port 0 for a free one.
        name: the task's name, '/job:ps/task:0'.
        held: the variables, tables and queues.
        token: the token that clients must present.
        about: cluster information for clients.
        identity: for TLS, which clients must use, too; None for unencrypted traffic.
        folder: where checkpoints are written; any if None.

    Raises:
        OSError: the address cannot be bound.
    """

    def __init__(
        self,
        address: str,
        name: str,
        held: ResourceStore,
        token: str,
        about: Mapping[str, Any],
        identity: Identity | None = None,
        folder: str | None = None,
    ) -> None:
        self._folder = folder
        options: dict[str, Any] = {"middleware": {"token": _TokenCheck(token)}}
        if identity is None:
            super().__init__(f"grpc://{address}", **options)
        else:
            super().__init__(
                f"grpc+tls://{address}",
                tls_certificates=[identity[:2]],
                verify_client=True,
                root_certificates=identity.authority,
                **options,
            )
        self._about = {**about, "task": name, "incarnation": uuid.uuid4().hex}
        self._held = held
        self._programs: dict[str, Program] = {}
        self._preparing = threading.Lock()
        self.channels = Channels()
        self._sweeper: threading.Timer | None = None
        self._sweeping = threading.Lock()
        self._members = Membership()
        self._updates = StalenessTracker()
        self._leases = StepLeases()
        self._deals = Deals()
        self._updated = threading.Condition()
        self.stopping = threading.Event()
        self.told: dict[str, Any] = {}
        # Not `_updated`: who waits for the end would be woken, and take the interpreter, each step.
        self._news = threading.Condition()

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Serves a channel until it closes."""
        channel = descriptor.command
        is_known = channel in self.channels
        answers = self.channels.opened(channel)
        in_order = False
        workers: set[str] = set()
        members: set[tuple[str, str]] = set()
        inbox = outbox = None
        writer.begin(SCHEMA)
        incarnation = self._about["incarnation"]
        send(writer, {**self._about, "is_known": is_known})

        lost = {**_as_header(_forgotten(self._about["task"])), "is_lost": True}

        def is_lost() -> bool:
            return bool(incarnation != self._about["incarnation"])

        def over() -> None:
            if context.is_cancelled():
                raise CancelledError(None, None, "Step was cancelled: the session was closed.")
            if self.stopping.is_set():
                raise UnavailableError(None, None, f"{self._about['task']} is shutting down.")

        try:
            while not self.stopping.is_set():
                try:
                    header, arrays = receive(reader.read_chunk, inbox)
                except StopIteration:
                    in_order = not context.is_cancelled()  # it is where the connection was cut
                    return
                except BrokenMessage as error:
                    if isinstance(error.__cause__, StopIteration):
                        raise
                    send(writer, _malformed(str(error)))
                    continue
                try:
                    if header["ask"] == "share":
                        inbox, outbox = (SharedMemory.open(*each) for each in header["areas"])
                        if inbox is None or outbox is None:
                            inbox = outbox = None
                    workers.update(filter(None, [header.get("worker")]))
                    if "member" in header:
                        name, process = header["member"]
                        members.add((name, process))
                    number = header["number"]
                except (LookupError, TypeError, ValueError) as error:
                    send(writer, _malformed(f"{type(error).__name__}: {error}"))
                    continue

                def work(header: dict[str, Any] = header, arrays: Arrays = arrays) -> Any:
                    if is_lost() and header["ask"] != "status":
                        return lost, []
                    answer, found = self._answer(header, arrays, answers.kept, over)
                    # It may have waited for something that was forgotten meanwhile.
                    return (lost if "error" in answer and is_lost() else answer), found

                try:
                    given = answers.answer(number, work)
                except OpError as error:
                    given = _as_header(error), []
                answer, found = given
                _send(writer, answer, found, outbox if header.get("borrowed") else None)
        finally:
            # Nobody is to wait for them; whoever comes again reads first.
            self._left(workers, members)
            if in_order:
                self.channels.closed(channel)
            else:
                self.channels.broke(channel, time.monotonic() + RECONNECT_SECS)
                self._forget_broken()

    def _forget_broken(self, is_timer: bool = False) -> None:
        """Drops broken channels that are not resumed in time."""
        with self._sweeping:
            if is_timer:
                self._sweeper = None
            if self.channels.forget_broken(time.monotonic()) and self._sweeper is None:
                self._sweeper = threading.Timer(RECONNECT_SECS, self._forget_broken, (True,))
                self._sweeper.daemon = True
                self._sweeper.start()

    def _give_up_silent(self) -> None:
        """Drops channels of silent hosts, whose connections look open."""
        with self._news:
            silent = self._members.silent(time.monotonic())
        for name in silent:
            self._updates.left(name)
            self._leases.left(name)
            self._deals.process_left(name)

    def _left(self, workers: set[str], members: set[tuple[str, str]]) -> None:
        with self._news:
            for member in members:
                self._members.left(*member)
        with self._updated:
            for worker in workers:
                self._updates.left(worker)
                self._leases.left(worker)
                self._deals.left(worker)
            self._updated.notify_all()

    def _answer(
        self,
        header: dict[str, Any],
        arrays: Arrays,
        kept: dict[str, Any],
        over: Callable[[], None],
    ) -> tuple[dict[str, Any], Arrays]:
        """The reply to a request, which may be an error."""
        try:
            return {}, _QUESTIONS[header["ask"]](self, header, arrays, kept, over)
        except OpError as error:
            return _as_header(error), []
        except Exception as error:
            # The one who asked must hear of it, whatever it is; the task goes on for the others.
            _logger.exception("A request of another task failed: %s", header["ask"])
            return _as_header(UnknownError(None, None, f"{type(error).__name__}: {error}")), []

    def _share(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        """Whether the client's shared memory can be opened; `do_exchange` opens it."""
        return [np.array([SharedMemory.open(*each) is not None for each in header["areas"]])]

    def _program(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        """Receives a graph, which is compiled once for all clients. Random operations listed as
        'fresh' are reset.
        """
        name = header["program"]
        with self._preparing:
            if name not in self._programs:
                part = part_of(header["part"], bytes(arrays[0]))
                self._programs[name] = Program(part, self._held)
        with self._held.lock:
            for fresh in header.get("fresh", ()):
                self._held.values.pop(fresh, None)
        return []

    def _run(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        """Runs programs in order, each on the next of the arrays.

        For a worker's step ('worker'), the first 'updates' programs update parameters, and the
        others read them for the next step. Waiting is cancelled when the training ends.
        """
        given, found = iter(arrays), []
        worker, updates = header.get("worker"), header.get("updates", 0)

        def ended() -> None:
            over()
            if worker is not None and self.told.get("is_ending"):
                raise self._ended()

        waits: list[Callable[[], None]] = []
        try:
            for number, name in enumerate(header["programs"]):
                if worker is not None and number == updates:
                    self._wait_to_read(worker, header.get("bound"), over)
                program = self._programs[name]
                found += program(list(itertools.islice(given, program.takes)), kept, ended, waits)
                if number == updates - 1:
                    with self._updated:
                        self._updates.updated(worker)
                        self._updated.notify_all()
        finally:
            for wait in waits:  # the asker may write over what it has sent when it hears the answer
                wait()
        return found

    def _ended(self) -> AbortedError:
        return AbortedError(None, None, f"{self._about['task']}: {ENDED}.")

    def _wait_to_read(self, worker: str, bound: int | None, over: Callable[[], None]) -> None:
        with self._updated:
            if self.told.get("is_ending") and worker not in self._updates.workers:
                raise self._ended()  # the chief waits for those alone who were there
            while not self._updates.can_start(worker, bound):
                over()
                self._updated.wait(_LOOK_SECS)
                self._give_up_silent()
            self._updates.read(worker)

    def _lease(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        """Counts the steps that a worker has 'done', and leases it as many as 'wanted' until the
        'counter' is at 'until' (see `StepLeases`); returns the count and the number leased.
        """
        worker, counter, done = header["worker"], header["counter"], header["done"]
        if done:
            with self._held.lock:
                if counter not in self._held.values:
                    raise _without_value(counter)
                counted = np.asarray(self._held.values[counter])
                self._put([counter], [np.asarray(counted + done, counted.dtype)])
        deadline = time.monotonic() + _LEASE_SECS
        with self._updated:
            self._leases.left(worker)
            self._updated.notify_all()
            while True:
                count = int(self._read({"names": [counter]}, [], kept, over)[0])
                wanted = header["wanted"]
                leased = wanted and self._leases.lease(worker, wanted, count, header["until"])
                if wanted and not leased and time.monotonic() > deadline:
                    leased = self._leases.lease(worker, 1, count, None)
                if leased or not wanted:
                    return [np.array([count, leased])]
                over()
                self._updated.wait(_LOOK_SECS)
                self._give_up_silent()

    def _read(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        """The values of variables."""

        def take(names: Sequence[str]) -> Arrays:
            missing = [name for name in names if name not in self._held.values]
            if missing:
                raise _without_value(missing[0])
            return [self._held.values[name] for name in names]

        return self._held.read(header["names"], take, over)

    def _write(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        self._put(header["names"], map(np.array, arrays))
        return []

    def _initialized(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        return [np.array([name in self._held.values for name in header["names"]])]

    def _save(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        """Writes a checkpoint file from a consistent snapshot."""
        path, names = Path(header["path"]), header["names"]
        _check_shard(path, self._folder)
        values = self._held.values
        found = self._held.read(
            list(names.values()), lambda names: [values[each] for each in names], over
        )
        with os_errors("write the checkpoint", path):
            written = write_shard(path, dict(zip(names, found, strict=True)))
        return _as_json(written)

    def _restore(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        parts = {name: TensorSlice(**part) for name, part in header["parts"].items()}
        self._put(parts, read_checkpoint_parts(header["path"], parts.values()))
        return []

    def _put(self, names: Iterable[str], values: Iterable[Any]) -> None:
        with self._held.lock, x64():
            for name, value in zip(names, values, strict=True):
                is_text = value.dtype.hasobject
                self._held.values[name] = value if is_text else jax.device_put(value)

    def _forget(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        """Clears the state; clients must restart."""
        with self._held.lock:
            self._about["incarnation"] = uuid.uuid4().hex
            self.told.pop("ready", None)
            self._held.clear()
        with self._updated:
            self._deals.clear()
            self._leases.clear()
        return []

    def _deal(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        """Handles a request of a 'worker' to the shard queues (see `dynamic_sharding`)."""
        with self._updated:
            self._give_up_silent()
            found = self._deals.answer(header["worker"], header["deal"])
        return _as_json(found)

    def _status(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        """The training status; the header may update it ('is_ending', 'is_done'). A 'member' whose
        name is taken gets only that error (see `Membership`).
        """
        with self._news:
            name, process = header["member"]
            silent = self._members.heard(name, process, time.monotonic())
            if silent is not None:
                return _as_json({"taken": silent})
            self.told.update(header.get("tell", {}))
            self._news.notify_all()
        with self._updated:
            status = {
                **self.told,
                "workers": list(self._updates.workers),
                "report": self._updates.report(),
                "coverage": self._deals.report() if self.told.get("is_ending") else [],
            }
        return _as_json(status)

    def wait_until(self, told: str, seconds: float) -> bool:
        """Waits until a status is set; returns whether it is."""
        with self._news:
            return self._news.wait_for(lambda: bool(self.told.get(told)), seconds)

    def _clear(
        self, header: Any, arrays: Arrays, kept: dict[str, Any], over: Callable[[], None]
    ) -> Arrays:
        with self._held.lock:
            self._held.clear()
        return []

    def stop(self, seconds: float = 60.0) -> bool:
        """Cancels requests and stops serving; returns whether all clients disconnected in time.

        Args:
            seconds: how long to wait for clients to close their channels.
        """
        self.stopping.set()
        stopping = threading.Thread(target=self.shutdown, daemon=True)
        stopping.start()
        stopping.join(seconds)
        return not stopping.is_alive()


def _check_shard(path: Path, folder: str | None) -> None:
    """Checks that a path names a new shard of a checkpoint in progress.

    Raises:
        PermissionDeniedError: it is not, or not below `folder`.
    """
    real = Path(os.path.realpath(path))
    is_shard = is_temporary(real.parent.name) and is_checkpoint_file(real.name)
    inside = folder is None or real.is_relative_to(os.path.realpath(folder))
    if not (is_shard and inside) or os.path.lexists(path):
        raise PermissionDeniedError.explained(
            "a task writes only new files of checkpoints",
            expected=f"a path below {folder!r}" if folder else "a checkpoint that is being written",
            received=str(path),
        )


_QUESTIONS: dict[str, Callable[..., Arrays]] = {
    "share": TaskService._share,
    "program": TaskService._program,
    "run": TaskService._run,
    "lease": TaskService._lease,
    "read": TaskService._read,
    "write": TaskService._write,
    "initialized": TaskService._initialized,
    "clear": TaskService._clear,
    "save": TaskService._save,
    "restore": TaskService._restore,
    "forget": TaskService._forget,
    "deal": TaskService._deal,
    "status": TaskService._status,
}


def _forgotten(task: str) -> AbortedError:
    return AbortedError(
        None,
        None,
        f"{task} was reset: training resumes from the last checkpoint.",
    )


def _without_value(name: str) -> FailedPreconditionError:
    return FailedPreconditionError.explained(
        f"Attempting to use uninitialized value {name}",
        hint="run global_variables_initializer() or restore a checkpoint first",
        op=name,
    )


def _as_json(value: Any) -> Arrays:
    return [np.frombuffer(json.dumps(value).encode(), np.uint8)]


def _send(writer: Any, answer: dict[str, Any], arrays: Arrays, area: SharedMemory | None) -> None:
    """Sends a reply; if its arrays are not serializable, sends that error."""
    try:
        send(writer, answer, arrays, area)
    except UnimplementedError as error:
        send(writer, _as_header(error))


def _malformed(reason: str) -> dict[str, Any]:
    return _as_header(
        InvalidArgumentError.explained("a request of another task is malformed", received=reason)
    )


def _as_header(error: OpError) -> dict[str, Any]:
    name = getattr(error.op, "name", error.op)
    return {"error": [error.error_code, str(error), name]}


class _TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Rejects calls without the token."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> None:
        """Checks a call's headers."""
        given = headers.get(AUTHORIZATION, [""])[0]
        if not hmac.compare_digest(given.encode(), self._expected):
            _refuse()


def _refuse() -> NoReturn:
    raise flight.FlightUnauthenticatedError(
        explain(
            "the caller is not authenticated",
            expected="the cluster's token",
            hint="set ESTIMATORKIT_TOKEN to the same value on every host",
        )
    )
