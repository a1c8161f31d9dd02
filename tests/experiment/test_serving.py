"""`estimatorkit serve`: TensorFlow Serving's REST interface, its errors, versions, limits."""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import errors
from estimatorkit.estimator.serving import rest_json
from estimatorkit.estimator.serving.exporting import export_saved_model
from estimatorkit.estimator.serving.predictor import load_predictor
from estimatorkit.experiment.serving.http_server import ModelServer, ServerOptions, is_local
from estimatorkit.experiment.serving.model_store import ModelStore
from tests.estimator.exported import shared_export


class Client:
    """Asks a server over one connection."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        (self.store,) = server.stores.values()
        self.prefix = f"/v1/models/{self.store.name}"
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)

    def __call__(self, path: str, content: Any = None, method: str | None = None) -> Any:
        body = content if isinstance(content, (bytes, type(None))) else json.dumps(content)
        method = method or ("GET" if content is None else "POST")
        self.connection.request(method, path, body)
        response = self.connection.getresponse()
        assert response.getheader("Content-Type") == "application/json"
        return response.status, json.loads(response.read())


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Exports of a classifier that is fed features, and of one that is fed Examples."""
    base = tmp_path_factory.mktemp("serving")
    for name, folder in (("features", shared_export()), ("examples", shared_export(parse=True))):
        shutil.copytree(folder, base / name / folder.name)
    return {name: base / name for name in ("features", "examples")}


def _served(base: Path, **options: Any) -> Iterator[Client]:
    labels = options.pop("labels", None)
    server = ModelServer([ModelStore(base, labels=labels)], ServerOptions(port=0, **options))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    client = Client(server)
    yield client
    client.connection.close()
    server.close()
    thread.join()


@pytest.fixture(scope="module")
def features(bases: dict[str, Path]) -> Iterator[Client]:
    """A server of the model that is fed features."""
    yield from _served(bases["features"], most_request_bytes=20_000, most_rows=200)


@pytest.fixture(scope="module")
def examples(bases: dict[str, Path]) -> Iterator[Client]:
    """A server of the model that is fed Examples."""
    yield from _served(bases["examples"])


ROW = {"x": [0.5, 1.0, -1.0], "word": ["a"], "name": ["v"]}


# -- predictions


@pytest.mark.slow
def test_rows_and_columns(features: Client) -> None:
    status, rows = features(f"{features.prefix}:predict", {"instances": [ROW, ROW]})
    assert status == 200
    assert len(rows["predictions"]) == 2
    assert rows["predictions"][0]["all_classes"] == ["0", "1", "2"]
    columns = {key: [value] for key, value in ROW.items()}
    content = {"signature_name": "predict", "inputs": columns}
    status, found = features(f"{features.prefix}:predict", content)
    assert status == 200
    assert found["outputs"]["probabilities"][0] == pytest.approx(
        rows["predictions"][1]["probabilities"]
    )
    version = features.store.get()[0]
    path = f"{features.prefix}/versions/{version}:predict"
    assert features(path, {"instances": [ROW, ROW]}) == (200, rows)


@pytest.mark.slow
def test_single_row_input_is_repeated(features: Client) -> None:
    columns = {"x": [[0.5, 1.0, -1.0]], "word": [["a"]], "name": [["v"], ["w"], ["v"]]}
    status, found = features(f"{features.prefix}:predict", {"inputs": columns})
    assert status == 200
    rows = [dict(ROW, name=name) for name in columns["name"]]
    status, expected = features(f"{features.prefix}:predict", {"instances": rows})
    for key, values in found["outputs"].items():
        for value, row in zip(values, expected["predictions"], strict=True):
            assert value == pytest.approx(row[key]) or value == row[key]
    status, refused = features(
        f"{features.prefix}:predict", {"inputs": columns | {"word": [["a"]] * 2}}
    )
    assert status == 400
    assert "different numbers of examples" in refused["error"]


@pytest.mark.slow
def test_text_may_be_base64(features: Client) -> None:
    path = f"{features.prefix}:predict"
    encoded = {**ROW, "word": [{"b64": base64.b64encode(b"a").decode()}]}
    assert features(path, {"instances": [encoded]}) == features(path, {"instances": [ROW]})
    for wrong in ({"b64": "?"}, {"b65": "YQ=="}, {"b64": 3}):
        status, found = features(path, {"instances": [{**ROW, "word": [wrong]}]})
        assert (status, list(found)) == (400, ["error"])


def test_nan_and_infinity(features: Client) -> None:
    path = f"{features.prefix}:predict"
    body = b'{"instances": [{"x": [NaN, Infinity, -Infinity], "word": ["a"], "name": ["v"]}]}'
    status, found = features(path, body)
    assert status == 400  # this model has no answer without them
    assert "row 0: the model has no finite answer without 'x'" in found["error"]
    assert rest_json.dump({"x": [float("nan"), 1.0]}) == b'{"x": [null, 1.0]}\n'


