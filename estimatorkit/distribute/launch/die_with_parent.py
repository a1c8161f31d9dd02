"""Runs a command that is not to outlive the process that started this script.

    python tether.py COMMAND...

Run by its path, with the standard library alone. Its standard input is a pipe that nobody writes
to: where that ends, its starter has, and the command and its group are killed. Signals to the group
reach the command; the exit code is the command's, as a shell tells it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    """Runs a command; returns its exit code, 128 and the signal's number where one ended it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    process = subprocess.Popen(  # noqa: S603 - the command that was asked for
        command, stdin=subprocess.DEVNULL, preexec_fn=_signals_as_ever
    )
    threading.Thread(target=_watch, daemon=True).start()
    code = process.wait()
    return code if code >= 0 else 128 - code


def _signals_as_ever() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def _watch() -> None:
    os.read(0, 1)  # not `sys.stdin`: a reader that waits does not survive the end of Python
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
