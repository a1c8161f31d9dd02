"""What every test starts with: an empty default graph, no log handlers left by the one before."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

import estimatorkit


@pytest.fixture(autouse=True)
def _fresh_graph() -> Iterator[None]:
    estimatorkit.reset_default_graph()
    yield
    logger = logging.getLogger("estimatorkit")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses names with addresses: two processes of one run would not collect the same tests."""
    unstable = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if unstable:
        raise pytest.UsageError(f"give these parameters names (ids=...): {', '.join(unstable)}")