def test_null_is_missing_value(features: Client) -> None:
    path = f"{features.prefix}:predict"
    status, found = features(path, {"instances": [{**ROW, "word": [None]}]})
    assert status == 200
    assert found == features(path, {"instances": [{**ROW, "word": [""]}]})[1]


def test_null_integer_is_missing_id() -> None:
    signature: Any = SimpleNamespace(inputs={"id": (tf.int64, (None,)), "on": (tf.bool, (None,))})
    inputs, _ = rest_json.predict_inputs({"instances": [{"id": None, "on": True}]}, signature)
    assert inputs == {"id": [-1], "on": [True]}
    with pytest.raises(rest_json.RequestError, match=r"row 0, feature 'on'.*\n.*bool\n.*null"):
        rest_json.predict_inputs({"instances": [{"id": 3, "on": None}]}, signature)


def test_boolean_is_an_integer_and_no_float() -> None:
    """Flags of a table are features of integers."""
    signature: Any = SimpleNamespace(inputs={"flag": (tf.int64, (None,)), "x": (tf.float32, ())})
    inputs, _ = rest_json.predict_inputs({"instances": [{"flag": True, "x": 1}]}, signature)
    assert inputs == {"flag": [True], "x": [1]}
    with pytest.raises(rest_json.RequestError, match="row 0, feature 'x'"):
        rest_json.predict_inputs({"instances": [{"flag": True, "x": True}]}, signature)


@pytest.mark.slow
def test_classify_takes_features_by_key(examples: Client) -> None:
    alone = {"signature_name": "classification", "examples": [ROW, {**ROW, "x": [0.0, 0.0, 9.5]}]}
    status, found = examples(f"{examples.prefix}:classify", alone)
    assert status == 200
    assert [label for label, _ in found["results"][0]] == ["0", "1", "2"]
    assert sum(score for _, score in found["results"][1]) == pytest.approx(1.0)
    context = {"context": {"x": ROW["x"]}, "examples": [{"word": "a", "name": "v"}]}
    status, same = examples(f"{examples.prefix}:classify", context)
    assert status == 200
    assert same["results"][0] == [
        [label, pytest.approx(score)] for label, score in found["results"][0]
    ]
    status, wrong = examples(f"{examples.prefix}:regress", alone)
    assert status == 400
    assert "Expected signature method_name to be tensorflow/serving/regress" in wrong["error"]


@pytest.mark.slow
def test_regress_returns_one_number_per_example(tmp_path: Path) -> None:
    column = tf.feature_column.numeric_column("x")
    config = tf.estimator.RunConfig(log_step_count_steps=None)
    model = tf.estimator.LinearRegressor([column], model_dir=tmp_path / "m", config=config)
    rows = np.arange(8, dtype=np.float32)
    model.train(
        lambda: tf.data.Dataset.from_tensor_slices(({"x": rows}, 2 * rows)).batch(8), steps=2
    )
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(
        tf.feature_column.make_parse_example_spec([column])
    )
    export_saved_model(model, tmp_path / "base", receiver)
    expected = [
        float(each["predictions"][0])
        for each in model.predict(
            lambda: tf.data.Dataset.from_tensor_slices({"x": rows[:3]}).batch(3)
        )
    ]
    for client in _served(tmp_path / "base"):
        content = {"examples": [{"x": float(each)} for each in rows[:3]]}
        status, found = client(f"{client.prefix}:regress", content)
        assert (status, found["results"]) == (200, pytest.approx(expected))


def test_example_request_gives_example_response(features: Client) -> None:
    folder = features.store.get()[1].directory
    request = json.loads((folder / "example_request.json").read_text())
    response = json.loads((folder / "example_response.json").read_text())
    status, found = features(f"{features.prefix}:predict", request)
    assert status == 200
    assert [row["class_ids"] for row in found["predictions"]] == [
        row["class_ids"] for row in response["predictions"]
    ]


# -- what there is


