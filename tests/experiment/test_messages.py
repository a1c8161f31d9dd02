"""Error messages for invalid configurations, word for word: location, expected, received."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from estimatorkit.experiment.errors import ConfigurationError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.sources import DataSetName

GOOD = """\
name: iris
data:
  train: iris_training
  evaluate: iris_test
  label: Species
features:
  - numeric: SepalLength
  - numeric: {key: PetalLength, default: 1.5}
estimator:
  type: DNNClassifier
  hidden_units: [10, 10]
  n_classes: 3
train:
  steps: 100
"""

KEYS = (
    "name, model_dir, seed, data, features, linear_features, dnn_features, user_features, "
    "item_features, sequences, derive, infer, estimator, train, evaluate, metrics, predict, "
    "export, run, tune"
)
KINDS = (
    "numeric, bucketized, vocabulary, vocabulary_list, vocabulary_file, identity, hash_bucket, "
    "hashed_words, crossed, weighted, indicator, embedding, shared_embeddings"
)
TRAIN_KEYS = (
    "batch_size, steps, max_steps, epochs, shuffle_buffer, stop_at, early_stopping, class_weights, "
    "mixed_precision, hooks"
)
TYPES = (
    "DNNClassifier, DNNRegressor, TabularClassifier, TabularRegressor, LinearClassifier, "
    "LinearRegressor, DNNLinearCombinedClassifier, DNNLinearCombinedRegressor, "
    "BaselineClassifier, BaselineRegressor, EnsembleClassifier, EnsembleRegressor, "
    "BoostedTreesClassifier, BoostedTreesRegressor, DeepFM, DCN, xDeepFM, AutoInt, FiBiNET, "
    "DIN, DIEN, MMoE, PLE, ESMM, KMeans, TwoTower"
)
DNN_KEYS = (
    "type, weight_column, loss_reduction, activation, n_classes, label_vocabulary, hidden_units, "
    "optimizer, dropout, warm_start_from, batch_norm"
)


def message(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, *overrides: str) -> str:
    """Loads a text as `bad.yaml` and returns what it is refused with."""
    monkeypatch.chdir(folder)
    Path("bad.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_experiment("bad.yaml", overrides)
    return str(caught.value)


IN_THE_FILE = {
    "unknown key": (
        ("hidden_units", "hiden_units"),
        f"""\
bad.yaml:11:3: unknown key estimator.hiden_units.
  expected: one of {DNN_KEYS}
  received: hiden_units
  hint:     did you mean 'hidden_units'?""",
    ),
    "unknown key at the top, unlike any": (
        ("train:\n", "zzz: 1\ntrain:\n"),
        f"""\
bad.yaml:13:1: unknown key zzz.
  expected: one of {KEYS}
  received: zzz""",
    ),
    "key in the wrong case": (
        ("n_classes", "N_Classes"),
        f"""\
bad.yaml:12:3: unknown key estimator.N_Classes.
  expected: one of {DNN_KEYS}
  received: N_Classes
  hint:     did you mean 'n_classes'?""",
    ),
    "text for a number": (
        ("steps: 100", "steps: many"),
        """\
bad.yaml:14:10: train.steps has a wrong value.
  expected: an integer
  received: 'many' (text)""",
    ),
    "quoted number": (
        ("n_classes: 3", "n_classes: '3'"),
        """\
bad.yaml:12:14: estimator.n_classes has a wrong value.
  expected: an integer
  received: '3' (text)""",
    ),
    "boolean for an integer": (
        ("n_classes: 3", "n_classes: true"),
        """\
bad.yaml:12:14: estimator.n_classes has a wrong value.
  expected: an integer
  received: true (a boolean)""",
    ),
    "number for text": (
        ("label: Species", "label: Species\n  class_names: [a, b, 3]"),
        """\
bad.yaml:6:23: data.class_names.2 has a wrong value.
  expected: text
  received: 3 (an integer)
  hint:     text that looks like something else needs quotes: "3".""",
    ),
    "number for a list": (
        ("[10, 10]", "10"),
        """\
