"""The tests of `tests/interop/test_trust.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat import predictor
from estimatorkit.core.errors import PermissionDeniedError
from tests.interop.test_trust import REFUSED, saved


def test_output_that_reads_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    model = saved(tmp_path / "model", lambda: tf.read_file(str(secret)))
    with (
        predictor.from_saved_model(model) as predict,
        pytest.raises(PermissionDeniedError, match=REFUSED) as caught,
    ):
        predict({"x": [1.0]})
    assert "load it with trusted=True" in str(caught.value)
    assert str(secret) in str(caught.value)
    with predictor.from_saved_model(model, trusted=True) as predict:
        assert predict({"x": [1.0]})["y"] == b"hidden"


def test_assets_are_read(tmp_path: Path) -> None:
    vocabulary = tmp_path / "vocabulary"
    vocabulary.write_text("a\nb\n")
    (tmp_path / "other").write_text("c\nd\n")

    def outputs() -> Any:
        table = tf.contrib.lookup.index_table_from_file(str(vocabulary))
        return table.lookup(tf.constant(["b"]))

    model = saved(tmp_path / "model", outputs, tf.tables_initializer)
    with predictor.from_saved_model(model) as predict:
        assert predict({"x": [1.0]})["y"].tolist() == [1]
    asset = tmp_path / "model" / "assets" / "vocabulary"
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.saved_model.loader.load(sess, ["serve"], model)
        [start] = [op for op in graph.get_operations() if op.type.endswith("FromTextFileV2")]
        sess.run(start, {start.inputs[0]: str(asset)})
        outside = asset.parent / ".." / ".." / "other"
        link = asset.with_name("link")
        link.symlink_to(tmp_path / "other")
        for path in (outside, link, tmp_path / "other", asset.parent):
            with pytest.raises(PermissionDeniedError, match="only files below"):
                sess.run(start, {start.inputs[0]: str(path)})


def test_meta_graphs_and_copies(tmp_path: Path) -> None:
    (tmp_path / "vocabulary").write_text("a\nb\n")
    with tf.Graph().as_default() as graph:
        table = tf.contrib.lookup.index_table_from_file(str(tmp_path / "vocabulary"))
        found = table.lookup(tf.constant(["b"])).name
        tf.train.export_meta_graph(str(tmp_path / "model.meta"))
    for trusted in (False, True):
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            tf.train.import_meta_graph(str(tmp_path / "model.meta"), trusted=trusted)
            if not trusted:
                with pytest.raises(PermissionDeniedError, match=REFUSED):
                    sess.run(tf.tables_initializer())
                continue
            sess.run(tf.tables_initializer())
            assert sess.run(graph.get_tensor_by_name(found)).tolist() == [1]
