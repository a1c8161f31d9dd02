"""Hints work when pasted: each mistake is fixed by what its message proposes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from estimatorkit.experiment import runner
from estimatorkit.experiment.errors import ConfigurationError, DataError
from estimatorkit.experiment.load import load_experiment

GOOD = """\
name: people
model_dir: runs/people
seed: 3
data:
  train: {csv: people.csv, delimiter: ",", encoding: utf-8}
  holdout: 0.25
  label: rich
  missing_labels: error
derive: {born: {year: birthday}}
features:
  - numeric: {key: age, default: 40.0, normalizer: {type: standardize, mean: 40.0, deviation: 12.0}}
  - numeric: {key: born, default: 1980.0}
  - indicator: {vocabulary_list: {key: town, words: [Rome, Oslo]}}
  - embedding: {column: {hash_bucket: {key: job, hash_bucket_size: 20}}, dimension: 3}
  - indicator: {bucketized: {column: {key: age, default: 40.0}, boundaries: [30.0, 50.0]}}
estimator:
  type: DNNClassifier
  label_vocabulary: [no, yes]
  n_classes: 2
  hidden_units: [8]
  dropout: 0.1
  activation: relu
  optimizer: {type: Adam, learning_rate: 0.01}
train:
  batch_size: 20
  epochs: 1
  shuffle_buffer: 100
  early_stopping: {metric: accuracy, patience: 3}
  class_weights: balanced
