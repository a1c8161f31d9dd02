"""Columns of the words of a text: what they count, beside other columns, in models, by `infer`."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import estimatorkit as tf
from estimatorkit.sklearn import SKLinearClassifier
from tests.experiment.commands import succeed

fc = tf.feature_column
BUCKETS = 16
TEXTS = [
    "Good day, sir!",
    "",
    "good",
    "It's NOT good: day",
    "  ",
    "\u00c4rger mit \u00e4RGER",
    "a-b.c",
]


def buckets(words: list[str]) -> list[int]:
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.constant([word.encode() for word in words])
        found: list[int] = session.run(tf.strings.to_hash_bucket_fast(given, BUCKETS)).tolist()
    return found


def counts(text: str, pairs: bool) -> Any:
    """A plain model of the column."""
    found = np.zeros(BUCKETS * (1 + pairs))
    words = [each for each in re.split(r"[^0-9a-z'\u0080-\uffff]+", text.lower()) if each]
    for bucket in buckets(words) if words else []:
        found[bucket] += 1
    joined = [f"{one} {other}" for one, other in itertools.pairwise(words)]  # and '' of the last
    for bucket in buckets([*joined, ""]) if pairs and words else []:
        found[BUCKETS + bucket] += 1
    return found


def layer(columns: list[Any], features: dict[str, Any]) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        made = fc.input_layer({key: tf.constant(each) for key, each in features.items()}, columns)
        return session.run(made)


@pytest.mark.parametrize("pairs", [False, True])
def test_words_are_counted(pairs: bool) -> None:
    words = fc.categorical_column_with_hashed_words("note", BUCKETS, pairs)
    assert words.num_buckets == BUCKETS * (1 + pairs)
    expected = np.array([counts(each, pairs) for each in TEXTS])
    column = fc.indicator_column(words)
    texts = [each.encode() for each in TEXTS]
    np.testing.assert_array_equal(layer([column], {"note": texts}), expected)
    rows = [[each] for each in texts]
    np.testing.assert_array_equal(layer([column], {"note": rows}), expected)
    assert not layer([column], {"note": [b"", b" ."]}).any()
    # Other columns' ids are looked up in one operation, in which texts are no words.
    town = fc.indicator_column(fc.categorical_column_with_vocabulary_list("town", ["a", "b"]))
    age = fc.indicator_column(fc.categorical_column_with_identity("age", 9))
    others = {"note": texts, "town": [b"a"] * len(texts), "age": [1] * len(texts)}
    beside = layer([column, town, age], others)
    np.testing.assert_array_equal(beside[:, 9 : 9 + words.num_buckets], expected)


def test_other_features_are_errors() -> None:
    column = fc.indicator_column(fc.categorical_column_with_hashed_words("note", BUCKETS))
    for given in ([[b"a", b"b"]], [1, 2]):
        with pytest.raises(ValueError, match="reads one text an example"):
            layer([column], {"note": given})
    with pytest.raises(ValueError, match="hash_bucket_size must be at least 1"):
        fc.categorical_column_with_hashed_words("note", 0)


def complaints(rows: int, seed: int) -> pd.DataFrame:
    """A table whose label depends on a few words of a note."""
    random = np.random.default_rng(seed)
    words = [f"{one}{other}" for one in ("ka", "mo", "ri", "tel") for other in "abcdefghijkl"]
    found = []
    for _ in range(rows):
        note = random.choice(words, random.integers(4, 12)).tolist()
        bad = random.random() < 0.4
        if bad:
            note.insert(random.integers(len(note)), random.choice(["refund", "late", "broken"]))
        found.append(
            {
                "note": " ".join(note).capitalize() + random.choice([".", "!", ""]),
                "amount": f"${random.uniform(1, 900):,.2f}",
                "complaint": int(bad),
            }
        )
    return pd.DataFrame(found)


def test_infer_reads_free_text() -> None:
    frame = complaints(300, 0)
    by_default = tf.feature_columns.infer(frame, "complaint")
    assert "text of 7.9 words" in by_default.notes["note"]
    assert [each.name for each in by_default] == ["note_indicator", "amount"]
    embedded = tf.feature_columns.infer(frame, "complaint", text="embed")
    assert [each.name for each in embedded] == ["note_embedding", "amount"]
    dropped = tf.feature_columns.infer(frame, "complaint", text="drop")
    assert [each.name for each in dropped] == ["amount"]
    assert "left out: free text" in dropped.notes["note"]
    names = pd.DataFrame({"x": [0.0, 1.5] * 100, "name": [f"Ann {row}" for row in range(200)]})
    assert "left out: nearly each row" in tf.feature_columns.infer(names).notes["name"]


@pytest.mark.slow
def test_words_help() -> None:
    train, test = complaints(600, 0), complaints(600, 1)
    labels = train.pop("complaint"), test.pop("complaint")
    found = []
    for frames in ((train, test), (train[["amount"]], test[["amount"]])):
        model = SKLinearClassifier(epochs=20, random_state=0).fit(frames[0], labels[0])
        found.append(roc_auc_score(labels[1], model.predict_proba(frames[1])[:, 1]))
    assert found[0] > 0.95
    assert found[1] < 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "kind"), [("hash", "Linear"), ("embed", "DNN"), ("hash", "Trees")]
)
def test_run_and_export_agree(
    text: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])
    complaints(400, 0).to_csv("table.csv", index=False)
    succeed("init", "table.csv", "--label", "complaint", "--text", text)
    assert ("infer: {text: embed}" in Path("table.yaml").read_text()) == (text == "embed")
    name = {"Trees": "BoostedTrees"}.get(kind, kind)
    given = {"DNN": "hidden_units: [8]", "Trees": "n_trees: 20"}.get(kind, "n_classes: 2")
    estimator = f"estimator={{type: {name}Classifier, {given}}}"
    succeed("run", "table.yaml", estimator, "train={epochs: 2}", "export=[final]")
    found = []
    for model in ("runs/table", "runs/table/export/final"):
        succeed("predict", model, "--input", "table.csv", "--output", "found.csv")
        found.append(pd.read_csv("found.csv")["probability_1"].to_numpy())
    assert np.ptp(found[0]) > 0.02
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-6)