def test_status_and_metadata(features: Client) -> None:
    version = str(features.store.get()[0])
    fine = {"error_code": "OK", "error_message": ""}
    state = {"version": version, "state": "AVAILABLE", "status": fine}
    assert features(features.prefix) == (200, {"model_version_status": [state]})
    status, found = features(f"{features.prefix}/metadata")
    assert status == 200
    assert found["model_spec"]["version"] == version
    signature = found["metadata"]["signature_def"]["signature_def"]["predict"]
    assert signature["method_name"] == "tensorflow/serving/predict"
    assert signature["inputs"]["x"]["dtype"] == "DT_FLOAT"
    sizes = [dim["size"] for dim in signature["inputs"]["x"]["tensor_shape"]["dim"]]
    assert sizes == ["-1", "3"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/models/other:predict", 404),
        ("/v1/models/features/versions/1:predict", 404),
        ("/v1/models/features/versions/99999999999999999999:predict", 404),
        ("/v1/models/..%2f..%2fetc%2fpasswd:predict", 404),
        ("/v1/models/../../etc/passwd", 404),
        ("/v1/models/features:delete", 404),
        ("/v1/models/features", 405),
        ("/", 404),
    ],
)
def test_unknown_paths_are_refused(features: Client, path: str, status: int) -> None:
    found, content = features(path, {"instances": [ROW]})
    assert (found, list(content)) == (status, ["error"])
    if path.endswith("predict") and status == 404:
        assert features(path, method="GET")[0] == 404


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "JSON Parse error"),
        (b"[1, 2]", "JSON body must be an object"),
        (b'{"instances": [1', "JSON Parse error"),
        (b"[" * 10_000, "JSON Parse error"),
        (b"\xff\xfe", "JSON Parse error"),
        (b"{}", "exactly one of 'instances'"),
        (b'{"instances": [], "inputs": {}}', "exactly one of 'instances'"),
        (b'{"instances": []}', "must be a list of examples"),
        (b'{"instances": [3]}', "several inputs: name them"),
        (b'{"instances": [{"x": 1}, {"y": 1}]}', "instance 1 has other inputs"),
        (b'{"signature_name": "q", "instances": [{"x": 1}]}', "no signature 'q'"),
        (b'{"signature_name": 3, "instances": [{"x": 1}]}', "must be a string"),
    ],
)
def test_invalid_bodies_give_400(features: Client, body: bytes, words: str) -> None:
    status, found = features(f"{features.prefix}:predict", body, "POST")
    assert status == 400
    assert words in found["error"]


def test_large_and_chunked_requests_are_refused(features: Client) -> None:
    body = json.dumps({"instances": [ROW] * 1000}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", features.server.port, timeout=30)
    for headers, status in (
        ({"Content-Length": str(len(body))}, 413),
        ({"Content-Length": "9" * 30}, 400),
        ({"Content-Length": "-1"}, 400),
        ({}, 411),
    ):
        connection.putrequest("POST", f"{features.prefix}:predict")
        for key, value in headers.items():
            connection.putheader(key, value)
        connection.endheaders()
        response = connection.getresponse()
        assert response.status == status
        assert "error" in json.loads(response.read())
        connection.close()


def test_listens_on_loopback_only(features: Client) -> None:
    assert features.server.url.startswith("http://127.0.0.1:")
    assert is_local("127.0.0.1")
    assert is_local("::1")
    assert not is_local("0.0.0.0")  # noqa: S104
    assert not is_local("example.com")


# -- versions


@pytest.mark.slow
def test_newer_versions_are_loaded_and_bad_ones_skipped(
    bases: dict[str, Path], tmp_path: Path
) -> None:
    (first,) = (each for each in bases["features"].iterdir())
    base = tmp_path / "model"
    shutil.copytree(first, base / "7")
    for client in _served(base):
        store = client.store
        assert store.get()[0] == 7
        shutil.copytree(first, base / "10")
        (base / "11").mkdir()  # something else
        (base / "012").mkdir()
        shutil.copytree(first, base / "13.tmp-1-aaaaaaaa")  # an export that is being written
        before = store.get()[1]
        store.refresh()
        assert store.get()[0] == 10
        assert before.signature()  # requests that run on the old one end well
        assert client(f"{client.prefix}/versions/7:predict", {"instances": [ROW]})[0] == 404
        shutil.copytree(first, base / "20")
        (base / "20" / "serving" / "graph-0.pb").write_bytes(b"damaged")
        shutil.copytree(first, base / "21")
        (base / "21" / "example_request.json").write_text('{"instances": [{"y": 1}]}')
        for _ in range(2):
            store.refresh()
            assert store.get()[0] == 10
        assert client(f"{client.prefix}:predict", {"instances": [ROW]})[0] == 200


def test_folder_without_model_raises(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match=r"no exported model(.|\n)*export_saved_model"):
        ModelStore(tmp_path)
    with pytest.raises(errors.NotFoundError, match=r"signature\.json"):
        load_predictor(tmp_path)


@pytest.mark.slow
def test_serve_command(bases: dict[str, Path]) -> None:
    command = [sys.executable, "-u", "-m", "estimatorkit", "serve", str(bases["features"])]
    with subprocess.Popen(
        [*command, "--port", "0", "--name", "iris"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    ) as process:
        assert process.stdout is not None
        try:
            first, second = process.stdout.readline(), process.stdout.readline()
            assert first.startswith("Serving version ")
            url = second.split()[-1]
            assert url.startswith("http://127.0.0.1:")
            assert url.endswith("/v1/models/iris:predict")
            port = int(url.split(":")[2].split("/")[0])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("POST", "/v1/models/iris:predict", json.dumps({"instances": [ROW]}))
            assert connection.getresponse().status == 200
            connection.close()
        finally:
            process.terminate()
