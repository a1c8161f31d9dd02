"""`VocabularyProcessor`: words, ids and saving."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.vocabulary_processor import tokenizer
from estimatorkit.core.errors import DataLossError

VocabularyProcessor = tf.contrib.learn.preprocessing.VocabularyProcessor

DOCUMENTS = ["the cat sat on the mat", "the dog sat", "a well-known dog's mat, TFLearn"]


def test_words() -> None:
    assert list(tokenizer(["It's a well-known USAFact. CamelCase, naïve 3.5!", ""])) == [
        ["It's", "a", "well-known", "USA", "Fact", "Camel", "Case", "naïve", "3", "5"],
        [],
    ]


def test_ids_count_from_one_in_order_of_appearance() -> None:
    processor = VocabularyProcessor(5)
    rows = list(processor.fit_transform(DOCUMENTS[:2]))
    np.testing.assert_array_equal(rows, [[1, 2, 3, 4, 1], [1, 6, 3, 0, 0]])
    assert rows[0].dtype == np.int64
    assert len(processor.vocabulary_) == 7
    (unknown,) = processor.transform(["a cat"])
    np.testing.assert_array_equal(unknown, [0, 2, 0, 0, 0])
    assert list(processor.reverse(rows)) == ["the cat sat on the", "the dog sat <UNK> <UNK>"]


def test_truncated_words_get_no_ids() -> None:
    processor = VocabularyProcessor(2)
    np.testing.assert_array_equal(list(processor.transform(["a b c d"])), [[1, 2]])
    assert len(processor.vocabulary_) == 3


def test_rare_words_are_unknown() -> None:
    processor = VocabularyProcessor(4, min_frequency=1).fit(DOCUMENTS)
    assert [processor.vocabulary_.reverse(index) for index in range(4)] == [
        *("<UNK>", "the", "mat", "sat")
    ]
    assert len(processor.vocabulary_) == 4
    np.testing.assert_array_equal(
        list(processor.transform(["the dog sat on the mat"])), [[1, 0, 3, 0]]
    )


def test_custom_tokenizer() -> None:
    processor = VocabularyProcessor(3, tokenizer_fn=lambda texts: (list(text) for text in texts))
    np.testing.assert_array_equal(list(processor.fit_transform(iter(["aba"]))), [[1, 2, 1]])


@pytest.mark.slow
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=5))
def test_save_and_restore(tmp_path_factory: pytest.TempPathFactory, documents: list[str]) -> None:
    processor = VocabularyProcessor(6).fit(documents)
    path = tmp_path_factory.mktemp("vocabulary") / "vocab"
    processor.save(path)
    found = VocabularyProcessor.restore(str(path))
    np.testing.assert_array_equal(
        list(found.transform(documents)), list(processor.transform(documents))
    )
    assert found.vocabulary_.as_json() == processor.vocabulary_.as_json()


@pytest.mark.parametrize("content", [pickle.dumps(DOCUMENTS), b"", b"[]", b'{"vocabulary": 3}'])
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "vocab"
    path.write_bytes(content)
    with pytest.raises(DataLossError, match="is no file of VocabularyProcessor"):
        VocabularyProcessor.restore(path)
