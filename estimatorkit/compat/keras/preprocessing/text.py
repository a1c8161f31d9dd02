"""Text vectorization (`tf.keras.preprocessing.text`): `Tokenizer`, and feature hashing."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import value_error
from estimatorkit.lazy import listing

FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'
_MODES = ("binary", "count", "tfidf", "freq")


def text_to_word_sequence(
    input_text: str, filters: str = FILTERS, lower: bool = True, split: str = " "
) -> list[str]:
    """Splits a text into words.

    Args:
        input_text: the text.
        filters: characters to replace by `split`, such as punctuation.
        lower: whether to convert the text to lower case.
        split: the separator between words.
    """
    text = input_text.lower() if lower else input_text
    parted = text.translate({ord(character): split for character in filters})
    return [word for word in parted.split(split) if word]


def _md5(word: str) -> int:
    return int(hashlib.md5(word.encode(), usedforsecurity=False).hexdigest(), 16)


def hashing_trick(
    text: str,
    n: int,
    hash_function: Callable[[str], int] | str | None = None,
    filters: str = FILTERS,
    lower: bool = True,
    split: str = " ",
    analyzer: Callable[[str], list[str]] | None = None,
) -> list[int]:
    """Maps the words of a text to ids in [1, n - 1] by hashing; different words may share an id.

    Args:
        text: the text.
        n: the largest id plus one.
        hash_function: a function from a word to an int, or 'md5', the default. (TensorFlow's
            default is Python's `hash`, whose values differ between processes.)
        filters, lower, split: see `text_to_word_sequence`.
        analyzer: a function that splits the text into words, used instead of these.
    """
    words = (
        text_to_word_sequence(text, filters, lower, split) if analyzer is None else analyzer(text)
    )
    function = hash_function if callable(hash_function) else _md5
    return [function(word) % (n - 1) + 1 for word in words]


def one_hot(
    input_text: str,
    n: int,
    filters: str = FILTERS,
    lower: bool = True,
    split: str = " ",
    analyzer: Callable[[str], list[str]] | None = None,
) -> list[int]:
    """Maps the words of a text to ids; `hashing_trick` with its default hash function."""
    return hashing_trick(input_text, n, None, filters, lower, split, analyzer)


class Tokenizer:
    """Indexes words by descending frequency, from 1; converts texts to ids or count matrices.

    Args:
        num_words: the limit of the ids: only ids below it are used. By default all are.
        filters, lower, split: see `text_to_word_sequence`.
        char_level: whether each character is a word.
        oov_token: a token that replaces out-of-vocabulary words; by default they are omitted.
        analyzer: a function that splits a text into words, used instead of these.
        document_count: the number of texts counted in an earlier fit.

    Attributes:
        word_index, index_word: ids by word, and words by id.
        word_counts, word_docs: by word, how often it occurs, and in how many texts.
        index_docs: by id, in how many texts the word occurs.
        document_count: the number of texts.
    """

    def __init__(
        self,
        num_words: int | None = None,
        filters: str = FILTERS,
        lower: bool = True,
        split: str = " ",
        char_level: bool = False,
        oov_token: str | None = None,
        analyzer: Callable[[str], list[str]] | None = None,
        document_count: int = 0,
    ) -> None:
        self.num_words = num_words
        self.filters = filters
        self.lower = lower
        self.split = split
        self.char_level = char_level
        self.oov_token = oov_token
        self.analyzer = analyzer
        self.document_count = document_count
        self.word_counts: OrderedDict[str, int] = OrderedDict()
        self.word_docs: defaultdict[str, int] = defaultdict(int)
        self.index_docs: defaultdict[int, int] = defaultdict(int)
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def _words(self, text: Any) -> Sequence[str]:
        if self.char_level or isinstance(text, list):
            if not self.lower:
                return list(text)
            return [each.lower() for each in text] if isinstance(text, list) else text.lower()
        if self.analyzer is not None:
            return self.analyzer(text)
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Iterable[Any]) -> None:
        """Adds texts to the word counts and reassigns all ids.

        Args:
            texts: strings, or lists of words.
        """
        for text in texts:
            self.document_count += 1
            words = self._words(text)
            for word in words:
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
            for word in set(words):
                self.word_docs[word] += 1
        ordered = sorted(self.word_counts, key=lambda word: -self.word_counts[word])
        listed = ([] if self.oov_token is None else [self.oov_token]) + ordered
        self.word_index = {word: at for at, word in enumerate(listed, 1)}
        self.index_word = {at: word for word, at in self.word_index.items()}
        for word, count in self.word_docs.items():
            self.index_docs[self.word_index[word]] = count

    def fit_on_sequences(self, sequences: Sequence[Sequence[int]]) -> None:
        """Counts in how many sequences each id occurs, as mode 'tfidf' requires."""
        self.document_count += len(sequences)
        for sequence in sequences:
            for number in set(sequence):
                self.index_docs[number] += 1

    def _known(self, number: int | None) -> int | None:
        """Returns an index in use, else that of unknown words, or None."""
        if number is not None and not (self.num_words and number >= self.num_words):
            return number
        return None if self.oov_token is None else self.word_index.get(self.oov_token)

    def texts_to_sequences_generator(self, texts: Iterable[Any]) -> Iterator[list[int]]:
        """Yields the word ids of each text; see `texts_to_sequences`."""
        for text in texts:
            found = (self._known(self.word_index.get(word)) for word in self._words(text))
            yield [number for number in found if number is not None]

    def texts_to_sequences(self, texts: Iterable[Any]) -> list[list[int]]:
        """Converts texts to lists of word ids.

        Words without an id, or with one not below `num_words`, become `oov_token` or are omitted.
        """
        return list(self.texts_to_sequences_generator(texts))

    def sequences_to_texts_generator(self, sequences: Iterable[Sequence[int]]) -> Iterator[str]:
        """Yields the text of each sequence; see `sequences_to_texts`."""
        for sequence in sequences:
            known = (
                self._known(number if number in self.index_word else None) for number in sequence
            )
            yield " ".join(self.index_word[number] for number in known if number is not None)

    def sequences_to_texts(self, sequences: Iterable[Sequence[int]]) -> list[str]:
        """Converts sequences of ids to texts, with words joined by spaces."""
        return list(self.sequences_to_texts_generator(sequences))

    def texts_to_matrix(self, texts: Iterable[Any], mode: str = "binary") -> NDArray[np.float64]:
        """Converts texts to a matrix; see `sequences_to_matrix`."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(
        self, sequences: Sequence[Sequence[int]], mode: str = "binary"
    ) -> NDArray[np.float64]:
        """Returns a matrix with a row for each sequence and a column for each id.

        Args:
            sequences: lists of ids.
            mode: the value of an id: 'binary' (1 if it occurs), 'count', 'freq' (the count divided
                by the sequence's length), or 'tfidf':
                (1 + ln count) ln(1 + documents / (1 + documents with it)).

        Raises:
            ValueError: `num_words` is not given and no texts were fitted, `mode` is unknown, or
                'tfidf' is used before a fit.
        """
        if mode not in _MODES:
            raise value_error(f"Unknown vectorization mode: {mode}", expected=f"one of {_MODES}")
        if not self.num_words and not self.word_index:
            raise ValueError(
                "Specify a dimension (`num_words` argument), or fit on some text data first."
            )
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Fit the Tokenizer on some data before using tfidf mode.")
        width = self.num_words or len(self.word_index) + 1
        matrix = np.zeros((len(sequences), width))
        for row, sequence in zip(matrix, sequences, strict=True):
            numbers = [number for number in sequence if number < width]
            np.add.at(row, np.asarray(numbers, np.int64), 1.0)
            if mode == "binary":
                row[:] = row > 0
            elif mode == "freq" and len(sequence):
                row /= len(sequence)
            elif mode == "tfidf":
                for number in set(numbers):
                    documents = self.index_docs.get(number, 0)
                    inverse = np.log(1 + self.document_count / (1 + documents))
                    row[number] = (1 + np.log(row[number])) * inverse
        return matrix

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, and the counts as JSON."""
        names = ("num_words", "filters", "lower", "split", "char_level", "oov_token")
        counts = ("word_counts", "word_docs", "index_docs", "index_word", "word_index")
        return {
            **{name: getattr(self, name) for name in (*names, "document_count")},
            **{name: json.dumps(getattr(self, name)) for name in counts},
        }

    def to_json(self, **kwargs: Any) -> str:
        """Returns the config as JSON; `kwargs` are passed to `json.dumps`."""
        return json.dumps(
            {"class_name": type(self).__name__, "config": self.get_config()}, **kwargs
        )


def tokenizer_from_json(json_string: str) -> Tokenizer:
    """Creates a tokenizer from the result of `Tokenizer.to_json`."""
    config = dict(json.loads(json_string)["config"])
    counts = {
        name: json.loads(config.pop(name))
        for name in ("word_counts", "word_docs", "index_docs", "index_word", "word_index")
    }
    tokenizer = Tokenizer(**config)
    tokenizer.word_counts = OrderedDict(counts["word_counts"])
    tokenizer.word_docs = defaultdict(int, counts["word_docs"])
    tokenizer.index_docs = defaultdict(
        int, {int(number): count for number, count in counts["index_docs"].items()}
    )
    tokenizer.index_word = {int(number): word for number, word in counts["index_word"].items()}
    tokenizer.word_index = counts["word_index"]
    return tokenizer


__all__ = ["Tokenizer", "hashing_trick", "one_hot", "text_to_word_sequence", "tokenizer_from_json"]
__dir__ = listing(__name__)
