"""The watchdog ends a process whose steps hang, and no other."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from estimatorkit.distribute.watchdog import TIMES, Watchdog


def run(body: str) -> subprocess.CompletedProcess[str]:
    program = "import time\nfrom estimatorkit.distribute.watchdog import Watchdog\n"
    words = [sys.executable, "-c", program + textwrap.dedent(body)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_hanging_process_ends_with_stack_trace() -> None:
    done = run(
        """
        dog = Watchdog(1.0, "worker 3")
        dog.beat()
        def stuck_here():
            time.sleep(100)
        stuck_here()
        """
    )
    assert done.returncode == 138
    assert "in stuck_here" in done.stderr  # the traceback of the thread
    assert "No step of worker 3 for" in done.stderr


@pytest.mark.slow
def test_inactive_before_first_step_and_between_runs() -> None:
    done = run(
        """
        dog = Watchdog(0.2, "worker 3")
        time.sleep(1.5)
        dog.beat()
        dog.rest()
        time.sleep(1.5)
        dog.beat()
        dog.stop()
        time.sleep(1.5)
        print("alive")
        """
    )
    assert (done.returncode, done.stdout) == (0, "alive\n")


def test_slow_steps_are_not_hanging() -> None:
    dog = Watchdog(1.0, "worker 3")
    assert dog.limit == 1.0
    dog.beat()
    dog._beat_at = (dog._beat_at or 0.0) - 10.0  # ten seconds ago
    dog.beat()
    dog.stop()
    assert 10.0 * TIMES <= dog.limit < 11.0 * TIMES
