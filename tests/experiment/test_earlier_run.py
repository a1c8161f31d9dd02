"""A model in `model_dir` with other settings is never reused silently."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.experiment.commands import invoke, succeed

IRIS = """\
name: iris
seed: 2
data: {train: iris_training, evaluate: iris_test, label: Species}
features: [numeric: PetalLength, numeric: PetalWidth]
estimator: {type: DNNClassifier, hidden_units: [4], n_classes: 3}
train: {max_steps: 20}
evaluate: {every: 10 steps}
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])
    Path("iris.yaml").write_text(IRIS)


def metrics(output: str) -> str:
    """The metrics of the evaluation."""
    found = re.search(r"^Evaluation on .*:\n((?:  .* {2}.*\n)+)", output, re.MULTILINE)
    assert found is not None, output
    return found[1]


@pytest.mark.slow
def test_other_settings_are_named_and_old_results_not_printed() -> None:
    first = succeed("run", "iris.yaml")
    result = invoke("run", "iris.yaml", "estimator.hidden_units=[8]", "train.batch_size=16")
    assert result.exit_code == 2
    assert "Evaluation" not in result.stdout
    assert result.stderr == (
        "error: runs/iris: the model there was trained with other settings.\n"
        "  expected: those of runs/iris/config.yaml\n"
        "  received: estimator.hidden_units: [8] (there [4]), train.batch_size: 16 (there 32)\n"
        "  hint:     --restart trains a new model and keeps the old one beside it, --resume trains"
        " the old one on; name=... or --model-dir puts the new one elsewhere\n"
    )
    assert metrics(succeed("run", "iris.yaml")) == metrics(first)


@pytest.mark.slow
def test_restart_keeps_old_model() -> None:
    first = succeed("run", "iris.yaml")
    for number in (1, 2):
        again = succeed("run", "iris.yaml", "estimator.hidden_units=[8]", "--restart")
        assert f"The earlier model is kept in runs/iris-{number}." in again
    assert metrics(again) != metrics(first)
    kept = succeed("evaluate", "iris.yaml", "--model-dir", "runs/iris-1")
    assert metrics(kept) == metrics(first)


@pytest.mark.slow
def test_resume_trains_with_other_settings() -> None:
    succeed("run", "iris.yaml")
    output = succeed("run", "iris.yaml", "train.batch_size=16", "train.max_steps=30", "--resume")
    assert re.search(r"global_step +30$", metrics(output), re.MULTILINE)
    assert "batch_size: 16" in Path("runs/iris/config.yaml").read_text()


@pytest.mark.slow
def test_changeable_settings_continue() -> None:
    succeed("run", "iris.yaml")
    on = succeed("run", "iris.yaml", "train.max_steps=30")
    assert re.search(r"global_step +30$", metrics(on), re.MULTILINE)
    exported = succeed("run", "iris.yaml", "train.max_steps=30", "export=[final]")
    assert metrics(exported) == metrics(on)
    (final,) = Path("runs/iris/export/final").iterdir()
    assert (final / "model.json").is_file() or any(final.iterdir())


@pytest.mark.slow
def test_moved_folder_is_same_data() -> None:
    Path("one").mkdir()
    Path("one/data.csv").write_text("a,b\n" + "1,2\n3,4\n" * 10)
    Path("one/line.yaml").write_text(
        "name: line\nseed: 1\ndata: {train: {csv: data.csv}, holdout: 0.2, label: b}\n"
        "features: [numeric: a]\nestimator: {type: LinearRegressor}\ntrain: {max_steps: 4}\n"
    )
    succeed("run", "one/line.yaml")
    shutil.move("one", "two")
    succeed("run", "two/line.yaml")
    shutil.copytree("two", "three")
    assert invoke("run", "three/line.yaml").exit_code == 2


def test_suggested_command_keeps_settings() -> None:
    output = succeed("run", "iris.yaml", "name=iris-{train.batch_size}")
    shown = next(line.strip() for line in output.splitlines() if " show " in line)
    assert "iris-{train.batch_size}" in shown
    assert "name: iris-32" in succeed(*shlex.split(shown)[1:])
