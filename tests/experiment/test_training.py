"""Training from YAML: wide and deep models, evaluations, exports, resumption."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as ek
from estimatorkit.experiment import (
    build,
    examples,
    inferred,
    preprocessing,
    row_sets,
    runner,
    tables,
)
from estimatorkit.experiment.errors import ConfigurationError, DataError
from estimatorkit.experiment.load import load_experiment
from tests.experiment.commands import succeed

WIDE_AND_DEEP = """\
name: people
seed: 3
data:
  train: {csv: train-*.csv}
  evaluate: {csv: test.csv}
  also_evaluate: {again: {csv: test.csv, rows: 20}}
  label: rich
linear_features:
  - &ages {bucketized: {column: {key: age, default: 40}, boundaries: [30, 50]}}
  - &job {hash_bucket: {key: job, hash_bucket_size: 20}}
  - &town {vocabulary_file: {key: town, file: towns.txt, num_oov_buckets: 1}}
  - &children {identity: {key: children, num_buckets: 4, default_value: 0}}
  - &level {vocabulary_list: {key: level, words: [1, 2, 3]}}
  - weighted: {column: *town, weight: share}
  - crossed: {keys: [*ages, job, *level], hash_bucket_size: 30}
dnn_features:
  - numeric: {key: age, default: 40, normalizer: {type: standardize, mean: 40, deviation: 12}}
  - indicator: *town
  - indicator: *children
  - embedding: {column: *job, dimension: 3}
  - shared_embeddings:
      columns:
        - vocabulary_list: {key: level, words: [1, 2, 3]}
        - vocabulary_list: {key: wish, words: [1, 2, 3]}
      dimension: 2
estimator:
  type: DNNLinearCombinedClassifier
  label_vocabulary: [no, yes]
  weight_column: share
  dnn_hidden_units: [8]
  dnn_dropout: 0.1
  dnn_optimizer: {type: Adam, learning_rate: 0.02}
  linear_optimizer: {type: Ftrl, learning_rate: 0.1}
train:
  batch_size: 20
  epochs: 8
  early_stopping: {metric: accuracy, patience: 50, evaluation: again}
  hooks: [{type: step_counter, every_n_steps: 20}]
evaluate: {batch_size: 40, every: 40 steps}
export: [best]
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])


def write_people() -> None:
    """Rich are those above 40; some ages and towns are missing."""
    random = np.random.default_rng(0)
    Path("people.yaml").write_text(WIDE_AND_DEEP)
    Path("towns.txt").write_text("Rome\nOslo\n")
    for name, rows in (("train-1.csv", 50), ("train-2.csv", 50), ("test.csv", 60)):
        lines = ["age,job,town,children,level,wish,share,rich"]
        for row in range(rows):
            age = int(random.integers(20, 60))
            shown = "" if row % 17 == 0 else str(age)
            town = ("Rome", "Oslo", "Bern", "")[row % 4]
            small = ",".join(str(each) for each in random.integers(1, 4, 2))
            rich = "yes" if age > 40 else "no"
            lines.append(f"{shown},job{row % 7},{town},{row % 6},{small},{1 + row % 2},{rich}")
        Path(name).write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_wide_and_deep_with_every_kind_of_column() -> None:
    write_people()
    output = succeed("run", "people.yaml")
    assert "Training people on train-1.csv and 1 more: 8 epochs, batches of 20" in output
    parts = re.findall(
        r"^Evaluation on test\.csv.* \(the training ended at step 40\):$(?:\n  .*)+",
        output,
        re.MULTILINE,
    )
    assert len(parts) == 2
    accuracy = re.search(r"accuracy +([\d.]+)", parts[0])
    assert accuracy is not None
    assert float(accuracy[1]) > 0.8
    assert "test.csv, which did not choose the checkpoint (" in parts[0]
    assert "test.csv at the best accuracy (" in parts[1]
    assert output.count("Prediction is ") == 3
    assert "serve runs/people/export/best" in output

    folder = Path("runs/people")
    assert {"config.yaml", "env.json", "metrics.jsonl", "eval", "eval_again", "export"} <= {
        each.name for each in folder.iterdir()
    }
    environment = json.loads((folder / "env.json").read_text())
    assert environment["versions"]["estimatorkit"] == ek.__version__
    assert set(environment) == {"versions", "system", "machine"}
    steps = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert steps[0]["step"] == 1
    assert load_experiment(folder / "config.yaml") == load_experiment("people.yaml")

    # The model that is served predicts what the experiment does.
    experiment = load_experiment("people.yaml")
    table = tables.read_file("test.csv").take(slice(5))
    wanted = [each.probabilities["yes"] for each in runner.predict(experiment, table, "test.csv")]
    features = examples.features_of(experiment, table, "test.csv", weighted=False)
    (best,) = (folder / "export" / "best").glob("[0-9]*")
    predictor = ek.load_predictor(str(best))
    fed = {key: np.reshape(features[key], (5, 1)) for key in predictor.signature().inputs}
    np.testing.assert_allclose(predictor(fed)["probabilities"][:, 1], wanted, rtol=1e-5)

    # It is done: another run trains no step, and has the same numbers.
    printed = map(float, re.findall(r"^  auc +([\d.]+)", output, re.MULTILINE))
    again = runner.train(experiment).metrics
    assert {name: round(each["auc"], 4) for name, each in again.items()} == dict(
        zip(("eval", "again"), printed, strict=True)
    )


