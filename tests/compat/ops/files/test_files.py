"""The tests of `tests/ops/files/test_files.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit as tf


def test_remote_files() -> None:
    pytest.importorskip("fsspec", reason="the extra `remote` is not installed")
    written = tf.write_file("memory://folder/words.txt", "b\na\n")
    with tf.control_dependencies([written]):
        content = tf.read_file("memory://folder/words.txt")
    table = tf.lookup.index_table_from_file("memory://folder/words.txt", default_value=7)
    with tf.Session() as session:
        assert session.run(content) == b"b\na\n"
        session.run(tf.tables_initializer())
        assert session.run(table.lookup(tf.constant(["a", "x"]))).tolist() == [1, 7]
