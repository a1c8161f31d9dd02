"""Operating a server: batching, models, labels, health, metrics, TLS, draining, versions."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trustme

from estimatorkit.core import errors
from estimatorkit.experiment.errors import ConfigurationError
from estimatorkit.experiment.serving import model_store
from estimatorkit.experiment.serving.batching import Batcher
from estimatorkit.experiment.serving.model_store import ModelStore
from estimatorkit.experiment.serving.models_file import open_models
from tests.estimator.exported import shared_export
from tests.experiment.serving_clients import ROW, RawClient, serving
from tests.sweep import sweep

PATH = "/v1/models/model:predict"
ONE = {"instances": [ROW]}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder with the versions 3 and 4 of a model."""
    for version in ("3", "4"):
        shutil.copytree(shared_export(), tmp_path / "model" / version)
    return tmp_path / "model"


# -- batches


def batches_of(requests: list[tuple[str, list[Any]]], most: int) -> tuple[list[Any], list[Any]]:
    """The batches that requests are computed in while the first is running, and their results."""
    batches: list[Any] = []
    first = threading.Event()

    def run(key: Any, rows: list[Any]) -> list[Any]:
        batches.append((key, list(rows)))
        first.wait(60)
        if -1 in rows:
            raise ValueError("-1")
        return [10 * row for row in rows]

    async def ask() -> list[Any]:
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(run, executor, most)
            asked = [asyncio.ensure_future(batcher(*each)) for each in requests]
            while not batches:
                await asyncio.sleep(0.001)
            first.set()
            return await asyncio.gather(*asked, return_exceptions=True)

    return batches, asyncio.run(ask())


def test_waiting_requests_form_one_batch() -> None:
    requests = [("a", [1, 2]), ("a", [3]), ("b", [4]), ("a", [5]), ("a", [6, 7, 8, 9, 10])]
    batches, found = batches_of(requests, 4)
    assert found == [[10, 20], [30], [40], [50], [60, 70, 80, 90, 100]]
    assert batches == [
        ("a", [1, 2, 3]),
        ("b", [4]),
        ("a", [5]),
        ("a", [6, 7, 8, 9, 10]),  # more than a batch: alone
    ]


def test_invalid_request_does_not_fail_batch() -> None:
    batches, found = batches_of([("a", [1]), ("a", [-1]), ("a", [2])], 8)
    assert batches == [("a", [1, -1, 2]), ("a", [1]), ("a", [-1]), ("a", [2])]
    assert (found[0], found[2]) == ([10], [20])
    assert isinstance(found[1], ValueError)


@pytest.mark.slow
def test_batched_responses_match_their_rows(base: Path) -> None:
    rows = [{**ROW, "x": [float(number), 1.0, -1.0]} for number in range(20)]
    with serving(ModelStore(base), batch_delay=0.5) as server:
        clients = [RawClient(server) for _ in rows]
        alone = [
            client.ask(PATH, {"instances": [row]})
            for client, row in zip(clients[:2], rows[:2], strict=True)
        ]
        with ThreadPoolExecutor(len(rows)) as pool:
            found = list(
                pool.map(lambda client, row: client.ask(PATH, {"instances": [row]}), clients, rows)
            )
        status, metrics = clients[0].ask("/metrics")
        for client in clients:
            client.close()
    assert {status for status, _ in found} == {200}
    for (_, one), (_, many) in zip(alone, found, strict=False):
        (expected,), (given,) = one["predictions"], many["predictions"]
        assert given["probabilities"] == pytest.approx(expected["probabilities"], rel=1e-5)
    sums = {tuple(each["predictions"][0]["logits"]) for _, each in found}
    assert len(sums) == 20  # each has its own answer
    assert status == 200
    sizes = [line for line in metrics.splitlines() if line.startswith("estimatorkit_batch_rows_")]
    count = next(float(line.split()[1]) for line in sizes if "_count" in line)
    assert count < 10


# -- models


