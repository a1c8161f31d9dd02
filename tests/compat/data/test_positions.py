"""The tests of `tests/data/test_positions.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path

import estimatorkit as tf1
from tests.data.test_positions import NEW, OLD, Rows, slices


def test_monitored_session_on_new_rows(tmp_path: Path) -> None:
    def train(rows: Rows) -> list[int]:
        with tf1.Graph().as_default():
            element = slices(rows, tmp_path).make_one_shot_iterator().get_next()
            step = tf1.train.get_or_create_global_step()
            ops = [element, tf1.assign_add(step, 1)]
            folder = str(tmp_path / "session")
            with tf1.train.MonitoredTrainingSession(checkpoint_dir=folder) as session:
                return [int(session.run(ops)[0]) for _ in range(2)]

    assert train(OLD) + train(OLD) + train(NEW) == [1, 2, 3, 4, 100, 200]
