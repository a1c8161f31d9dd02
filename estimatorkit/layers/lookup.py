"""Layers that look up words: `StringLookup`, `IntegerLookup`, `TextVectorization`.

The vocabulary is given, or `adapt` takes it from data before the first call; it is part of the
layer's config, and a constant of the graph.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import output
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.preprocessing import Encoding, batches
from estimatorkit.ops.array import array, filling, indexing
from estimatorkit.ops.array.filling import pad
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.math.checked import checked
from estimatorkit.ops.sparse.sparse import sparse_tensor_to_dense
from estimatorkit.ops.text import string_numbers, strings
from estimatorkit.ops.text.string_pieces import split
from estimatorkit.ops.text.unicode import unicode_split
from estimatorkit.runtime.session import Session

Word = bytes | int


class Lookup(Encoding):
    """Base class of `StringLookup` and `IntegerLookup`; arguments as for `StringLookup`."""

    modes: tuple[str, ...] = ("int", "one_hot", "multi_hot", "count", "tf_idf")
    is_text = True

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: Any = None,
        oov_token: Any = "[UNK]",  # noqa: S107 (a word)
        vocabulary: Any = None,
        idf_weights: Any = None,
        invert: bool = False,
        output_mode: str = "int",
        pad_to_max_tokens: bool = False,
        sparse: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(output_mode, sparse, **kwargs)
        if invert and self.output_mode != "int":
            raise value_error(
                f"{type(self).__name__}: invert=True needs ids",
                expected="output_mode='int'",
                received=repr(output_mode),
            )
        if max_tokens is not None and max_tokens <= num_oov_indices + (mask_token is not None):
            raise value_error(
                f"{type(self).__name__}: max_tokens leaves no room for words",
                expected=f"more than {num_oov_indices + (mask_token is not None)}",
                received=max_tokens,
            )
        self.max_tokens = max_tokens
        self.num_oov_indices = num_oov_indices
        self.mask_token = mask_token
        self.oov_token = oov_token
        self.invert = invert
        self.pad_to_max_tokens = pad_to_max_tokens
        self.vocabulary: list[Any] | None = None
        self.idf_weights: list[float] | None = None
        if vocabulary is not None:
            self.set_vocabulary(vocabulary, idf_weights)

    # -- the vocabulary

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Sets the words, with or without the special tokens in front, and their weights.

        Raises:
            ValueError: a word occurs twice, there are too many, or the layer has been called.
        """
        if isinstance(vocabulary, str):
            with open(vocabulary, encoding="utf-8") as file:
                vocabulary = file.read().splitlines()
        words = [self._word(each) for each in vocabulary]
        special = [self._word(each) for each in self._special_tokens()]
        if special and words[: len(special)] == special:
            words = words[len(special) :]
        twice = [word for word, count in Counter(words).items() if count > 1]
        if twice:
            raise value_error(
                f"{type(self).__name__}: the vocabulary has a word twice", received=repr(twice[0])
            )
        if self.max_tokens is not None and len(words) > self.max_tokens - len(special):
            raise value_error(
                f"{type(self).__name__}: the vocabulary is larger than max_tokens",
                expected=f"at most {self.max_tokens - len(special)} words",
                received=len(words),
            )
        self._set(words, None if idf_weights is None else [float(each) for each in idf_weights])

    def _set(self, words: Sequence[Word], weights: list[float] | None) -> None:
        if self.built:
            raise value_error(
                f"{self.name} has been called: its vocabulary is part of the graph",
                expected="adapt and set_vocabulary before the first call",
            )
        self.vocabulary = [each.decode() if isinstance(each, bytes) else each for each in words]
        self.idf_weights = weights

    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None:
        """Sets the vocabulary to the most frequent words of `data`.

        Ties are broken by reverse alphabetical order, as in TensorFlow.

        Args:
            data: an array, a list, a dataset, or an iterable of batches.
            batch_size: accepted for compatibility only.
            steps: the number of batches to read; all by default.
        """
        counts: Counter[Word] = Counter()
        documents: Counter[Word] = Counter()
        rows = 0
        for each in itertools.islice(batches(data), steps):
            for row in self._rows(each):
                rows += 1
                counts.update(row)
                documents.update(set(row))
        for special in (self.mask_token, self.oov_token):
            if special is not None:
                counts.pop(self._word(special), None)
        words = sorted(counts, key=lambda word: (counts[word], word), reverse=True)
        if self.max_tokens is not None:
            words = words[: self.max_tokens - len(self._special_tokens())]
        weights = [math.log(1 + rows / (1 + documents[word])) for word in words]
        self._set(words, weights if self.output_mode == "tf_idf" else None)

    def _rows(self, batch: Any) -> Iterator[list[Word]]:
        """The words of each example."""
        values = np.asarray(batch)
        for row in values.reshape(len(values) if values.ndim else 1, -1):
            yield [self._word(each) for each in row.tolist()]

    def _word(self, value: Any) -> Word:
        if self.is_text:
            return value if isinstance(value, bytes) else str(value).encode()
        return int(value)

    def _special_tokens(self) -> list[Any]:
        """The mask token, if ids have one, and the token of other words for each of their ids."""
        masked = self.mask_token is not None and self.output_mode == "int"
        return [self.mask_token] * masked + [self.oov_token] * self.num_oov_indices

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """Returns the words in the order of their ids."""
        special = self._special_tokens() if include_special_tokens else []
        return [*special, *(self.vocabulary or ())]

    def vocabulary_size(self) -> int:
        """Returns the number of ids."""
        return len(self.get_vocabulary())

    vocab_size = vocabulary_size

    # -- the layer

    def _words(self) -> NDArray[Any]:
        if self.vocabulary is None:
            raise RuntimeError(
                explain(
                    f"{self.name} has no vocabulary",
                    expected="vocabulary=[...], or a call of adapt(data)",
                )
            )
        words = [self._word(each) for each in self.vocabulary]
        return np.array(words, object if self.is_text else np.int64)

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        if self.invert:
            return self._inverted(inputs)
        x = convert_to_tensor(inputs)
        if not self.is_text and x.dtype.is_integer:
            x = elementwise.cast(x, "int64")
        ids = self._ids(x)
        if self.output_mode == "int":
            return elementwise.cast(ids, self.compute_dtype)
        size = self.max_tokens if self.pad_to_max_tokens else self.vocabulary_size()
        if self.output_mode != "tf_idf":
            return self.encoded(ids, size or 1)
        return self.encoded(ids, size or 1) * self._idf(size or 1)

    def _ids(self, x: Tensor) -> Tensor:
        words = self._words()
        attrs = {"vocabulary": words, "num_oov_buckets": 0, "default_value": -1, "source": ()}
        place = output("VocabularyIds", [x], {**attrs, "expand": 0}, "lookup")
        first = len(self._special_tokens())
        other: Any = np.int64(first - 1)
        if self.num_oov_indices == 0:
            other = np.int64(-1)
        elif self.num_oov_indices > 1:
            count = self.num_oov_indices
            other = (
                string_numbers.string_to_hash_bucket_fast(x, count)
                if self.is_text
                else elementwise.floormod(x, count)
            )
            other = other + (first - count)
        zeros = filling.zeros_like(place)
        ids = indexing.where(place >= 0, place + first, zeros + other)
        if self.mask_token is not None and self.output_mode == "int":
            masked = elementwise.equal(x, self._word(self.mask_token))
            ids = indexing.where(masked, zeros, ids)
        return checked(ids, "known words") if self.num_oov_indices == 0 else ids

    def _inverted(self, ids: Any) -> Tensor:
        words = [self._word(each) for each in self.get_vocabulary()]
        other = self._word(self.oov_token)
        table = np.array([*words, other], object if self.is_text else np.int64)
        ids = elementwise.cast(convert_to_tensor(ids), "int64")
        inside = elementwise.logical_and(ids >= 0, ids < len(words))
        outside = filling.zeros_like(ids) + len(words)
        return indexing.gather(convert_to_tensor(table), indexing.where(inside, ids, outside))

    def _idf(self, size: int) -> NDArray[Any]:
        """The weights by id: those of other words are the mean."""
        weights = np.asarray(self.idf_weights or (), np.float32)
        mean = float(weights.mean()) if len(weights) else 1.0
        found = np.zeros(size, np.float32)
        found[: self.num_oov_indices] = mean
        found[self.num_oov_indices : self.num_oov_indices + len(weights)] = weights
        return found


