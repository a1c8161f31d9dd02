"""`estimatorkit compare`: what runs have in common, and what not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from estimatorkit.__main__ import cli  # noqa: F401 (adds the command)
from estimatorkit.estimator.evaluation.completion import Completion, result_record
from estimatorkit.experiment import compare
from estimatorkit.experiment.load import dump_experiment, load_experiment
from tests.experiment.commands import invoke, succeed

CONFIG = """\
name: x
data: {train: iris_training, evaluate: iris_test, label: Species}
features: [numeric: SepalLength]
estimator: {type: DNNClassifier, hidden_units: [8], n_classes: 3}
train: {batch_size: 32, epochs: 3}
export: [{type: best, metric: accuracy}]
"""


def make_run(name: str, losses: list[float], *changes: str, ended: bool = True) -> Path:
    """A folder as a training leaves it, with the accuracy 1 - loss."""
    folder = Path("runs") / name
    (folder / "eval").mkdir(parents=True)
    Path("x.yaml").write_text(CONFIG)
    experiment = load_experiment("x.yaml", [f"name={name}", *changes])
    (folder / "config.yaml").write_text(dump_experiment(experiment))
    lines = [
        json.dumps({"step": 10 * step, "time": 1.0, "loss": loss, "accuracy": 1 - loss})
        for step, loss in enumerate(losses, 1)
    ]
    (folder / "eval" / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    best = {"loss": min(losses), "accuracy": 1 - min(losses), "global_step": 10 * len(losses)}
    results = {"eval": result_record(best, [], str(folder))} if ended else None
    Completion(10 * len(losses), None, "end", "model.ckpt-10", None, results).write(str(folder))
    return folder


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_runs_side_by_side() -> None:
    make_run("slow", [0.9, 0.6, 0.5])
    make_run("fast", [0.5, 0.2, 0.3], "train.batch_size=64", "estimator.hidden_units=[16, 16]")
    Path("runs/notes.txt").write_text("no run")
    Path("runs/empty").mkdir()
    shown = succeed("compare", *map(str, Path("runs").glob("*")), "--html", "page.html")
    lines = shown.splitlines()
    assert lines[0] == "Metrics, the best accuracy first:"
    assert lines[1].split() == ["global_step", "accuracy", "loss", "accuracy", "by", "step"]
    assert lines[2].split() == ["fast", "30", "0.8000", "0.2000", "▁█▆"]
    assert lines[3].split() == ["slow", "30", "0.5000", "0.5000", "▁▆█"]
    assert [line.split() for line in lines[5:9]] == [
        ["Settings", "that", "differ:"],
        ["fast", "slow"],
        ["estimator.hidden_units", "[16,", "16]", "[8]"],
        ["train.batch_size", "64", "32"],
    ]
    assert "note:" not in shown
    page = Path("page.html").read_text()
    for text in ("<th>fast</th><th>slow</th>", "train.batch_size", "By examples of the training"):
        assert text in page
    assert page.count("<img") == 1
    by_loss = succeed("compare", "runs/slow", "runs/fast", "--metric", "loss").splitlines()
    assert by_loss[0] == "Metrics, the best loss first:"
    assert [line.split()[0] for line in by_loss[2:4]] == ["fast", "slow"]


def test_what_cannot_be_compared_is_said() -> None:
    make_run("one", [0.9])
    make_run("two", [0.5, 0.25], "data.train=iris_test", ended=False)
    shown = succeed("compare", "runs/one", "runs/two")
    assert "note: Metrics are of different rows: data.train differ." in shown
    assert "note: Not ended, with the metrics of the last evaluation: two." in shown
    assert shown.splitlines()[2].split() == ["two", "20", "0.7500", "0.2500", "▁█"]
    assert shown.splitlines()[3].split() == ["one", "10", "0.1000", "0.9000"]


def test_runs_of_scripts_have_no_settings() -> None:
    (make_run("script", [0.5]) / "config.yaml").unlink()
    make_run("file", [0.25])
    runs = compare.ordered(compare.runs_in(Path("runs").glob("*")), compare.judge([], "loss"))
    assert [run.name for run in runs] == ["file", "script"]
    assert compare.differing(runs) == {}
    assert "Settings that differ" not in succeed("compare", "runs/script", "runs/file")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "no run is there"),
        (["runs/one", "--metric", "acuracy"], "did you mean 'accuracy'?"),
    ],
)
def test_errors(arguments: list[str], words: str) -> None:
    make_run("one", [0.5])
    result = invoke("compare", *arguments)
    assert result.exit_code == 2
    assert words in result.output


def test_curves_of_blocks() -> None:
    assert compare.curve([]) == compare.curve([(1, 2.0)]) == ""
    assert compare.curve([(0, 0.0), (1, 7.0)]) == "▁█"
    assert compare.curve([(0, 3.0), (1, 3.0)]) == "▁▁"
    assert len(compare.curve([(step, float(step)) for step in range(100)])) == 16
