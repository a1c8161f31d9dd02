"""The tests of `tests/train/test_saver_names.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path

import estimatorkit as tf
from estimatorkit.compat.private.framework_meta_graph import copy_scoped_meta_graph


def test_saver_is_copied_with_scope(tmp_path: Path) -> None:
    graph = tf.Graph()
    with graph.as_default(), tf.Session() as session:
        with tf.name_scope("one"):
            first = tf.Variable([1.0], name="v")
            savers = [tf.train.Saver([first])]
        with tf.name_scope("two"):
            second = tf.Variable([2.0], name="v")
        savers.append(tf.train.Saver([second], name="two/"))
        session.run(tf.global_variables_initializer())
        paths = []
        for number, saver in enumerate(savers):
            tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
            paths.append(saver.save(session, str(tmp_path / f"m{number}")))
    for scope, path, value in (("one", paths[0], 1.0), ("two", paths[1], 2.0)):
        copied = tf.Graph()
        variables = copy_scoped_meta_graph(scope, f"new_{scope}", graph, copied)
        assert list(variables) == ["v:0"]
        (saver,) = copied.get_collection(tf.GraphKeys.SAVERS)
        with tf.Session(graph=copied) as session:
            saver.restore(session, path)
            assert session.run(variables["v:0"]).tolist() == [value]
