"""Metrics by group in YAML experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from estimatorkit.experiment.errors import ConfigurationError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.runner import train


def written(folder: Path, metrics: list[object]) -> Path:
    random = np.random.RandomState(0)
    columns = {"x": random.normal(size=60), "user": np.repeat(range(6), 10)}
    frame = pd.DataFrame({**columns, "click": random.randint(0, 2, 60)})
    frame.to_csv(folder / "clicks.csv", index=False)
    data = {"csv": str(folder / "clicks.csv")}
    experiment = {
        "name": "clicks",
        "model_dir": str(folder / "model"),
        "data": {"train": data, "evaluate": data, "label": "click"},
        "features": [{"numeric": "x"}],
        "estimator": {"type": "LinearClassifier", "n_classes": 2},
        "train": {"steps": 2},
        "metrics": metrics,
    }
    path = folder / "clicks.yaml"
    path.write_text(yaml.safe_dump(experiment))
    return path


def test_groups_need_not_be_features(tmp_path: Path) -> None:
    given: list[object] = ["Calibration", {"type": "GroupAUC", "group": "user"}]
    done = train(load_experiment(written(tmp_path, given)))
    (metrics,) = done.metrics.values()
    assert 0 < metrics["group_auc"] < 1
    assert 0 < metrics["calibration"] < 3


def test_ranking_metric_without_groups_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="lacks the column that it groups"):
        load_experiment(written(tmp_path, ["NDCG"]))
