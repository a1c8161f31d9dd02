"""Common fixtures: an empty default graph, and no log handlers left by the previous test.

What XLA has compiled in a run of the tests is kept until its end, for all its processes: the same
small models are built again and again, and compiling was more than half of the time.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import tempfile
from collections.abc import Iterator

import hypothesis
import jax
import pytest

import estimatorkit
from estimatorkit.runtime import plan
from tests.threads import StartedThreads

_COMPILED = pytest.StashKey[str]()


plan.verify_graphs = True

hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Gives the processes of the run, and those that tests start, one folder of executables."""
    if not hasattr(config, "workerinput"):
        config.stash[_COMPILED] = tempfile.mkdtemp(prefix="estimatorkit-tests-")
        os.environ["JAX_COMPILATION_CACHE_DIR"] = config.stash[_COMPILED]
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.05"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Removes the folder."""
    if _COMPILED in config.stash:
        shutil.rmtree(config.stash[_COMPILED], ignore_errors=True)


@pytest.fixture(autouse=True)
def _fresh_graph() -> Iterator[None]:
    estimatorkit.reset_default_graph()
    yield
    logger = logging.getLogger("estimatorkit")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)


@pytest.fixture(autouse=True)
def _reproducible_seeds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives what has no seed the same numbers in every run of a test, and others in every test."""
    monkeypatch.setattr(os, "urandom", random.Random(request.node.nodeid).randbytes)


_executables: list[float] = []


def _count(event: str, seconds: float, **_: object) -> None:
    if event == "/jax/core/compile/backend_compile_duration":
        _executables.append(seconds)


jax.monitoring.register_event_duration_secs_listener(_count)


@pytest.fixture
def executables() -> list[float]:
    """Grows by one for each executable that XLA makes, or finds in its cache."""
    _executables.clear()
    return _executables


@pytest.fixture
def threads() -> StartedThreads:
    """The threads that the test starts."""
    return StartedThreads()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses names with addresses: two processes of one run would not collect the same tests."""
    unstable = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if unstable:
        raise pytest.UsageError(f"give these parameters names (ids=...): {', '.join(unstable)}")
