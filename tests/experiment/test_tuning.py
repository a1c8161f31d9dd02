"""Searches: spaces, trials in processes, resumption, Python functions, Ray."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from pydantic import ValidationError

import estimatorkit as tf
from estimatorkit.__main__ import cli  # noqa: F401 (adds the command)
from estimatorkit.estimator.evaluation.metric_monitor import MetricMonitor
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.report_html import slices, write_experiment_report
from estimatorkit.experiment.tuning import trials as searches
from estimatorkit.experiment.tuning.search import Search, Trial, combinations
from estimatorkit.experiment.tuning.space import Dimension
from estimatorkit.train.hooks.hooks import NanLossDuringTrainingError
from tests.distribute.processes import LOOPBACK, listening_hosts
from tests.experiment.commands import invoke, succeed

pytest.importorskip("optuna", reason="NOT TESTED: searches, for want of optuna")

CONFIG = """\
name: iris
seed: 1
data: {train: iris_training, evaluate: iris_test, label: Species}
infer: true
estimator: {type: DNNClassifier, hidden_units: [8], optimizer: {type: Adam}, n_classes: 3}
train: {batch_size: 16, epochs: 3}
export: [{type: best, metric: accuracy}]
tune:
  estimator.hidden_units: {choice: [[4], [8], [8, 8]]}
  estimator.optimizer.learning_rate: {log_uniform: [0.001, 0.1]}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "iris.yaml"
    path.write_text(CONFIG)
    return path


def test_dimensions() -> None:
    choice = Dimension(choice=([8], [8, 4], "x", None))
    assert [choice.setting(each) for each in choice.distribution().choices] == list(choice.choice)
    assert choice.parameter([8, 4]) == "[8, 4]"
    assert choice.parameter([9]) is None
    log = Dimension(log_uniform=(1e-4, 0.1))
    assert log.distribution().log
    assert log.setting(0.00123456) == 0.001235
    assert (log.parameter(0.01), log.parameter(1.0), log.parameter("x")) == (0.01, None, None)
    whole = Dimension.model_validate({"int": [2, 5]})
    assert whole.distribution().high == 5
    assert whole.model_dump(mode="json") == {"int": [2, 5]}
    with pytest.raises(ValidationError, match="gives 2 keys"):
        Dimension(choice=(1,), uniform=(0, 1))
    with pytest.raises(ValidationError, match="its lowest value last"):
        Dimension(uniform=(1, 0))


@pytest.mark.slow
def test_command_searches_resumes_and_trains_best(config: Path) -> None:
    shown = succeed("tune", str(config), "--trials", "3", "--processes", "1")
    assert "Searching iris for the best accuracy: 3 trials in 1 process(es)" in shown
    assert "The best is trial" in shown
    assert "Evaluation on iris_test, which did not choose the checkpoint" in shown
    assert "Evaluation on 20% of iris_training at the best accuracy" in shown
    folder = Path("runs/iris/tune")
    best = load_experiment(folder / "best.yaml")
    _, experiment = searches.searched(Path(best.model_dir)) or (None, None)
    assert experiment is not None
    search = searches.opened(folder, experiment)
    found = search.best()
    assert found is not None
    assert list(best.estimator.hidden_units) == found.settings["estimator.hidden_units"]
    assert best.data.evaluate is not None
    trial = load_experiment(folder / "trial-0" / "config.yaml")
    assert trial.data.part is not None  # not the test set
    assert trial.data.part.share == best.data.select == 0.2
    assert "on the selection rows (20% of iris_training), which chose the settings" in shown
    assert "on the test rows (iris_test), which no trial saw" in shown

    again = succeed("tune", str(config), "--trials", "4", "--processes", "1")
    rows = [line for line in again.splitlines() if line.strip().startswith(("0 ", "3 "))]
    assert [row.split()[0] for row in rows] == ["3"]

    page = write_experiment_report(best, folder / "report.html")
    text = Path(page).read_text()
    assert "<h2>Search</h2>" in text
    assert "4 complete" in text
    assert "on the test rows (iris_test), which no trial saw" in text

    other = invoke("tune", str(config), "train.batch_size=8", "--trials", "4")
    assert other.exit_code == 2
    assert "the search there is of another experiment" in other.output
    assert "train.batch_size: 8 (there 16)" in other.output


