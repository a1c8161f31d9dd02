"""The examples run, and learn."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import estimatorkit as tf
from tests.slides.data import data_dir
from tests.sweep import sweep

ROOT = Path(__file__).parent.parent

EXECUTABLES = {
    # A block of steps, an evaluation and the predictions.
    "test_iris_learns_with_every_seed": 3,
    # A step, the cost, and the formula.
    "test_ridge_regression_matches_closed_form": 3,
    # For feeds and for a dataset: a step, and the test; and the loss of a batch.
    "test_mnist_softmax_feeds_match_dataset": 5,
    # Training, evaluation of full and partial batches, four exports, and the loaded one's answers.
    "test_mnist_dnn_exports_best_evaluation": 8,
    # The same, step by step because of convolutions.
    "test_mnist_cnn_learns_and_serves": 9,
    # Keras's training and evaluation, and the estimator's; full and partial batches of each.
    "test_mnist_keras_passes_weights_to_estimator": 10,
    "test_census_beats_majority": 3,
    # Five models: a block of steps and an evaluation of each.
    "test_automobile_beats_mean": 10,
}
"""How many executables XLA makes in each example."""


@pytest.fixture(autouse=True)
def _compiled_once(request: pytest.FixtureRequest, executables: list[float]) -> Iterator[None]:
    yield
    name = request.node.originalname
    if name in EXECUTABLES:
        assert len(executables) <= EXECUTABLES[name]


def load_example(name: str) -> ModuleType:
    """Imports an example by its file."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@sweep("seed", [1, 2, 3, 4, 5], quick=2)
def test_iris_learns_with_every_seed(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = load_example("iris").main(train_steps=1000, seed=seed, model_dir=str(tmp_path))
    assert result["accuracy"] >= 0.93
    assert result["global_step"] == 1000
    printed = capsys.readouterr().out
    for species in ("Setosa", "Versicolor", "Virginica"):
        assert re.search(rf'Prediction is "{species}" \(\d+\.\d%\), expected "{species}"', printed)


# -- pages on pictures and tables; benchmarks/examples.py runs them whole


@pytest.fixture
def few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of MNIST's pictures only, so that an epoch is short."""
    monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", str(data_dir("mnist").parent))
    (train_x, train_y), (test_x, test_y) = tf.datasets.mnist.load_data()
    few = (train_x[:3000], train_y[:3000]), (test_x[:500], test_y[:500])
    monkeypatch.setattr(tf.datasets.mnist, "load_data", lambda: few)


def test_ridge_regression_matches_closed_form(capsys: pytest.CaptureFixture[str]) -> None:
    result = load_example("ridge_regression").main()
    assert result["difference"] < 1e-3
    assert result["cost"] == pytest.approx(result["least_cost"], rel=1e-4)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("step")]
    costs = [float(re.split(r"cost +", line)[1].split(",")[0]) for line in lines]
    assert costs == sorted(costs, reverse=True)
    assert len(costs) == 11


@pytest.mark.slow
@pytest.mark.usefixtures("few_digits")
def test_mnist_softmax_feeds_match_dataset() -> None:
    result = load_example("mnist_softmax").main(steps=300)
    assert result["accuracy"] >= 0.8
    assert result["accuracy_by_dataset"] == pytest.approx(result["accuracy"], abs=0.005)


@pytest.mark.slow
@pytest.mark.usefixtures("few_digits")
def test_mnist_dnn_exports_best_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = load_example("mnist_dnn").main(steps=60, seed=1, model_dir=str(tmp_path))
    assert result["global_step"] == 60
    assert result["accuracy"] >= 0.7
    assert result["exported_accuracy"] >= result["accuracy"] - 0.005
    assert {path.name for path in (tmp_path / "export").iterdir()} == {"best", "final"}
    assert re.search(r"a \d taken for a \d \(\d+% sure\)", capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.usefixtures("few_digits")
@pytest.mark.parametrize("network", ["slides", "tutorial"])
def test_mnist_cnn_learns_and_serves(
    network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {"epochs": 1, "seed": 1} if network == "slides" else {"epochs": 0.05, "test_examples": 10}
    result = load_example("mnist_cnn").main(network=network, model_dir=str(tmp_path), **few)
    found, labels = (
        [int(each) for each in line.split(":")[1].split()]
        for line in capsys.readouterr().out.splitlines()[-2:]
    )
    assert labels == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert len(found) == 10
    if network == "slides":
        assert result["global_step"] == 23
        assert result["accuracy"] >= 0.75
        assert sum(a == b for a, b in zip(found, labels, strict=True)) >= 7


@pytest.mark.slow
def test_mnist_keras_passes_weights_to_estimator(
    few_digits: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = load_example("mnist_keras").main(
        epochs=2, steps=1, examples=1200, seed=1, model_dir=str(tmp_path)
    )
    assert result["epochs"] == 2
    assert result["global_step"] == 1
    assert result["fit_accuracy"] >= 0.6
    assert result["accuracy"] == pytest.approx(result["fit_accuracy"], abs=0.1)
    assert len((tmp_path / "epochs.csv").read_text().splitlines()) == 3
    assert "Total params: 693962" in capsys.readouterr().out


@pytest.mark.slow
def test_census_beats_majority(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", str(data_dir("census").parent))
    result = load_example("census_wide_deep").main(
        epochs=2, lines=4000, seed=1, model_dir=str(tmp_path)
    )
    assert result["global_step"] == 63  # 8,000 persons in batches of 128
    assert result["accuracy_baseline"] == pytest.approx(0.76, abs=0.02)
    assert result["accuracy"] >= result["accuracy_baseline"] + 0.03
    weights = re.findall(r"^    ([+-]\d\.\d\d)  (\w+): ", capsys.readouterr().out, re.MULTILINE)
    assert len(weights) == 12
    sizes = [abs(float(weight)) for weight, _ in weights]
    assert sizes == sorted(sizes, reverse=True)
    assert "marital_status" in {column for _, column in weights}


@pytest.mark.slow
def test_automobile_beats_mean(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", str(data_dir("automobile").parent))
    losses = load_example("automobile").main(steps=300, seed=1)
    mean = losses.pop("mean price")
    assert len(losses) == 4
    assert max(losses.values()) < mean / 3
    assert "engine-size: int64" not in capsys.readouterr().out  # five reasons are shown


@pytest.mark.slow
@pytest.mark.parametrize(("name", "trials", "least"), [("diabetes", 2, 0.3), ("criteo", 0, 0.5)])
def test_table_examples_by_command(name: str, trials: int, least: float, tmp_path: Path) -> None:
    environment = dict(os.environ)
    if name != "diabetes":
        environment["ESTIMATORKIT_DATA_DIR"] = str(data_dir(name).parent)
    pytest.importorskip("optuna", reason="NOT TESTED: tables by command, for want of optuna")
    pytest.importorskip("matplotlib", reason="NOT TESTED: tables by command, for want of it")
    command = [sys.executable, str(ROOT / "examples/tables_by_command.py"), name]
    command += ["--trials", str(trials), "--epochs", "6", "--folder", str(tmp_path / "files")]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    row = result.stdout.splitlines()[-1]
    run, tune, *others = (cell.strip() for cell in row.strip("|").split("|")[2:])
    assert float(run) > least
    assert not trials or float(tune) > least
    assert len([float(cell) for cell in others]) == 2
