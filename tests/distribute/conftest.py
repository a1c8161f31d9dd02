"""What tests with real processes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.distribute.processes import Processes, known_token


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Starts processes, which end with the test."""
    with known_token(), Processes(tmp_path) as started:
        yield started
