"""`TwoTower` in experiments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from estimatorkit.experiment.errors import ConfigurationError
from estimatorkit.experiment.load import load_experiment
from tests.experiment.commands import succeed

TEXT = """
name: clicks
seed: 1
data: {train: {csv: clicks.csv}, holdout: 0.2}
user_features:
  - embedding: {column: {hash_bucket: {key: user, hash_bucket_size: 99}}, dimension: 8}
item_features:
  - embedding: {column: {hash_bucket: {key: movie, hash_bucket_size: 99}}, dimension: 8}
estimator: {type: TwoTower, item_id: movie, estimate_sampling_probability: true, top_k: [5]}
train: {batch_size: 32, max_steps: 30}
export: [best]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"u{user},m{(user * 3 + item) % 20}" for user in range(30) for item in range(3)]
    Path("clicks.csv").write_text("\n".join(["user,movie", *rows]) + "\n")
    Path("clicks.yaml").write_text(TEXT)


@pytest.mark.slow
def test_it_is_trained_and_predicts_scores_of_pairs() -> None:
    output = succeed("run", "clicks.yaml")
    assert re.search(r"in_batch_top_5_accuracy +\d", output)
    table = succeed("predict", "runs/clicks/export/best", "--input", "clicks.csv")
    assert table.splitlines()[0].split() == ["example", "prediction"]
    assert len(table.splitlines()) == 91


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("estimator.item_id=user", "'user' is not read by item_features"),
        ("estimator.item_id=null", "needs the ids of items"),
        ("infer=true", "cannot tell columns of users from those of items"),
        ("data.label=user", "names 1 column"),
        ("item_features=[]", "item_features is empty"),
    ],
)
def test_what_does_not_fit_is_refused(change: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_experiment("clicks.yaml", [change])