@pytest.mark.slow
def test_killed_search_resumes(config: Path) -> None:
    command = [sys.executable, "-m", "estimatorkit", "tune", str(config), "train.epochs=200"]
    command += ["--trials", "2", "--processes", "1"]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as process:
        folder, end = Path("runs/iris/tune"), time.monotonic() + 120
        while not list(folder.glob("trial-*/model.ckpt*")):
            assert time.monotonic() < end
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
    experiment = load_experiment(folder / "experiment.yaml")
    search = searches.opened(folder, experiment)
    [left] = search.trials()
    assert left.state == "running"
    search.take_over()
    assert search.trials() == []
    settings: list[dict[str, Any]] = []
    search.run(lambda found, report: settings.append(found) or 1.0, 2)  # type: ignore[func-returns-value]
    assert settings[0] == left.settings
    assert [each.state for each in search.trials()] == ["complete"] * 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("tune=null", "there is nothing to search"),
        ("tune.train.batch_sise={choice: [1]}", "did you mean 'batch_size'?"),
        ("tune.train.batch_size={choice: [big]}", "train.batch_size has a wrong value"),
        ("tune.train.batch_size={choices: [1]}", "did you mean 'choice'?"),
    ],
)
def test_invalid_settings_raise(config: Path, change: str, words: str) -> None:
    text = CONFIG
    if change != "tune=null":
        name, _, value = change.removeprefix("tune.").partition("=")
        text += f"  {name}: {value}\n"
    config.write_text(text)
    changes = ["tune=null"] if change == "tune=null" else []
    result = invoke("tune", str(config), *changes, "--trials", "1")
    assert result.exit_code == 2, result.output
    assert words in result.output


def test_functions() -> None:
    tuned = tf.tune(
        lambda settings: (settings["x"] - 2) ** 2,
        {"x": {"uniform": [-10, 10]}},
        trials=30,
        seed=1,
    )
    assert abs(tuned.settings["x"] - 2) < 1
    assert tuned.value == min(each.value or 0.0 for each in tuned.trials)
    assert len(tuned.trials) == 30


def test_small_spaces_are_tried_whole(tmp_path: Path) -> None:
    space = {"a": Dimension(choice=(1, 2)), "b": Dimension.model_validate({"int": [3, 4]})}
    assert combinations(space, 20) == 4
    assert combinations(space | {"c": Dimension(uniform=(0.0, 1.0))}, 20) == 20
    search = Search(space, MetricMonitor("loss"), tmp_path, seed=1)
    search.suggest({"a": 2, "b": 3})
    search.suggest_all(3)  # which are too few
    search.suggest_all(4)
    search.run(lambda settings, report: settings["a"] * settings["b"], 4)
    found = [tuple(each.settings.values()) for each in search.trials()]
    assert found[0] == (2, 3)
    assert sorted(found) == [(1, 3), (1, 4), (2, 3), (2, 4)]


def test_reporting_functions_are_pruned(tmp_path: Path) -> None:
    calls = []

    def objective(settings: dict[str, Any], report: Any) -> None:
        for epoch in range(10):
            calls.append(settings["x"])
            if report(settings["x"] - epoch):
                return

    space = {"x": {"uniform": [1.0, 2.0]}}
    tuned = tf.tune(objective, space, trials=24, mode="min", folder=str(tmp_path), seed=0)
    states = [each.state for each in tuned.trials]
    assert "pruned" in states
    assert len(calls) < 240
    complete = [each for each in tuned.trials if each.state == "complete"]
    assert tuned.value == min(each.settings["x"] for each in complete) - 9
    assert tf.tune(objective, space, trials=24, folder=str(tmp_path)) == tuned  # all there