bad.yaml:11:17: estimator.hidden_units has a wrong value.
  expected: a list
  received: 10 (an integer)
  hint:     a list of one is written [10].""",
    ),
    "wrong item of a list": (
        ("[10, 10]", "[10, 0]"),
        """\
bad.yaml:11:22: estimator.hidden_units.1 has a wrong value.
  expected: a number >= 1
  received: 0 (an integer)""",
    ),
    "list for a mapping": (
        ("train:\n  steps: 100", "train: [steps, 100]"),
        f"""\
bad.yaml:13:8: train has a wrong value.
  expected: a mapping with {TRAIN_KEYS}
  received: [steps, 100] (a list)""",
    ),
    "text for a feature": (
        ("- numeric: SepalLength", "- SepalLength"),
        f"""\
bad.yaml:7:5: features.0 has a wrong value.
  expected: a mapping with {KINDS}
  received: 'SepalLength' (text)""",
    ),
    "unknown kind of feature": (
        ("- numeric: SepalLength", "- numerik: SepalLength"),
        f"""\
bad.yaml:7:5: unknown key features.0.numerik.
  expected: one of {KINDS}
  received: numerik
  hint:     did you mean 'numeric'?""",
    ),
    "unknown argument of a feature": (
        ("default: 1.5", "defualt: 1.5"),
        """\
bad.yaml:8:33: unknown key features.1.numeric.defualt.
  expected: one of key, shape, default, dtype, normalizer
  received: defualt
  hint:     did you mean 'default'?""",
    ),
    "missing key": (
        ("  hidden_units: [10, 10]\n", ""),
        """\
bad.yaml:10:3: the key estimator.hidden_units is missing.
  expected: the width of each hidden layer, for example `[64, 32]`""",
    ),
    "missing section": (
        ("train:\n  steps: 100\n", ""),
        """\
bad.yaml:1:1: the key train is missing.
  expected: how long to train: steps or max_steps or epochs""",
    ),
    "unknown estimator type": (
        ("DNNClassifier", "DNNClasifier"),
        f"""\
bad.yaml:10:9: estimator.type has a wrong value.
  expected: one of {TYPES}
  received: 'DNNClasifier' (text)
  hint:     did you mean 'DNNClassifier'?""",
    ),
    "missing estimator type": (
        ("  type: DNNClassifier\n", ""),
        f"""\
bad.yaml:10:3: the key estimator.type is missing.
  expected: one of {TYPES}""",
    ),
    "unknown bundled data": (
        ("iris_training", "iris_train"),
        f"""\
bad.yaml:3:10: data.train has a wrong value.
  expected: one of {", ".join(get_args(DataSetName))}
  received: 'iris_train' (text)
  hint:     did you mean 'iris_training'?""",
    ),
    "unknown optimizer": (
        ("n_classes: 3", "n_classes: 3\n  optimizer: {type: Adagrd, learning_rate: 0.1}"),
        """\
bad.yaml:13:21: estimator.optimizer.type has a wrong value.
  expected: one of SGD, Momentum, Adagrad, ProximalAdagrad, Adadelta, Adam, RMSProp, Ftrl, \
LazyAdam, RowwiseAdagrad, AdamW
  received: 'Adagrd' (text)
  hint:     did you mean 'Adagrad'?""",
    ),
    "misspelt required key": (
        ("n_classes: 3", "n_classes: 3\n  optimizer: {type: SGD, learning_rte: 0.1}"),
        """\
bad.yaml:13:26: unknown key estimator.optimizer.learning_rte.
  expected: one of type, learning_rate
  received: learning_rte
  hint:     did you mean 'learning_rate'?""",
    ),
    "infinite number": (
        ("default: 1.5", "default: .inf"),
        """\
bad.yaml:8:42: features.1.numeric.default has a wrong value.
  expected: a finite number
  received: .inf (a number)""",
    ),
    "steps and max_steps together": (
        ("steps: 100", "steps: 100\n  max_steps: 200"),
        """\
