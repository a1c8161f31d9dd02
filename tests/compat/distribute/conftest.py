"""The fixtures of `tests/distribute`."""

from __future__ import annotations

from tests.distribute.conftest import processes, running, started

__all__ = ["processes", "running", "started"]
