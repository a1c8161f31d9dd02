"""The tests of `tests/train/test_saved_model.py` that need names of TensorFlow 1."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import estimatorkit as tf
from estimatorkit.compat.v1.python.saved_model import loader_impl, utils_impl
from tests.train.test_saved_model import fresh, loaded, saved

__all__ = ["fresh"]


@pytest.mark.parametrize("as_text", [False, True])
def test_builder(tmp_path: Path, as_text: bool) -> None:
    path = tmp_path / "new" / "model"
    assert not tf.saved_model.loader.maybe_saved_model_directory(path)
    builder = saved(path)
    assert not path.exists()  # nothing before `save`
    file = builder.save(as_text=as_text)
    assert file == os.fsencode(path / f"saved_model.pb{'txt' * as_text}")
    assert tf.saved_model.contains_saved_model(path)
    (meta_graph,) = loader_impl.parse_saved_model(path).meta_graphs
    assert meta_graph.meta_info_def.tags == ["serve"]
    assert Path(utils_impl.get_variables_path(path) + ".index").is_file()
    assert loaded(path) == [[4.0], [2.0]]
    assert loaded(path, scope="a/b") == [[4.0], [2.0]]
    assert os.listdir(path.parent) == ["model"]


class TestLoader:
    """`loader_impl.SavedModelLoader`: a model in steps."""

    def save(self, folder: Path) -> None:
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
            tf.Variable(5, name="x")
            y = tf.Variable([1, 2], name="y")
            session.run(tf.global_variables_initializer())
            builder = tf.saved_model.Builder(str(folder))
            doubled = tf.group(y.assign(y * 2))
            builder.add_meta_graph_and_variables(session, ["foo"], main_op=doubled)
        with tf.Graph().as_default():
            tf.Variable(3, name="elsewhere")
            builder.add_meta_graph(["bar"])
        builder.save()

    def test_load_in_steps(self, tmp_path: Path) -> None:
        from estimatorkit.compat.v1.python.saved_model import loader_impl

        self.save(tmp_path / "model")
        loader = loader_impl.SavedModelLoader(str(tmp_path / "model"))
        assert loader.export_dir == str(tmp_path / "model")
        graph = tf.Graph()
        saver, found = loader.load_graph(graph, ["foo"], "in", return_elements=["x:0"])
        assert [each.name for each in found] == ["in/x:0"]
        with tf.Session(graph=graph) as session:
            loader.restore_variables(session, saver, "in")
            assert session.run("in/y:0").tolist() == [1, 2]
            loader.run_init_ops(session, ["foo"], "in")
            assert session.run("in/y:0").tolist() == [2, 4]
        with pytest.raises(RuntimeError, match="could not be found in SavedModel"):
            loader.get_meta_graph_def_from_tags(["nothing"])
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
            loader.load(session, ["foo"])
            assert session.run("x:0") == 5

    def test_missing_variables(self, tmp_path: Path) -> None:
        self.save(tmp_path / "model")
        with (
            tf.Graph().as_default() as graph,
            tf.Session(graph=graph) as session,
            pytest.raises(tf.errors.NotFoundError, match="Key elsewhere not found"),
        ):
            tf.saved_model.load(session, ["bar"], str(tmp_path / "model"))
