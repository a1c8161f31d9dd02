"""A run and its exports predict alike, however the files are written."""

from __future__ import annotations

import http.client
import json
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from estimatorkit.experiment import document, predicting, reading, tables
from estimatorkit.experiment.serving.http_server import ModelServer, ServerOptions
from estimatorkit.experiment.serving.model_store import ModelStore
from tests.experiment.commands import succeed

pytestmark = pytest.mark.slow

ROWS = 40
NUMBER: dict[str, Any] = {"numeric": {"key": "age", "default": 0.0}}
TOWN: dict[str, Any] = {"vocabulary_list": {"key": "town", "words": ["Köln", "Oslo"]}}
WORDS: dict[str, Any] = {"hash_bucket": {"key": "seen", "hash_bucket_size": 16}}


def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    age = random.integers(20, 70, ROWS)
    return pd.DataFrame(
        {
            "age": age,
            "town": [("Köln", "Oslo")[row % 2] for row in range(ROWS)],
            "seen": ["|".join(f"i{item}" for item in range(row % 4)) for row in range(ROWS)],
            "scored": [f"i{row % 3}:0.{row % 5 + 1}|i7:2" for row in range(ROWS)],
            "sold": [f"2024-0{row % 9 + 1}-1{row % 9}" for row in range(ROWS)],
            "price": [f"{row}.{row % 100:02},5 EUR".replace(".", "") for row in range(ROWS)],
            "code": [None if row % 7 == 0 else row % 3 for row in range(ROWS)],
            "y": (age > 45).astype(int),
        }
    )


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[Any], dict[str, Any]]] = {
    "plain": ({}, {}, [NUMBER, TOWN], {}),
    "delimiter": ({"sep": ";"}, {"delimiter": ";"}, [NUMBER, TOWN], {}),
    "encoding": ({"encoding": "latin-1"}, {"encoding": "latin-1"}, [NUMBER, TOWN], {}),
    "no header": (
        {"header": False},
        {"header": False, "columns": [*frame()]},
        [NUMBER, TOWN],
        {},
    ),
    "lists": ({}, {"lists": {"seen": "|"}}, [NUMBER, WORDS], {}),
    "short lists": ({}, {"lists": {"seen": {"separator": "|", "length": 2}}}, [WORDS], {}),
    "weighted lists": (
        {},
        {"lists": {"scored": {"separator": "|", "weights": ":"}}},
        [
            {
                "weighted": {
                    "column": {"hash_bucket": {"key": "scored", "hash_bucket_size": 16}},
                    "weight": "scored_weights",
                }
            }
        ],
        {},
    ),
    "missing values": (
        {"na_rep": "?"},
        {"na_values": ["?"]},
        [NUMBER, {"numeric": {"key": "code", "default": 1.5}}],
        {},
    ),
    "numbers as words": (
        {},
        {},
        [{"vocabulary_list": {"key": "code", "words": ["0", "1", "2"]}}],
        {},
    ),
    "dates": (
        {},
        {},
        [NUMBER, {"identity": {"key": "month", "num_buckets": 13}}],
        {"derive": {"month": {"month": "sold"}}},
    ),
    "formats": (
        {},
        {},
        [{"numeric": {"key": "price", "default": 0.0}}],
        {"data": {"formats": {"price": {"type": "number", "decimal": ",", "units": ["eur"]}}}},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_run_export_and_server_predict_alike(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])
    written, read, features, more = CASES[case]
    frame().to_csv("train.csv", index=False, **written)
    frame().drop(columns="y")[::-1].to_csv("new.csv", index=False, **written)
    source = {"csv": "train.csv", **read}
    experiment = {
        "name": "model",
        "seed": 1,
        **more,
        "data": {"train": source, "evaluate": source, "label": "y", **more.get("data", {})},
        "features": features,
        "estimator": {"type": "LinearClassifier"},
        "train": {"steps": 30},
        "export": ["final"],
    }
    Path("model.yaml").write_text(document.dump(experiment), encoding="utf-8")
    succeed("train", "model.yaml")
    found = []
    for model in ("runs/model", "runs/model/export/final"):
        succeed("predict", model, "--input", "new.csv", "--output", "found.csv")
        found.append(pd.read_csv("found.csv")["probability_1"].to_numpy())
    assert np.ptp(found[0]) > 1e-4
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-6)
    np.testing.assert_allclose(_served(), found[0], rtol=0, atol=1e-6)


def _served() -> Any:
    """What a server answers for the rows, as JSON."""
    export = predicting.export_in(Path("runs/model/export/final"))
    assert export is not None
    columns = tables.read_source(reading.source_for(export, Path("new.csv")))
    server = ModelServer([ModelStore(export.parent)], ServerOptions(port=0))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        (store,) = server.stores.values()
        keys = store.get()[1].signature("predict").inputs
        rows = [
            {key: _json(columns[key][row]) for key in keys} for row in range(len(columns["age"]))
        ]
        body = json.dumps({"signature_name": "predict", "instances": rows})
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as asking:
            asking.request("POST", f"/v1/models/{store.name}:predict", body)
            found = json.loads(asking.getresponse().read())
    finally:
        server.close()
        thread.join()
    return [row["probabilities"][1] for row in found["predictions"]]


def _json(value: Any) -> Any:
    """A cell as JSON: missing numbers are null, lists without their padding."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray):
        return [_json(each) for each in value.tolist()]
    number = value.item() if isinstance(value, np.generic) else value
    return None if number != number else number
