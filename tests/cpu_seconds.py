"""`pytest -p tests.cpu_seconds` lists, at the end, the quick tests that take too long.

It counts CPU seconds, which hardly depend on what else the machine does: those of all threads, and
of all processes that the test has waited for. The first test that uses a fixture of its module pays
for it.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

LIMIT = 0.3
"""What a quick test may take. One that takes more is made cheaper, or marked slow."""

_START = pytest.StashKey[float]()
_costs: dict[str, float] = {}


def _seconds() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remembers when the test began."""
    item.stash[_START] = _seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Reports what the test took, from the process that runs it."""
    report = yield
    if call.when == "teardown" and item.get_closest_marker("slow") is None:
        report.user_properties.append(("CPU seconds", _seconds() - item.stash[_START]))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collects, in the process that prints."""
    for name, value in report.user_properties:
        if name == "CPU seconds" and isinstance(value, float) and value > LIMIT:
            _costs[report.nodeid] = value


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the tests above the limit, the most expensive first."""
    terminalreporter.section(f"{len(_costs)} quick tests take more than {LIMIT} CPU seconds")
    for test, seconds in sorted(_costs.items(), key=lambda each: -each[1]):
        terminalreporter.line(f"{seconds:8.2f}  {test}")
