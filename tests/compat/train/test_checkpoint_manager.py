"""`train.CheckpointManager`, `basic_train_loop`, `assert_global_step`, and paths as `file://`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf


@pytest.fixture
def session() -> Any:
    with tf.Session() as opened:
        yield opened


def test_newest_are_kept(tmp_path: Path, session: Any) -> None:
    v = tf.get_variable("v", initializer=1.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), tmp_path, max_to_keep=2)
    assert manager.latest_checkpoint is None
    assert manager.restore_or_initialize() is None
    session.run(tf.global_variables_initializer())
    names = [os.path.basename(manager.save()) for _ in range(3)]
    assert names == ["ckpt-1", "ckpt-2", "ckpt-3"]
    assert manager.checkpoints == [str(tmp_path / "ckpt-2"), str(tmp_path / "ckpt-3")]
    assert manager.latest_checkpoint == str(tmp_path / "ckpt-3")
    assert not tf.train.checkpoint_exists(tmp_path / "ckpt-1")
    assert manager.directory == str(tmp_path)
    assert manager.checkpoint.v is v
    again = tf.train.CheckpointManager(manager.checkpoint, tmp_path, max_to_keep=2)
    assert again.checkpoints == manager.checkpoints
    session.run(v.assign(7.0))
    assert again.restore_or_initialize() == str(tmp_path / "ckpt-3")
    assert session.run(v) == 1.0
    assert again.save() == str(tmp_path / "ckpt-4")


def test_numbers_and_intervals(tmp_path: Path, session: Any) -> None:
    step = tf.train.create_global_step()
    initialized = []
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(step=step),
        f"file://{tmp_path}",
        None,
        checkpoint_name="model",
        step_counter=step,
        checkpoint_interval=5,
        init_fn=lambda: initialized.append(session.run(tf.global_variables_initializer())),
    )
    assert manager.restore_or_initialize() is None
    assert initialized == [None]
    assert os.path.basename(manager.save(checkpoint_number=7) or "") == "model-7"
    session.run(step.assign(4))
    assert manager.save() is None
    assert os.path.basename(manager.save(check_interval=False) or "") == "model-2"
    session.run(step.assign(9))
    assert os.path.basename(manager.save() or "") == "model-3"
    session.run(step.assign(0))
    assert manager.restore_or_initialize() == manager.latest_checkpoint
    assert session.run(step) == 9
    assert manager.checkpoint_interval == 5


def test_manager_argument_errors(tmp_path: Path) -> None:
    checkpoint = tf.train.Checkpoint(v=tf.get_variable("v", initializer=1.0))
    for count in (0, -1):
        with pytest.raises(ValueError, match="positive integer or `None` for `max_to_keep`"):
            tf.train.CheckpointManager(checkpoint, tmp_path, count)
    with pytest.raises(ValueError, match="`step_counter` should be passed"):
        tf.train.CheckpointManager(checkpoint, tmp_path, 1, checkpoint_interval=2)
    with pytest.raises(RuntimeError, match="no default session"):
        tf.train.CheckpointManager(checkpoint, tmp_path, 1).save()


def test_file_urls(tmp_path: Path, session: Any) -> None:
    v = tf.get_variable("v", initializer=1.0)
    session.run(v.initializer)
    url = f"file://{tmp_path}/model"
    saver = tf.train.Saver()
    path = saver.save(session, url, global_step=3)
    assert path == f"{url}-3"
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        *("checkpoint", "model-3", "model-3.meta")
    ]
    assert tf.train.latest_checkpoint(f"file://{tmp_path}") == path
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model-3")
    state = tf.train.get_checkpoint_state(f"file://{tmp_path}")
    assert state.all_model_checkpoint_paths == [path]
    session.run(v.assign(2.0))
    saver.restore(session, path)
    assert session.run(v) == 1.0
    assert tf.train.load_variable(path, "v") == 1.0
    assert tf.train.load_checkpoint(path).has_tensor("v")
    assert tf.train.checkpoint_exists(path)
    tf.train.remove_checkpoint(path)
    assert not tf.train.checkpoint_exists(path)
    with pytest.raises(tf.errors.UnimplementedError, match="scheme 'gs' not implemented"):
        saver.save(session, "gs://bucket/model")


@pytest.mark.parametrize("keep", [0, None])
def test_saver_without_limit_lists_nothing(keep: int | None, tmp_path: Path, session: Any) -> None:
    session.run(tf.get_variable("v", initializer=1.0).initializer)
    saver = tf.train.Saver(max_to_keep=keep)
    for step in range(3):
        saver.save(session, tmp_path / "m", global_step=step)
    assert saver.last_checkpoints == []
    assert all(tf.train.checkpoint_exists(tmp_path / f"m-{step}") for step in range(3))


def test_savers_of_one_folder_keep_each_others_checkpoints(tmp_path: Path, session: Any) -> None:
    session.run(tf.get_variable("v", initializer=1.0).initializer)
    newest, best = tf.train.Saver(max_to_keep=2), tf.train.Saver(max_to_keep=1)
    for step in range(4):
        newest.save(session, tmp_path / "model.ckpt", global_step=step)
        if step % 2 == 0:
            best.save(session, tmp_path / "best.ckpt", global_step=step)
    found = sorted(each.name for each in tmp_path.iterdir() if each.is_dir())
    assert found == ["best.ckpt-2", "model.ckpt-2", "model.ckpt-3"]
    again = tf.train.Saver(max_to_keep=1)  # goes on with those of its name
    again.save(session, tmp_path / "model.ckpt", global_step=4)
    found = sorted(each.name for each in tmp_path.iterdir() if each.is_dir())
    assert found == ["best.ckpt-2", "model.ckpt-4"]


def test_saver_argument_errors(tmp_path: Path) -> None:
    v = tf.get_variable("v", initializer=1.0)
    with pytest.raises(ValueError, match="same saveable will be restored with two names: b"):
        tf.train.Saver({"a": v, "b": v})
    with pytest.raises(RuntimeError, match="conflicts with path used for checkpoint state"):
        tf.train.update_checkpoint_state(tmp_path, tmp_path / "checkpoint")
    with tf.Session() as session:
        session.run(v.initializer)
        with pytest.raises(ValueError, match="'latest_filename' collides with 'save_path'"):
            tf.train.Saver().save(session, str(tmp_path / "checkpoint"))


def test_basic_train_loop_under_supervisor(tmp_path: Path) -> None:
    supervisor = tf.train.Supervisor(logdir=str(tmp_path))
    calls = []

    def step(session: Any, first: int, second: int = 0) -> None:
        calls.append((first, second))
        if len(calls) == 1:
            raise tf.errors.AbortedError(None, None, "begin again")
        if len(calls) == 3:
            supervisor.request_stop()

    tf.train.basic_train_loop(supervisor, step, args=(1,), kwargs={"second": 2})
    assert calls == [(1, 2)] * 3


def test_assert_global_step() -> None:
    tf.train.assert_global_step(tf.get_variable("step", initializer=np.int64(1)))
    with pytest.raises(TypeError, match='"global_step" does not have integer type'):
        tf.train.assert_global_step(tf.get_variable("a", initializer=1.0))
    with pytest.raises(TypeError, match='"global_step" is not scalar'):
        tf.train.assert_global_step(tf.get_variable("b", initializer=[1]))
    with pytest.raises(TypeError, match="must be a Variable or Tensor"):
        tf.train.assert_global_step(1)


def test_existing_folder_is_accepted(tmp_path: Path) -> None:
    tf.gfile.MkDir(str(tmp_path / "folder"))
    tf.gfile.MkDir(str(tmp_path / "folder"))
    (tmp_path / "file").touch()
    with pytest.raises(tf.errors.AlreadyExistsError):
        tf.gfile.MkDir(str(tmp_path / "file"))


def test_all_checkpoints_are_listed_without_limit(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session():
        checkpoint = tf.train.Checkpoint()
        manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=None)
        paths = [manager.save() for _ in range(3)]
        assert manager.checkpoints == paths
        manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
        assert manager.checkpoints == paths
        paths.append(manager.save())
        assert manager.checkpoints == paths[-2:]
        assert [tf.train.checkpoint_exists(path) for path in paths] == [False, False, True, True]


def test_hours_count_from_last_preserved_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The times and what is kept are those of `CheckpointManager` in TensorFlow 2.15."""
    clock = [3.0]
    monkeypatch.setattr("estimatorkit.storage.retention.time.time", lambda: clock[0])
    with tf.Graph().as_default(), tf.Session():
        checkpoint = tf.train.Checkpoint()
        manager = tf.train.CheckpointManager(checkpoint, tmp_path, 2)
        for clock[0] in (10000.0, 13610.0):
            manager.save()
        state = tf.train.get_checkpoint_state(tmp_path)
        assert state.all_model_checkpoint_timestamps == [10000.0, 13610.0]
        manager = tf.train.CheckpointManager(
            checkpoint, tmp_path, 2, keep_checkpoint_every_n_hours=1.5
        )
        for clock[0] in (14330.0, 16130.0, 17930.0):
            manager.save()
            assert tf.train.get_checkpoint_state(tmp_path).last_preserved_timestamp == 10000.0
        there = [tf.train.checkpoint_exists(str(tmp_path / f"ckpt-{n}")) for n in range(1, 6)]
        assert there == [True, False, False, True, True]
