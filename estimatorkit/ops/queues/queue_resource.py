"""Host-side contents of queues, to which queue handles refer in a session.

A `HostQueue` holds elements, tuples of arrays. Threads that find it full or empty wait, and are
served in order of arrival, so that small requests cannot starve a large batch. A `Store` defines
the order of elements: first in, first out; shuffled; or by priority. `Blocking` is the base class
of all host objects on which runs wait; it cancels waiting runs with the session or their own run.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType
from estimatorkit.core.errors import (
    CancelledError,
    InvalidArgumentError,
    OutOfRangeError,
    explain,
)
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation
from estimatorkit.runtime.xla.at_exit import is_leaving

Element: TypeAlias = tuple[NDArray[Any], ...]
"""One array per component."""

_LOOK_AGAIN = 0.05
"""Seconds between checks for the cancellation of a waiting run (changes wake it at once)."""


class Blocking:
    """Base class of host objects on whose state runs wait.

    `_changed` guards the state and is notified of every change.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._session_closed = False
        self._taken = False

    def close(self) -> None:
        """Cancels all waiting runs, because the session closes."""
        with self._changed:
            self._session_closed = True
            self._changed.notify_all()

    def _wait_until(self, ready: Callable[[], bool], context: Any, cancelled: str) -> None:
        """Waits until `ready()`; the caller holds `_changed`, which is released while waiting.

        `context` is that of the run, whose cancellation and deadline end the wait; `cancelled` is
        the error's text.

        Raises:
            CancelledError: the session or the run ended first.
            DeadlineExceededError: the run's deadline passed first.
        """
        while True:
            if self._session_closed or context.cancellation.is_closed or is_leaving():
                raise CancelledError(None, None, cancelled)
            context.raise_if_cancelled()  # before `ready`: a cancelled run must not take anything
            if ready():
                return
            self._changed.wait(_LOOK_AGAIN)

    @contextmanager
    def alone(self, context: Any, cancelled: str) -> Iterator[None]:
        """Excludes other runs in the block, which may wait for something else: does not hold
        `_changed`.

        See `_wait_until` for the arguments and errors.
        """
        with self._changed:
            self._wait_until(lambda: not self._taken, context, cancelled)
            self._taken = True
        try:
            yield
        finally:
            with self._changed:
                self._taken = False
                self._changed.notify_all()


@dataclass(frozen=True)
class QueueSpec:
    """Static description of a queue.

    Attributes:
        kind: the name of its class, for messages.
        capacity: the maximum number of elements; unbounded if negative.
        dtypes, shapes: of the components; shapes None if they are arbitrary.
        min_after_dequeue: the number of elements to retain for shuffling while it is open.
        seed: two words for shuffling; None for different seeds in each session.
    """

    kind: str
    name: str
    capacity: int
    dtypes: tuple[DType, ...]
    shapes: tuple[TensorShape, ...] | None
    min_after_dequeue: int = 0
    seed: tuple[int, int] | None = None


class Store(Protocol):
    """Protocol of containers of elements, which define their order."""

    def __len__(self) -> int: ...

    def put(self, element: Element) -> None:
        """Adds an element."""

    def take(self) -> Element:
        """Removes the next element."""

    def put_back(self, elements: Sequence[Element]) -> None:
        """Undoes `take` of `elements`."""


class _FirstInFirstOut:
    """Elements in insertion order."""

    def __init__(self) -> None:
        self._elements: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def put(self, element: Element) -> None:
        self._elements.append(element)

    def take(self) -> Element:
        return self._elements.popleft()

    def put_back(self, elements: Sequence[Element]) -> None:
        self._elements.extendleft(reversed(elements))


_DRAWN = 256
"""Random numbers drawn per call of the generator, which takes a microsecond."""


class _Shuffled:
    """Elements in random order."""

    def __init__(self, seed: tuple[int, int] | None) -> None:
        self._elements: list[Element] = []
        self._generator = np.random.default_rng(seed)
        self._numbers: list[float] = []

    def __len__(self) -> int:
        return len(self._elements)

    def put(self, element: Element) -> None:
        self._elements.append(element)

    def take(self) -> Element:
        if not self._numbers:
            self._numbers = self._generator.random(_DRAWN).tolist()
        chosen = int(self._numbers.pop() * len(self._elements))
        last = len(self._elements) - 1
        elements = self._elements
        elements[chosen], elements[last] = elements[last], elements[chosen]
        return elements.pop()

    def put_back(self, elements: Sequence[Element]) -> None:
        self._elements.extend(elements)


