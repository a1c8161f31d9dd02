"""Models of behaviour sequences (DIN, DIEN) and of several labels (MMoE, PLE, ESMM)."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import estimatorkit as ek
from estimatorkit.experiment import predicting, row_sets, runner
from estimatorkit.experiment.errors import ConfigurationError, DataError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.serving.model_store import ModelStore
from tests.experiment.commands import invoke, succeed
from tests.experiment.serving_clients import RawClient, serving

SEQUENCES = """
name: behaviours
seed: 1
data:
  train: {csv: behaviours.csv, lists: {read: {separator: "|", length: 4}}}
  holdout: 0.25
  label: click
features: [{numeric: hour}]
sequences: [{target: {vocabulary: item}, history: read, dimension: 4}]
estimator:
  {type: DIN, hidden_units: [8], attention_units: [8], optimizer: {type: Adam, learning_rate: 0.02}}
metrics: [{type: GroupAUC, group: user}]
train: {batch_size: 32, epochs: 12, early_stopping: {metric: auc}}
evaluate: {batch_size: 64, every: 6 epochs}
export: [best]
"""
TASKS = """
name: tasks
seed: 1
data: {train: {csv: tasks.csv}, holdout: 0.25, label: [click, buy]}
features:
  - embedding: {column: {hash_bucket: {key: item, hash_bucket_size: 50}}, dimension: 4}
  - numeric: hour
