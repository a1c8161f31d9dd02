"""Shutdown: no thread is inside XLA or Arrow while Python ends, and none comes back from there.

When Python ends, it ends a daemon thread as soon as that acquires the GIL, by unwinding its stack.
One that returns from XLA does so inside C++ frames that cannot be unwound, and the process aborts.
Therefore the work of threads other than the main one is counted: a run of a session (`native`), and
the whole life of a thread of this package (`counted`) but for its waits (`idle`). At exit:

1. First of all registered functions, `_leave` parks what would go on for ever, the runs of daemon
   threads: they wait until the process is gone. It waits for what is being done.
2. Other functions end servers and connections, and may run sessions.
3. `_end`, the last one, waits for the rest; whoever wakes later is parked. If a thread works longer
   than `LONGEST_WAIT`, the process exits without the end of Python, with the program's exit status.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import signal
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import get_ident
from typing import Any, ParamSpec, TypeVar

from estimatorkit import garbage
from estimatorkit.core.errors import FailedPreconditionError

LONGEST_WAIT = 5.0
"""Seconds that the end of the program waits for the work of threads."""

MAIN = threading.main_thread().ident
"""The thread whose work needs no count."""

_LONGEST_END = 5
"""Whole seconds for the end of Python in a copy of the process."""

_LIBRARIES = (
    {"estimatorkit", "jax", "jaxlib", "numpy", "pandas", "scipy", "sklearn"}
    | sys.stdlib_module_names
) - {"builtins", "sys"}
"""Packages whose modules refer to no object of the program that must be destroyed at exit."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

_sessions: weakref.WeakSet[Any] = weakref.WeakSet()
_working: dict[int, int] = {}  # by thread, how deep; each changes its own entry
_ending: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_left = threading.Event()
_until = 0.0
_over = False
_forked = False


def watch(session: Any) -> None:
    """Registers a session, whose `stop_daemons()` is called at exit.

    Raises:
        FailedPreconditionError: see `check_not_forked`.
    """
    check_not_forked()
    _sessions.add(session)
    # Last registered, first called: servers of this process, which wait for the runs that they work
    # on, are ended by what was registered when they were made.
    atexit.unregister(_leave)
    atexit.register(_leave)


def has_left() -> bool:
    """Whether the program is exiting."""
    return _left.is_set()


def is_leaving() -> bool:
    """Whether the program is exiting and this is a counted daemon thread, whose runs are to end."""
    return _left.is_set() and get_ident() in _working and threading.current_thread().daemon


def park_daemon_threads() -> None:
    """Blocks daemon threads for ever once the program is exiting."""
    if is_leaving():
        _park()


@contextmanager
def native() -> Iterator[None]:
    """A context manager for a run of a thread other than the main one.

    Once the program is exiting, daemon threads neither begin one nor return from it.

    Raises:
        FailedPreconditionError: see `check_not_forked`.
    """
    check_not_forked()
    _enter()
    park_daemon_threads()
    try:
        yield
    finally:
        park_daemon_threads()
        _leave_work()


def native_call(call: Callable[_P, _R]) -> Callable[_P, _R]:
    """Makes a function that calls XLA `native`, outside the main thread."""

    @wraps(call)
    def counted_call(*arguments: _P.args, **named: _P.kwargs) -> _R:
        if get_ident() == MAIN:
            return call(*arguments, **named)
        with native():
            return call(*arguments, **named)

    return counted_call


def counted(work: Callable[_P, None]) -> Callable[_P, None]:
    """Makes the function of a thread one whose work is awaited at exit."""

    def run(*arguments: _P.args, **named: _P.kwargs) -> None:
        _enter()
        try:
            work(*arguments, **named)
        finally:
            _ending.add(threading.current_thread())  # it frees arrays and what holds them
            _leave_work()

    return run


@contextmanager
def idle() -> Iterator[None]:
    """A context manager for a wait in `counted` work, during which the program may end."""
    depth = _working.pop(get_ident(), 0)
    try:
        yield
    finally:
        if depth:
            _enter(depth)


