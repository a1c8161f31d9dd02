"""The projector's files, read by TensorBoard's own plugin."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.plugins import base_plugin
from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin
from werkzeug.test import Client

import estimatorkit as tf
from estimatorkit.projector import ProjectorConfig, visualize_embeddings, write_embeddings


def plugin_client(logdir: Path, route: str) -> Client:
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(logdir))
    multiplexer.Reload()
    context = base_plugin.TBContext(
        logdir=str(logdir),
        multiplexer=multiplexer,
        data_provider=data_provider.MultiplexerDataProvider(multiplexer, str(logdir)),
    )
    return Client(ProjectorPlugin(context).get_plugin_apps()[route])


def test_tensorboard_shows_values_and_labels(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with tf.Graph().as_default(), tf.Session() as session:
        values = np.array([[0.1, 2.0], [3.0, -4.5], [1e-8, 6.0]], np.float32)
        variable = tf.get_variable("words/table", initializer=values)
        session.run(variable.initializer)
        with tf.summary.FileWriter(run) as writer:
            writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=1)]), 0)
            (run / "labels.tsv").write_text("a\nb\nc\n")
            config = ProjectorConfig()
            embedding = config.embeddings.add()
            embedding.tensor_name = variable.name
            embedding.metadata_path = str(run / "labels.tsv")
            write_embeddings(writer, config, session)
    text = (run / "projector_config.pbtxt").read_text("utf-8")
    written = text_format.Parse(text, ProjectorConfig())
    assert written.embeddings[0].metadata_path == "labels.tsv"
    assert written.embeddings[0].tensor_path == "words-table.tsv"
    (shown,) = json.loads(plugin_client(tmp_path, "/info").get("/?run=run").data)["embeddings"]
    assert shown["tensorShape"] == [3, 2]
    assert (
        plugin_client(tmp_path, "/metadata").get("/?run=run&name=words/table:0").data
        == b"a\nb\nc\n"
    )
    data = plugin_client(tmp_path, "/tensor").get("/?run=run&name=words/table:0").data
    np.testing.assert_array_equal(np.frombuffer(data, np.float32).reshape(3, 2), values)


def test_files_outside_log_folder(tmp_path: Path, caplog: Any) -> None:
    for path in (str(tmp_path / "labels.tsv"), "../labels.tsv", "/etc/passwd"):
        config = ProjectorConfig()
        config.embeddings.add(tensor_name="t", metadata_path=path)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "estimatorkit"):
            visualize_embeddings(tmp_path / "run", config)
        assert f"{path} is outside the run's folder" in caplog.text
        assert path in (tmp_path / "run" / "projector_config.pbtxt").read_text()
    config = ProjectorConfig()
    config.embeddings.add(
        tensor_name="t", metadata_path="deep/../labels.tsv"
    ).sprite.image_path = "s.png"
    visualize_embeddings(str(tmp_path / "run"), config)
    assert config.embeddings[0].metadata_path == "deep/../labels.tsv"
    assert (
        'metadata_path: "labels.tsv"' in (tmp_path / "run" / "projector_config.pbtxt").read_text()
    )


@pytest.mark.parametrize(
    ("name", "words"), [("tabel", "did you mean 'table'"), ("row", "is not a matrix")]
)
def test_invalid_embeddings_raise(tmp_path: Path, name: str, words: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("table", [2, 3])
        tf.get_variable("row", [3])
        session.run(tf.global_variables_initializer())
        config = ProjectorConfig()
        config.embeddings.add(tensor_name=name)
        with pytest.raises(ValueError, match=words):
            write_embeddings(tmp_path, config, session)


@pytest.mark.parametrize("first", ["save", "visualize"])
def test_checkpoint_variables_are_shown(tmp_path: Path, first: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.get_variable("table", initializer=np.eye(2, dtype=np.float32))
        other = tf.get_variable("row", [3])
        session.run(tf.global_variables_initializer())
        config = ProjectorConfig()
        config.embeddings.add(tensor_name=table.name)
        config.embeddings.add(tensor_name=other.name)
        saver = tf.train.Saver()
        with tf.summary.FileWriter(tmp_path, session.graph) as writer:
            if first == "save":
                saver.save(session, str(tmp_path / "model.ckpt"), 1)
            visualize_embeddings(writer, config)
            if first == "visualize":
                saver.save(session, str(tmp_path / "model.ckpt"), 1)
            client = plugin_client(tmp_path, "/tensor")
            data = client.get("/?run=.&name=table:0").data
            np.testing.assert_array_equal(np.frombuffer(data, np.float32), [1, 0, 0, 1])
            session.run(table.assign(2 * table))
            saver.save(session, str(tmp_path / "model.ckpt"), 2)
    data = plugin_client(tmp_path, "/tensor").get("/?run=.&name=table:0").data
    np.testing.assert_array_equal(np.frombuffer(data, np.float32), [2, 0, 0, 2])


def test_damaged_configuration_does_not_stop_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "projector_config.pbtxt").write_text("embeddings {")
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.get_variable("table", [2, 3]).initializer)
        assert tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    assert "The projector's matrices were not written" in caplog.text