@pytest.mark.slow
def test_several_models_and_labels(base: Path, tmp_path: Path) -> None:
    shutil.copytree(shared_export(parse=True), tmp_path / "parsing" / "1")
    file = tmp_path / "models.yaml"
    file.write_text(
        "models:\n"
        "  - directory: parsing\n"
        "  - {name: kinds, directory: model, labels: {stable: 3, canary: 4}}\n"
    )
    with serving(*open_models(file)) as server, RawClient(server) as client:
        ready = {"status": "ready", "models": {"parsing": [1], "kinds": [3, 4]}}
        assert client.ask("/readyz") == (200, ready)
        for part in ("", "/versions/3", "/labels/stable", "/labels/canary"):
            assert client.ask(f"/v1/models/kinds{part}:predict", ONE)[0] == 200
        assert client.ask("/v1/models/kinds/labels/other:predict", ONE)[0] == 404
        assert client.ask("/v1/models/kinds/labels/stable/metadata")[1]["model_spec"] == {
            "name": "kinds",
            "signature_name": "",
            "version": "3",
        }
        states = client.ask("/v1/models/kinds")[1]["model_version_status"]
        assert [each["version"] for each in states] == ["4", "3"]
        states = client.ask("/v1/models/kinds/labels/stable")[1]["model_version_status"]
        assert [each["version"] for each in states] == ["3"]
        shutil.copytree(base / "4", base / "5")
        server.stores["kinds"].refresh()
        assert server.stores["kinds"].versions() == [3, 4, 5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models: []", "models.yaml:1:9: models has a wrong value"),
        ("model: []", "unknown key model.(.|\n)*did you mean 'models'"),
        ("models: [{directory: a, label: 3}]", "unknown key models.0.label"),
        ("models: [{directory: a}, {directory: b/a}]", "has 2 models called 'a'"),
        ("models: [{directory: a, labels: {x: one}}]", "models.0.labels.x has a wrong value"),
        ("- a", "does not hold a mapping"),
    ],
)
def test_invalid_model_files(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "models.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        open_models(file)


@pytest.mark.slow
def test_label_needs_its_version(base: Path) -> None:
    with pytest.raises(errors.NotFoundError, match=r"label 'stable'(.|\n)*expected: 3, 4"):
        ModelStore(base, labels={"stable": 2})


# -- versions


@pytest.mark.slow
def test_waits_for_version_being_copied(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = ModelStore(base)
    whole = shared_export()
    copied = base / "5"
    copied.mkdir()
    shutil.copy(whole / "signature.json", copied)
    for _ in range(3):
        store.refresh()
    assert store.get()[0] == 4
    assert caplog.text.count("version 5 of model is not served") == 1
    shutil.copytree(whole, copied, dirs_exist_ok=True)
    store.refresh()
    assert store.get()[0] == 5
    store.close()


@sweep("error", [KeyError("a"), RecursionError(), MemoryError(), OSError("full")], quick=1)
def test_invalid_candidate_does_not_stop_watch(
    base: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(model_store, "_POLL_SECONDS", 0.01)
    store = ModelStore(base)
    load, asked = model_store.load_predictor, []

    def fails(folder: Path) -> Any:
        asked.append(folder.name)
        if len(asked) == 1:
            raise error
        return load(folder)

    monkeypatch.setattr(model_store, "load_predictor", fails)
    store.watch()
    shutil.copytree(shared_export(), base / "5.copy")
    (base / "5.copy").rename(base / "5")
    wait_until(lambda: bool(asked))
    assert store.get()[0] == 4
    (base / "5" / "note.txt").write_text("changed")
    wait_until(lambda: store.get()[0] == 5)
    store.close()


def wait_until(holds: Any) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_falls_back_to_older_version_if_newest_is_damaged(base: Path) -> None:
    (base / "4" / "serving" / "graph-0.pb").write_bytes(b"damaged")
    store = ModelStore(base)
    assert store.get()[0] == 3
    store.close()
    (base / "3" / "serving" / "graph-0.pb").write_bytes(b"damaged")
    with pytest.raises(errors.DataLossError):
        ModelStore(base)


# -- the server


def test_health_metrics_and_access_log(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with serving(ModelStore(base), access_log=True) as server, RawClient(server) as client:
        assert client.ask("/healthz") == (200, {"status": "ok"})
        assert client.ask("/readyz") == (200, {"status": "ready", "models": {"model": [4]}})
        assert client.ask(PATH, ONE)[0] == 200
        assert client.ask("/v1/models/other:predict", ONE)[0] == 404
        _, text = client.ask("/metrics")
    lines = text.splitlines()
    total = "estimatorkit_requests_total"
    assert f'{total}{{method="predict",model="model",status="200"}} 1.0' in lines
    assert f'{total}{{method="unknown",model="",status="404"}} 1.0' in lines
    logged = [json.loads(each.message) for each in caplog.records if each.message.startswith("{")]
    assert [(each["path"], each["status"]) for each in logged] == [
        (PATH, 200),
        ("/v1/models/other:predict", 404),
    ]
    assert logged[0]["version"] == 4


@pytest.mark.slow
def test_started_requests_are_answered(base: Path) -> None:
    with serving(ModelStore(base), batch_delay=1.0) as server, ThreadPoolExecutor(1) as pool:
        client = RawClient(server)
        asked = pool.submit(client.ask, PATH, ONE)
        wait_until(lambda: server.running == 1)
        server.close()
        assert asked.result()[0] == 200
        client.close()


@pytest.mark.slow
def test_command_shuts_down_on_sigterm(base: Path) -> None:
    command = [sys.executable, "-u", "-m", "estimatorkit", "serve", str(base), "--port", "0"]
    command.append("--access-log")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Serving version 4 of model")
        url = process.stdout.readline().split()[-1]
        with urllib.request.urlopen(url, json.dumps(ONE).encode()) as response:  # noqa: S310
            assert response.status == 200
        line = json.loads(process.stdout.readline())
        assert (line["path"], line["status"], line["version"]) == (PATH, 200, 4)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)


@pytest.mark.slow
def test_tls(base: Path, tmp_path: Path) -> None:
    key, certificate, authority = (tmp_path / f"{name}.pem" for name in ("key", "cert", "ca"))
    signer = trustme.CA()
    own = signer.issue_cert("localhost")
    own.private_key_pem.write_to_path(key)
    own.cert_chain_pems[0].write_to_path(certificate)
    signer.cert_pem.write_to_path(authority)
    options = {"certificate": str(certificate), "key": str(key)}
    with serving(ModelStore(base), **options) as server:
        assert server.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=authority)
        with RawClient(server, trusting) as client:
            assert client.ask(PATH, ONE)[0] == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            RawClient(server, ssl.create_default_context())
