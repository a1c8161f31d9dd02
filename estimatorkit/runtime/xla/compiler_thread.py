"""The thread that compiles while programs run.

It is a daemon thread with a queue. At exit the queue is dropped, and what the thread compiles is
awaited for a minute: an interpreter that ended meanwhile would abort (see `at_exit`), and the
executable gets into the persistent cache. The threads of `concurrent.futures` would first do all
that is queued.
"""

from __future__ import annotations

import atexit
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from estimatorkit.runtime.xla.at_exit import counted, has_left, idle

NAME = "estimatorkit-compiler"

_LONGEST_WAIT = 60.0

_Task: TypeAlias = "tuple[Future[Any], Callable[[], Any]]"

_queue: SimpleQueue[_Task | None] = SimpleQueue()
_lock = threading.Lock()
_thread: threading.Thread | None = None


def submit(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Calls a function in the thread, in the context of the caller.

    Args:
        function, arguments: the function and its arguments.

    Returns:
        Its result. What the thread has not begun can be cancelled; it may never begin it.
    """
    global _thread
    future: Future[Any] = Future()
    context = contextvars.copy_context()
    _queue.put((future, lambda: context.run(function, *arguments)))
    with _lock:
        if _thread is None:
            _thread = threading.Thread(
                target=counted(_work), args=(_queue,), name=NAME, daemon=True
            )
            _thread.start()
            atexit.register(_leave, _thread)
    return future


def _work(queue: SimpleQueue[_Task | None]) -> None:
    while (task := _next(queue)) is not None:
        future, function = task
        if not has_left() and future.set_running_or_notify_cancel():
            try:
                future.set_result(function())
            except Exception as error:  # raised by the run that wants the result
                future.set_exception(error)
        del task, future, function  # not kept while waiting


def _next(queue: SimpleQueue[_Task | None]) -> _Task | None:
    with idle():
        return queue.get()


def _leave(thread: threading.Thread) -> None:
    """Ends the thread after what it does now."""
    try:
        while True:
            _queue.get_nowait()
    except Empty:
        _queue.put(None)
    thread.join(_LONGEST_WAIT)
