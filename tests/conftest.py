"""Common fixtures: an empty default graph, and no log handlers left by the previous test.

What XLA has compiled in a run of the tests is kept, for all its processes and for the next run: the
same small models are built again and again, and compiling was more than half of the time.
"""

from __future__ import annotations

import gc
import logging
import os
import random
from collections.abc import Generator, Iterator

import hypothesis
import jax
import pytest

import estimatorkit
from estimatorkit.runtime import plan
from estimatorkit.runtime.xla.compilation_cache import use_compilation_cache
from tests.threads import StartedThreads

plan.verify_graphs = True

hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Gives the processes of the run, and those that tests start, one folder of executables."""
    if hasattr(config, "workerinput"):
        return  # has the environment of the process that started it
    with pytest.MonkeyPatch.context() as patch:
        own = config.rootpath / ".pytest_cache" / "executables"
        patch.setenv("ESTIMATORKIT_COMPILATION_CACHE", str(own))
        folder = use_compilation_cache()
    use_compilation_cache.cache_clear()
    if folder is not None:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Looks for no garbage among the tests, which stay: that took a sixth of the collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


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


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA compiles segments before their first run: for tests of what is compiled."""
    monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", "xla")


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
    """Puts tests first that wait for processes, so that others use the cores meanwhile.

    Refuses names with addresses: two processes of one run would not collect the same tests.
    """
    items.sort(key=lambda item: item.get_closest_marker("multiprocess") is None)
    unstable = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if unstable:
        raise pytest.UsageError(f"give these parameters names (ids=...): {', '.join(unstable)}")