class _ByPriority:
    """Elements by ascending first component; ties in insertion order."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Element]] = []
        self._count = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, element: Element) -> None:
        heapq.heappush(self._heap, (int(element[0]), next(self._count), element))

    def take(self) -> Element:
        return heapq.heappop(self._heap)[2]

    def put_back(self, elements: Sequence[Element]) -> None:
        for element in elements:
            self.put(element)


def _make_store(spec: QueueSpec) -> Store:
    if spec.kind == "RandomShuffleQueue":
        return _Shuffled(spec.seed)
    if spec.kind == "PriorityQueue":
        return _ByPriority()
    return _FirstInFirstOut()


class HostQueue(Blocking):
    """A queue's elements in a session. Thread-safe.

    Args:
        spec: describes the queue.
        op: its handle, for messages.
    """

    def __init__(self, spec: QueueSpec, op: Operation | None = None) -> None:
        super().__init__()
        self.spec = spec
        self._op = op
        self._store = _make_store(spec)
        self._closed = False
        self._cancelled_before = 0  # tickets below were cancelled by `close_queue`
        self._tickets = itertools.count()
        self._putting: deque[int] = deque()
        self._taking: deque[int] = deque()
        self._fitting: list[Any] = []  # the shapes of the last element that `_check` passed

    def check_is(self, spec: QueueSpec, op: Operation) -> None:
        """Checks that another handle that shares the queue agrees with it.

        Raises InvalidArgumentError if the kind, capacity, dtypes, shapes or shuffling differ.
        """
        if op is self._op:
            return
        shared = op.attrs["shared_name"] or op.name
        for named, problem in _DIFFERENCES.items():
            own, asked = _in_words(getattr(self.spec, named)), _in_words(getattr(spec, named))
            if own != asked:
                words = f"Shared queue '{shared}' {problem.format(own=own, asked=asked)}"
                raise InvalidArgumentError.explained(words, made_at=op.source, op=op)

    # -- inspection

    def size(self) -> int:
        """The number of elements."""
        with self._changed:
            return len(self._store)

    @property
    def waiting(self) -> int:
        """The number of waiting enqueue and dequeue requests."""
        with self._changed:
            return len(self._putting) + len(self._taking)

    def is_closed(self) -> bool:
        """Whether it accepts no more elements."""
        with self._changed:
            return self._closed

    # -- changes

    def enqueue(
        self, elements: Sequence[Element], context: Any, batch: tuple[int, ...] = ()
    ) -> None:
        """Adds elements in sequence, waiting for room.

        `batch` is the shape that messages prepend to that of an element.

        Raises:
            CancelledError: the queue is closed, or the wait was cancelled.
            InvalidArgumentError: an element has the wrong shape.
        """
        for element in elements:
            self._check(element, batch)
        left = deque(elements)
        with self._turn(self._putting) as ticket:
            while left:
                self._wait_until(
                    lambda: ticket < self._cancelled_before or self._may_put(ticket),
                    context,
                    "Enqueue operation was cancelled",
                )
                if ticket < self._cancelled_before:
                    raise CancelledError(None, self._op, "Enqueue operation was cancelled")
                if self._closed:
                    raise CancelledError(None, self._op, self._explain("is closed"))
                while left and self._has_room:
                    self._store.put(left.popleft())
                self._changed.notify_all()

    def dequeue(self, count: int, context: Any, *, up_to: bool = False) -> list[Element]:
        """Removes `count` elements, waiting for them; with `up_to`, fewer once the queue is closed.

        Raises:
            OutOfRangeError: the queue is closed and has too few elements (with `up_to`, none).
            CancelledError: the wait was cancelled.
        """
        taken: list[Element] = []
        with self._turn(self._taking) as ticket:
            try:
                while len(taken) < count:
                    self._wait_until(
                        lambda: (
                            self._taking[0] == ticket
                            and (self._closed or len(self._store) > self.spec.min_after_dequeue)
                        ),
                        context,
                        "Dequeue operation was cancelled",
                    )
                    left = len(self._store)
                    if self._closed and left < count - len(taken):
                        return self._rest(taken, count, up_to)
                    kept = 0 if self._closed else self.spec.min_after_dequeue
                    for _ in range(min(left - kept, count - len(taken))):
                        taken.append(self._store.take())
                    self._changed.notify_all()
            except CancelledError:
                self._store.put_back(taken)
                raise
        return taken

    def take_at_once(self, count: int) -> list[Element]:
        """Removes up to `count` elements without waiting; none while others wait."""
        taken: list[Element] = []
        with self._changed:
            least = 0 if self._closed else self.spec.min_after_dequeue
            while not self._taking and len(taken) < count and len(self._store) > least:
                taken.append(self._store.take())
            self._changed.notify_all()
        return taken

    def _rest(self, taken: list[Element], count: int, up_to: bool) -> list[Element]:
        """The remaining elements of a closed queue that has too few."""
        if not up_to or not len(self._store) + len(taken):
            self._store.put_back(taken)
            size = len(self._store)
            problem = f"is closed and has insufficient elements (requested {count}, current size "
            raise OutOfRangeError(None, self._op, self._explain(f"{problem}{size})"))
        while len(self._store):
            taken.append(self._store.take())
        return taken

    def clear(self) -> None:
        """Removes all elements."""
        with self._changed:
            while len(self._store):
                self._store.take()
            self._changed.notify_all()

    def close_queue(self, cancel_pending: bool, context: Any) -> None:
        """Closes the queue to new elements.

        With `cancel_pending`, cancels waiting enqueues; otherwise waits until they are served.

        Raises:
            CancelledError: the queue is already closed (unless `cancel_pending`).
        """
        if cancel_pending:
            with self._changed:
                self._closed = True
                self._cancelled_before = next(self._tickets)
                self._changed.notify_all()
            return
        with self._turn(self._putting) as ticket:
            self._wait_until(
                lambda: self._closed or self._putting[0] == ticket,
                context,
                "Close operation was cancelled",
            )
            if self._closed:
                raise CancelledError(None, self._op, self._explain("is already closed"))
            self._closed = True
            self._changed.notify_all()

    def _may_put(self, ticket: int) -> bool:
        """Whether it is this ticket's turn and there is room or the queue is closed."""
        return self._putting[0] == ticket and (self._closed or self._has_room)

    @property
    def _has_room(self) -> bool:
        return self.spec.capacity < 0 or len(self._store) < self.spec.capacity

    @contextmanager
    def _turn(self, line: deque[int]) -> Iterator[int]:
        """Queues a ticket in `line` for the block, which holds `_changed`."""
        with self._changed:
            ticket = next(self._tickets)
            line.append(ticket)
            try:
                yield ticket
            finally:
                line.remove(ticket)
                self._changed.notify_all()

    # -- elements

    def _explain(self, problem: str) -> str:
        where = None if self._op is None else self._op.source
        return explain(f"{self.spec.kind} '{self.spec.name}' {problem}", made_at=where)

    def _check(self, element: Element, batch: tuple[int, ...]) -> None:
        shapes = [each.shape for each in element]
        if shapes == self._fitting:
            return
        for position, shape in enumerate(self.spec.shapes or ()):
            received = element[position].shape
            if not shape.is_compatible_with(received):
                wanted = _in_brackets([*batch, *shape.as_list()])
                raise InvalidArgumentError.explained(
                    f"Shape mismatch in tuple component {position}. Expected {wanted}, "
                    f"got {_in_brackets([*batch, *received])}",
                    received=f"an element for queue {self.spec.name!r}",
                    op=self._op,
                )
        self._fitting = shapes

    def batch(self, elements: Sequence[Element]) -> list[NDArray[Any]]:
        """Stacks the components of elements; a `PaddingFIFOQueue` pads them first.

        Raises InvalidArgumentError if the queue has no shapes.
        """
        shapes = self.spec.shapes
        if shapes is None:
            raise InvalidArgumentError.explained(
                f"{self.spec.kind}'s DequeueMany and DequeueUpTo require the components to "
                "have specified shapes",
                received=f"queue {self.spec.name!r} without shapes",
                hint="pass shapes= when creating the queue, or dequeue one by one",
                op=self._op,
            )
        return [
            _stack([element[position] for element in elements], dtype, shapes[position])
            for position, dtype in enumerate(self.spec.dtypes)
        ]