evaluate: {batch_size: 40, every: epoch}
metrics: [Precision]
export: [{type: best, metric: accuracy}]
run: {keep_checkpoint_max: 3}
tune: {train.batch_size: {choice: [10, 20]}}
"""

MISSPELT = [
    # A key as it is, and as it is typed: by a slip, or as another library calls it.
    *(("name", "nmae"), ("model_dir", "model_dri"), ("seed", "sead"), ("data", "dta")),
    *(("train", "trian"), ("delimiter", "delimeter"), ("encoding", "encodings")),
    *(("holdout", "validation_split"), ("holdout", "test_size"), ("label", "target")),
    *(("missing_labels", "missing_label"), ("derive", "derived"), ("year", "yaer")),
    *(("features", "feature"), ("normalizer", "normaliser"), ("deviation", "deviaton")),
    *(("indicator", "indicater"), ("vocabulary_list", "vocab_list"), ("words", "word")),
    *(("embedding", "embeding"), ("hash_bucket_size", "hash_buckets_size")),
    *(("dimension", "dimensions"), ("bucketized", "bucketised"), ("boundaries", "boundarys")),
    *(("estimator", "estimater"), ("label_vocabulary", "labels_vocabulary")),
    *(("n_classes", "num_classes"), ("n_classes", "classes"), ("hidden_units", "layers")),
    *(("hidden_units", "units"), ("dropout", "dropout_rate"), ("activation", "activations")),
    *(("optimizer", "optimiser"), ("learning_rate", "lr"), ("batch_size", "batch")),
    *(("batch_size", "bs"), ("epochs", "epoch"), ("shuffle_buffer", "shuffle_buffers")),
    *(("early_stopping", "early_stoping"), ("patience", "patiance")),
    *(("class_weights", "class_weight"), ("evaluate", "eval"), ("every", "evry")),
    *(("metrics", "metrcs"), ("export", "exports"), ("keep_checkpoint_max", "keep_checkpoints")),
    *(("tune", "tunes"), ("choice", "choise")),
    # A value.
    *(("DNNClassifier", "DnnClassifier"), ("DNNClassifier", "DNNClasifier"), ("relu", "ReLU")),
    *(("Adam", "adam"), ("Adam", "Adm"), ("standardize", "standardise")),
    *(("balanced", "balance"), ("Precision", "precision"), ("best", "Best")),
]


def write_people(folder: Path, header: str = "age,birthday,town,job,rich") -> None:
    towns, jobs = ("Rome", "Oslo"), ("cook", "clerk", "pilot")
    rows = [
        f"{20 + row % 50},{1960 + row % 40}-05-01,{towns[row % 2]},{jobs[row % 3]},"
        f"{'yes' if row % 50 > 25 else 'no'}"
        for row in range(120)
    ]
    (folder / "people.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path)
    return tmp_path


def loaded(text: str) -> object:
    Path("people.yaml").write_text(text, encoding="utf-8")
    return load_experiment("people.yaml")


def replaced(text: str, old: str, new: str) -> str:
    """The text with the first whole word `old` replaced."""
    found, count = re.subn(rf"(?<![\w.]){re.escape(old)}(?![\w.])", new, text, count=1)
    assert count == 1, old
    return found


@pytest.mark.parametrize(("right", "wrong"), MISSPELT)
def test_misspelled_words(right: str, wrong: str) -> None:
    text = replaced(GOOD, right, wrong)
    with pytest.raises(ConfigurationError) as caught:
        loaded(text)
    hints = re.findall(r"did you mean '(.+?)'\?", str(caught.value))
    assert hints, str(caught.value)
    assert loaded(replaced(text, wrong, hints[0])) == loaded(GOOD)


PASTED = {
    # What is changed in GOOD, a pattern of the message, and what is replaced by its group; '': the
    # group is an override.
    "a list of one": (("hidden_units: [8]", "hidden_units: 17"), r"written (\[17\])", "17"),
    "two ends": (("epochs: 1", "epochs: 1\n  steps: 5"), r"--set (train.steps=null)", ""),
    "another best metric": (
        ("type: best, metric: accuracy", "type: best, metric: auc"),
        r"hint: +metric: (\w+)",
        "auc",
    ),
    "no default": (
        ("- numeric: {key: born, default: 1980.0}", "- numeric: born"),
        r"give a default: (- numeric: \{.*\})",
        "- numeric: born",
    ),
    "an unknown metric": (
        ("export: [{type: best, metric: accuracy}]", "export: []"),
        r"mean '(.+?)'\?",
        "acuracy",
    ),
    "a missing column": (("key: town", "key: twon"), r"mean '(.+?)'\?", "twon"),
    "a missing label": (("label: rich", "label: rihc"), r"mean '(.+?)'\?", "rihc"),
    "a missing file": (("csv: people.csv", "csv: peeple.csv"), r"mean '(.+?)'\?", "peeple.csv"),
    "a missing default of a column": (
        ("csv: people.csv,", "csv: people.csv, defaults: {twn: Rome},"),
        r"mean '(.+?)'\?",
        "twn",
    ),
    "labels without names": (
        ("label_vocabulary: [no, yes]", "label_vocabulary: null"),
        r"name the classes: estimator.(label_vocabulary: \[.*\])",
        "label_vocabulary: null",
    ),
    "a class of other letters": (
        ("label_vocabulary: [no, yes]", "label_vocabulary: [no, Yes]"),
        r"classes (label_vocabulary: \[.*\])",
        "label_vocabulary: [no, Yes]",
    ),
}


def test_enough_mistakes_are_covered() -> None:
    assert len(MISSPELT) + len(PASTED) >= 60


def attempted(text: str, overrides: list[str]) -> str:
    """Trains, and returns the error's message, '' if there was none."""
    Path("people.yaml").write_text(text, encoding="utf-8")
    try:
        runner.train(load_experiment("people.yaml", overrides))
    except (ConfigurationError, DataError) as error:
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("case", PASTED)
def test_pasted_hint_trains(case: str) -> None:
    (old, new), pattern, target = PASTED[case]
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new)
    if case == "an unknown metric":
        text = text.replace("metric: accuracy", "metric: acuracy")
    if case == "no default":
        rows = Path("people.csv").read_text(encoding="utf-8").replace("1963-05-01", "")
        Path("people.csv").write_text(rows, encoding="utf-8")
    message = attempted(text, [])
    found = re.search(pattern, message)
    assert found is not None, message
    if target == "":
        assert attempted(text, [found[1]]) == ""
    else:
        assert attempted(text.replace(target, found[1], 1), []) == ""
