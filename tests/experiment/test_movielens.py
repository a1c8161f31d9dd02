"""The configs of MovieLens, on a small file of its format: runs and exports predict alike."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import estimatorkit as ek
from tests.experiment.commands import succeed

CONFIGS = Path(__file__).parents[2] / "configs" / "recommend"
NAMES = sorted(each.stem for each in CONFIGS.glob("*_movielens.yaml"))
USERS, ITEMS, RATINGS = 20, 40, 400


@pytest.fixture
def films(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files as in ml-100k.zip."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])
    random = np.random.default_rng(0)
    folder = tmp_path / "ml-100k"
    folder.mkdir()
    users = [f"{n}|{20 + n}|{'MF'[n % 2]}|{('writer', 'doctor')[n % 2]}|1" for n in range(USERS)]
    flags = random.integers(0, 2, (ITEMS, 19))
    items = [
        f"{n}|Film {n} (19{50 + n})|||{n}|{'|'.join(map(str, flags[n]))}" for n in range(ITEMS)
    ]
    rated = [
        f"{n % USERS}\t{item}\t{random.integers(1, 6)}\t{n}"
        for n, item in enumerate(random.integers(0, ITEMS, RATINGS))
    ]
    for name, lines in (("u.user", users), ("u.item", items), ("u.data", rated)):
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_runs_and_exports_read_lists_of_a_file_alike(name: str, films: Path) -> None:
    text = (CONFIGS / f"{name}.yaml").read_text()
    for part in ("train", "test"):
        text = text.replace(f"100k_{part}", f"100k_{part}, path: {films}")
    Path("films.yaml").write_text(text)
    given = ("name=films", "train.epochs=1", "train.early_stopping=null", "export=[final]")
    succeed("run", "films.yaml", *given)
    _, test = ek.datasets.movielens_100k.load_data(films)
    new = test.drop(columns=["liked", "loved", "rating"])
    new.to_csv("new.csv", index=False)
    new.to_json("new.jsonl", orient="records", lines=True)
    found = []
    for model in ("runs/films", "runs/films/export/final"):
        for file in ("new.csv", "new.jsonl"):
            succeed("predict", model, "--input", file, "--output", "out.csv")
            found.append(pd.read_csv("out.csv").select_dtypes("number"))
    assert np.ptp(found[0].iloc[:, 0]) > 1e-4
    for each in found[1:]:
        assert list(each) == list(found[0])
        np.testing.assert_allclose(each, found[0], rtol=0, atol=1e-5)