bad.yaml:14:3: train gives both steps and max_steps.
  expected: steps: 1000 (1000 more at every run) or max_steps: 1000 (1000 in all)
  hint:     null takes one away, as in --set train.steps=null.""",
    ),
    "neither steps nor max_steps": (
        ("steps: 100", "batch_size: 8"),
        """\
bad.yaml:14:3: train gives neither steps nor max_steps nor epochs.
  expected: steps: 1000 (1000 more at every run) or max_steps: 1000 (1000 in all)""",
    ),
    "an interval in no unit": (
        ("train:\n", "evaluate: {every: 5 minutes}\ntrain:\n"),
        """\
bad.yaml:13:19: evaluate.every is '5 minutes', which is no interval.
  expected: epoch, 2 epochs, 500 steps or 60 secs""",
    ),
    "two metrics of the best": (
        ("train:\n", "export: [{type: best, metric: accuracy}]\ntrain:\n  early_stopping: {}\n"),
        """\
bad.yaml:13:31: export.0.metric is accuracy, and train.early_stopping.metric is loss.
  expected: the same metric: both say which checkpoint is the best
  hint:     metric: loss""",
    ),
    "a name of a setting that is not there": (
        ("name: iris", "name: iris-{train.rate}"),
        """\
bad.yaml:1:7: name refers to {train.rate}, which is not set to a value.
  expected: a setting by its dotted name, such as {train.batch_size}""",
    ),
    "too few class names": (
        ("label: Species", "label: Species\n  class_names: [a, b]"),
        """\
bad.yaml:6:16: data.class_names has 2 names.
  expected: 3 names, as many as estimator.n_classes""",
    ),
    "too short a vocabulary": (
        ("n_classes: 3", "n_classes: 3\n  label_vocabulary: [a, b]"),
        """\
bad.yaml:13:21: estimator.label_vocabulary has 2 labels.
  expected: 3 labels, as many as n_classes""",
    ),
    "label among the features": (
        ("label: Species", "label: PetalLength"),
        """\
bad.yaml:5:10: data.label names 'PetalLength', which is a feature too.
  expected: a column that is not among the features""",
    ),
    "two labels for a classifier": (
        ("label: Species", "label: [Species, Kind]"),
        """\
bad.yaml:5:10: data.label names 2 column(s).
  expected: 1 for this DNNClassifier (label_dimension of a regressor)""",
    ),
    "no features": (
        ("  - numeric: SepalLength\n  - numeric: {key: PetalLength, default: 1.5}\n", "  []\n"),
        """\
bad.yaml:7:3: features is empty, and DNNClassifier needs features.
  expected: at least one feature column, features: [numeric: SepalLength]
  hint:     infer: true proposes columns from the training data.""",
    ),
    "ids for a network": (
        ("numeric: SepalLength", "hash_bucket: {key: Kind, hash_bucket_size: 10}"),
        """\
bad.yaml:7:5: features.0 is a column of ids (hash_bucket), which a network cannot take.
  expected: a column of numbers: numeric, bucketized, indicator, embedding, shared_embeddings
  hint:     indicator: {hash_bucket: ...}, or an embedding of it.""",
    ),
    "numbers for an indicator": (
        ("numeric: SepalLength", "indicator: {numeric: SepalLength}"),
        """\
bad.yaml:7:16: features.0.indicator is a column of numbers (numeric).
  expected: a column of ids: bucketized, vocabulary, vocabulary_list, vocabulary_file, identity, \
hash_bucket, hashed_words, crossed, weighted""",
    ),
    "two kinds in one item": (
        ("numeric: SepalLength", "{numeric: A, bucketized: {column: A, boundaries: [1]}}"),
        """\
bad.yaml:7:5: features.0 names several kinds of columns: numeric, bucketized.
  expected: one kind; several columns are several items of the list""",
    ),
    "a misspelt key deep inside": (
        (
            "numeric: SepalLength",
            "embedding: {column: {vocabulary_list: {key: A, wrods: [a, b]}}, dimension: 2}",
        ),
        """\