def _stack(parts: Sequence[NDArray[Any]], dtype: DType, shape: TensorShape) -> NDArray[Any]:
    """Stacks `parts`, padding them with zeros (or empty strings) to one shape."""
    if not parts:
        dims = tuple(dim or 0 for dim in shape.as_list())
        return np.empty((0, *dims), dtype.numpy_dtype)
    if len({part.shape for part in parts}) == 1:
        whole = np.empty((len(parts), *parts[0].shape), parts[0].dtype)
        for position, part in enumerate(parts):  # a quarter of `np.stack`'s time for scalars
            whole[position, ...] = part  # without ... a scalar of objects would be an object
        return whole
    size = tuple(max(dims) for dims in zip(*(part.shape for part in parts), strict=True))
    filling = b"" if dtype.on_host else 0
    whole = np.full((len(parts), *size), filling, dtype.numpy_dtype)
    for position, part in enumerate(parts):
        window = tuple(slice(length) for length in part.shape)
        whole[position][window] = part
    return whole


_DIFFERENCES = {
    "kind": "is another one: Expected {own}, found {asked}",
    "capacity": "has capacity {own} but requested capacity was {asked}",
    "dtypes": "has component types {own} but requested component types were {asked}",
    "shapes": "has component shapes {own} but requested component shapes were {asked}",
    "min_after_dequeue": "has min_after_dequeue {own} but requested min_after_dequeue was {asked}",
    "seed": "has random seeds ({own}) but requested seeds are ({asked})",
}
"""Error texts by the field of `QueueSpec` in which two handles of one queue differ."""


def _in_brackets(dims: Sequence[int | None]) -> str:
    """Formats a shape like TensorFlow's kernels: [2,?]."""
    return f"[{','.join('?' if dim is None else str(dim) for dim in dims)}]"


def _in_words(value: Any) -> str:
    """Formats a field of `QueueSpec` for messages."""
    if not isinstance(value, tuple):
        return str(value if value is not None else "[]")
    if all(isinstance(each, TensorShape) for each in value):
        return f"[{','.join(_in_brackets(shape.as_list()) for shape in value)}]"
    names = [each.name if isinstance(each, DType) else str(each) for each in value]
    return ", ".join(names)


def component(value: Any) -> NDArray[Any]:
    """Copies a tensor's value, because runs reuse their buffers."""
    return np.array(value)
