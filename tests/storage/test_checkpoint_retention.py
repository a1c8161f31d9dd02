"""Retention under a fake clock, against what TensorFlow's Saver kept."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from estimatorkit.core import errors
from estimatorkit.storage import checkpoint, retention
from estimatorkit.storage.checkpoint import latest_checkpoint, read_latest
from estimatorkit.storage.checkpoint_state import get_checkpoint_state
from estimatorkit.storage.retention import CheckpointRotation, decide_retention

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "saver_retention.json").read_text(encoding="utf-8")
)
START = GOLDEN["start"]


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def on_disk(folder: Path) -> list[int]:
    return sorted(int(path.name.split("-")[-1]) for path in folder.glob("model.ckpt-*"))


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("case", GOLDEN["cases"].values(), ids=GOLDEN["cases"])
def test_keeps_what_tensorflow_keeps(case: dict[str, Any], restart: bool, tmp_path: Path) -> None:
    """With a new manager for each save too: a restart forgets nothing."""
    clock = Clock()

    def start() -> CheckpointRotation:
        return CheckpointRotation(
            tmp_path,
            max_to_keep=case["max_to_keep"],
            keep_checkpoint_every_n_hours=case["keep_checkpoint_every_n_hours"],
            clock=clock,
        )

    manager = start()
    for number, hours in enumerate(case["hours"]):
        clock.now = START + hours * 3600.0
        manager = start() if restart and number else manager
        path = manager.save(f"model.ckpt-{number}", {})
        # TensorFlow lists nothing when it keeps all; we list the newest, as the pointer does.
        listed = case["listed"][number] or [number]
        assert [int(p.split("-")[-1]) for p in manager.last_checkpoints] == listed
        assert on_disk(tmp_path) == case["on_disk"][number]
        state = get_checkpoint_state(tmp_path)
        assert state is not None
        assert list(state.all_model_checkpoint_paths) == manager.last_checkpoints
        assert state.model_checkpoint_path == path == latest_checkpoint(tmp_path)


@pytest.mark.slow
@given(
    st.lists(st.floats(0, 1e6), max_size=12).map(sorted),
    st.one_of(st.none(), st.integers(0, 5)),
    st.floats(0.1, 100),
)
def test_newest_are_always_kept(times: list[float], max_to_keep: int | None, hours: float) -> None:
    checkpoints = [(f"c-{number}", time) for number, time in enumerate(times)]
    decision = decide_retention(checkpoints, max_to_keep, hours, hours * 3600.0)
    kept = max_to_keep or 1
    assert decision.keep == tuple(checkpoints[-kept:])
    assert not {name for name, _ in decision.keep} & set(decision.delete)
    if not max_to_keep:
        assert decision.delete == ()
    preserved = len(checkpoints) - len(decision.keep) - len(decision.delete)
    if max_to_keep:
        moved = decision.next_preserve_time - hours * 3600.0
        assert moved == pytest.approx(preserved * hours * 3600.0)


def test_deletes_only_after_pointer_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = CheckpointRotation(tmp_path, max_to_keep=1)
    manager.save("model.ckpt-1", {})
    remove = checkpoint.remove_checkpoint
    seen = []

    def check(path: Path) -> None:
        seen.append((path.name, latest_checkpoint(tmp_path)))
        remove(path)

    monkeypatch.setattr(retention, "remove_checkpoint", check)
    manager.save("model.ckpt-2", {})
    assert seen == [("model.ckpt-1", os.fspath(tmp_path / "model.ckpt-2"))]

    def fail(*arguments: object) -> None:
        raise errors.ResourceExhaustedError(None, None, "disk full")

    monkeypatch.setattr(retention, "update_checkpoint_state", fail)
    with pytest.raises(errors.ResourceExhaustedError):
        manager.save("model.ckpt-3", {})
    assert on_disk(tmp_path) == [2, 3]


def test_failed_removal_warns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    manager = CheckpointRotation(tmp_path, max_to_keep=1)
    manager.save("model.ckpt-1", {})
    (tmp_path / "model.ckpt-1" / "notes.txt").write_text("precious")
    manager.save("model.ckpt-2", {})
    assert "could not remove an old checkpoint" in caplog.text
    assert "notes.txt" in caplog.text
    assert on_disk(tmp_path) == [1, 2]
    manager.save("model.ckpt-3", {})
    assert on_disk(tmp_path) == [1, 3]


def test_name_saved_again_is_listed_once(tmp_path: Path) -> None:
    manager = CheckpointRotation(tmp_path, max_to_keep=2)
    for name in ("c-1", "c-2", "c-1", "c-1"):
        manager.save(name, {"w": np.zeros(2)})
    assert [os.path.basename(path) for path in manager.last_checkpoints] == ["c-2", "c-1"]


def test_hostile_pointer_deletes_nothing(tmp_path: Path) -> None:
    model = tmp_path / "model"
    precious = [tmp_path / "outside", model / "eval"]
    for path in precious:
        path.mkdir(parents=True)
        (path / "events").touch()
    lines = [f'all_model_checkpoint_paths: "{p}"\n' for p in ("../outside", "eval", "/etc", "..")]
    (model / "checkpoint").write_text('model_checkpoint_path: "eval"\n' + "".join(lines))
    CheckpointRotation(model, max_to_keep=1).save("model.ckpt-1", {})
    assert all((path / "events").exists() for path in precious)
    assert latest_checkpoint(model) == os.fspath(model / "model.ckpt-1")


def test_clock_set_back_restarts_hours(tmp_path: Path) -> None:
    clock = Clock()
    CheckpointRotation(tmp_path, keep_checkpoint_every_n_hours=1.0, clock=clock).save("c-1", {})
    clock.now = START - 1e6
    manager = CheckpointRotation(
        tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=1.0, clock=clock
    )
    for number, hours in enumerate((0.5, 1.5, 1.6), start=2):
        clock.now = START - 1e6 + hours * 3600.0
        manager.save(f"model.ckpt-{number}", {})
    assert on_disk(tmp_path) == [3, 4]


def test_arguments(tmp_path: Path) -> None:
    for wrong in ({"max_to_keep": -1}, {"keep_checkpoint_every_n_hours": 0.0}):
        with pytest.raises(ValueError, match="max_to_keep >= 0"):
            CheckpointRotation(tmp_path, **wrong)
    manager = CheckpointRotation(tmp_path / "new", latest_filename="best")
    assert manager.last_checkpoints == []
    manager.save("c-1", {"w": np.ones(3)}, {"a": 1}, shard_bytes=1)
    assert sorted(os.listdir(tmp_path / "new")) == ["best", "c-1"]
    assert read_latest(tmp_path / "new", ["w"], "best").state == {"a": 1}