def test_failing_trials_are_recorded() -> None:
    def objective(settings: dict[str, Any]) -> float:
        if settings["x"] < 3:
            raise NanLossDuringTrainingError
        return float("nan") if settings["x"] < 5 else settings["x"]

    tuned = tf.tune(objective, {"x": {"int": [0, 9]}}, trials=20, seed=0)
    kinds = {each.state for each in tuned.trials}
    assert kinds == {"complete", "failed"}
    assert tuned.value >= 5
    with pytest.raises(ValueError, match="no trial has a value"):
        tf.tune(objective, {"x": {"int": [0, 2]}}, trials=2)
    with pytest.raises(ValueError, match="the space is invalid"):
        tf.tune(objective, {"x": [1, 2]})
    with pytest.raises(ZeroDivisionError.__mro__[2]):
        tf.tune(lambda settings: [][0], {"x": {"int": [0, 2]}})  # an error of the program


def test_estimators(tmp_path: Path) -> None:
    features = {"x": np.linspace(-1, 1, 64, dtype=np.float32)[:, None]}
    labels = 3 * features["x"]

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices((features, labels)).batch(16).repeat()

    def model(settings: dict[str, Any]) -> Any:
        estimator = tf.estimator.LinearRegressor(
            [tf.feature_column.numeric_column("x")],
            str(tmp_path / f"{settings['rate']}"),
            optimizer=tf.train.GradientDescentOptimizer(settings["rate"]),
        )
        return (
            estimator,
            tf.estimator.TrainSpec(input_fn, 20),
            tf.estimator.EvalSpec(input_fn, steps=4, throttle_secs=0),
        )

    tuned = tf.tune(model, {"rate": {"choice": [0.001, 0.3]}}, trials=2, seed=2)
    values = {each.settings["rate"]: each.value for each in tuned.trials}
    assert tuned.settings["rate"] == min(values, key=lambda rate: values[rate] or 0.0)


@pytest.mark.slow
def test_killed_processes_are_failures(config: Path) -> None:
    experiment = load_experiment(config)
    folder = Path(experiment.model_dir) / "tune"
    searches.prepare(folder, experiment, restart=False)
    search = searches.opened(folder, experiment)
    search.study.ask(search._distributions)
    search.give_up_running("its process died")
    [trial] = search.trials()
    assert (trial.state, trial.error) == ("failed", "its process died")
    assert search.best() is None


@pytest.mark.slow
def test_ray_tune(config: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="NOT TESTED: searches by Ray Tune, for want of ray")
    command = [sys.executable, "-m", "estimatorkit", "tune", str(config)]
    command += ["--trials", "2", "--ray", "local"]
    hosts: set[str] = set()
    with (tmp_path / "shown").open("w+") as output:
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process:
            while process.poll() is None:
                hosts |= listening_hosts(psutil.Process(process.pid))
                time.sleep(0.5)
        output.seek(0)
        shown = output.read()
    assert process.returncode == 0, shown
    assert hosts
    assert hosts <= LOOPBACK
    assert "by Ray Tune (local)" in shown
    assert "The best is trial" in shown
    experiment = load_experiment("runs/iris/tune/experiment.yaml")
    search = searches.opened(Path("runs/iris/tune"), experiment)
    assert isinstance(search, Search)
    done: list[Trial] = [each for each in search.trials() if each.state == "complete"]
    assert len(done) == 2
    assert Path("runs/iris/tune/best/config.yaml").is_file()


def test_data_slices() -> None:
    features = {
        "color": np.array([b"red", b"blue"] * 100),
        "size": np.arange(200.0),
        "same": np.ones(200),
    }
    losses = np.where(np.arange(200) < 50, 1.0, 0.0)
    found = {(key, text): (count, mean) for key, text, count, mean in slices(features, losses)}
    assert found["color", "red"] == (100, 0.25)
    assert found["size", "0 to 49.75"] == (50, 1.0)
    assert not any(key == "same" for key, _ in found)