def test_exporters_hooks_and_early_stopping_match_description() -> None:
    write_people()
    changes = ["export=[latest, {type: best, metric: accuracy}, {type: final, name: end}]"]
    changes += ["export.2.inputs=examples", "train.early_stopping.patience=2"]
    changes += ["train.hooks=[{type: log_tensors, tensors: 'global_step:0'}, {type: profiler}]"]
    experiment = load_experiment("people.yaml", changes)
    latest, best, final = build.exporters(experiment)
    assert [type(each) for each in (latest, best, final)] == [
        ek.estimator.LatestExporter,
        ek.estimator.BestExporter,
        ek.estimator.FinalExporter,
    ]
    assert [each.name for each in (latest, best, final)] == ["latest", "best", "end"]
    assert [type(each) for each in build.hooks(experiment)] == [
        ek.train.LoggingTensorHook,
        ek.train.ProfilerHook,
        ek.estimator.EarlyStopping,
    ]


INFERRED = """\
name: inferred
seed: 1
data: {train: {csv: train-*.csv}, evaluate: {csv: test.csv}, label: rich}
features: [numeric: {key: age, default: 40, normalizer: log1p}]
infer: {without: [wish], embedding_from: 5}
estimator: {type: DNNClassifier, hidden_units: [8], label_vocabulary: [no, yes]}
train: {max_steps: 5, batch_size: 20}
"""


@pytest.mark.slow
def test_inferred_columns_beside_listed_ones() -> None:
    write_people()
    Path("inferred.yaml").write_text(INFERRED)
    experiment = load_experiment("inferred.yaml")
    resolved = inferred.resolve(experiment)
    sources = {"job", "town", "children", "level", "share"}
    assert set(resolved.reads) == {"age", *sources}
    columns = build.feature_columns(resolved)["feature_columns"]
    assert columns[0].name == "age"
    metrics = runner.train(experiment).metrics["eval"]
    assert metrics["global_step"] == 5
    table = tables.read_file("test.csv").take(slice(2))
    features = examples.features_of(resolved, table, "test.csv")
    assert set(features) == {"age", *sources}
    del table["town"]
    with pytest.raises(DataError, match="no column 'town'"):
        examples.features_of(resolved, table, "test.csv")
    wide = load_experiment(
        "inferred.yaml",
        ["model_dir=wide", "estimator={type: LinearClassifier, label_vocabulary: [no, yes]}"],
    )
    columns = build.feature_columns(inferred.resolve(wide))["feature_columns"]
    assert any("vocabulary" in type(each).__name__.lower() for each in columns)


@pytest.mark.slow
def test_kmeans() -> None:
    Path("clusters.yaml").write_text(
        "name: clusters\nseed: 2\ndata: {train: iris_training, evaluate: iris_test}\n"
        "features: [numeric: PetalLength, numeric: PetalWidth]\n"
        "estimator: {type: KMeans, num_clusters: 3, initial_clusters: kmeans_plus_plus,"
        " use_mini_batch: false}\n"
        "train: {max_steps: 10, batch_size: 120}\n"
    )
    output = succeed("run", "clusters.yaml")
    assert re.search(r"^  score +\d", output, re.MULTILINE)
    assert len(re.findall(r'^Prediction is "cluster \d"$', output, re.MULTILINE)) == 3
    table = succeed("predict", "clusters.yaml", "--input", "runs/clusters/samples.csv")
    assert table.splitlines()[0].split() == ["example", "prediction"]


@pytest.mark.slow
def test_warm_start_from_other_model() -> None:
    Path("one.yaml").write_text(
        "name: one\nseed: 2\ndata: {train: iris_training, evaluate: iris_test, label: Species}\n"
        "features: [numeric: PetalLength]\nestimator: {type: LinearClassifier, n_classes: 3}\n"
        "train: {max_steps: 5}\n"
    )
    succeed("train", "one.yaml")
    changes = ["model_dir=two", "estimator.warm_start_from=runs/one", "train.max_steps=1"]
    changes += ["estimator.optimizer={type: SGD, learning_rate: 1e-9}"]
    succeed("train", "one.yaml", *changes)
    name = "linear/linear_model/PetalLength/weights"
    one, two = (ek.train.load_variable(folder, name) for folder in ("runs/one", "two"))
    assert abs(one).max() > 0
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_epochs_and_steps() -> None:
    Path("one.yaml").write_text(
        "name: one\ndata: {train: iris_training, evaluate: iris_test, label: Species}\n"
        "features: [numeric: PetalLength]\nestimator: {type: LinearClassifier, n_classes: 3}\n"
        "train: {epochs: 2.5, batch_size: 32}\n"
    )
    epochs = load_experiment("one.yaml")
    assert epochs.train.last_step(120, 7) == 10
    steps = load_experiment("one.yaml", ["train={steps: 5}"])
    assert steps.train.last_step(120, 7) == 12
    in_all = load_experiment("one.yaml", ["train={max_steps: 5}"])
    assert in_all.train.last_step(120, 7) == 5