bad.yaml:7:52: unknown key features.0.embedding.column.vocabulary_list.wrods.
  expected: one of key, words, default_value, num_oov_buckets
  received: wrods
  hint:     did you mean 'words'?""",
    ),
    "boundaries that fall": (
        ("numeric: SepalLength", "bucketized: {column: A, boundaries: [3, 2]}"),
        """\
bad.yaml:7:41: features.0.bucketized.boundaries do not rise.
  expected: rising numbers, each once""",
    ),
    "unknown normalizer": (
        ("default: 1.5", "normalizer: sqrt"),
        """\
bad.yaml:8:45: features.1.numeric.normalizer has a wrong value.
  expected: one of log1p
  received: 'sqrt' (text)""",
    ),
    "a normalizer is never code": (
        ("default: 1.5", "normalizer: {type: lambda, code: x}"),
        """\
bad.yaml:8:52: features.1.numeric.normalizer.type has a wrong value.
  expected: one of log1p, standardize, scale, clip, robust
  received: 'lambda' (text)""",
    ),
    "words and numbers of one column": (
        ("numeric: SepalLength", "indicator: {vocabulary_list: {key: PetalLength, words: [a]}}"),
        """\
bad.yaml:7:3: features reads 'PetalLength' as text and as numbers.
  expected: one of them: a column of the data has one type""",
    ),
    "columns for another estimator": (
        ("train:\n", "dnn_features: [numeric: A]\ntrain:\n"),
        """\
bad.yaml:13:15: dnn_features is given, but DNNClassifier does not take it.
  expected: its columns in features""",
    ),
    "no data to measure with": (
        ("  evaluate: iris_test\n", ""),
        """\
bad.yaml:3:3: data gives neither evaluate nor holdout.
  expected: evaluate: {csv: test.csv}, or holdout: 0.3 to keep a part of train
  hint:     evaluate: {folds: 5} at the top is cross-validation.""",
    ),
    "an unknown kind of source": (
        ("train: iris_training", "train: {cvs: a.csv}"),
        """\
bad.yaml:3:11: unknown key data.train.cvs.
  expected: one of csv, format, columns, header, skip_rows, delimiter, encoding, dtypes, texts, \
lists, skip_initial_space, na_values, defaults, on_bad_rows, rows
  received: cvs
  hint:     did you mean 'csv'?""",
    ),
    "two exports of one name": (
        ("train:\n", "export: [best, {type: best, metric: auc}]\ntrain:\n"),
        """\
bad.yaml:13:16: export.1 has the name 'best' of another one.
  expected: a name of its own: each is a folder of model_dir/export""",
    ),
    "an unknown hook": (
        ("steps: 100", "steps: 100\n  hooks: [{type: os.system}]"),
        """\
bad.yaml:15:18: train.hooks.0.type has a wrong value.
  expected: one of step_counter, log_tensors, profiler
  received: 'os.system' (text)""",
    ),
    "name that leaves the folder": (
        ("name: iris", "name: ../iris"),
        """\
bad.yaml:1:7: name has a wrong value.
  expected: letters, digits, '.', '_' and '-', a letter or digit first
  received: '../iris' (text)""",
    ),
    "duplicate key": (
        ("train:\n", "name: iris\ntrain:\n"),
        """\
bad.yaml:13:1: the key 'name' is given twice.
  received: first on line 1, again on line 13
  hint:     keep one of the two.""",
    ),
    "key that is a number": (
        ("train:\n", "1: 2\ntrain:\n"),
        """\
bad.yaml:13:1: this cannot be a key.
  expected: a word before the colon
  received: 1 (an integer)""",
    ),
    "open bracket": (
        ("[10, 10]", "[10, 10"),
        """\
bad.yaml:12:12: not valid YAML: expected ',' or ']', but got ':'.
  received: n_classes: 3
  hint:     what opens at line 11, column 17 is not closed.""",
    ),
    "wrong indentation": (
        ("  label: Species", "    label: Species"),
        """\
