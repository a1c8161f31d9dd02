"""Large tables move to huge pages, once, and keep their values."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime import executor
from estimatorkit.runtime.xla.host_tuning import LEAST_BYTES, use_huge_pages

ROWS = LEAST_BYTES // 256 + 10_000


def large_page_bytes(address: int) -> int:
    """What Linux says of the mapping that holds an address."""
    text = Path("/proc/self/smaps").read_text()
    for part in re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", text):
        first, last = (int(each, 16) for each in part.split(" ", 1)[0].split("-"))
        if first <= address < last:
            found = re.search(r"AnonHugePages:\s+(\d+) kB", part)
            return 0 if found is None else int(found[1]) << 10
    return 0


@pytest.fixture
def session() -> Any:
    table = tf.get_variable("table", [ROWS, 64], initializer=tf.zeros_initializer())
    small = tf.get_variable("small", [64], initializer=tf.zeros_initializer())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        yield session, table, small


@pytest.mark.slow
def test_table_moves_to_huge_pages_and_keeps_values(session: Any) -> None:
    run, table, small = session
    rows = [3, ROWS - 1]
    update = tf.scatter_add(table, rows, tf.ones([2, 64]))
    run.run(update.op)
    (array,) = run.state.take([table.op.name])
    moved = use_huge_pages([array, *run.state.take([small.op.name]), np.zeros(4)])
    assert moved in (0, *range(array.nbytes - (4 << 20), array.nbytes + 1))
    if moved:
        # The kernel may have split some of them since.
        assert large_page_bytes(array.unsafe_buffer_pointer() + (2 << 20)) > 0
    run.run(update.op)
    np.testing.assert_array_equal(run.run(tf.gather(table, [0, *rows]))[:, 5], [0.0, 2.0, 2.0])
    assert run.run(tf.reduce_sum(table)) == 2 * 2 * 64


@pytest.mark.usefixtures("compiled")
def test_huge_pages_are_requested_once_per_executable(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(executor, "use_huge_pages", lambda arrays: asked.append(len(arrays)))
    run, table, _ = session
    update = tf.scatter_add(table, [1], tf.ones([1, 64])).op
    for _ in range(3):
        run.run(update)
    assert asked == [1]


def test_unsupported_on_other_systems(monkeypatch: pytest.MonkeyPatch, session: Any) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    run, table, _ = session
    assert use_huge_pages(run.state.take([table.op.name])) == 0
