"""Hostile clients: slow requests, floods, invalid HTTP, huge and deeply nested bodies."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from estimatorkit.experiment.serving import http_protocol
from estimatorkit.experiment.serving.http_server import ModelServer
from estimatorkit.experiment.serving.model_store import ModelStore
from tests.estimator.exported import shared_export
from tests.experiment.serving_clients import ROW, RawClient, serving

PATH = "/v1/models/model:predict"
ONE = {"instances": [ROW]}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shared_export()
    base = tmp_path_factory.mktemp("attacked") / "model"
    shutil.copytree(folder, base / folder.name)
    return base


@pytest.fixture(scope="module")
def server(base: Path) -> Iterator[ModelServer]:
    """One with the default options, for all tests of the file."""
    with serving(ModelStore(base)) as server:
        yield server


def is_alive(server: ModelServer) -> bool:
    with RawClient(server) as client:
        status, _ = client.ask(PATH, ONE)
        return status == 200


@pytest.mark.slow
def test_incomplete_requests_are_closed(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "_HEADER_SECONDS", 1.0)
    with serving(ModelStore(base)) as server:
        clients = [RawClient(server) for _ in range(400)]
        for number, client in enumerate(clients):
            client.send(b"POST /v1/models/model:predict HTTP/1.1\r\nHost: loc"[: number % 60])
        assert is_alive(server)
        for client in clients:
            assert client.response() == (
                408,
                {"error": "the request's head did not come in time"},
            )
            assert client.is_closed()
            client.close()
        with RawClient(server) as client:  # the second request of a connection, too
            assert client.ask(PATH, ONE)[0] == 200
            client.send(b"GET /healthz HTTP")
            assert client.response()[0] == 408
        assert is_alive(server)


def test_incomplete_bodies_are_closed(base: Path) -> None:
    with serving(ModelStore(base), seconds=0.5) as server, RawClient(server) as client:
        client.send(f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\n".encode())
        client.send(b'Content-Length: 1000\r\n\r\n{"instances"')
        assert client.response() == (408, {"error": "the request's body did not come in time"})
        assert client.is_closed()
        with RawClient(server) as other:  # which a busy machine does not predict for in 0.5 s
            assert other.ask("/healthz")[0] == 200


@pytest.mark.slow
def test_two_hundred_concurrent_clients(base: Path) -> None:
    body = json.dumps(ONE)

    def ask(_: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", PATH, body, {"Connection": "close"})
        status = connection.getresponse().status
        connection.close()
        return status

    with serving(ModelStore(base)) as server, ThreadPoolExecutor(200) as pool:
        assert set(pool.map(ask, range(2000))) == {200}


@pytest.mark.skipif(sys.platform != "linux", reason="counts the pages of /proc")
@pytest.mark.parametrize("token", [None, "secret"])
def test_pipelined_requests_fill_no_memory(base: Path, token: str | None) -> None:
    """A client that reads no answers is not read from, and leaves nothing when it goes."""
    requests = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n" * 600_000
    with serving(ModelStore(base), token=token) as server:
        assert is_alive(server) or token
        before = _resident()
        with RawClient(server) as client:
            client.socket.settimeout(2)
            with pytest.raises(TimeoutError):  # what the kernel holds, below 22 MB
                client.send(requests)
            assert _resident() - before < 20 << 20
        with RawClient(server) as client:
            assert client.ask("/healthz")[0] == 200
        assert _resident() - before < 20 << 20


def _resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_pipelined_requests_are_answered_in_order(server: ModelServer) -> None:
    body = json.dumps(ONE).encode()
    post = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    both = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + post.encode() + body
    with RawClient(server) as client, ThreadPoolExecutor(1) as pool:
        sent = pool.submit(client.send, both * 500)
        for _ in range(500):
            assert client.response() == (200, {"status": "ok"})
            status, content = client.response()
            assert (status, list(content)) == (200, ["predictions"])
        sent.result()


def test_ambiguous_http_is_refused(server: ModelServer) -> None:
    body = json.dumps(ONE).encode()
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    post = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\n".encode()
    for head in (
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: 99999999999999999999999\r\n\r\n",
        b"Content-Length : 5\r\n\r\n",
        b"Bad\x00Header: 5\r\n\r\n",
    ):
        with RawClient(server) as client:
            client.send(post + head + chunked)
            status, content = client.response()
            assert (status, list(content)) == (400, ["error"]), head
            assert client.is_closed()
    with RawClient(server) as client:
        client.send(post + b"Transfer-Encoding: chunked\r\n\r\n" + chunked)
        assert client.response()[0] == 411
    assert is_alive(server)


def test_get_body_is_not_next_request(server: ModelServer) -> None:
    hidden = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with RawClient(server) as client:
        client.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        client.send(b"Content-Length: %d\r\n\r\n%s" % (len(hidden), hidden))
        assert client.response() == (200, {"status": "ok"})
        assert client.ask("/readyz")[0] == 200


@pytest.mark.slow
def test_other_host_names_are_refused(base: Path, server: ModelServer) -> None:
    with RawClient(server) as client:
        assert client.ask("/healthz", headers="Host: 127.0.0.1:8501\r\n")[0] == 200
        assert client.ask(PATH, ONE, "Host: evil.example\r\n")[0] == 400
    with serving(ModelStore(base), hosts=["models.example"]) as own, RawClient(own) as client:
        assert client.ask(PATH, ONE, "Host: models.example\r\n")[0] == 200
        assert client.ask(PATH, ONE)[0] == 400


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"instances": [{"x": ' + b"[" * 90 + b"1" + b"]" * 90 + b"}]}", "nested"),
        (b'{"instances": [{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}]}", ""),
        (b'{"instances": [{"x": [1' + b"0" * 400 + b', 0, 0], "word": ["a"], "name": ["v"]}]}', ""),
        (b'{"instances": [{"x": [1' + b"0" * 9000 + b"]}]}", "JSON Parse error"),
        (b'{"instances": [{"x": {"y": 1}}]}', ""),
        (b'{"instances": {"x": 1}}', "must be a list"),
        (b'{"inputs": {"x": [[1, 2, 3]], "word": "a", "name": [["v"]]}}', ""),
    ],
    ids=["deep", "deeper", "large number", "larger", "object", "no rows", "no batch"],
)
def test_invalid_values_give_short_400(server: ModelServer, body: bytes, words: str) -> None:
    with RawClient(server) as client:
        status, content = client.ask(PATH, body)
        assert (status, list(content)) == (400, ["error"])
        assert words in content["error"]
        assert len(content["error"]) < 500
        assert client.ask(PATH, ONE)[0] == 200


@pytest.mark.slow
def test_limits(base: Path) -> None:
    options = {"most_request_bytes": 5000, "most_rows": 10, "token": "secret"}
    bearer = "Authorization: Bearer secret\r\n"
    with serving(ModelStore(base), **options) as server, RawClient(server) as client:
        assert client.ask(PATH, ONE, bearer)[0] == 200
        for headers in ("", "Authorization: Bearer secreT\r\n", "Authorization: Basic secret\r\n"):
            assert client.ask(PATH, ONE, headers)[0] == 401
        status, content = client.ask(PATH, {"instances": [ROW] * 11}, bearer)
        assert (status, content["error"]) == (400, "the request has 11 rows; at most 10 are taken")
        assert client.ask(PATH, b" " * 6000, bearer)[0] == 413
        assert client.is_closed()
        with RawClient(server) as other:
            other.send(b"GET /healthz HTTP/1.1\r\n" + b"A: " + b"a" * 100_000)
            assert other.response()[0] == 431
    with serving(ModelStore(base), most_waiting=2, batch_delay=1.0) as server:
        clients = [RawClient(server) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda each: each.ask(PATH, ONE), clients))
        assert sorted(status for status, _ in found) == [200, 200, 503, 503]
        assert all(client.ask(PATH, ONE)[0] == 200 for client in clients)
        for client in clients:
            client.close()


@pytest.mark.slow
def test_slow_request_times_out(base: Path) -> None:
    slow = {"seconds": 0.2, "batch_delay": 3.0}
    with serving(ModelStore(base), **slow) as server, RawClient(server) as client:
        status, content = client.ask(PATH, ONE)
        assert (status, list(content)) == (504, ["error"])
        assert client.ask("/healthz")[0] == 200
