"""Ctrl-C that comes where Python drops exceptions ends the work nevertheless."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from estimatorkit.runtime.xla import interrupts
from estimatorkit.runtime.xla.interrupts import interrupts_put_off, keep_interrupts


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass


class Deleted:
    """Ctrl-C comes while an object is deleted."""

    def __del__(self) -> None:
        interrupt()


def collected() -> None:
    """Ctrl-C comes in a callback of the collector."""

    def callback(phase: str, info: Any) -> None:
        gc.callbacks.remove(callback)
        interrupt()

    gc.callbacks.append(callback)
    gc.collect()


@pytest.fixture(autouse=True)
def _handler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python's own, which tests in the background lack."""
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    keep_interrupts()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def steps_before_interrupt(work: Callable[[], Any]) -> int:
    """How many of two steps are done before Ctrl-C comes: the work, and a wait."""
    done = 0
    try:
        work()
        done += 1
        time.sleep(10)
        done += 1
    except KeyboardInterrupt:
        pass
    return done


@pytest.mark.parametrize("drop", [Deleted, collected])
def test_dropped_interrupt_comes_again(drop: Callable[[], Any]) -> None:
    assert steps_before_interrupt(drop) == 1


def test_imports_of_jax_are_not_cut_short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    names = "interrupted_whole", "interrupted_early"
    monkeypatch.setattr(interrupts, "_ATOMIC", names[:1])
    for name in names:
        (tmp_path / f"{name}.py").write_text(
            f"from {__name__} import interrupt\ninterrupt()\ndone = True\n", encoding="utf-8"
        )
    assert steps_before_interrupt(lambda: importlib.import_module(names[0])) == 1
    assert sys.modules.pop(names[0]).done
    assert steps_before_interrupt(lambda: importlib.import_module(names[1])) == 0


def test_first_interrupt_of_a_trace_comes_at_its_end() -> None:
    """A second one need not wait; errors of the trace do not hide the first."""
    reached = []

    @interrupts_put_off()
    def work(times: int, fails: bool = False) -> None:
        for number in range(times):
            interrupt()
            reached.append(number)
        if fails:
            raise ValueError

    for times, fails in ((1, False), (3, False), (1, True)):
        with pytest.raises(KeyboardInterrupt):
            work(times, fails)
    assert reached == [0, 0, 0]
    work(0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_exceptions_are_told_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(unraisable.exc_type))
    keep_interrupts()
    hook = sys.unraisablehook
    keep_interrupts()
    assert sys.unraisablehook is hook

    class Failing:
        def __init__(self, error: type[BaseException]) -> None:
            self.error = error

        def __del__(self) -> None:
            raise self.error

    Failing(ValueError)
    thread = threading.Thread(target=Failing, args=(KeyboardInterrupt,))  # nobody's Ctrl-C
    thread.start()
    thread.join()
    assert told == [ValueError, KeyboardInterrupt]


def test_interrupt_after_the_program_leaves_its_end_alone() -> None:
    program = """
        import atexit, os, signal, time
        import estimatorkit

        signal.signal(signal.SIGINT, signal.default_int_handler)
        atexit.register(lambda: (time.sleep(0.1), print("closed")))
        atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
        raise SystemExit(5)
        """
    source = "\n".join(line.strip() for line in program.splitlines())
    ended = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (5, "closed\n")
    assert "KeyboardInterrupt" in ended.stderr
