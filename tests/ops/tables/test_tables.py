"""Lookup tables against TensorFlow 2.15.1 (tests/golden/tables.json), and their sessions.

The operations whose names hold `Table` are tested here: HashTableV2, MutableHashTableV2,
InitializeTableV2, InitializeTableFromTextFileV2, LookupTableFindV2, LookupTableFindOrHash,
LookupTableSizeV2, LookupTableExportV2, LookupTableInsertV2, LookupTableRemoveV2.
LookupTableImportV2, which only loaded graphs run, is tested with these, in
tests/train/test_saver_names.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.golden.golden_files import error_of
from tests.golden.golden_values import plain
from tests.golden.snippets_tables import ERRORS, EXPRESSIONS, FILES, LEGACY

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tables.json").read_text("utf-8"))

# Words that TensorFlow's message and ours share; its first line by default.
WORDS = {
    "no such file": "FOLDER/missing.txt",
    "keys of another dtype": "Dtype of argument `keys` must be ",
    "line number of another dtype": "`key_dtype` must be int64 if `key_index` is -1",
    "words of another dtype": "Invalid `dtype`: Expected non-integer, got ",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("vocabularies")
    for name, content in FILES.items():
        (path / name).write_bytes(content)
    return str(path)


def run(function: Callable[[Any, str], Any], folder: str) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        made = function(tf, folder)
        session.run(tf.tables_initializer())
        return session.run(made)


@pytest.mark.parametrize("name", sorted(EXPRESSIONS.keys() - LEGACY))
def test_expression(name: str, folder: str) -> None:
    assert plain(run(EXPRESSIONS[name], folder)) == GOLDEN["expressions"][name]


@pytest.mark.parametrize("name", sorted(ERRORS.keys() - LEGACY))
def test_error(name: str, folder: str) -> None:
    got = error_of(lambda: run(ERRORS[name], folder))
    assert got is not None
    golden = GOLDEN["errors"][name]
    assert got["class"] == golden["class"], got
    words = WORDS.get(name, golden["first_line"])
    assert words in golden["first_line"]
    assert words in got["first_line"].replace(folder, "FOLDER")


# -- how graphs and sessions hold tables


def test_mutable_table_updates() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=-1)
        keys, values = tf.placeholder(tf.string, [None]), tf.placeholder(tf.int64, [None])
        insert, remove = table.insert(keys, values), table.remove(keys)
        found = table.lookup(tf.constant([["a", "b"], ["c", "d"]]))
        assert found.shape.as_list() == [2, 2]
        assert session.run(table.size()) == 0
        session.run(insert, {keys: ["a", "b"], values: [1, 2]})
        session.run(insert, {keys: ["b", "c"], values: [20, 3]})
        np.testing.assert_array_equal(session.run(found), [[1, 20], [3, -1]])
        session.run(remove, {keys: ["a", "never there"]})
        all_keys, all_values = session.run(table.export())
        assert dict(zip(all_keys, all_values, strict=True)) == {b"b": 20, b"c": 3}
        dynamic = table.lookup(tf.constant(["a", "b"]), tf.constant([7, 8], tf.int64))
        np.testing.assert_array_equal(session.run(dynamic), [7, 20])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape"):
            session.run(insert, {keys: ["a", "b"], values: [1]})


def test_mutable_table_of_vectors() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.lookup.MutableHashTable(tf.int64, tf.float32, [0.0, 0.5])
        rows = tf.placeholder(tf.float32, [2, 2])
        session.run(table.insert(tf.constant([5, 6], tf.int64), rows), {rows: [[1, 2], [3, 4]]})
        found = table.lookup(tf.constant([[6], [9]], tf.int64))
        assert found.shape.as_list() == [2, 1, 2]
        np.testing.assert_array_equal(session.run(found), [[[3, 4]], [[0, 0.5]]])
        keys, values = table.export()
        assert values.shape.as_list() == [None, 2]
        np.testing.assert_array_equal(session.run(values), [[1, 2], [3, 4]])
        np.testing.assert_array_equal(session.run(keys), [5, 6])


def test_dense_table_refuses_reserved_keys() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.lookup.experimental.DenseHashTable(
            tf.string, tf.int64, default_value=-1, empty_key="", deleted_key="$"
        )
        session.run(table.insert(tf.constant(["a"]), tf.constant([1], tf.int64)))
        np.testing.assert_array_equal(session.run(table.lookup(tf.constant(["a", "b"]))), [1, -1])
        for key, words in (("", "empty_key"), ("$", "deleted_key")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=f"Using the {words}"):
                session.run(table.lookup(tf.constant([key])))


def test_checkpoint_of_dense_table(tmp_path: Path) -> None:
    def table() -> tf.lookup.experimental.DenseHashTable:
        return tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.int64, -1, [0, 0], [9, 9], initial_num_buckets=4, name="dense"
        )

    keys = tf.constant
    with tf.Graph().as_default(), tf.Session() as session:
        made = table()
        session.run(made.insert(keys([[1, 2], [3, 4]], tf.int64), keys([5, 6], tf.int64)))
        session.run(made.remove(keys([[1, 2]], tf.int64)))
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        made = table()
        tf.train.Saver().restore(session, path)
        found = session.run([made.lookup(keys([[1, 2], [3, 4]], tf.int64)), made.size()])
        np.testing.assert_array_equal(found[0], [-1, 6])
        assert found[1] == 1
        assert session.run(made.export()[0]).shape == (4, 2)


def test_checkpoint_of_mutable_tables(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        table = tf.lookup.MutableHashTable(tf.string, tf.int64, -1, name="counts")
        tf.Variable(1.0)
        found = table.lookup(tf.constant(["a", "b"]))
        saver = tf.train.Saver()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(table.insert(tf.constant(["a"]), tf.constant([5], tf.int64)))
            path = saver.save(session, str(tmp_path / "model"))
        with tf.Session() as session:
            saver.restore(session, path)
            np.testing.assert_array_equal(session.run(found), [5, -1])


def test_every_public_name_exists() -> None:
    for name in dir(tf.lookup):
        assert getattr(tf.lookup, name) is not None, name