bad.yaml:5:10: not valid YAML: mapping values are not allowed here.
  received: label: Species
  hint:     is there a colon on the line above, and is the indentation right?""",
    ),
    "open quote": (
        ("label: Species", "label: 'Species"),
        """\
bad.yaml:15:1: not valid YAML: found unexpected end of stream.
  hint:     what opens at line 5, column 10 is not closed.""",
    ),
    "keys in two columns": (
        ("  label: Species", " label: Species"),
        """\
bad.yaml:5:2: not valid YAML: expected <block end>, but found '<block mapping start>'.
  received: label: Species
  hint:     is the indentation right? The keys of a section stand in one column.""",
    ),
    "no colon": (
        ("name: iris", "name iris"),
        """\
bad.yaml:2:5: not valid YAML: mapping values are not allowed here.
  received: data:
  hint:     is there a colon on the line above, and is the indentation right?""",
    ),
    "tab": (
        ("  steps: 100", "\tsteps: 100"),
        """\
bad.yaml:14:1: not valid YAML: found character '\\t' that cannot start any token.
  received: steps: 100
  hint:     indent with spaces; YAML does not allow tabs.""",
    ),
    "two documents": (
        ("train:\n", "---\ntrain:\n"),
        """\
bad.yaml:13:1: not valid YAML: but found another document.
  received: ---
  hint:     one experiment a file: remove '---' between documents.""",
    ),
    "alias without an anchor": (
        ("name: iris", "name: *iris"),
        """\
bad.yaml:1:7: not valid YAML: found undefined alias 'iris'.
  received: name: *iris
  hint:     text that begins with * needs quotes; an alias (*a) needs an anchor (&a).""",
    ),
    "Python object": (
        ("[10, 10]", "!!python/object/apply:os.system ['echo']"),
        """\
bad.yaml:11:17: the YAML tag !!python/object/apply:os.system is refused.
  expected: plain values: text, numbers, true, false, null, lists and mappings
  hint:     a configuration never makes Python objects; remove the tag.""",
    ),
    "tag of one's own": (
        ("[10, 10]", "!units [10, 10]"),
        """\
bad.yaml:11:17: the YAML tag !units is refused.
  expected: plain values: text, numbers, true, false, null, lists and mappings
  hint:     a configuration never makes Python objects; remove the tag.""",
    ),
    "tag that does not fit": (
        ("n_classes: 3", "n_classes: !!int three"),
        """\
bad.yaml:12:14: this cannot be read as an integer.
  received: three""",
    ),
    "alias of itself": (
        ("[10, 10]", "&units [*units]"),
        "bad.yaml:11:17: an alias refers to itself.",
    ),
}


@pytest.mark.parametrize("case", IN_THE_FILE)
def test_message_in_the_file(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (old, new), expected = IN_THE_FILE[case]
    assert GOOD.count(old) >= 1
    assert message(tmp_path, monkeypatch, GOOD.replace(old, new, 1)) == expected


WHOLE_FILES = {
    "empty": (
        "",
        """\
bad.yaml: the file is empty.
  expected: a mapping with the keys name, data, features, estimator, train, ...
  hint:     start from configs/iris_dnn.yaml.""",
    ),
    "comments only": (
        "# nothing yet\n",
        """\
bad.yaml: the file is empty.
  expected: a mapping with the keys name, data, features, estimator, train, ...
  hint:     start from configs/iris_dnn.yaml.""",
    ),
    "a list": (
        "- name: iris\n",
        """\
bad.yaml:1:1: the file does not hold a mapping.
  expected: keys with values: name, data, features, estimator, train, ...
  received: [{name: iris}] (a list)""",
    ),
    "alias bomb": (
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
            for before, name in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        """\
bad.yaml:5:4: too many values once aliases are expanded.
  expected: at most 20,000
  hint:     write the values out instead of repeating aliases (*name).""",
    ),
    "too large": (
        "#" * 1_000_001,
        """\
