"""Experiment trackers: what MLflow and Weights & Biases receive from a training."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import estimatorkit as tf
from estimatorkit.experiment import runner
from estimatorkit.experiment.load import load_experiment

CONFIG = """\
name: iris
seed: 1
data: {train: iris_training, evaluate: iris_test, label: Species}
features: [numeric: PetalLength]
estimator: {type: LinearClassifier, n_classes: 3}
train: {batch_size: 30, epochs: 3}
run: {save_summary_steps: 4, loggers: [LOGGER]}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def train(logger: str) -> Any:
    Path("iris.yaml").write_text(CONFIG.replace("LOGGER", logger))
    return runner.train(load_experiment("iris.yaml"))


@pytest.mark.slow
def test_mlflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="NOT TESTED: MLflow, which is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "tracked").as_uri())
    trained = train("mlflow")
    client = mlflow.MlflowClient()
    [run] = client.search_runs([client.get_experiment_by_name("estimatorkit").experiment_id])
    assert run.info.run_name == "iris"
    assert run.info.status == "FINISHED"
    assert run.data.params["train.batch_size"] == "30"
    accuracies = client.get_metric_history(run.info.run_id, "eval/accuracy")
    assert [each.step for each in accuracies] == [4, 8, 12]
    assert accuracies[-1].value == pytest.approx(trained.metrics["eval"]["accuracy"])
    losses = client.get_metric_history(run.info.run_id, "loss")
    assert [each.step for each in losses] == [4, 8, 12]


def test_weights_and_biases(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def init(**given: Any) -> Any:
        calls.append(given)
        return SimpleNamespace(
            log=lambda values, step: calls.append((step, values)),
            finish=lambda: calls.append("finished"),
        )

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    train("wandb")
    assert calls[0]["name"] == "iris"
    assert calls[0]["config"]["train.batch_size"] == 30
    assert calls[-1] == "finished"
    steps = [each[0] for each in calls[1:-1] if "eval/accuracy" in each[1]]
    assert steps == [4, 8, 12]


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"pip install 'estimatorkit\[mlflow\]'"):
        tf.estimator.MLflowHook("run")
    with pytest.raises(ImportError, match="pip install wandb"):
        tf.estimator.WandbHook("run")
