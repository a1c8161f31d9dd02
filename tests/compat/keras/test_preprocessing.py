"""Padding, skip-grams, windows and tokenizers against TensorFlow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from estimatorkit.compat.keras.preprocessing import sequence, text
from tests.golden.golden_files import error_of
from tests.golden.snippets_preprocessing import ERRORS, LISTS, SNIPPETS, tokenizer

FOLDER = Path(__file__).parents[2] / "golden"
GOLDEN = json.loads((FOLDER / "preprocessing.json").read_text("utf-8"))

# Words of TensorFlow's messages that ours begin with, too.
WORDS = {
    "no_list": "`sequences` must be iterable.",
    "no_lists": "`sequences` must be a list of iterables. Found non-iterable: 1",
    "truncating": 'Truncating type "mid" not understood',
    "padding": 'Padding type "mid" not understood',
    "texts": "`dtype` int32 is not compatible with `value`'s type: <class 'str'>",
    "shapes": "Shape of sample (3,) of sequence at position 1 is different from expected shape ",
    "too_short": "`start_index+length=20 > end_index=19` is disallowed, as no part of ",
    "lengths": "Data and targets have to be of same length. Data length is 2 while target ",
    "no_width": "Specify a dimension (`num_words` argument), or fit on some text data first.",
    "no_documents": "Fit the Tokenizer on some data before using tfidf mode.",
}


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", SNIPPETS)
def test_values(name: str) -> None:
    found = SNIPPETS[name](sequence, text)
    expected = GOLDEN["values"][name]
    if isinstance(found, np.ndarray) and found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    else:
        assert json.loads(json.dumps(plain(found))) == expected


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    found, golden = error_of(lambda: ERRORS[name](sequence, text)), GOLDEN["errors"][name]
    assert found is not None
    assert found["class"] == golden["class"]
    words = WORDS.get(name, "")
    assert golden["first_line"].startswith(words)
    assert found["first_line"].startswith(words)


@given(st.lists(st.lists(st.integers(1, 9), max_size=6), min_size=1), st.integers(1, 8))
def test_padding_keeps_ends(sequences: list[list[int]], length: int) -> None:
    padded = sequence.pad_sequences(sequences, length)
    assert padded.shape == (len(sequences), length)
    for row, values in zip(padded, sequences, strict=True):
        assert [each for each in row if each] == values[max(0, len(values) - length) :]


def test_random_windows_stay_within_series() -> None:
    made = sequence.TimeseriesGenerator(np.arange(9), np.arange(9), 3, shuffle=True, batch_size=50)
    windows, targets = made[0]
    assert windows.shape == (50, 3)
    np.testing.assert_array_equal(windows[:, -1] + 1, targets)
    assert set(targets) <= set(range(3, 9))
    config = json.loads(made.to_json())
    assert config["class_name"] == "TimeseriesGenerator"
    assert json.loads(config["config"]["data"]) == list(range(9))


def test_word_hashes_are_stable_across_processes() -> None:
    assert text.one_hot("the cat", 1000) == text.hashing_trick("the cat", 1000, "md5")
    assert text.hashing_trick("the cat", 1000) == text.hashing_trick("the cat", 1000, "md5")


def test_tokenizer_counts_accumulate() -> None:
    made = tokenizer(text)
    before = made.word_counts["one"]
    made.fit_on_texts(["one two"])
    assert made.word_counts["one"] == before + 1
    assert made.document_count == 5
    assert made.sequences_to_texts(made.texts_to_sequences(["one two"])) == ["one two"]
    assert len(LISTS) == len(sequence.pad_sequences(LISTS))