bad.yaml: the file is too large for a configuration.
  expected: at most 1,000,000 bytes
  received: more
  hint:     is it a data file? Data belongs in a CSV file that the configuration names.""",
    ),
    "nested too deeply": (
        "name: " + "[" * 5_000 + "]" * 5_000,
        "bad.yaml: values are nested too deeply.",
    ),
    "control character": (
        "name: \x01\n",
        """\
bad.yaml:1:7: not valid YAML: a character that cannot be printed.
  received: U+0001
  hint:     delete it.""",
    ),
}


@pytest.mark.parametrize("case", WHOLE_FILES)
def test_message_about_the_file(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, expected = WHOLE_FILES[case]
    assert message(tmp_path, monkeypatch, text) == expected


OVERRIDES = {
    "train.stepz=5": f"""\
--set train.stepz=5: unknown key train.stepz.
  expected: one of {TRAIN_KEYS}
  received: stepz
  hint:     did you mean 'steps'?""",
    "trian.steps=5": f"""\
--set trian.steps=5: unknown key trian.
  expected: one of {KEYS}
  received: trian
  hint:     did you mean 'train'?""",
    "train.steps=many": """\
--set train.steps=many: train.steps has a wrong value.
  expected: an integer
  received: 'many' (text)""",
    "train.steps.more=5": """\
--set train.steps.more=5: train.steps has no keys of its own.
  expected: a path to a key of the configuration
  received: train.steps is 100 (an integer)""",
    "features.2.numeric=PetalWidth": """\
--set features.2.numeric=PetalWidth: features is a list and has no '2'.
  expected: an index from 0 to 1
  received: 2""",
    "train.steps": """\
--set train.steps: this is not an override.
  expected: key=value with a dotted key, for example train.steps=200""",
    "estimator.hidden_units=[10": """\
--set estimator.hidden_units=[10: not valid YAML: expected ',' or ']', but got '<stream end>'.
  received: [10""",
    "seed=!!python/name:os.system": """\
--set seed=!!python/name:os.system: the YAML tag !!python/name:os.system is refused.
  expected: plain values: text, numbers, true, false, null, lists and mappings
  hint:     a configuration never makes Python objects; remove the tag.""",
}


@pytest.mark.parametrize("override", OVERRIDES)
def test_message_about_an_override(
    override: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert message(tmp_path, monkeypatch, GOOD, override) == OVERRIDES[override]


def test_every_problem_is_reported_at_its_location(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GOOD.replace("n_classes: 3", "n_classes: 1").replace("steps: 100", "steps: 0")
    first_lines = [
        line for line in message(tmp_path, monkeypatch, text).splitlines() if line[0] != " "
    ]
    assert first_lines == [
        "bad.yaml:12:14: estimator.n_classes has a wrong value.",
        "bad.yaml:14:10: train.steps has a wrong value.",
    ]


def test_at_most_ten_problems_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = GOOD + "".join(f"unknown_{number}: 1\n" for number in range(13))
    lines = message(tmp_path, monkeypatch, text).splitlines()
    assert sum("unknown key" in line for line in lines) == 10
    assert lines[-1] == "... and 3 more."


def test_missing_file_suggests_nearby_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("configs").mkdir()
    Path("configs/iris_dnn.yaml").write_text(GOOD)
    expected = {
        "configs/iris_dn.yaml": "did you mean 'configs/iris_dnn.yaml'?",
        "iris_dnn.yml": "did you mean 'configs/iris_dnn.yaml'?",
        "census.yaml": "there is configs/iris_dnn.yaml.",
    }
    for path, hint in expected.items():
        with pytest.raises(ConfigurationError) as caught:
            load_experiment(path)
        assert str(caught.value) == f"{path}: no such file.\n  hint:     {hint}"
    with pytest.raises(ConfigurationError, match="is a directory"):
        load_experiment("configs")


def test_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"name: \xff\n")
    with pytest.raises(ConfigurationError, match=r"is not UTF-8 text \(byte 6\)"):
        load_experiment(path)
