"""Calls of `tf.keras.preprocessing.sequence` and `.text`, for TensorFlow and for this package.

Each takes the two modules and gives plain values or arrays. Nothing here imports TensorFlow.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

LISTS = [[1, 2, 3], [], [4], [5, 6, 7, 8, 9]]
TEXTS = ["The cat sat on the mat.", "the dog, the log!", "Cat\tand dog; a CAT", "one one one"]
SERIES = np.arange(40.0).reshape(20, 2)


def tokenizer(text: Any, **kwargs: Any) -> Any:
    """A tokenizer that knows `TEXTS`."""
    made = text.Tokenizer(**kwargs)
    made.fit_on_texts(TEXTS)
    return made


def _grams(sequence: Any, **kwargs: Any) -> Any:
    random.seed(7)
    pairs, labels = sequence.skipgrams([3, 1, 0, 2, 4, 1], 5, **kwargs)
    return [pairs, labels]


def _windows(sequence: Any, **kwargs: Any) -> Any:
    made = sequence.TimeseriesGenerator(SERIES, np.arange(20) * 10, **kwargs)
    batches = [made[at] for at in range(len(made))]
    config = {k: v for k, v in made.get_config().items() if k not in ("data", "targets")}
    return [len(made), [[x.tolist(), y.tolist()] for x, y in batches], config]


def _counts(text: Any, **kwargs: Any) -> Any:
    made = tokenizer(text, **kwargs)
    return [
        *(made.word_index, dict(made.word_counts), dict(made.word_docs), made.document_count),
        {str(at): count for at, count in sorted(made.index_docs.items())},
        made.texts_to_sequences(["the cat ate", "mat dog dog"]),
        made.sequences_to_texts([[1, 2, 30], [4]]),
    ]


def _restored(text: Any) -> Any:
    made = tokenizer(text, num_words=6, oov_token="?")
    again = text.tokenizer_from_json(made.to_json())
    return [again.get_config() == made.get_config(), again.texts_to_sequences(TEXTS)]


def _fitted_on_numbers(text: Any) -> Any:
    made = text.Tokenizer(num_words=5)
    made.fit_on_sequences([[1, 2, 2], [2, 4, 9]])
    return made.sequences_to_matrix([[1, 2, 2], [9], []], "tfidf")


SNIPPETS: dict[str, Callable[[Any, Any], Any]] = {
    "pad": lambda sequence, text: sequence.pad_sequences(LISTS),
    "pad_post": lambda sequence, text: sequence.pad_sequences(
        LISTS, 3, "float32", "post", "post", 0.5
    ),
    "pad_cut": lambda sequence, text: sequence.pad_sequences(LISTS, 2),
    "pad_post_cut_pre": lambda sequence, text: sequence.pad_sequences(LISTS, 4, padding="post"),
    "pad_vectors": lambda sequence, text: sequence.pad_sequences(
        [np.ones((2, 3)), np.zeros((1, 3))], value=-1
    ),
    "pad_texts": lambda sequence, text: sequence.pad_sequences(
        [["a", "bc"], ["d"]], dtype=object, value="-"
    ).tolist(),
    "pad_nothing": lambda sequence, text: sequence.pad_sequences([[], []]),
    "table": lambda sequence, text: sequence.make_sampling_table(12, 1e-2),
    "grams": lambda sequence, text: _grams(sequence),
    "grams_near": lambda sequence, text: _grams(
        sequence, window_size=1, negative_samples=0.5, categorical=True, seed=3
    ),
    "grams_ordered": lambda sequence, text: _grams(
        sequence, shuffle=False, negative_samples=0, sampling_table=[0.1, 0.9, 0.2, 0.8, 0.7]
    ),
    "windows": lambda sequence, text: _windows(sequence, length=5, batch_size=4),
    "windows_sparse": lambda sequence, text: _windows(
        sequence,
        **dict(length=6, sampling_rate=2, stride=3, start_index=1, end_index=17, reverse=True),
        batch_size=2,
    ),
    "words": lambda sequence, text: text.text_to_word_sequence(" A b-C\td,,e ", lower=False),
    "words_split": lambda sequence, text: text.text_to_word_sequence("A,b;C", ";", split=","),
    "hashing": lambda sequence, text: text.hashing_trick(TEXTS[0], 50, "md5"),
    "hashing_own": lambda sequence, text: text.hashing_trick("ab c", 5, len),
    "tokens": lambda sequence, text: _counts(text),
    "tokens_few": lambda sequence, text: _counts(text, num_words=3),
    "tokens_unknown": lambda sequence, text: _counts(text, num_words=4, oov_token="<unknown>"),
    "tokens_letters": lambda sequence, text: _counts(text, char_level=True, lower=False),
    "tokens_own": lambda sequence, text: _counts(text, analyzer=lambda line: line.split("t")),
    "restored": lambda sequence, text: _restored(text),
    "fitted_on_numbers": lambda sequence, text: _fitted_on_numbers(text),
    **{
        f"matrix_{mode}": lambda sequence, text, mode=mode: tokenizer(text).texts_to_matrix(
            [*TEXTS, ""], mode
        )
        for mode in ("binary", "count", "freq", "tfidf")
    },
}

ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "no_list": lambda sequence, text: sequence.pad_sequences(3),
    "no_lists": lambda sequence, text: sequence.pad_sequences([1, 2]),
    "truncating": lambda sequence, text: sequence.pad_sequences(LISTS, 2, truncating="mid"),
    "padding": lambda sequence, text: sequence.pad_sequences(LISTS, 2, padding="mid"),
    "texts": lambda sequence, text: sequence.pad_sequences([["a"]], value="x"),
    "shapes": lambda sequence, text: sequence.pad_sequences([np.ones((1, 2)), np.ones((1, 3))]),
    "too_short": lambda sequence, text: _windows(sequence, length=20),
    "lengths": lambda sequence, text: sequence.TimeseriesGenerator([1, 2], [1], 1),
    "mode": lambda sequence, text: tokenizer(text).texts_to_matrix(TEXTS, "idf"),
    "no_width": lambda sequence, text: text.Tokenizer().sequences_to_matrix([[1]]),
    "no_documents": lambda sequence, text: text.Tokenizer(3).sequences_to_matrix([[1]], "tfidf"),
}
