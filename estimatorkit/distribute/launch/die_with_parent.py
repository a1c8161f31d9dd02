"""Runs a command that must not outlive the process that started this script.

    python die_with_parent.py COMMAND...

Run by path, with the standard library only. Stdin is a pipe from the parent: when it closes, the
parent has died, and the command's process group is killed. On Linux the command is also killed if
this process is (Ray kills the children of its workers). Signals to the group reach the command; the
exit code is the command's.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading

_SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


def main(command: list[str]) -> int:
    """Runs a command; returns its exit code, 128 + signal number if a signal ended it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    process = subprocess.Popen(  # noqa: S603 - the command that was asked for
        command, stdin=subprocess.DEVNULL, preexec_fn=_prepare
    )
    threading.Thread(target=_watch, daemon=True).start()
    code = process.wait()
    return code if code >= 0 else 128 - code


def _prepare() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def _watch() -> None:
    os.read(0, 1)  # not `sys.stdin`: a reader that waits does not survive the end of Python
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
