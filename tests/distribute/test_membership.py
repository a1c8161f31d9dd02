"""Cluster membership: one process per task at a time."""

from __future__ import annotations

from hypothesis import given, strategies as st

from estimatorkit.distribute.tasks.membership import SILENT_SECS, Membership


def test_silent_members() -> None:
    members = Membership()
    for name in ("computes", "is there", "has left"):
        assert members.heartbeat(name, "its process", 0.0) is None
    members.left("has left", "its process")
    assert members.silent(SILENT_SECS - 1) == []
    members.heartbeat("is there", "its process", SILENT_SECS - 1)
    assert members.heartbeat("computes", "another", SILENT_SECS - 1) == SILENT_SECS - 1
    assert members.silent(SILENT_SECS) == ["computes"]
    assert members.silent(2 * SILENT_SECS) == ["computes", "is there"]


TURNS = st.lists(
    st.tuples(
        st.sampled_from("abc"),  # a process
        st.booleans(),  # whether it says that it is there, or leaves
        st.floats(0, 1.5 * SILENT_SECS),  # seconds after the turn before
    ),
    max_size=40,
)


@given(turns=TURNS)
def test_name_belongs_to_one_process_until_it_leaves_or_is_silent(
    turns: list[tuple[str, bool, float]],
) -> None:
    members = Membership()
    holder, heard, now = "", 0.0, 0.0
    for process, is_there, seconds in turns:
        now += seconds
        if is_there:
            is_free = holder in ("", process) or now - heard >= SILENT_SECS
            expected = None if is_free else now - heard
            assert members.heartbeat("worker 0", process, now) == expected
            if is_free:
                holder, heard = process, now
        else:
            members.left("worker 0", process)
            holder = "" if holder == process else holder
        assert members.heartbeat("worker 1", "another", now) is None
