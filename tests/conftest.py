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
