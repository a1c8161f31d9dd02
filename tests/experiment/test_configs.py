"""The files in configs/ train and compile little; the README's file loads."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import estimatorkit as ek
from estimatorkit.experiment import build, inferred, runner
from estimatorkit.experiment.load import load_experiment
from tests.data.test_recommender_data import FILES_100K

ROOT = Path(__file__).parent.parent.parent
DATA = os.environ.get("ESTIMATORKIT_DATA_DIR") or str(ROOT.parent / "shared" / "data")

# By config: its data set, what makes it small, the worst value of a metric, and the executables: a
# block of steps and an evaluation, each for full batches, and again if partial ones come later.
SMALL: dict[str, tuple[str, list[str], str, float, int]] = {
    "census_wide_deep": (
        "census/adult.test",
        [
            "data.train={dataset: census_train, rows: 4000}",
            "data.evaluate={dataset: census_test, rows: 1000}",
            "train.epochs=2",
        ],
        "accuracy",
        0.8,
        4,
    ),
    "automobile": (
        "automobile/imports-85.data",
        ["train.max_steps=600"],
        "average_loss",
        -2.5e7,
        19,  # most of them fill missing numbers, for blocks of few sizes
    ),
    "iris_dnn": ("", [], "accuracy", 0.9, 3),
    "iris_linear": ("", [], "accuracy", 0.9, 3),
    "iris_petal_width": ("", [], "average_loss", -0.1, 3),
    "mnist_dnn": (
        "",  # the small digits come along
        [
            "data.train=digits_train",
            "data.evaluate=digits_test",
            "features.0.numeric.shape=[8, 8]",
            "features.0.numeric.normalizer.high=16",
            "estimator.optimizer.learning_rate=0.005",
            "train.epochs=8",
        ],
        "accuracy",
        0.9,
        4,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "configs").glob("*.yaml")))
def test_configs_learn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executables: list[float]
) -> None:
    needed, changes, metric, worst, most = SMALL[name]
    if needed and not (Path(DATA) / needed).is_file():
        pytest.skip(f"{needed} is not here (ESTIMATORKIT_DATA_DIR)")
    monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", DATA)
    experiment = load_experiment(
        ROOT / "configs" / f"{name}.yaml", [*changes, f"model_dir={tmp_path}", "export=[]"]
    )
    found = runner.train(experiment).metrics["eval"]
    assert (found[metric] if worst > 0 else -found[metric]) > worst
    assert len(executables) <= most


@pytest.mark.parametrize("path", sorted((ROOT / "configs").rglob("*.yaml")), ids=lambda p: p.stem)
def test_every_config_builds_its_estimator(path: Path, tmp_path: Path) -> None:
    changes = [f"model_dir={tmp_path}"]
    if path.stem.endswith("_movielens"):  # whose vocabularies are counted: in a few ratings
        more = {"u.data": "1\t2\t4\t400\n2\t2\t4\t400\n"}  # so that training rows have histories
        for name, text in FILES_100K.items():
            (tmp_path / name).write_text(text + more.get(name, ""), encoding="latin-1")
        changes += [f"data.{part}.path={tmp_path}" for part in ("train", "evaluate")]
        changes += [f"data.{part}.split=last" for part in ("train", "evaluate")]
    experiment = inferred.resolve(load_experiment(path, changes))
    estimator = build.estimator(experiment)
    assert type(estimator) is getattr(ek.estimator, experiment.estimator.type)
    assert len(build.exporters(experiment)) == len(experiment.export)


def test_readme_files_load(tmp_path: Path) -> None:
    files = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert files
    for text in files:
        (tmp_path / "readme.yaml").write_text(text)
        load_experiment(tmp_path / "readme.yaml")
