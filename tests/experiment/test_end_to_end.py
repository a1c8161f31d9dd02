"""Experiments from YAML to predictions through the command, in an empty folder."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from estimatorkit.experiment import runner
from estimatorkit.experiment.load import load_experiment
from tests.experiment.commands import invoke, succeed
from tests.sweep import sweep

ROOT = Path(__file__).parent.parent.parent
IRIS = str(ROOT / "configs" / "iris_dnn.yaml")

FLOWERS = """\
name: flowers
seed: 7
data:
  train: {csv: train.csv}
  evaluate: {csv: test.csv}
  label: Kind
features:
  - numeric: Length
  - numeric: {key: Width, default: 0}
estimator: {type: LinearClassifier, label_vocabulary: [short, long]}
train: {steps: 200, batch_size: 16}
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])


def write_flowers() -> None:
    """Writes flowers.yaml and its data: Kind is long where Length > 0; Width is noise with gaps."""
    Path("flowers.yaml").write_text(FLOWERS)
    random = np.random.default_rng(0)
    for name, rows in (("train.csv", 120), ("test.csv", 40)):
        with Path(name).open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["Length", "Width", "Kind"])
            for row in range(rows):
                length = random.normal()
                width = "" if row % 10 == 0 else f"{random.normal():.3f}"
                writer.writerow([f"{length:.3f}", width, "long" if length > 0 else "short"])


def test_run_trains_evaluates_predicts_and_suggests_next_step() -> None:
    output = succeed("run", IRIS, "--set", "train.steps=400")
    accuracy = re.search(r"^  accuracy +(\d\.\d{4})$", output, re.MULTILINE)
    assert accuracy is not None, output
    assert float(accuracy[1]) > 0.85
    assert re.search(r"^  global_step +400$", output, re.MULTILINE)
    kinds = "Setosa|Versicolor|Virginica"
    sentence = rf'^Prediction is "({kinds})" \(\d+\.\d%\), expected "({kinds})"$'
    predictions = re.findall(sentence, output, re.MULTILINE)
    assert len(predictions) == 3
    assert "The model is in runs/iris-dnn" in output
    assert Path("runs/iris-dnn/checkpoint").is_file()

    following = next(line.strip() for line in output.splitlines() if " predict " in line)
    assert following.startswith("estimatorkit predict ")
    again = succeed(*shlex.split(following)[1:])
    assert [line.split()[1] for line in again.splitlines()[1:]] == [kind for kind, _ in predictions]

    shown = succeed("show", IRIS, "--set", "train.steps=400")
    assert Path("runs/iris-dnn/config.yaml").read_text() == shown


def train(config: str, *changes: str) -> dict[str, float]:
    return runner.train(load_experiment(config, changes)).metrics["eval"]


@pytest.mark.slow
def test_steps_add_up_but_max_steps_do_not() -> None:
    small = ("train.steps=5", "model_dir=m")
    assert train(IRIS, *small)["global_step"] == 5
    assert train(IRIS, *small)["global_step"] == 10
    assert train(IRIS, *small, "train={max_steps: 8}")["global_step"] == 10


@pytest.mark.slow
def test_same_seed_gives_same_model() -> None:
    one, other = (train(IRIS, f"model_dir={each}", "train.steps=20") for each in ("a", "b"))
    assert one == other


@pytest.mark.slow
@pytest.mark.parametrize("config", ["iris_linear.yaml", "iris_petal_width.yaml"])
def test_other_configs_run(config: str) -> None:
    path = str(ROOT / "configs" / config)
    steps = "max_steps" if config == "iris_petal_width.yaml" else "steps"
    output = succeed("run", path, "--set", f"train.{steps}=60")
    assert "average_loss" in output
    assert output.count("Prediction is ") == 3
    if config == "iris_petal_width.yaml":
        assert len(re.findall(r"^Prediction is -?[\d.]+, expected \d\.\d{4}$", output, re.M)) == 3


