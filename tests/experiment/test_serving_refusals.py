"""What a server refuses, and how it says so: tokens, hosts, paths, values that no model takes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

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