estimator: {type: MMoE, hidden_units: [8], optimizer: {type: Adam, learning_rate: 0.02}}
metrics: [NormalizedCrossEntropy, {type: GroupAUC, group: user}]
train: {batch_size: 32, epochs: 6, early_stopping: {metric: auc/click}}
evaluate: {batch_size: 64, every: 3 epochs}
export: [best]
"""
SMALL = {
    "MMoE": ["estimator.num_experts=2", "estimator.expert_units=[8]"],
    "PLE": ["estimator.type=PLE", "estimator.expert_units=[8]", "estimator.num_levels=1"],
    "ESMM": ["estimator.type=ESMM", "train.early_stopping.metric=auc/ctcvr"],
}
HEADS = {"MMoE": ("click", "buy"), "PLE": ("click", "buy"), "ESMM": ("ctr", "ctcvr", "cvr")}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    rows, both = [], []
    for number in range(400):
        items = random.integers(0, 8, 6)
        item, history = items[0], items[1 : 1 + number % 5]
        click = int(item in history)  # only attention sees it
        user, hour = f"u{number % 20}", random.random()
        rows.append(f"{user},{hour:.3f},i{item},{'|'.join(f'i{each}' for each in history)},{click}")
        clicked = int(item < 4)
        both.append(f"{user},{hour:.3f},i{item},{clicked},{clicked * int(item < 2)},{number}")
    Path("behaviours.csv").write_text("\n".join(["user,hour,item,read,click", *rows]) + "\n")
    Path("tasks.csv").write_text("\n".join(["user,hour,item,click,buy,number", *both]) + "\n")
    Path("behaviours.yaml").write_text(SEQUENCES)
    Path("tasks.yaml").write_text(TASKS)


def settings(*changes: str) -> list[str]:
    return [part for change in changes for part in ("--set", change)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["DIN", "DIEN"])
def test_sequence_model_learns_predicts_and_serves(kind: str) -> None:
    output = succeed("run", "behaviours.yaml", *settings(f"estimator.type={kind}"))
    assert float(re.search(r"\n  auc +([\d.]+)", output)[1]) > 0.7
    assert re.search(r"group_auc +\d", output)
    table = succeed("predict", "runs/behaviours/export/best", "--input", "behaviours.csv")
    assert table.splitlines()[0].split() == ["example", "prediction", "probability"]
    experiment = load_experiment("behaviours.yaml", [f"estimator.type={kind}"])
    rows, _ = row_sets.evaluation_table(experiment)
    expected = runner.predict(experiment, rows, "rows")[0].probabilities["1"]
    export = predicting.export_in(Path("runs/behaviours/export/best"))
    served = ek.load_predictor(str(export))
    read = [each for each in rows["read"][0] if each]  # a request has no padding
    request = {"hour": [[rows["hour"][0]]], "item": [[rows["item"][0]]], "read": [read]}
    found = served(request, "predict")["probabilities"][0, 1]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.slow
def test_negatives_are_read_in_training_only() -> None:
    header, *rows = Path("behaviours.csv").read_text().splitlines()
    with_negatives = [f"{row},{'|'.join(['i7'] * (number % 5))}" for number, row in enumerate(rows)]
    Path("behaviours.csv").write_text("\n".join([f"{header},other", *with_negatives]) + "\n")
    changes = [
        "estimator.type=DIEN",
        "data.train.lists.other={separator: '|', length: 4}",
        "sequences.0.negatives=other",
        "train={batch_size: 32, epochs: 2}",
    ]
    succeed("run", "behaviours.yaml", *settings(*changes))
    Path("asked.csv").write_text("\n".join([header, *rows]) + "\n")
    lines = succeed("predict", "runs/behaviours/config.yaml", "--input", "asked.csv").splitlines()
    assert len(lines) == 401
    export = predicting.export_in(Path("runs/behaviours/export/best"))
    assert set(ek.load_predictor(str(export)).signature("predict").inputs) == {
        *("hour", "item", "read")
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["DIN", "DIEN"])
def test_sequence_with_dynamic_table(kind: str) -> None:
    changes = [
        f"estimator.type={kind}",
        "sequences.0.target={hash_bucket: {key: item, hash_bucket_size: 1099511627776}}",
        "sequences.0.table={name: items, dynamic: true}",
    ]
    output = succeed("run", "behaviours.yaml", *settings(*changes))
    assert float(re.search(r"\n  auc +([\d.]+)", output)[1]) > 0.7
    path = ek.train.latest_checkpoint("runs/behaviours")
    assert ek.train.load_variable(path, "items/ids").shape == (8, 4)
    table = succeed("predict", "runs/behaviours/export/best", "--input", "behaviours.csv")
    assert len(table.splitlines()) == 401


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(SMALL))
def test_multi_label_model_reports_and_predicts_each(kind: str) -> None:
    output = succeed("run", "tasks.yaml", *settings(*SMALL[kind]))
    first, second = HEADS[kind][:2]
    for name in (first, second):
        assert float(re.search(rf"\n  auc/{name} +([\d.]+)", output)[1]) > 0.9
        assert re.search(rf"group_auc/{name} +\d", output)
    columns = ["example", *(f"prediction_{name}" for name in sorted(HEADS[kind]))]
    for model in ("runs/tasks/export/best", "runs/tasks/config.yaml"):
        lines = succeed("predict", model, "--input", "tasks.csv").splitlines()
        assert lines[0].split() == columns
        assert len(lines) == 401
    succeed("report", "runs/tasks")
    page = Path("runs/tasks/report.html").read_text()
    assert f"Confusion matrix: {first}" in page
    assert f"Calibration and scores: {second}" in page


@pytest.mark.slow
def test_several_labels_are_served() -> None:
    succeed("run", "tasks.yaml", *settings(*SMALL["MMoE"], "train.epochs=1"))
    with serving(ModelStore(Path("runs/tasks/export/best"), name="tasks")) as server:
        content = {"instances": [{"hour": [0.5], "item": ["i1"]}], "signature_name": "predict"}
        with RawClient(server) as client:
            status, found = client.ask("/v1/models/tasks:predict", content)
    assert status == 200, found
    assert {"click/logistic", "buy/logistic"} <= set(found["predictions"][0])


WRONG = {
    "one label": ("tasks", "data.label=click", "at least 2 for MMoE"),
    "three labels": ("tasks", "estimator.type=ESMM data.label=[a, b, c]", "2 for ESMM"),
    "a label twice": ("tasks", "data.label=[click, click]", "names 'click', which cannot"),
    "a name of a head": ("tasks", "data.label=[click, 'to buy']", "names 'to buy', which cannot"),
    "weights": ("tasks", "estimator.task_weights=[1.0]", "2, as many as labels"),
    "classes": ("tasks", "data.class_names=[a, b]", "MMoE has no classes"),
    "no sequence": ("behaviours", "sequences=[]", "DIN needs behaviours"),
    "of another estimator": (
        "behaviours",
        "estimator={type: DCN, hidden_units: [8]}",
        "DCN does not take it",
    ),
    "three classes": ("behaviours", "estimator.n_classes=3", "n_classes"),
    "no dimension": (
        "behaviours",
        "sequences=[{target: {vocabulary: item}, history: read}]",
        "dimension",
    ),
    "no ids": ("behaviours", "sequences.0.target={numeric: item}", "is a column of numbers"),
    "a cross": (
        "behaviours",
        "sequences.0.target={crossed: {keys: [item, user], hash_bucket_size: 9}}",
        "reads no single column",
    ),
    "the target's column": ("behaviours", "sequences.0.history=item", "as the target's column"),
    "the history": ("behaviours", "sequences.0.negatives=read", "is 'read', as the history"),
    "negatives of DIN": ("behaviours", "sequences.0.negatives=other", "which are DIEN's"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_configurations_are_refused(case: str) -> None:
    name, changes, message = WRONG[case]
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        load_experiment(f"{name}.yaml", re.split(r" (?=data\.)", changes))


def test_invalid_data_are_refused() -> None:
    for name, changes, message in (
        ("behaviours", ["sequences.0.history=reed"], "no column 'reed'"),
        ("behaviours", ["data.train.lists={}"], "'read' is no column of lists"),
        ("tasks", ["data.label=[click, number]"], "'number' is not a class"),
        ("tasks", ["estimator.type=ESMM", "data.label=[buy, click]"], "but not 'buy', the click"),
    ):
        with pytest.raises(DataError, match=message):
            runner.train(load_experiment(f"{name}.yaml", changes))
    assert (
        "auc/buy"
        in invoke("run", "tasks.yaml", *settings("train.early_stopping.metric=auc")).output
    )