@pytest.mark.slow
def test_training_examples_are_evaluated() -> None:
    write_people()
    given = load_experiment("people.yaml", ["evaluate.training=true", "train.epochs=2"])
    done = runner.train(given)
    assert set(done.metrics) == {"eval", "again", "train"}
    assert row_sets.evaluation_source(given, "train") == "train-1.csv and 1 more"
    table, _ = row_sets.evaluation_table(given, "train")
    assert tables.row_count(table) == 100
    held = load_experiment("people.yaml", ["data.evaluate=null", "data.holdout=0.25"])
    assert row_sets.evaluation_source(held, "train").startswith("75% of ")
    with pytest.raises(ConfigurationError, match=r"one 'train', as data.train is"):
        load_experiment("people.yaml", ["data.also_evaluate.train={csv: test.csv}"])


BEST = """\
name: best
seed: 1
data: {train: {csv: train-*.csv}, evaluate: {csv: test.csv}, label: rich}
features: [numeric: {key: age, default: 40, normalizer: {type: scale, low: 20, high: 60}}]
estimator: {type: LinearClassifier, label_vocabulary: [no, yes]}
train: {epochs: 3, batch_size: 10, early_stopping: {metric: loss, patience: 50}}
evaluate: {every: 3 steps, training: true}
export: [best]
"""


@pytest.mark.slow
@pytest.mark.parametrize("at_end", [True, False])
def test_best_model_is_exported_once_unless_asked(at_end: bool) -> None:
    write_people()
    Path("best.yaml").write_text(BEST)
    changes = [f"export=[{{type: best, at_end: {json.dumps(at_end)}}}]"]
    done = runner.train(load_experiment("best.yaml", changes))
    exports = list(Path("runs/best/export/best").glob("[0-9]*"))
    assert (len(exports) == 1) == at_end
    assert json.loads(Path("runs/best/export/best/best.json").read_text())["step"] == done.step


@pytest.mark.parametrize(
    ("changes", "at_end"),
    [
        (["export=[best]"], [True]),
        (["train.early_stopping.restore_best=false"], [False]),
        (["train.early_stopping=null"], [True]),
        (
            [
                "train.early_stopping=null",
                "export=[{type: best, name: one, metric: auc}, {type: best, metric: loss}]",
            ],
            [True, False],
        ),
    ],
)
def test_export_waits_for_the_model_that_is_restored(
    changes: list[str], at_end: list[bool]
) -> None:
    write_people()
    Path("best.yaml").write_text(BEST)
    experiment = load_experiment("best.yaml", changes)
    assert [each._at_end for each in build.exporters(experiment)] == at_end


@pytest.mark.slow
def test_rows_are_preprocessed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    write_people()
    Path("best.yaml").write_text(BEST)
    calls: list[str] = []
    original = preprocessing._made

    def counted(experiment: Any, data: Any) -> Any:
        calls.append("features")
        return original(experiment, data)

    monkeypatch.setattr(preprocessing, "_made", counted)
    runner.train(load_experiment("best.yaml"))
    read = ["training rows", "evaluation rows", "training rows to evaluate", "export"]
    assert len(calls) == len(read)
    evaluated = json.loads(Path("runs/best/best/best.json").read_text())["evaluations"]
    assert len(evaluated) == 10


def test_preprocessing_of_a_table() -> None:
    write_people()
    Path("best.yaml").write_text(BEST)
    changes = ["derive={job_missing: {missing: job}}"]
    changes += ["features=[{numeric: {key: age, default: 40}}, {numeric: job_missing}]"]
    experiment = load_experiment("best.yaml", changes)
    data = {
        "age": np.array([np.nan, 3, np.inf, 5], np.float32),
        "job": np.array([b"a", b"", b"c", b"d"], object),
        "other": np.arange(4),
    }
    found = preprocessing.preprocessed(experiment, data)
    assert found["age"].tolist() == [40, 3, 40, 5]
    assert found["job_missing"].tolist() == [0, 1, 0, 0]
    assert found["other"] is data["other"]
    assert np.isnan(data["age"][0])
