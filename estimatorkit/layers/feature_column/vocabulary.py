"""Categorical columns by vocabulary: a word's id is its index in a list or file.

The words become part of the graph, so saved graphs do not need the file. A file's SHA-256 is
computed when the column is created, and compared when a graph is built. The files read are recorded
in the graph's collection VOCABULARY_FILES, for saved models (`vocabulary_fingerprints`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType, as_dtype, int64, string
from estimatorkit.core.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    value_error,
)
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import VOCABULARY_FILES
from estimatorkit.layers.feature_column.categorical import KeyedColumn, check_string_or_int
from estimatorkit.layers.feature_column.columns import check_key
from estimatorkit.ops.tables.lookup_tables import LINE_NUMBER, WHOLE_LINE, Column, read_vocabulary
from estimatorkit.runtime.xla.memory_errors import check_words
from estimatorkit.storage.filesystem import file_errors, open_file
from estimatorkit.storage.number_text import to_number
from estimatorkit.storage.records import read_records

_SAMPLE = 1 << 20
"""Bytes of a file from which the number of its words is guessed."""


@dataclass(frozen=True)
class VocabularyListColumn(KeyedColumn):
    """See `categorical_column_with_vocabulary_list`."""

    factory = "categorical_column_with_vocabulary_list"

    key: str
    vocabulary_list: tuple[Any, ...]
    dtype: DType
    default_value: int
    num_oov_buckets: int

    @property
    def num_buckets(self) -> int:
        """The number of words and out-of-vocabulary buckets."""
        return len(self.vocabulary_list) + self.num_oov_buckets

    @property
    def kind(self) -> tuple[str, dict[str, Any]]:
        """By the words."""
        attrs = {
            "vocabulary": _words(self.vocabulary_list),
            "num_oov_buckets": self.num_oov_buckets,
            "default_value": self.default_value,
            "source": (),
        }
        return "VocabularyIds", attrs

    def described(self) -> str:
        """The column and its first words, for an error message."""
        return f"{self.factory}({self.key!r}, {str(list(self.vocabulary_list[:3]))[:-1]}, ...])"


@functools.lru_cache(maxsize=256)
def _words(values: tuple[Any, ...]) -> NDArray[Any]:
    """The array of a vocabulary, shared by equal vocabularies so that it is indexed once."""
    if isinstance(values[0], (str, bytes)):
        words = np.empty(len(values), object)
        words[:] = [each.encode() if isinstance(each, str) else each for each in values]
        return words
    return np.array(values, np.int64)


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Any,
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyListColumn:
    """A categorical column whose ids are indices in a list of words.

    Args:
        key: the feature's key, and the column's name.
        vocabulary_list: unique words: strings or integers.
        dtype: string or an integer dtype; that of the words by default.
        default_value: the id of out-of-vocabulary words without buckets; -1 (default) ignores them.
        num_oov_buckets: the number of hash buckets for out-of-vocabulary words; 0 by default.

    Raises:
        ValueError: an argument is invalid.
    """
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    words = tuple(np.asarray(vocabulary_list).tolist())
    if isinstance(vocabulary_list, (list, tuple)) and isinstance(vocabulary_list[0], (str, bytes)):
        words = tuple(vocabulary_list)  # NumPy's strings lose zero bytes at their end
    if len(set(words)) != len(words):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    found = string if isinstance(words[0], (str, bytes)) else as_dtype(np.array(words).dtype)
    _check_buckets(key, num_oov_buckets, default_value != -1)
    check_string_or_int(found, f"{key} vocabulary")
    wanted = found if dtype is None else as_dtype(dtype)
    if wanted.is_integer != found.is_integer:
        raise value_error(
            f"dtype <dtype: {wanted.name!r}> and vocabulary dtype <dtype: {found.name!r}> do "
            f"not match, column_name: {key}",
            received=f"words {list(words[:3])}",
            hint="leave dtype out",
        )
    check_string_or_int(wanted, key)
    check_key(key)
    return VocabularyListColumn(key, words, wanted, int(default_value), int(num_oov_buckets or 0))


def _check_buckets(key: str, num_oov_buckets: int | None, has_default: bool) -> None:
    if num_oov_buckets:
        if has_default:
            raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
        if num_oov_buckets < 0:
            raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


# -- files


@dataclass(frozen=True)
class VocabularyFileColumn(KeyedColumn):
    """See `categorical_column_with_vocabulary_file`.

    Attributes:
        fingerprint: the file's SHA-256 when the column was created; '' if there was no file.
    """

    factory = "categorical_column_with_vocabulary_file"

    key: str
    vocabulary_file: str
    vocabulary_size: int
    num_oov_buckets: int
    dtype: DType
    default_value: int
    file_format: str | None
    fingerprint: str

    @property
    def num_buckets(self) -> int:
        """The number of words and out-of-vocabulary buckets."""
        return self.vocabulary_size + self.num_oov_buckets

    @property
    def kind(self) -> tuple[str, dict[str, Any]]:
        """By the words of the file.

        Raises:
            NotFoundError: the file is gone.
            FailedPreconditionError: it has changed since the column was made.
        """
        held = _File.of(self.vocabulary_file)
        if self.fingerprint and held.fingerprint != self.fingerprint:
            raise changed(self.key, self.vocabulary_file, self.fingerprint, held.fingerprint)
        attrs = {
            "vocabulary": held.words(self.dtype, self.vocabulary_size, self.file_format),
            "num_oov_buckets": self.num_oov_buckets,
            "default_value": self.default_value,
            "source": (self.vocabulary_file, held.fingerprint),
        }
        return "VocabularyIds", attrs

    def described(self) -> str:
        """The column and its file, for an error message."""
        return f"{self.factory}({self.key!r}, {self.vocabulary_file!r})"

    def note(self, attrs: Mapping[str, Any]) -> None:
        """Records the file in the graph's collection."""
        get_default_graph().add_to_collection(
            VOCABULARY_FILES, json.dumps([self.key, *attrs["source"]])
        )


