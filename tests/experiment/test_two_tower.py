"""`TwoTower` in experiments."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import estimatorkit as ek
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
def test_trains_and_predicts_pair_scores() -> None:
    output = succeed("run", "clicks.yaml")
    assert re.search(r"in_batch_top_5_accuracy +\d", output)
    table = succeed("predict", "runs/clicks/export/best", "--input", "clicks.csv")
    assert table.splitlines()[0].split() == ["example", "prediction"]
    assert len(table.splitlines()) == 91


@pytest.mark.slow
def test_export_answers_with_best_items() -> None:
    Path("movies.csv").write_text("movie\n" + "".join(f"m{item % 20}\n" for item in range(40)))
    settings = ["data.candidates.csv=movies.csv", "export=[{type: final, top_k: 4}]"]
    output = succeed("run", "clicks.yaml", *settings)
    assert re.search(r"recall_at_5 +\d", output)
    (folder,) = Path("runs/clicks/export/final").glob("[0-9]*")
    best = ek.load_predictor(str(folder))({"user": np.array(["u0", "u7"])})
    assert best["ids"].shape == best["scores"].shape == (2, 4)
    assert all(len(set(row)) == 4 for row in best["ids"].tolist())
    assert {b"m21"}.isdisjoint(best["ids"].ravel())

    Path("users.csv").write_text("user\nu0\nu7\n")
    table = succeed("predict", "runs/clicks/export/final", "--input", "users.csv").splitlines()
    assert table[0].split()[:5] == ["example", "item_1", "score_1", "item_2", "score_2"]
    assert table[2].split()[1] == best["ids"][1, 0].decode()

    Path("pairs.csv").write_text(
        "user,movie\n" + "".join(f"u7,{item.decode()}\n" for item in best["ids"][1])
    )
    table = succeed("predict", "runs/clicks", "--input", "pairs.csv")
    scores = [float(line.split()[1]) for line in table.splitlines()[1:]]
    np.testing.assert_allclose(scores, best["scores"][1], atol=1e-3)


@pytest.mark.slow
def test_derived_and_numeric_candidates() -> None:
    rows = [f"u{n % 9},{n % 20},{n % 20 * 2},20{n % 20:02}-01-01" for n in range(90)]
    Path("clicks.csv").write_text("\n".join(["user,movie,length,released", *rows]) + "\n")
    settings = [
        "data.candidates.csv=clicks.csv",
        "derive={year: {year: released}, who: {missing: user}}",
        "user_features=[{indicator: {identity: {key: who, num_buckets: 2}}}]",
        "item_features=[{numeric: year}, {numeric: {key: length, default: 3}},"
        " {indicator: {identity: {key: movie, num_buckets: 20}}}]",
        "export=[{type: final, top_k: 3}]",
    ]
    output = succeed("run", "clicks.yaml", *settings)
    assert "recall_at_5" in output
    (folder,) = Path("runs/clicks/export/final").glob("[0-9]*")
    best = ek.load_predictor(str(folder))({"user": np.array(["u0"])})
    assert best["ids"].dtype == np.int64
    assert best["ids"].shape == (1, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("estimator.item_id=user", "'user' is not read by item_features"),
        ("estimator.item_id=null", "needs the ids of items"),
        ("infer=true", "cannot tell columns of users from those of items"),
        ("data.label=user", "names 1 column"),
        ("item_features=[]", "item_features is empty"),
        ("export=[{type: best, top_k: 5}]", "there are no items to answer with"),
        ("export=[{type: best, approximate: true}]", "is given without top_k"),
    ],
)
def test_invalid_configurations_are_refused(change: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_experiment("clicks.yaml", [change])


def test_candidates_need_retrieval() -> None:
    with pytest.raises(ConfigurationError, match="DNNClassifier does not take it"):
        load_experiment(
            "clicks.yaml",
            [
                "data.candidates.csv=clicks.csv",
                "data.label=liked",
                "estimator={type: DNNClassifier, hidden_units: [4]}",
                "user_features=[]",
                "item_features=[]",
                "features=[{numeric: age}]",
                "export=[]",
            ],
        )
