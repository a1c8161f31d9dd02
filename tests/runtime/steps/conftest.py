"""Fixtures of loops whose steps run in NumPy or XLA."""

from __future__ import annotations

from typing import Any

import pytest

from estimatorkit.data.execution import cursor
from estimatorkit.runtime.executor import CompiledSegment


@pytest.fixture(autouse=True)
def whole_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are as long as they can be: a garbage collection while the first element is read makes
    short ones, and executables for each length."""
    monkeypatch.setattr(cursor, "READ_SECS", 1e9)


@pytest.fixture
def interpreted_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows of the steps that NumPy runs."""
    seen: list[int] = []
    run = CompiledSegment._interpret

    def noted(segment: Any, program: Any, inputs: Any, static: Any) -> Any:
        done = run(segment, program, inputs, static)
        seen.extend(len(each) for each in inputs[:1])
        return done

    monkeypatch.setattr(CompiledSegment, "_interpret", noted)
    return seen