class StringLookup(Lookup):
    """Maps words to their indices in a vocabulary (`tf.keras.layers.StringLookup`).

    With `output_mode='int'`, the mask token has id 0, followed by the ids of out-of-vocabulary
    words and then the vocabulary. In the other modes the mask token has no id.

    Args:
        max_tokens: the largest number of ids, including those of special tokens; None for no limit.
        num_oov_indices: the number of ids for out-of-vocabulary words, which are chosen by hash
            (integers: by remainder). With 0, such a word gets id -1; TensorFlow raises an error.
        mask_token: the word with id 0, or None.
        oov_token: what `invert` and `get_vocabulary` return for out-of-vocabulary words.
        vocabulary: the words in order, or the path of a text file with one word per line; None to
            call `adapt`.
        idf_weights: for 'tf_idf', a weight per word; None to call `adapt`.
        invert: whether to map ids to words; only with 'int'.
        output_mode: 'int', 'one_hot', 'multi_hot', 'count' or 'tf_idf'.
        pad_to_max_tokens: whether vectors have length `max_tokens` even if there are fewer words.
        sparse: must be False.
        kwargs: as for `Layer`.

    Raises:
        ValueError: an argument is invalid, or a word occurs twice.
    """


class IntegerLookup(Lookup):
    """Maps integers to their indices in a vocabulary (`tf.keras.layers.IntegerLookup`).

    Arguments are those of `StringLookup`, and `vocabulary_dtype`, which is accepted for
    TensorFlow's signature.
    """

    is_text = False

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: int | None = None,
        oov_token: int = -1,
        vocabulary: Any = None,
        vocabulary_dtype: str = "int64",
        idf_weights: Any = None,
        invert: bool = False,
        output_mode: str = "int",
        sparse: bool = False,
        pad_to_max_tokens: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            max_tokens,
            num_oov_indices,
            mask_token,
            oov_token,
            vocabulary,
            idf_weights,
            invert,
            output_mode,
            pad_to_max_tokens,
            sparse,
            **kwargs,
        )
        self.vocabulary_dtype = vocabulary_dtype


