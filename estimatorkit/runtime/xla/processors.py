"""The number of available CPU cores."""

from __future__ import annotations

import os


def processors() -> int:
    """The number of cores available to this process; on macOS, those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
