"""`estimatorkit predict` from a configuration, a run's folder, or an exported model alone."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from estimatorkit.experiment import tables
from tests.experiment.commands import invoke, succeed

PEOPLE = """\
name: people
seed: 1
data: {train: {csv: people.csv}, holdout: 0.25, label: rich}
infer: {without: [id]}
estimator: {type: DNNClassifier, hidden_units: [8], label_vocabulary: ["no", "yes"]}
train: {epochs: 4}
export: [final]
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])
    random = np.random.default_rng(0)
    lines = ["id,age,town,rich"]
    for row in range(200):
        age = random.integers(20, 70)
        town = ("Rome", "Oslo", "")[row % 3]
        lines.append(f"p{row},{'' if row % 9 == 0 else age},{town},{'yes' if age > 45 else 'no'}")
    Path("people.csv").write_text("\n".join(lines) + "\n")
    Path("people.yaml").write_text(PEOPLE)


@pytest.mark.slow
def test_run_folders_and_exports_predict_alike() -> None:
    succeed("train", "people.yaml")
    Path("people.csv").rename("new.csv")
    Path("people.yaml").unlink()
    run = Path("runs/people")
    options = ["--input", "new.csv", "--keep", "id", "--output"]
    result = invoke("predict", str(run), *options, "run.csv")
    assert result.exit_code == 0, result.output
    assert result.stdout == "200 predictions are in run.csv.\n"
    assert result.stderr.endswith("note: new.csv: columns not used: id\n")
    succeed("predict", str(run / "export/final"), *options, "export.csv")
    (version,) = (run / "export/final").glob("[0-9]*")
    succeed("predict", str(version), *options, "version.parquet")

    one = pd.read_csv("run.csv")
    assert list(one) == ["id", "prediction", "probability", "probability_no", "probability_yes"]
    assert one["id"].tolist() == [f"p{row}" for row in range(200)]
    for other in (pd.read_csv("export.csv"), pd.read_parquet("version.parquet")):
        assert other["prediction"].tolist() == one["prediction"].tolist()
        np.testing.assert_allclose(other["probability_yes"], one["probability_yes"], rtol=1e-5)


@pytest.mark.slow
def test_large_files_are_predicted_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    succeed("train", "people.yaml")
    whole = succeed("predict", "people.yaml", "--input", "people.csv")
    read = tables.read_chunks
    monkeypatch.setattr(tables, "read_chunks", lambda source: read(source, 500))
    chunks = succeed("predict", "people.yaml", "--input", "people.csv")
    assert [each.split() for each in chunks.splitlines()] == [
        each.split() for each in whole.splitlines()
    ]
    assert len(whole.splitlines()) == 201


def test_file_errors() -> None:
    succeed("train", "people.yaml")
    Path("new.csv").write_text("id,age,town\na,30,Rome\nb,old,Rome\n")
    for model in ("runs/people", "runs/people/export/final"):
        result = invoke("predict", model, "--input", "new.csv", "--output", "out.csv")
        assert result.exit_code == 1
        assert "the column 'age' holds text" in result.stderr
        assert "received: 'old' in new.csv:3" in result.stderr
        assert not list(Path().glob("*out.csv*"))
    result = invoke("predict", "runs/people", "--input", "new.csv", "--keep", "name")
    assert "no column 'name'" in result.stderr
    Path("new.csv").write_text("id,age\na,30\n")
    for model in ("runs/people", "runs/people/export/final"):
        result = invoke("predict", model, "--input", "new.csv")
        assert "no column 'town'" in result.stderr
