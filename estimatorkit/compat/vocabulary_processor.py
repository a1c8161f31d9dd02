"""`VocabularyProcessor` of `tf.contrib.learn.preprocessing`: maps documents to rows of word ids.

Pure Python and NumPy. Difference from TensorFlow: `save` writes JSON instead of a pickle, which
could execute code when loaded.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import DataLossError
from estimatorkit.storage.atomic_files import write_durably

# Matches abbreviations, the words of CamelCase, and words with apostrophes and hyphens.
_WORDS = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|['\w\-]+")
_UNKNOWN = "<UNK>"


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """Yields the words of each text."""
    for text in iterator:
        yield _WORDS.findall(text)


class CategoricalVocabulary:
    """Words and their ids: 0 for unknown words, the others count from 1 in order.

    Args:
        unknown_token: the text of the unknown word.
        support_reverse: accepted for compatibility only.
    """

    def __init__(self, unknown_token: str = _UNKNOWN, support_reverse: bool = True) -> None:
        self._unknown = unknown_token
        self._words = [unknown_token]
        self._mapping = {unknown_token: 0}
        self._counts: dict[str, int] = {}
        self._frozen = False

    def __len__(self) -> int:
        return len(self._words)

    def freeze(self, freeze: bool = True) -> None:
        """Stops (or resumes) adding words."""
        self._frozen = freeze

    def get(self, category: str) -> int:
        """The id of a word. A new word is added, or has id 0 if the vocabulary is frozen."""
        found = self._mapping.get(category)
        if found is None:
            if self._frozen:
                return 0
            found = self._mapping[category] = len(self._words)
            self._words.append(category)
        return found

    def add(self, category: str, count: int = 1) -> None:
        """Counts a word."""
        if self.get(category) > 0:
            self._counts[category] = self._counts.get(category, 0) + count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keeps words that occur more than `min_frequency` and less than `max_frequency` times.

        Ids are reassigned by decreasing frequency, then alphabetically.
        """
        by_frequency = sorted(self._counts.items(), key=lambda each: (-each[1], each[0]))
        kept = [
            (word, count)
            for word, count in by_frequency
            if count > min_frequency and (max_frequency <= 0 or count < max_frequency)
        ]
        self._counts = dict(kept)
        self._words = [self._unknown, *self._counts]
        self._mapping = {word: index for index, word in enumerate(self._words)}

    def reverse(self, class_id: int) -> str:
        """The word of an id."""
        return self._words[class_id]

    def as_json(self) -> dict[str, Any]:
        """A JSON object for `of_json`."""
        return {"words": self._words, "counts": self._counts, "frozen": self._frozen}

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> CategoricalVocabulary:
        """The vocabulary of the result of `as_json`."""
        words = [str(word) for word in content["words"]]
        made = cls(words[0])
        made._words = words
        made._mapping = {word: index for index, word in enumerate(words)}
        made._counts = {str(word): int(count) for word, count in content["counts"].items()}
        made._frozen = bool(content["frozen"])
        return made


class VocabularyProcessor:
    """Maps documents to rows of word ids (`tf.contrib.learn.preprocessing`).

    Args:
        max_document_length: words per row; longer documents are truncated, shorter padded with 0.
        min_frequency: words that occur at most this often are unknown.
        vocabulary: a `CategoricalVocabulary`.
        tokenizer_fn: yields the words of each of the documents.

    Attributes:
        vocabulary_: the vocabulary.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[str]], Iterable[Iterable[str]]] | None = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words of documents, then freezes the vocabulary."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(
        self, raw_documents: Iterable[str], unused_y: Any = None
    ) -> Iterator[NDArray[np.int64]]:
        """`fit`, then `transform`; traverses the documents twice."""
        documents = list(raw_documents)
        self.fit(documents)
        return self.transform(documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[NDArray[np.int64]]:
        """Yields the ids of each document, int64 `(max_document_length,)`."""
        for words in self._tokenizer(raw_documents):
            taken = itertools.islice(words, self.max_document_length)
            ids = [self.vocabulary_.get(word) for word in taken]
            row = np.zeros(self.max_document_length, np.int64)
            row[: len(ids)] = ids
            yield row

    def reverse(self, documents: Iterable[Iterable[int]]) -> Iterator[str]:
        """Yields the words of rows of ids, separated by spaces."""
        for ids in documents:
            yield " ".join(self.vocabulary_.reverse(each) for each in ids)

    def save(self, filename: str | os.PathLike[str]) -> None:
        """Saves it to a file, without a custom tokenizer."""
        content = {
            "max_document_length": self.max_document_length,
            "min_frequency": self.min_frequency,
            "vocabulary": self.vocabulary_.as_json(),
        }
        write_durably(Path(filename), json.dumps(content).encode())

    @classmethod
    def restore(cls, filename: str | os.PathLike[str]) -> VocabularyProcessor:
        """Loads the file written by `save`.

        Raises:
            DataLossError: the file has another format, such as TensorFlow's pickle.
        """
        try:
            content = json.loads(Path(filename).read_bytes())
            vocabulary = CategoricalVocabulary.of_json(content["vocabulary"])
            return cls(
                int(content["max_document_length"]), int(content["min_frequency"]), vocabulary
            )
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise DataLossError.explained(
                f"{os.fspath(filename)!r} is no file of VocabularyProcessor.save",
                expected="JSON, as this package writes it",
                received=f"{type(error).__name__}: {error}"[:200],
                hint="TensorFlow wrote a pickle: fit the processor on the documents again",
            ) from error