def changed(key: str, path: str, then: str, now: str) -> FailedPreconditionError:
    """The error for a vocabulary file that differs from the model's."""
    return FailedPreconditionError.explained(
        f"vocabulary file of column {key!r} has changed since the model was built",
        expected=f"{path} with SHA-256 {then}",
        received=f"{f'SHA-256 {now}' if now else 'the file is missing'}",
        hint="restore the file: with another one the ids of words change, and a trained model "
        "gives wrong predictions; or train again in another model_dir",
    )


class _File:
    """A cached vocabulary file."""

    def __init__(self, path: str) -> None:
        self.path = path
        with file_errors("read the vocabulary", path), open_file(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            first = file.read(_SAMPLE)
            check_words(path, size, size * first.count(b"\n") // max(len(first), 1))
            content = first + file.read()
        self.fingerprint = hashlib.sha256(content).hexdigest()
        self.lines = content.count(b"\n") + bool(content and not content.endswith(b"\n"))
        self._words: dict[Any, NDArray[Any]] = {}

    @classmethod
    def of(cls, path: str) -> _File:
        """Returns the file from the cache, or reads it if it has changed."""
        try:
            stamp: Any = (os.stat(path).st_mtime_ns, os.stat(path).st_size)
        except OSError:  # remote, or gone
            return cls(path)
        return _read(path, stamp)

    def words(self, dtype: DType, size: int, file_format: str | None) -> NDArray[Any]:
        """The first `size` words.

        Raises:
            InvalidArgumentError: there are fewer, or one is not a number.
            FailedPreconditionError: a word is repeated.
        """
        known = (dtype.is_integer, size, file_format)
        if known not in self._words:
            column = Column(WHOLE_LINE, int64 if dtype.is_integer else string)
            if file_format == "tfrecord_gzip":
                keys = self._records(column, size)
            else:
                pairs = read_vocabulary(self.path, column, Column(LINE_NUMBER, int64), size, "\t")
                keys = [word for word, _ in pairs]
            self._check_distinct(keys)
            self._words[known] = _words(tuple(keys))
        return self._words[known]

    def _records(self, column: Column, size: int) -> list[Any]:
        records = list(read_records(self.path, "GZIP"))
        if len(records) < size:
            raise InvalidArgumentError.explained(
                f"Invalid vocab_size in {self.path}: expected {size}, got {len(records)}"
            )
        convert: Any = bytes if column.dtype is string else to_number(column.dtype)
        return [convert(record) for record in records[:size]]

    def _check_distinct(self, keys: list[Any]) -> None:
        places: dict[Any, int] = {}
        for place, word in enumerate(keys):
            first = places.setdefault(word, place)
            if first != place:
                raise FailedPreconditionError.explained(
                    f"HashTable has different value for same key. Key {word!r} has {first} "
                    f"and trying to add value {place}",
                    expected="each word once",
                    received=f"{self.path}, lines {first + 1} and {place + 1}",
                )


@functools.lru_cache(maxsize=64)
def _read(path: str, stamp: Any) -> _File:
    return _File(path)


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: int | None = None,
    num_oov_buckets: int | None = 0,
    default_value: int | None = None,
    dtype: Any = string,
    file_format: str | None = None,
) -> VocabularyFileColumn:
    """A categorical column whose ids are line numbers, from 0, of a vocabulary file.

    Args:
        key: the feature's key, and the column's name.
        vocabulary_file: the file, with one word per line.
        vocabulary_size: the number of lines to use; all by default.
        num_oov_buckets: the number of hash buckets for out-of-vocabulary words; 0 by default.
        default_value: the id of out-of-vocabulary words without buckets; -1 (default) ignores them.
        dtype: string (default) or an integer dtype.
        file_format: None for lines of text; 'tfrecord_gzip' (the default for files whose name ends
            in 'tfrecord.gz') for a compressed TFRecord file with one word per record.

    Raises:
        ValueError: an argument is invalid, or there is no file and no vocabulary_size.
        NotFoundError, FailedPreconditionError: when a graph is built, the file is missing, or has
            changed.
    """
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    path = os.fspath(vocabulary_file)
    if file_format is None and path.endswith("tfrecord.gz"):
        file_format = "tfrecord_gzip"
    exists = _exists(path)
    if vocabulary_size is None:
        if not exists:
            raise value_error(
                f"vocabulary_file in {key} does not exist",
                received=path,
                hint="give the path of a file with one word per line",
            )
        if file_format == "tfrecord_gzip":
            vocabulary_size = sum(1 for _ in read_records(path, "GZIP"))
        else:
            vocabulary_size = _File.of(path).lines
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    _check_buckets(key, num_oov_buckets, default_value is not None)
    wanted = as_dtype(dtype)
    check_string_or_int(wanted, key)
    check_key(key)
    return VocabularyFileColumn(
        key,
        path,
        int(vocabulary_size),
        int(num_oov_buckets or 0),
        wanted,
        -1 if default_value is None else int(default_value),
        file_format,
        _File.of(path).fingerprint if exists else "",
    )


def _exists(path: str) -> bool:
    from estimatorkit.storage.gfile import exists

    return bool(exists(path))


def vocabulary_fingerprints(graph: Graph | None = None) -> dict[str, dict[str, str]]:
    """Returns the fingerprints of the vocabulary files that a graph's columns read, to save with a
    model.

    Returns:
        `{'path': ..., 'sha256': ...}` by feature key.
    """
    held = (graph or get_default_graph()).get_collection(VOCABULARY_FILES)
    read = [json.loads(each) for each in held]
    return {key: {"path": path, "sha256": sha256} for key, path, sha256 in read}


def check_vocabulary_fingerprints(
    saved: Mapping[str, Mapping[str, str]], graph: Graph | None = None
) -> None:
    """Compares a graph's vocabulary files with those of a saved model.

    Args:
        saved: the result of `vocabulary_fingerprints` when the model was saved.
        graph: the graph; the default one by default.

    Raises:
        FailedPreconditionError: a file differs.
    """
    for key, now in vocabulary_fingerprints(graph).items():
        then = saved.get(key)
        if then is not None and then["sha256"] != now["sha256"]:
            raise changed(key, now["path"], then["sha256"], now["sha256"])
