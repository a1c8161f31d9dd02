"""Expressions that look up in tables, run on TensorFlow and on this package.

Each is a function of the module that stands for `tf`, and of a folder with the files of `FILES`.
The tables are initialized before the expression is run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FILES = {
    "words.txt": b"emerson\nlake\npalmer\n",
    "no newline.txt": b"a\nb",
    "windows.txt": b"a\r\nb\r\n",
    "empty line.txt": b"a\n\nb\n",
    "columns.tsv": b"1\tone\t0.5\n2\ttwo\t1.5\n",
    "columns.csv": b"x,10\ny,20\n",
    "numbers.txt": b"7\n42\n-1\n",
    "twice.txt": b"a\nb\na\n",
}

WORDS = ["emerson", "lake", "palmer", "king", "crimson", ""]


def _words(table: Callable[..., Any], *words: str) -> Callable[[Any, str], Any]:
    def look_up(tf: Any, folder: str) -> Any:
        made = table(tf, folder)
        return [made.lookup(tf.constant(list(words) or WORDS)), made.size()]

    return look_up


def _numbers(table: Callable[..., Any], *numbers: int) -> Callable[[Any, str], Any]:
    def look_up(tf: Any, folder: str) -> Any:
        made = table(tf, folder)
        return [made.lookup(tf.constant(numbers, tf.int64)), made.size()]

    return look_up


def _file(name: str, **rest: Any) -> Callable[..., Any]:
    return lambda tf, folder: tf.lookup.index_table_from_file(f"{folder}/{name}", **rest)


def _columns(tf: Any, folder: str, key: Any, value: Any, default: Any) -> Any:
    initializer = tf.lookup.TextFileInitializer(f"{folder}/columns.tsv", *key, *value)
    return tf.lookup.StaticHashTable(initializer, default)


def _static(tf: Any, folder: str) -> Any:
    initializer = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.5, 2.5])
    return tf.lookup.StaticHashTable(initializer, -1.0)


def _vocabulary(tf: Any, folder: str, buckets: int = 3) -> Any:
    initializer = tf.lookup.TextFileInitializer(
        f"{folder}/words.txt",
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )
    return tf.lookup.StaticVocabularyTable(initializer, num_oov_buckets=buckets)


def _sparse(tf: Any, folder: str) -> Any:
    words = tf.SparseTensor([[0, 0], [1, 2]], tf.constant(["lake", "x"]), [2, 3])
    return tf.lookup.index_table_from_tensor(WORDS[:3], num_oov_buckets=1).lookup(words)


def _without_initializing(tf: Any, folder: str) -> Any:
    initializer = tf.lookup.KeyValueTensorInitializer(["a"], [1])
    table = tf.lookup.StaticHashTable(initializer, 0)
    tf.get_default_graph().clear_collection("table_initializer")
    return table.lookup(tf.constant(["a"]))


def _dense(
    insert: list[Any],
    remove: list[Any] | None = None,
    then: list[Any] | None = None,
    buckets: int = 4,
    reserved: tuple[Any, Any] = (100, 200),
) -> Callable[[Any, str], Any]:
    """The sorted keys and values of all buckets, and the size, after insertions and removals."""

    def export(tf: Any, folder: str) -> Any:
        table = tf.lookup.DenseHashTable(tf.int64, tf.int64, -1, *reserved, buckets)
        steps = []
        for keys, change in ((insert, "insert"), (remove, "remove"), (then, "insert")):
            with tf.control_dependencies(steps[-1:]):
                if keys is not None:
                    given = [tf.constant(keys, tf.int64)]
                    given += [tf.range(1, 1 + tf.constant(len(keys), tf.int64))] * (
                        change == "insert"
                    )
                    steps.append(getattr(table, change)(*given))
        with tf.control_dependencies(steps[-1:]):
            keys, values = (tf.reshape(each, [-1]) for each in table.export())
            return [tf.sort(keys), tf.sort(values), table.size()]

    return export


def _dense_vectors(tf: Any, folder: str) -> Any:
    keys = tf.constant([[0, 1], [1, 2], [0, 2]], tf.int64)
    table = tf.lookup.DenseHashTable(tf.int64, tf.int64, [-1, -2], [0, 3], [7, 7], 8)
    with tf.control_dependencies([table.insert(keys[:2], tf.constant([[1, 2], [3, 4]], tf.int64))]):
        return table.lookup(keys)


def _dense_error(*reserved: Any, buckets: int = 4, keys: Any = 1) -> Callable[[Any, str], Any]:
    return lambda tf, folder: tf.lookup.DenseHashTable(
        tf.int64, tf.int64, -1, *reserved, buckets
    ).lookup(tf.constant(keys, tf.int64))


# Rows that need names of TensorFlow 1.
LEGACY = {
    *("a word for a number", "a word twice", "an empty line", "empty file name", "file"),
    *("file of Windows", "file of columns", "file of numbers", "file with buckets"),
    *("file with default", "file with vocab_size", "file without newline"),
    *("file, hashed strongly", "float keys", "negative buckets", "no buckets", "no file name"),
    *("no such file", "sparse", "tensor", "tensor of numbers", "tensor with buckets"),
    *("to strings from a file", "to strings from a tensor", "to strings from columns"),
    *("too few columns", "too few lines", "vocabulary", "vocabulary of buckets"),
    *("words of another dtype",),
}
EXPRESSIONS: dict[str, Callable[[Any, str], Any]] = {
    "file": _words(_file("words.txt")),
    "file with default": _words(_file("words.txt", default_value=99)),
    "file with buckets": _words(_file("words.txt", num_oov_buckets=5)),
    "file with vocab_size": _words(_file("words.txt", vocab_size=2, num_oov_buckets=2)),
    "file without newline": _words(_file("no newline.txt"), "a", "b", ""),
    "file of Windows": _words(_file("windows.txt"), "a", "b", "b\r"),
    "file of columns": _words(
        _file("columns.csv", key_column_index=0, value_column_index=1, delimiter=","), "x", "y", "z"
    ),
    "file of numbers": lambda tf, folder: _file(
        "numbers.txt", key_dtype=tf.int64, num_oov_buckets=4
    )(tf, folder).lookup(tf.constant([42, 7, 1000, -5], tf.int64)),
    "file, hashed strongly": lambda tf, folder: tf.lookup.index_table_from_file(
        f"{folder}/words.txt", num_oov_buckets=7, hasher_spec=tf.lookup.StrongHashSpec((3, 4))
    ).lookup(tf.constant(WORDS)),
    "tensor": _words(lambda tf, folder: tf.lookup.index_table_from_tensor(tf.constant(WORDS[:3]))),
    "tensor with buckets": _words(
        lambda tf, folder: tf.lookup.index_table_from_tensor(WORDS[:3], num_oov_buckets=4)
    ),
    "tensor of numbers": _numbers(
        lambda tf, folder: tf.lookup.index_table_from_tensor([5, 6, 7], 2, dtype=tf.int64), 6, 9, 5
    ),
    "to strings from a file": _numbers(
        lambda tf, folder: tf.lookup.index_to_string_table_from_file(f"{folder}/words.txt"),
        *(2, 0, 5, -1),
    ),
    "to strings from columns": _numbers(
        lambda tf, folder: tf.lookup.index_to_string_table_from_file(
            f"{folder}/columns.tsv", key_column_index=0, value_column_index=1, default_value="?"
        ),
        *(2, 1, 3),
    ),
    "to strings from a tensor": _numbers(
        lambda tf, folder: tf.lookup.index_to_string_table_from_tensor(WORDS, "none"), 1, 7
    ),
    "static": _words(_static, "b", "a", "c"),
    "static of floats": lambda tf, folder: _columns(
        tf, folder, (tf.string, 1), (tf.float32, 2), -1.0
    ).lookup(tf.constant([["two", "x"]])),
    "static of numbers": lambda tf, folder: _columns(
        tf, folder, (tf.int64, 0), (tf.string, tf.lookup.TextFileIndex.WHOLE_LINE), "no"
    ).lookup(tf.constant([2, 9], tf.int64)),
    "vocabulary": _words(_vocabulary),
    "vocabulary of buckets": lambda tf, folder: tf.lookup.StaticVocabularyTable(None, 9).lookup(
        tf.constant(WORDS)
    ),
    "sparse": _sparse,
    "dense, all buckets": _dense([11, 12, 13], buckets=8),
    "dense, deleted": _dense([11, 12, 13, 14], [12, 15], buckets=8),
    "dense, grown": _dense([11, 12, 13], None, [11, 12, 13, 14]),
    "dense, grown by far": _dense(list(range(30))),
    "dense, nothing": _dense([]),
    "dense, vectors": _dense_vectors,
}

ERRORS: dict[str, Callable[[Any, str], Any]] = {
    "not initialized": _without_initializing,
    "no such file": _words(_file("missing.txt")),
    "too few lines": _words(_file("words.txt", vocab_size=4)),
    "an empty line": _words(_file("empty line.txt")),
    "a word twice": _words(_file("twice.txt")),
    "too few columns": _words(_file("words.txt", key_column_index=1)),
    "a word for a number": _words(_file("words.txt", value_column_index=0)),
    "no file name": _words(_file("words.txt", vocab_size=0)),
    "dense, buckets of no power of 2": _dense_error(1, 2, buckets=12),
    "dense, reserved keys of two shapes": _dense_error(1, [1, 2]),
    "dense, equal reserved keys": _dense_error([1, 2], [1, 2], keys=[3, 4]),
    "dense, keys of another shape": _dense_error([1, 2], [2, 3], keys=[3, 4, 5]),
    "dense, a reserved key": _dense_error(1, 2, keys=2),
    "empty file name": lambda tf, folder: tf.lookup.index_table_from_file(""),
    "negative buckets": _words(_file("words.txt", num_oov_buckets=-1)),
    "float keys": lambda tf, folder: _file("words.txt", key_dtype=tf.float32)(tf, folder),
    "keys of another dtype": lambda tf, folder: _static(tf, folder).lookup(tf.constant([1])),
    "no buckets": lambda tf, folder: _vocabulary(tf, folder, buckets=0),
    "line number of another dtype": lambda tf, folder: _columns(
        tf, folder, (tf.string, tf.lookup.TextFileIndex.LINE_NUMBER), (tf.int64, 0), 0
    ),
    "words of another dtype": lambda tf, folder: tf.lookup.index_table_from_tensor([1, 2]),
    "other values for a key": lambda tf, folder: tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "a"], [1, 2]), 0
    ).lookup(tf.constant(["a"])),
}