def _enter(depth: int = 1) -> None:
    own = get_ident()
    _working[own] = _working.get(own, 0) + depth  # first: `_end` sets `_over`, then looks
    if _over:
        _park()


def _leave_work() -> None:
    own = get_ident()
    _working[own] -= 1
    if not _working[own]:
        del _working[own]


def _park() -> None:
    _working.pop(get_ident(), None)
    threading.Event().wait()


def _leave() -> None:
    _left.set()
    for session in list(_sessions):
        session.stop_daemons()
    _await_threads()


def _end() -> None:
    """Called last: Python ends after it."""
    global _over
    _left.set()
    is_done = False
    while not _over:
        is_done = _await_threads()
        _over = True
        if is_done and _are_working():
            _over = False  # one has woken in between
    if not is_done and sys.platform == "linux":
        _leave_as_python_would()
    garbage.freeze_at_exit()
    gc.callbacks.append(_keep_libraries)


def _keep_libraries(phase: str, collection: dict[str, int]) -> None:
    """A `gc` callback that keeps library modules alive at exit: destroying them takes 20 ms.

    After the functions registered with `atexit`, and before destroying modules, Python makes a full
    collection, which calls this. The program's own modules are destroyed as usual.
    """
    if sys.is_finalizing() and phase == "start":
        names = [name for name in sys.modules if name.partition(".")[0] in _LIBRARIES]
        modules = [sys.modules.pop(name) for name in names]
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(modules))


def _await_threads() -> bool:
    """Whether no thread works, after waiting for it; both calls together wait no longer."""
    global _until
    _until = _until or time.monotonic() + LONGEST_WAIT
    while _are_working():
        if time.monotonic() > _until:
            return False
        time.sleep(0.002)
    return True


def _are_working() -> bool:
    """Whether a thread works, or has worked and not ended yet."""
    others = any(ident != get_ident() for ident in list(_working))
    return others or any(thread.is_alive() for thread in list(_ending))


def _leave_as_python_would() -> None:
    """Ends the process with the exit status of the program.

    Only the end of Python knows it: nothing else holds the code of an uncaught `SystemExit`. It
    takes place in a copy of the process, which has none of its threads and tells it by its status.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of its threads, which the copy does not use
        copy = os.fork()
    if copy == 0:
        _end_at_once()
        return
    _, status = os.waitpid(copy, 0)
    if not os.WIFSIGNALED(status):
        os._exit(os.WEXITSTATUS(status))
    if os.WTERMSIG(status) != signal.SIGALRM:  # of Ctrl-C
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))


def _end_at_once() -> None:
    """In the copy: ends with its exit code as soon as Python has ended; destroys nothing of XLA."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_LONGEST_END)
    gc.disable()
    for each in gc.get_objects():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
    library = ctypes.CDLL(None)
    library.on_exit(library._exit, None)


def check_not_forked() -> None:
    """Refuses what would wait for ever: XLA's threads stay in the process that was forked.

    Raises:
        FailedPreconditionError: this process was forked from one that had begun to use XLA.
    """
    if _forked:
        raise FailedPreconditionError.explained(
            "this process was forked from one that has used XLA, and has none of its threads",
            expected="sessions, predictors and trainings in the process that used XLA first",
            hint="load models after the fork (gunicorn without --preload), or start the processes "
            "by multiprocessing.get_context('spawn')",
        )


def _begin_child() -> None:
    """After a fork, in the child: forgets the other threads, and notes whether XLA is lost."""
    global MAIN, _forked
    own = _working.get(get_ident(), 0)
    _working.clear()
    if own:
        _working[get_ident()] = own
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge.backends_are_initialized():
        _forked = True
        for client in bridge.backends().values():  # its end would wait for its threads
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))
    MAIN = -1 if _forked else get_ident()  # -1: every call of a session comes to `native`


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)
