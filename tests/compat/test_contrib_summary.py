"""`contrib.summary`: operations that write summaries. The events are those of TensorFlow 2.15's
`summary_ops_v2` for the same program.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.v1.python.ops import summary_ops_v2

contrib = tf.contrib.summary


@contextmanager
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def events(folder: Path) -> list[Any]:
    (path,) = folder.iterdir()
    return list(tf.train.summary_iterator(str(path)))


def values(folder: Path) -> list[tuple[int, str, float]]:
    return [
        (event.step, value.tag, value.simple_value)
        for event in events(folder)
        for value in event.summary.value
    ]


def test_summaries_of_some_steps(tmp_path: Path) -> None:
    with session() as run:
        step = tf.train.get_or_create_global_step()
        increment = step.assign_add(1)
        writer = contrib.create_file_writer(str(tmp_path), max_queue=0)
        with writer.as_default(), contrib.record_summaries_every_n_global_steps(2):
            loss = contrib.scalar("loss", tf.constant(2.5))
        with writer.as_default(), contrib.always_record_summaries(), tf.name_scope("in"):
            named = contrib.scalar("a loss", tf.constant(3), family="fam", step=7)
        with writer.as_default(), contrib.never_record_summaries():
            never = contrib.scalar("never", 1.0)
        with writer.as_default():
            default = contrib.scalar("default", 1.0)
        assert contrib.scalar("nowhere", 1.0).type == "NoOp"
        assert contrib.all_summary_ops() == [loss, named, never, default]
        run.run(tf.global_variables_initializer())
        run.run(contrib.summary_writer_initializer_op())
        written = []
        for _ in range(3):
            written.append(bool(run.run(loss)))
            run.run(increment)
        assert written == [True, False, True]
        assert run.run([named, never, default]) == [True, False, False]
        run.run(writer.close())
    assert values(tmp_path) == [
        *((0, "loss", 2.5), (2, "loss", 2.5), (7, "fam/in/fam/a_loss", 3.0)),
    ]
    assert all(path.name.endswith(".v2") for path in tmp_path.iterdir())


def test_summary_kinds(tmp_path: Path) -> None:
    inner = tf.Summary(value=[tf.Summary.Value(tag="x", simple_value=1.5)])
    event = tf.Event(step=42, summary=inner).SerializeToString()
    with session() as run:
        writer = summary_ops_v2.create_summary_file_writer(str(tmp_path))
        with writer.as_default(), summary_ops_v2.record_if(tf.constant(True)):
            made = [
                contrib.histogram("h", tf.constant([1.0, 2.0]), step=3),
                contrib.image("im", tf.zeros([2, 2, 2, 1]), step=3),
                contrib.generic("gen", tf.constant([1, 2]), step=3),
                contrib.audio("au", tf.zeros([1, 10, 1]), 8000.0, 1, step=3),
            ]
            imported = contrib.import_event(tf.constant(event))
        assert summary_ops_v2.all_v2_summary_ops() == made
        run.run(writer.init())
        for each in (*made, imported):
            run.run(each)
        run.run(contrib.flush(writer))
    found = [
        (event.step, value.tag, value.WhichOneof("value"))
        for event in events(tmp_path)
        for value in event.summary.value
    ]
    assert found == [
        *((3, "h", "histo"), (3, "im/image/0", "image"), (3, "im/image/1", "image")),
        *((3, "gen", "tensor"), (3, "au/audio", "audio"), (42, "x", "simple_value")),
    ]


def test_initialize_opens_writer_and_writes_graph(tmp_path: Path) -> None:
    with session() as run:
        writer = contrib.create_file_writer(str(tmp_path))
        with writer.as_default(), contrib.always_record_summaries():
            summary = contrib.scalar("a", 1.0, step=1)
            with pytest.raises(tf.errors.NotFoundError, match="is not initialized"):
                run.run(summary)
            contrib.initialize(graph=tf.get_default_graph())
            run.run(summary)
            run.run(contrib.flush())
    kinds = [event.WhichOneof("what") for event in events(tmp_path)]
    assert kinds == ["file_version", "graph_def", "summary"]


def test_summaries_without_session_or_writer() -> None:
    with tf.Graph().as_default():
        contrib.initialize()  # without a writer there is nothing to do
        writer = contrib.create_file_writer("unused")
        with writer.as_default(), pytest.raises(ValueError, match="if no default session"):
            contrib.initialize()
    with session() as run:
        writer = contrib.create_file_writer(None)
        with writer.as_default(), contrib.always_record_summaries():
            run.run([contrib.scalar("a", 1.0, step=1), writer.init(), contrib.flush()])
        assert contrib.summary_writer_initializer_op() == []
    assert contrib.eval_dir("/a") == "/a/eval"
    assert contrib.eval_dir("/a", "b") == "/a/eval_b"
    with pytest.raises(NotImplementedError, match="use create_file_writer"):
        contrib.create_db_writer("a.db")
