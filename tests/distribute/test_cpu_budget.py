"""How processes of one host share its processors."""

from __future__ import annotations

import os
import threading

import pytest

from estimatorkit.distribute.cluster_spec import ClusterSpec
from estimatorkit.distribute.launch import cpu_budget

needs_linux = pytest.mark.skipif(
    not hasattr(os, "SCHED_BATCH"), reason="only Linux has scheduling policies for threads"
)


@pytest.mark.parametrize(
    ("available", "address", "threads"),
    [
        (8, "a:1", "2"),  # four tasks on the host
        (9, "a:2", "3"),  # three of them, as the server works while they wait
        (2, "a:1", "1"),  # never none
        (8, "b:1", None),  # alone on its host: all of them, as without a cluster
        (8, None, None),
    ],
    ids=["a server's share", "a worker's share", "at least one", "alone", "no address"],
)
def test_tasks_of_one_host_share_cpus(
    monkeypatch: pytest.MonkeyPatch, available: int, address: str | None, threads: str | None
) -> None:
    monkeypatch.setattr(cpu_budget, "processors", lambda: available)
    monkeypatch.setenv(cpu_budget.VARIABLE, "")  # so that it is put back as it was
    monkeypatch.delenv(cpu_budget.VARIABLE)
    cluster = ClusterSpec({"ps": ["a:1"], "worker": ["a:2", "b:1", "a:3"], "chief": ["a:4"]})
    cpu_budget.share_processors(cluster, address)
    assert os.environ.get(cpu_budget.VARIABLE) == threads
    if threads is not None:
        monkeypatch.setenv(cpu_budget.VARIABLE, "5")
        cpu_budget.share_processors(cluster, address)
        assert os.environ[cpu_budget.VARIABLE] == "5"  # whoever has said it counts


def policy_of_a_new_thread() -> int:
    found = []
    thread = threading.Thread(target=lambda: found.append(os.sched_getscheduler(0)))
    thread.start()
    thread.join()
    return found[0]


@needs_linux
def test_batch_scheduled_threads() -> None:
    with cpu_budget.batch_scheduling():
        assert policy_of_a_new_thread() == os.SCHED_BATCH
    assert policy_of_a_new_thread() == os.sched_getscheduler(0) == os.SCHED_OTHER


@needs_linux
def test_existing_policy_is_kept() -> None:
    def work() -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        with cpu_budget.batch_scheduling():
            found.append(os.sched_getscheduler(0))
        found.append(os.sched_getscheduler(0))

    found: list[int] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [os.SCHED_IDLE, os.SCHED_IDLE]


@needs_linux
def test_forbidden_by_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", forbidden)
    with cpu_budget.batch_scheduling():
        assert policy_of_a_new_thread() == os.SCHED_OTHER
