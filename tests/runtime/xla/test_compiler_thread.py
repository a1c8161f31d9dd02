"""One thread compiles, in order; what it has not begun can be taken back."""

from __future__ import annotations

import atexit
import contextvars
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from estimatorkit.runtime.xla import compiler_thread
from estimatorkit.runtime.xla.compiler_thread import submit
from tests.threads import StartedThreads

place = contextvars.ContextVar("place", default="nowhere")


class Queue(SimpleQueue[Any]):
    """Knows when it ends."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        super().put(item)
        if item is None:
            self.ended.set()


@pytest.fixture
def queue() -> Queue:
    """The queue of the test's thread."""
    return Queue()


@pytest.fixture(autouse=True)
def leave(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """A thread of the test's own; the function is what the process does at exit."""
    registered: list[Any] = []
    monkeypatch.setattr(compiler_thread, "_queue", queue)
    monkeypatch.setattr(compiler_thread, "_thread", None)
    monkeypatch.setattr(atexit, "register", lambda *call: registered.append(call))
    threads = StartedThreads()

    def left() -> None:
        for function, *arguments in registered:
            function(*arguments)

    yield left
    left()
    assert threads.have_ended(compiler_thread.NAME)


def test_one_thread_runs_all_in_order_and_context() -> None:
    token = place.set("here")
    found: list[Any] = []

    def note(value: int) -> int:
        found.append((value, place.get(), threading.current_thread()))
        return -value

    try:
        results = [submit(note, value) for value in range(5)]
    finally:
        place.reset(token)
    assert [each.result() for each in results] == [0, -1, -2, -3, -4]
    (thread,) = {each[2] for each in found}
    assert thread.daemon
    assert thread.name == compiler_thread.NAME
    assert [each[:2] for each in found] == [(value, "here") for value in range(5)]


def test_errors_are_results() -> None:
    with pytest.raises(ZeroDivisionError):
        submit(lambda: 1 // 0).result()
    assert submit(int, "7").result() == 7


def test_what_has_not_begun_can_be_cancelled() -> None:
    begun, go, found = threading.Event(), threading.Event(), list[int]()

    def wait() -> None:
        begun.set()
        go.wait()

    running, next_one, last = submit(wait), submit(found.append, 1), submit(found.append, 2)
    begun.wait()
    assert not running.cancel()
    assert next_one.cancel()
    go.set()
    last.result()
    assert found == [2]


def test_at_exit_the_current_one_ends_and_the_others_are_dropped(
    leave: Callable[[], None], queue: Queue
) -> None:
    begun, go, found = threading.Event(), threading.Event(), list[int]()

    def wait() -> int:
        begun.set()
        go.wait()
        return 3

    running, others = submit(wait), [submit(found.append, value) for value in range(3)]
    begun.wait()
    left = threading.Thread(target=leave)
    left.start()
    queue.ended.wait()
    go.set()
    left.join()
    assert running.result() == 3
    assert found == []
    assert all(each.cancel() for each in (*others, submit(found.append, 4)))
