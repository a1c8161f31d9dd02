"""What a server refuses, and how it says so: tokens, hosts, paths, values that no model takes."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trustme

import estimatorkit as tf
from estimatorkit.core import errors
from estimatorkit.estimator.extenders import forward_features
from estimatorkit.experiment.serving import http_protocol
from estimatorkit.experiment.serving.http_protocol import network_of
from estimatorkit.experiment.serving.http_server import ModelServer, ServerOptions
from estimatorkit.experiment.serving.model_store import ModelStore
from tests.estimator.exported import shared_export
from tests.experiment.serving_clients import ROW, RawClient, serving
from tests.sweep import sweep

PATH = "/v1/models/model:predict"
ONE = {"instances": [ROW]}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("refusing") / "model"
    shutil.copytree(shared_export(), base / "3")
    return base


@pytest.fixture(scope="module")
def server(base: Path) -> Iterator[ModelServer]:
    """One with the default options, for all tests of the file."""
    with serving(ModelStore(base)) as server:
        yield server


# -- tokens


def test_status_pages_need_the_token(base: Path) -> None:
    with serving(ModelStore(base), token="secret") as server, RawClient(server) as client:
        assert client.ask("/healthz") == (200, {"status": "ok"})
        for path in ("/readyz", "/metrics"):
            assert client.ask(path)[0] == 401
            assert client.ask(path, headers="Authorization: Bearer wrong\r\n")[0] == 401
            assert client.ask(path, headers="Authorization: bearer secret\r\n")[0] == 200
    opened = {"token": "secret", "open_status": True}
    with serving(ModelStore(base), **opened) as server, RawClient(server) as client:
        assert client.ask("/readyz")[0] == client.ask("/metrics")[0] == 200
        assert client.ask("/v1/models/model")[0] == 401


@sweep("scheme", ["bEaReR", "Bearer", "BEARER "], quick=1)
def test_scheme_has_any_case(base: Path, scheme: str) -> None:
    with serving(ModelStore(base), token="secret") as server, RawClient(server) as client:
        assert client.ask("/readyz", headers=f"Authorization: {scheme} secret\r\n")[0] == 200
        assert client.ask("/readyz", headers=f"Authorization: x{scheme} secret\r\n")[0] == 401
        other = (
            b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s\xe9cret\r\n\r\n"
        )
        client.send(other)
        assert client.response()[0] == 401


@pytest.mark.parametrize("token", ["", "pass word", "sécret", "secret\n"])
def test_token_that_no_header_holds_is_refused_at_start(token: str) -> None:
    with pytest.raises(ValueError, match="no header can hold the server's token"):
        ServerOptions(token=token)


# -- connections


def test_head_above_its_bound_is_refused(server: ModelServer) -> None:
    """Whether it comes at once or not; the bytes of a body do not count."""
    start = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: "
    end = b"\r\n\r\n"
    for size, expected in ((64 << 10, 200), ((64 << 10) + 1, 431), (70_000, 431)):
        with RawClient(server) as client:
            client.send(start + b"a" * (size - len(start) - len(end)) + end)
            status, content = client.response()
            assert status == expected, size
            assert (list(content) == ["error"]) is (expected == 431)
    body = {**ONE, "padding": "a" * 200_000}
    with RawClient(server) as client:
        assert client.ask(PATH, body, f"A: {'a' * 60_000}\r\n")[0] == 200
        assert client.ask(PATH, body, f"A: {'a' * 60_000}\r\n")[0] == 200
        assert client.ask(PATH, ONE, f"A: {'a' * 70_000}\r\n")[0] == 431


def test_refusals_are_json(server: ModelServer) -> None:
    for request, expected in (
        (b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: [\r\n\r\n", 400),
        (b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /healthz/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET http://localhost/x HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"PUT /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405),
        (b"DELETE /v1/models/model HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"GET healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ):
        with RawClient(server) as client:
            client.send(request)
            status, content = client.response()
            assert status == expected, request
            assert list(content) == ["error"], request


def test_fault_of_the_server_is_json(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: ModelStore) -> list[int]:
        raise AssertionError("a fault in /srv/secret")

    monkeypatch.setattr(ModelStore, "versions", fails)
    with RawClient(server) as client:
        assert client.ask("/readyz") == (500, {"error": "Internal Server Error"})


def test_full_server_says_so_in_json(base: Path) -> None:
    with serving(ModelStore(base), most_connections=4) as server:
        clients = [RawClient(server, source=f"127.0.0.{number}") for number in (2, 2, 3, 3)]
        status, content = clients[-1].ask("/healthz")
        assert (status, list(content)) == (503, ["error"])
        with RawClient(server, source="127.0.0.2") as client:  # the third of one address
            status, content = client.response()
            assert (status, list(content)) == (429, ["error"])
            assert client.is_closed()
        for client in clients:
            client.close()
        with RawClient(server, source="127.0.0.2") as client:
            wait_for(lambda: client.ask("/healthz")[0] == 200)


def test_half_sent_bodies_shut_nobody_out(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Those of one address have a bound of their own, and take no place of others."""
    half = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{{".encode()
    with serving(ModelStore(base), most_waiting=8) as server:
        slow = [RawClient(server, source="127.0.0.2") for _ in range(6)]
        for client in slow:
            client.send(half)
        for client in slow[2:]:
            assert client.response()[0] == 429
            assert client.is_closed()
        with RawClient(server, source="127.0.0.3") as other:
            for _ in range(3):
                assert other.ask(PATH, ONE)[0] == 200
        slow[0].close()
        wait_for(lambda: _is_served(server, "127.0.0.2"))  # a place is free once one has gone
        for client in slow[1:]:
            client.close()
    assert not caplog.records  # a client that goes is no fault of the server


def _is_served(server: ModelServer, source: str) -> bool:
    with RawClient(server, source=source) as client:
        return client.ask(PATH, ONE)[0] == 200


def test_network_of_address() -> None:
    assert network_of("10.1.2.3") == "10.1.2.3"
    assert network_of("2001:db8::1:2") == network_of("2001:db8:0:0:ffff::9") == "2001:db8::/64"
    assert network_of("2001:db8:0:1::") != network_of("2001:db8::")
    assert network_of("") == ""


def test_handshake_has_the_time_of_a_head(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "_HEADER_SECONDS", 0.5)
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    own = trustme.CA().issue_cert("localhost")
    own.private_key_pem.write_to_path(key)
    own.cert_chain_pems[0].write_to_path(certificate)
    options = {"certificate": str(certificate), "key": str(key)}
    with serving(ModelStore(base), **options) as server:
        client = socket.create_connection(("127.0.0.1", server.port), timeout=40)
        client.sendall(b"\x16\x03\x01\x02")  # a handshake's first bytes
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""  # closed before the client's own timeout
        client.close()


def test_tells_when_it_serves(base: Path) -> None:
    server = ModelServer([ModelStore(base)], ServerOptions(port=0))
    found: list[int] = []

    def ask() -> None:
        with RawClient(server) as client:
            found.append(client.ask("/healthz")[0])
        server.close()

    asking = threading.Thread(target=ask)
    server.serve_forever(asking.start)
    asking.join()
    assert found == [200]


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


# -- answers


@pytest.mark.parametrize(
    ("make", "status"),
    [
        (lambda path: errors.DataLossError(None, None, f"{path} is damaged"), 500),
        (lambda path: FileNotFoundError(2, "No such file", path), 500),
        (RuntimeError, 500),
        (lambda path: errors.InvalidArgumentError(None, None, f"no row 3 in '{path}'"), 400),
        (lambda path: ValueError(f"no row 3 in {path}: 2 rows"), 400),
    ],
)
def test_answers_name_no_path(
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[str], Exception],
    status: int,
) -> None:
    predictor = server.stores["model"].get()[1]

    def fails(*given: object) -> None:
        raise make(str(predictor.directory / "serving" / "graph-1.pb"))

    monkeypatch.setattr(predictor, "answers", fails)
    with RawClient(server) as client:
        found, content = client.ask(PATH, ONE)
    assert (found, list(content)) == (status, ["error"])
    assert "/" not in content["error"]
    assert status == 500 or "no row 3 in" in content["error"]


# -- values


@sweep(
    ("value", "words"),
    [
        ("null", "no finite answer without 'x'"),
        ("NaN", "no finite answer without 'x'"),
        ("1e999", "no finite answer without 'x'"),
        ("-1e999", "no finite answer without 'x'"),
        ("1e300", "no finite answer without 'x'"),
        ('"5"', "feature 'x'"),
        ("true", "feature 'x'"),
        ('{"b64": "NQ=="}', "feature 'x'"),
        ("1" + "0" * 400, "input 'x'"),
    ],
    quick=4,
)
def test_refused_value_is_named(server: ModelServer, value: str, words: str) -> None:
    """By rows and by columns, in a request of one row and of many."""
    good = '{"x": [1, 2, 3.5], "word": ["a"], "name": [null]}'
    bad = good.replace("3.5", value)
    columns = f'"x": [[1, 2, 3], [1, 2, 3], [1, {value}, 0]], "word": [["a"]], "name": [[""]]'
    with RawClient(server) as client:
        for body, row in (
            (f'{{"instances": [{bad}]}}', 0),
            (f'{{"instances": [{good}, {good}, {bad}, {bad}]}}', 2),
            (f'{{"inputs": {{{columns}}}}}', 2),
        ):
            status, content = client.ask(PATH, body.encode())
            assert (status, list(content)) == (400, ["error"])
            assert f"row {row}" in content["error"]
            assert words in content["error"]
        assert client.ask(PATH, f'{{"instances": [{good}]}}'.encode())[0] == 200


def test_refused_row_of_a_batch_is_that_of_its_request(base: Path) -> None:
    bad = {"instances": [ROW, {**ROW, "x": [0.0, None, 0.0]}]}
    with serving(ModelStore(base), batch_delay=0.5) as server, ThreadPoolExecutor(3) as pool:
        clients = [RawClient(server) for _ in range(3)]
        found = list(pool.map(lambda one, body: one.ask(PATH, body), clients, [ONE, bad, ONE]))
        for client in clients:
            client.close()
    assert [status for status, _ in found] == [200, 400, 200]
    assert "row 1: " in found[1][1]["error"]


@pytest.fixture(scope="module")
def tolerant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    """A model that replaces a missing age, but no missing height, and repeats the age."""

    def known(values: tf.Tensor) -> tf.Tensor:
        return tf.where(tf.math.is_nan(values), tf.zeros_like(values), values)

    folder = tmp_path_factory.mktemp("tolerant")
    columns = [
        tf.feature_column.numeric_column("age", normalizer_fn=known),
        tf.feature_column.numeric_column("height"),
    ]
    config = tf.estimator.RunConfig(log_step_count_steps=None)
    model: Any = tf.estimator.LinearClassifier(columns, model_dir=folder / "run", config=config)
    rows = {"age": [1.0, 2.0, 3.0, 4.0], "height": [2.0, 1.0, 2.0, 1.0]}
    slices = tf.data.Dataset.from_tensor_slices
    model.train(lambda: slices((rows, [0, 1, 0, 1])).batch(4), steps=2)
    model = forward_features(model, "age")
    receiver = tf.estimator.export.serving_input_receiver_fn_from_columns(columns)
    model.export_saved_model(folder / "model", receiver)
    with serving(ModelStore(folder / "model")) as server:
        yield server


@pytest.mark.slow
def test_missing_value_that_the_model_replaces_is_answered(tolerant: ModelServer) -> None:
    with RawClient(tolerant) as client:
        status, found = client.ask(PATH, {"instances": [{"age": None, "height": 1.0}]})
        assert status == 200
        (row,) = found["predictions"]
        assert row["age"] is None or row["age"] == [None]
        assert None not in row["probabilities"]
        rows = [{"age": None, "height": 1.0}, {"age": 1.0, "height": None}]
        status, found = client.ask(PATH, {"instances": rows})
        assert status == 400
        assert "row 1: the model has no finite answer without 'height'" in found["error"]


@pytest.mark.slow
def test_value_of_an_example_is_named(tmp_path: Path) -> None:
    shutil.copytree(shared_export(parse=True), tmp_path / "model" / "1")
    path = "/v1/models/model:classify"
    with serving(ModelStore(tmp_path / "model")) as server, RawClient(server) as client:
        for value, words in (
            ("null", "row 1, feature 'x'"),
            ("NaN", "row 1: the model has no finite answer without 'x'"),
            ("1e999", "row 1: the model has no finite answer without 'x'"),
            ('"5"', "row 1, feature 'x'"),
        ):
            good = '{"x": [1.0, 2.0, 3.5], "word": "a", "name": "v"}'
            rows = f"[{good}, {good.replace('3.5', value)}]"
            body = f'{{"signature_name": "classification", "examples": {rows}}}'
            status, content = client.ask(path, body.encode())
            assert (status, list(content)) == (400, ["error"])
            assert words in content["error"]