@pytest.mark.slow
@sweep(
    "estimator",
    [
        "{type: DNNClassifier, hidden_units: [4], label_vocabulary: [short, long], dropout: 0.1}",
        "{type: DNNClassifier, hidden_units: [4], label_vocabulary: [short, long], "
        "batch_norm: true, activation: tanh, optimizer: {type: Momentum, learning_rate: 0.1, "
        "momentum: 0.9}}",
        "{type: LinearClassifier, label_vocabulary: [short, long], optimizer: SGD}",
        "{type: BaselineClassifier, label_vocabulary: [short, long], loss_reduction: sum}",
    ],
    quick=1,
)
def test_every_classifier_trains(estimator: str) -> None:
    write_flowers()
    assert train("flowers.yaml", f"estimator={estimator}")["accuracy"] > 0.4


@sweep(
    "estimator",
    [
        "{type: DNNRegressor, hidden_units: [4], optimizer: {type: RMSProp, learning_rate: 0.01}}",
        "{type: LinearRegressor, optimizer: {type: Ftrl, learning_rate: 0.1}}",
        "{type: LinearRegressor, weight_column: SepalWidth, loss_reduction: sum}",
        "{type: BaselineRegressor, label_dimension: 1}",
    ],
    quick=1,
)
def test_every_regressor_trains(estimator: str) -> None:
    path = str(ROOT / "configs" / "iris_petal_width.yaml")
    metrics = train(path, f"estimator={estimator}", "train.max_steps=20")
    assert np.isfinite(metrics["average_loss"])


@pytest.mark.slow
def test_csv_files_from_training_to_predictions() -> None:
    write_flowers()
    output = succeed("train", "flowers.yaml")
    assert "estimatorkit evaluate flowers.yaml" in output
    accuracy = re.search(r"accuracy +([\d.]+)", succeed("evaluate", "flowers.yaml"))
    assert accuracy is not None
    assert float(accuracy[1]) > 0.85

    Path("new.csv").write_text("Note,Width,Length\na,1.0,3.0\nb,,-3.0\n")
    result = invoke("predict", "flowers.yaml", "--input", "new.csv")
    assert result.exit_code == 0, result.output
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [
        ["example", "prediction"],
        ["1", "long"],
        ["2", "short"],
    ]
    assert result.stderr.endswith("note: new.csv: columns not used: Note\n")

    output = succeed("predict", "flowers.yaml", "--input", "new.csv", "--output", "out.csv")
    assert output == "2 predictions are in out.csv.\n"
    with Path("out.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["prediction"] for row in rows] == ["long", "short"]
    for row in rows:
        shares = float(row["probability_short"]) + float(row["probability_long"])
        assert shares == pytest.approx(1, abs=1e-5)
        assert row["probability"] == row[f"probability_{row['prediction']}"]


BAD_INPUTS = {
    "misspelt column": ("Lenght,Width\n1,2\n", "hint:     Length: did you mean 'Lenght'?"),
    "text": ("Length,Width\n1,2\nlong,2\n", "received: 'long' in bad.csv:3"),
    "missing value": ("Length,Width\n1,2\n,2\n", "received: nothing in bad.csv:3"),
    "no rows": ("Length,Width\n", "bad.csv"),
    "nothing": ("", "bad.csv"),
    "too many values in a row": ("Length,Width\n1,2\n1,2,3,4\n", "bad.csv"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_input_is_named(case: str) -> None:
    write_flowers()  # bad input is found before a model is looked for
    text, expected = BAD_INPUTS[case]
    Path("bad.csv").write_text(text)
    result = invoke("predict", "flowers.yaml", "--input", "bad.csv")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert expected in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["evaluate", "predict"])
def test_model_must_be_trained_first(name: str) -> None:
    Path("new.csv").write_text("SepalLength,SepalWidth,PetalLength,PetalWidth\n1,2,3,4\n")
    result = invoke(name, IRIS, *(["--input", "new.csv"] if name == "predict" else []))
    assert result.exit_code == 1
    assert "error: runs/iris-dnn: there is no trained model." in result.stderr
    assert "train first" in result.stderr


@pytest.mark.slow
def test_changed_network_is_not_restored_silently() -> None:
    succeed("train", IRIS, "--set", "train.steps=2")
    result = invoke("train", IRIS, "train.steps=2", "estimator.hidden_units=[7]", "--resume")
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr
    assert "hiddenlayer" in result.stderr


@pytest.mark.slow
def test_command_as_subprocess() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "estimatorkit", "run", IRIS, "--set", "train.steps=10"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(Path.cwd())},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Prediction is ") == 3
    assert "  python -m estimatorkit predict " in result.stdout
    assert "Traceback" not in result.stderr
