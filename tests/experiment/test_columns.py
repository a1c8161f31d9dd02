"""Feature columns in YAML: what each kind builds, and which columns of the data it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as ek
from estimatorkit.experiment import build
from estimatorkit.experiment.columns import KINDS
from estimatorkit.experiment.load import dump_experiment, load_experiment
from estimatorkit.experiment.schema import Experiment

fc = ek.feature_column

TEXT = """\
name: kinds
data: {train: iris_training, evaluate: iris_test, label: Label}
features: [%s]
estimator: {type: LinearClassifier}
train: {steps: 10}
"""


def experiment(folder: Path, features: str) -> Experiment:
    path = folder / "kinds.yaml"
    path.write_text(TEXT % features)
    return load_experiment(path)


def words(key: str) -> Any:
    return fc.categorical_column_with_vocabulary_list(key, ["a", "b"])


WORDS = "{vocabulary_list: {key: %s, words: [a, b]}}"

# By kind: examples, what they make, and what they read.
EXAMPLES: dict[str, list[tuple[str, Any, dict[str, str]]]] = {
    "numeric": [
        ("{numeric: A}", fc.numeric_column("A"), {"A": "float32"}),
        (
            "{numeric: {key: A, shape: [2, 3], default: 0.5, dtype: float64}}",
            fc.numeric_column("A", (2, 3), 0.5, ek.float64),
            {"A": "float64"},
        ),
    ],
    "bucketized": [
        (
            "{bucketized: {column: A, boundaries: [1, 2.5]}}",
            fc.bucketized_column(fc.numeric_column("A"), [1.0, 2.5]),
            {"A": "float32"},
        ),
        (
            "{bucketized: {column: {key: A, default: 3}, boundaries: [1]}}",
            fc.bucketized_column(fc.numeric_column("A", default_value=3.0), [1.0]),
            {"A": "float32"},
        ),
    ],
    "vocabulary": [  # becomes a vocabulary_file (test_lists)
        ("{vocabulary: A}", None, {"A": "string"}),
        ("{vocabulary: {key: A, min_count: 3, max_size: 9}}", None, {"A": "string"}),
    ],
    "vocabulary_list": [
        (WORDS % "A", words("A"), {"A": "string"}),
        (
            "{vocabulary_list: {key: A, words: [3, 5], num_oov_buckets: 2}}",
            fc.categorical_column_with_vocabulary_list("A", [3, 5], num_oov_buckets=2),
            {"A": "int64"},
        ),
    ],
    "vocabulary_file": [
        (
            "{vocabulary_file: {key: A, file: words.txt, size: 2}}",
            lambda folder: fc.categorical_column_with_vocabulary_file(
                "A", str(folder / "words.txt"), 2
            ),
            {"A": "string"},
        )
    ],
    "identity": [
        (
            "{identity: {key: A, num_buckets: 3, default_value: 0}}",
            fc.categorical_column_with_identity("A", 3, 0),
            {"A": "int64"},
        )
    ],
    "hash_bucket": [
        (
            "{hash_bucket: {key: A, hash_bucket_size: 7, dtype: int64}}",
            fc.categorical_column_with_hash_bucket("A", 7, ek.int64),
            {"A": "int64"},
        )
    ],
    "hashed_words": [
        (
            "{hashed_words: {key: A, hash_bucket_size: 7, pairs: false}}",
            fc.categorical_column_with_hashed_words("A", 7, pairs=False),
            {"A": "string"},
        )
    ],
    "crossed": [
        (
            "{crossed: {keys: [A, B], hash_bucket_size: 9}}",
            fc.crossed_column(["A", "B"], 9),
            {"A": "any", "B": "any"},
        ),
        (
            "{crossed: {keys: [A, {bucketized: {column: B, boundaries: [1]}}], "
            "hash_bucket_size: 9, hash_key: 5}}",
            fc.crossed_column(["A", fc.bucketized_column(fc.numeric_column("B"), [1.0])], 9, 5),
            {"A": "any", "B": "float32"},
        ),
    ],
    "weighted": [
        (
            f"{{weighted: {{column: {WORDS % 'A'}, weight: W}}}}",
            fc.weighted_categorical_column(words("A"), "W"),
            {"A": "string", "W": "float32"},
        )
    ],
    "indicator": [
        (f"{{indicator: {WORDS % 'A'}}}", fc.indicator_column(words("A")), {"A": "string"}),
        (
            f"{{indicator: {{column: {WORDS % 'A'}}}}}",
            fc.indicator_column(words("A")),
            {"A": "string"},
        ),
    ],
    "embedding": [
        (
            f"{{embedding: {{column: {WORDS % 'A'}, dimension: 2, combiner: sum}}}}",
            (words("A"), 2, "sum", None, True),
            {"A": "string"},
        )
    ],
    "shared_embeddings": [
        (
            f"{{shared_embeddings: {{columns: [{WORDS % 'A'}, {WORDS % 'B'}], dimension: 2}}}}",
            [words("A"), words("B")],
            {"A": "string", "B": "string"},
        )
    ],
}


def test_every_kind_has_an_example() -> None:
    assert list(EXAMPLES) == list(KINDS)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_kinds_build_matching_columns(kind: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a\nb\n")
    for text, expected, reads in EXAMPLES[kind]:
        described = experiment(tmp_path, text)
        made = None if kind == "vocabulary" else build.column(described.features[0])
        if kind == "embedding":  # initializers differ: only their defaults are compared
            parts = ("categorical_column", "dimension", "combiner", "max_norm", "trainable")
            made = tuple(getattr(made, part) for part in parts)
        elif kind == "shared_embeddings":
            made = [each.categorical_column for each in made]
        assert made == (expected(tmp_path) if callable(expected) else expected)
        assert {key: read.dtype for key, read in described.reads.items()} == reads
        again = tmp_path / "again.yaml"
        again.write_text(dump_experiment(described))
        assert load_experiment(again) == described


def test_embedding_has_table(tmp_path: Path) -> None:
    table = "{name: t, dynamic: true, min_count: 3, optimizer: {type: Ftrl, learning_rate: 0.1}}"
    described = experiment(
        tmp_path, f"{{embedding: {{column: {WORDS % 'A'}, dimension: 2, table: {table}}}}}"
    )
    made = build.column(described.features[0]).table
    assert made == ek.feature_column.EmbeddingTable("t", dynamic=True, min_count=3)
    assert isinstance(made.optimizer, ek.train.FtrlOptimizer)
    for wrong, message in (
        ("{hashes: 2}", "rows: 100000"),
        ("{min_count: 2}", "dynamic: true"),
        ("{rows: 2, dynamic: true}", "dynamic, or rows and hashes"),
        (
            "{optimizer: {type: Adam, learning_rate: {type: cosine_decay, learning_rate: 1.0}}}",
            "how long the training is",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            experiment(
                tmp_path, f"{{embedding: {{column: {WORDS % 'A'}, dimension: 2, table: {wrong}}}}}"
            )


def test_crossed_columns_keep_data_dtype(tmp_path: Path) -> None:
    described = experiment(
        tmp_path,
        f"{WORDS % 'A'}, {{numeric: B}}, {{crossed: {{keys: [A, B], hash_bucket_size: 9}}}}, "
        "{identity: {key: B, num_buckets: 3}}",
    )
    assert {key: read.dtype for key, read in described.reads.items()} == {
        "A": "string",
        "B": "int64",
    }


def test_yaml_anchors_share_columns(tmp_path: Path) -> None:
    described = experiment(
        tmp_path,
        f"&a {WORDS % 'A'}, {{crossed: {{keys: [*a, B], hash_bucket_size: 9}}}}, "
        "{embedding: {column: *a, dimension: 2}}",
    )
    column, crossed, embedded = described.features
    assert crossed.arguments.keys[0] == embedded.arguments.column == column


NORMALIZERS = {
    "log1p": np.log1p,
    "{type: standardize, mean: 3, deviation: 2}": lambda x: (x - 3) / 2,
    "{type: scale, low: 1, high: 5}": lambda x: (x - 1) / 4,
    "{type: log1p, low: 0.5}": lambda x: np.log1p(np.maximum(x, 0.5)),
    "{type: clip, low: 1, high: 2}": lambda x: np.clip(x, 1, 2),
    "{type: robust, center: 3, scale: 2}": lambda x: (
        (x - 3) / 2 / np.sqrt(1 + ((x - 3) / 2 / 3) ** 2)
    ),
    "{type: robust, center: 3, scale: 0, limit: 1}": lambda x: 0 * x,
}


def test_normalizers_match_formulas(tmp_path: Path) -> None:
    columns = [
        build.column(
            experiment(tmp_path, f"{{numeric: {{key: k{place}, normalizer: {text}}}}}").features[0]
        )
        for place, text in enumerate(NORMALIZERS)
    ]
    values = np.array([[0], [1], [7]], np.int64)
    with ek.Graph().as_default(), ek.Session() as session:
        made = fc.input_layer({f"k{place}": values for place in range(len(columns))}, columns)
        found = session.run(made)
    expected = [function(values[:, 0].astype(np.float32)) for function in NORMALIZERS.values()]
    np.testing.assert_allclose(found, np.stack(expected, axis=1), rtol=1e-6)
    text = "{numeric: {key: A, normalizer: log1p}}"
    one, other = (build.column(experiment(tmp_path, text).features[0]) for _ in range(2))
    assert one == other