# -- text

_PUNCTUATION = r'[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']'
_STANDARDIZE = ("lower_and_strip_punctuation", "lower", "strip_punctuation")
_SPLIT = ("whitespace", "character")


class TextVectorization(Lookup):
    """Maps texts to the ids of their words, or to vectors (`tf.keras.layers.TextVectorization`).

    Inputs: strings, `(batch,)` or `(batch, 1)`. Outputs: int64 `(batch, words)`, padded with 0, in
    which out-of-vocabulary words are 1; or float32 `(batch, vocabulary size)`.

    Args:
        max_tokens: the largest number of ids, including those of special tokens; None for no limit.
        standardize: 'lower_and_strip_punctuation', 'lower', 'strip_punctuation', None or a function
            of strings.
        split: 'whitespace', 'character', None (the whole text is one word) or a function from
            strings `(batch,)` to padded words `(batch, words)`.
        ngrams: must be None.
        output_mode: 'int', 'multi_hot', 'count' or 'tf_idf'.
        output_sequence_length: the length to which ids are padded or truncated; None for the
            longest text of the batch.
        pad_to_max_tokens: whether vectors have length `max_tokens` even if there are fewer words.
        vocabulary: the words in order, or the path of a file; None to call `adapt`.
        idf_weights: as for `StringLookup`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: an argument is invalid.
    """

    modes = ("int", "multi_hot", "count", "tf_idf")

    def __init__(
        self,
        max_tokens: int | None = None,
        standardize: str | Callable[[Any], Any] | None = "lower_and_strip_punctuation",
        split: str | Callable[[Any], Any] | None = "whitespace",
        ngrams: Any = None,
        output_mode: str = "int",
        output_sequence_length: int | None = None,
        pad_to_max_tokens: bool = False,
        vocabulary: Any = None,
        idf_weights: Any = None,
        **kwargs: Any,
    ) -> None:
        for name, value, known in (
            ("standardize", standardize, _STANDARDIZE),
            ("split", split, _SPLIT),
        ):
            if value is not None and not callable(value) and value not in known:
                raise value_error(
                    f"TextVectorization: unknown {name}",
                    expected=f"one of {', '.join(map(repr, known))}, None or a function",
                    received=repr(value),
                )
        if ngrams is not None:
            raise value_error("TextVectorization: ngrams is not there", received=ngrams)
        self.standardize = standardize
        self.split = split
        self.ngrams = ngrams
        self.output_sequence_length = output_sequence_length
        super().__init__(
            max_tokens,
            mask_token="",
            vocabulary=vocabulary,
            idf_weights=idf_weights,
            output_mode=output_mode,
            pad_to_max_tokens=pad_to_max_tokens,
            **kwargs,
        )

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        words = self.tokens(convert_to_tensor(inputs))
        if self.output_mode != "int":
            ids = self._ids(words)
            # Padding after the end of a text.
            ids = indexing.where(elementwise.equal(words, b""), filling.zeros_like(ids) - 1, ids)
            size = self.max_tokens if self.pad_to_max_tokens else self.vocabulary_size()
            vectors = self.encoded(ids, size or 1)
            return vectors * self._idf(size or 1) if self.output_mode == "tf_idf" else vectors
        ids = super().call(words)
        length = self.output_sequence_length
        if length is None:
            return ids
        ids = pad(ids[:, :length], [[0, 0], [0, length]])[:, :length]
        ids.set_shape([None, length])
        return ids

    def tokens(self, texts: Tensor) -> Tensor:
        """Splits texts into words, `(batch, words)`, padded with ''."""
        if texts.shape.rank == 2:
            texts = array.reshape(texts, [-1])
        if callable(self.standardize):
            texts = self.standardize(texts)
        elif self.standardize is not None:
            texts = _standardized(texts, self.standardize)
        if callable(self.split):
            return convert_to_tensor(self.split(texts))
        if self.split is None:
            return array.expand_dims(texts, -1)
        return _split(texts, self.split)

    def _rows(self, batch: Any) -> Iterator[list[Word]]:
        with Graph().as_default(), Session() as session:
            texts = np.asarray(batch, object).reshape(-1)
            found = session.run(self.tokens(convert_to_tensor(texts)))
        for row in found.tolist():
            yield [word for word in row if word]


def _standardized(texts: Tensor, how: str) -> Tensor:
    if "lower" in how:
        texts = strings.string_lower(texts)
    if "strip" in how:
        texts = strings.regex_replace(texts, _PUNCTUATION, "")
    return texts


def _split(texts: Tensor, how: str) -> Tensor:
    pieces = split(texts) if how == "whitespace" else unicode_split(texts, "UTF-8")
    return pieces if isinstance(pieces, Tensor) else sparse_tensor_to_dense(pieces, b"")


__all__ = ["IntegerLookup", "StringLookup", "TextVectorization"]
