"""Event files: what TensorBoard and `summary_iterator` read of them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef

import estimatorkit as tf
from estimatorkit.interop.summary_writer import summary_iterator
from estimatorkit.ops.files.summary_values import scalar

KINDS = ("scalars", "histograms", "images", "tensors")


def event_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("events.out.tfevents.*"))


def test_tensorboard_reads_all_kinds(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        with tf.name_scope("outer"):
            total = tf.reduce_sum(x)
        tf.summary.scalar("total", total)
        tf.summary.histogram("values", x)
        tf.summary.image("picture", tf.reshape(x, [1, 2, 2, 1]))
        tf.summary.text("words", tf.constant("hello"))
        merged = tf.summary.merge_all()
        with tf.summary.FileWriter(tmp_path / "run", graph, flush_secs=1) as writer:
            assert writer.get_logdir() == str(tmp_path / "run")
            writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 0)
            for step in range(3):
                values = np.arange(4, dtype=np.float32) + step
                writer.add_summary(session.run(merged, {x: values}), np.int64(step))
            writer.add_run_metadata(RunMetadata(), "step 2", 2)
            with pytest.raises(ValueError, match="tag was already used"):
                writer.add_run_metadata(RunMetadata(), "step 2", 2)
    events = EventAccumulator(str(tmp_path / "run"), size_guidance=dict.fromkeys(KINDS, 0))
    events.Reload()
    assert [(each.step, each.value) for each in events.Scalars("total")] == [
        (0, 6),
        (1, 10),
        (2, 14),
    ]
    assert [each.histogram_value.num for each in events.Histograms("values")] == [4.0] * 3
    assert events.Images("picture/image/0")[0].width == 2
    assert [each.tensor_proto.string_val[0] for each in events.Tensors("words")] == [b"hello"] * 3
    assert GraphDef.FromString(events.Graph().SerializeToString()) == graph.as_graph_def(
        add_shapes=True
    )
    assert events.Tags()["run_metadata"] == ["step 2"]
    (file,) = event_files(tmp_path / "run")
    described = [
        value.HasField("metadata")
        for event in summary_iterator(file)
        for value in event.summary.value
        if value.tag == "words"
    ]
    assert described == [True, False, False]  # a plugin is named once


def test_protos_and_steps(tmp_path: Path) -> None:
    writer = tf.summary.FileWriter(tmp_path, filename_suffix=".mine")
    value = tf.Summary.Value(tag="t", simple_value=1.5)
    summary = tf.Summary(value=[value])
    writer.add_summary(summary, global_step=7)
    writer.add_summary(scalar(2.5, "t"))
    writer.add_event(tf.Event(wall_time=1.0, step=3, summary=summary))
    writer.add_graph(graph=None, graph_def=tf.GraphDef())
    writer.add_meta_graph(tf.MetaGraphDef())
    writer.close()
    writer.close()
    assert summary == tf.Summary(value=[value])
    (file,) = event_files(tmp_path)
    assert file.name.endswith(".mine")
    events = list(tf.train.summary_iterator(str(file)))
    assert events[0].file_version == "brain.Event:2"
    assert [event.step for event in events[1:]] == [7, 0, 3, 0, 0]
    assert [event.WhichOneof("what") for event in events[4:]] == ["graph_def", "meta_graph_def"]
    assert [event.summary.value[0].simple_value for event in events[1:4]] == [1.5, 2.5, 1.5]


def test_closed_writer_writes_nothing_until_reopened(tmp_path: Path) -> None:
    writer = tf.summary.FileWriter(tmp_path)
    writer.close()
    writer.flush()
    with pytest.warns(UserWarning, match="closed FileWriter"):
        writer.add_summary(scalar(1.0, "t"), 1)
    writer.reopen()
    writer.reopen()
    writer.add_summary(scalar(2.0, "t"), 2)
    writer.flush()
    files = event_files(tmp_path)
    assert len(files) == 2
    steps = [[event.step for event in summary_iterator(file)] for file in files]
    assert sorted(steps) == [[0], [0, 2]]
    writer.close()


def test_invalid_arguments_raise(tmp_path: Path) -> None:
    with tf.summary.FileWriter(tmp_path) as writer:
        with pytest.raises(TypeError, match=r"session\.run\(merged\)"):
            writer.add_summary(1.0)
        with pytest.raises(TypeError, match="must be an instance of `Graph`"):
            writer.add_graph("graph")
        with pytest.raises(ValueError, match="only one of"):
            writer.add_graph(None)
        with pytest.raises(TypeError, match="MetaGraphDef"):
            writer.add_meta_graph(tf.GraphDef())
    with pytest.raises(NotImplementedError, match="omit `session`"):
        tf.summary.FileWriter(tmp_path, session=object())
    with pytest.raises(FileNotFoundError, match=r"none\.tfevents"):
        next(iter(summary_iterator(tmp_path / "none.tfevents")))


def test_writers_are_shared(tmp_path: Path) -> None:
    cache = tf.summary.FileWriterCache
    one = cache.get(tmp_path)
    assert cache.get(str(tmp_path)) is one
    assert cache.get(tmp_path / "other") is not one
    one.add_summary(scalar(1.0, "t"), 1)
    cache.clear()
    (file,) = event_files(tmp_path)
    assert [event.step for event in summary_iterator(file)] == [0, 1]
    assert cache.get(tmp_path) is not one
    cache.clear()


def test_truncated_and_damaged_files(tmp_path: Path, caplog: Any) -> None:
    with tf.summary.FileWriter(tmp_path) as writer:
        for step in (1, 2):
            writer.add_summary(scalar(1.0, "t"), step)
    (file,) = event_files(tmp_path)
    data = file.read_bytes()
    ends = [0]
    while ends[-1] < len(data):
        ends.append(ends[-1] + 16 + int.from_bytes(data[ends[-1] : ends[-1] + 8], "little"))
    assert len(ends) == 4
    for length in range(len(data)):
        file.write_bytes(data[:length])
        caplog.clear()
        with caplog.at_level(logging.WARNING, "estimatorkit"):
            steps = [event.step for event in summary_iterator(file)]
        whole = sum(end <= length for end in ends[1:])
        assert steps == [0, 1, 2][:whole]
        assert (str(file) in caplog.text) == (length not in ends)
        assert length in ends or f"after {whole} events" in caplog.text
    for position in range(0, len(data), 7):
        file.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        intact = sum(end <= position for end in ends[1:])
        assert [event.step for event in summary_iterator(file)] == [0, 1, 2][:intact]
