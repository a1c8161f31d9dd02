"""The tests of `tests/ops/tables/test_tables.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import estimatorkit as tf
from tests.golden.snippets_tables import ERRORS, EXPRESSIONS, LEGACY
from tests.ops.tables.test_tables import (
    folder,
    test_error as check_error,
    test_expression as check_expression,
)

__all__ = ["folder"]


def test_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "marked.txt"
    file.write_bytes(b"\xef\xbb\xbfone\ntwo\n")
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.lookup.index_table_from_file(str(file))
        column = tf.feature_column.categorical_column_with_vocabulary_file("word", str(file))
        words = tf.constant(["one", "two"])
        ids = tf.feature_column.input_layer(
            {"word": words}, [tf.feature_column.indicator_column(column)]
        )
        session.run(tf.tables_initializer())
        found = session.run([table.lookup(words), ids])
    assert found[0].tolist() == [0, 1]
    assert found[1].tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_collections(folder: str) -> None:
    with tf.Graph().as_default() as graph:
        table = tf.lookup.index_table_from_file(f"{folder}/words.txt", num_oov_buckets=1)
        (initializer,) = graph.get_collection(tf.GraphKeys.TABLE_INITIALIZERS)
        assert table.initializer is initializer
        assert table.init is initializer
        (asset,) = graph.get_collection(tf.GraphKeys.ASSET_FILEPATHS)
        with tf.Session() as session:
            assert session.run(asset) == f"{folder}/words.txt".encode()


def test_file_name_can_be_fed(folder: str) -> None:
    """As an exported model does, which has the file in another place."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        table = tf.lookup.index_table_from_file("moved away.txt")
        ids = table.lookup(tf.constant(["lake"]))
        (asset,) = graph.get_collection(tf.GraphKeys.ASSET_FILEPATHS)
        session.run(tf.tables_initializer(), {asset: f"{folder}/words.txt".encode()})
        assert session.run(ids) == [1]


def test_content_belongs_to_session(folder: str) -> None:
    with tf.Graph().as_default():
        first = tf.lookup.index_table_from_file(f"{folder}/words.txt")
        second = tf.lookup.index_table_from_file(f"{folder}/words.txt")
        ids = [each.lookup(tf.constant(["palmer"])) for each in (first, second)]
        with tf.Session() as session:
            session.run(first.initializer)
            assert session.run(ids) == [2, 2]  # tables of one file are one
            session.run(tf.tables_initializer())  # again: no error
            assert [type_ for type_, _ in session.state.resources] == ["table"]
        with (
            tf.Session() as session,
            pytest.raises(tf.errors.FailedPreconditionError, match="Table not initialized"),
        ):
            session.run(ids)


def test_lookups_feed_device_and_keep_static_shapes(folder: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        words = tf.placeholder(tf.string, [None, 2])
        table = tf.lookup.index_table_from_file(f"{folder}/words.txt", num_oov_buckets=2)
        ids = table.lookup(words)
        assert ids.dtype is tf.int64
        assert ids.shape.as_list() == [None, 2]
        doubled = ids * tf.constant(2, tf.int64)
        session.run(tf.tables_initializer())
        found = session.run(doubled, {words: [["lake", "palmer"], ["emerson", "lake"]]})
        np.testing.assert_array_equal(found, [[2, 4], [0, 2]])
        empty = session.run(ids, {words: np.zeros([0, 2], object)})
        assert empty.shape == (0, 2)


def test_int32_keys(folder: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.lookup.index_table_from_file(f"{folder}/numbers.txt", key_dtype=tf.int32)
        ids = table.lookup(tf.constant([42, 7, 3]))
        session.run(tf.tables_initializer())
        np.testing.assert_array_equal(session.run(ids), [1, 0, -1])


def test_computed_vocabulary() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        words = tf.placeholder(tf.string, [None])
        table = tf.lookup.index_table_from_tensor(words)
        back = tf.lookup.index_to_string_table_from_tensor(words)
        ids = table.lookup(tf.constant([["c", "a", "z"]]))
        session.run(tf.tables_initializer(), {words: ["a", "b", "c"]})
        np.testing.assert_array_equal(session.run(ids), [[2, 0, -1]])
        assert session.run(back.lookup(ids)).tolist() == [[b"c", b"a", b"UNK"]]


def test_keys_are_checked() -> None:
    with tf.Graph().as_default():
        table = tf.lookup.MutableHashTable(tf.string, tf.int64, -1)
        with pytest.raises(TypeError, match="Dtype of argument `keys` must be string"):
            table.lookup(tf.constant([1]))
        with pytest.raises(ValueError, match="keys and values have different shapes"):
            tf.lookup.KeyValueTensorInitializer(["a", "b"], [1])
        with pytest.raises(TypeError, match="Invalid `value_dtype`, expected int64"):
            tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["a"], ["b"]), 1)
        with pytest.raises(ValueError, match="must have size 2"):
            tf.lookup.StrongHashSpec([1])


def test_graphs_with_tables_and_parsers_round_trip() -> None:
    """Every attribute is plain data."""
    with tf.Graph().as_default() as graph:
        lines = tf.placeholder(tf.string, [None], name="lines")
        spec = tf.lookup.StrongHashSpec((1 << 63, 5))
        table = tf.lookup.index_table_from_tensor(["a", "b"], 2, hasher_spec=spec)
        words = tf.string_split(lines).values
        tf.identity(table.lookup(words), "ids")
        dense = tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, -1, "", "$")
        tf.identity(dense.lookup(words), "dense")
        features = {
            "a": tf.FixedLenFeature([2], tf.float32, [1.0, 2.0]),
            "s": tf.SparseFeature("k", "v", tf.float32, 5),
        }
        tf.identity(tf.parse_example(lines, features)["a"], "a")
        tf.identity(tf.decode_csv(lines, [[0], [""]], select_cols=[0, 1])[0], "column")
        tf.identity(tf.string_join([lines, "é"], b"\xff"), "joined")
        tf.tables_initializer(name="init")
        written = graph.as_graph_def().SerializeToString()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(tf.GraphDef.FromString(written), name="")
        session.run("init")
        ids, dense_ids, joined = session.run(["ids:0", "dense:0", "joined:0"], {"lines:0": ["a z"]})
        assert ids[0] == 0
        assert ids[1] in (2, 3)
        assert dense_ids.tolist() == [-1, -1]
        assert joined.tolist() == [b"a z\xff\xc3\xa9"]
        np.testing.assert_array_equal(session.run("column:0", {"lines:0": ["7,x"]}), [7])
        np.testing.assert_array_equal(session.run("a:0", {"lines:0": [b""]}), [[1, 2]])


@pytest.mark.parametrize("name", sorted(EXPRESSIONS.keys() & LEGACY))
def test_expression(name: str, folder: str) -> None:
    check_expression(name, folder)


@pytest.mark.parametrize("name", sorted(ERRORS.keys() & LEGACY))
def test_error(name: str, folder: str) -> None:
    check_error(name, folder)
