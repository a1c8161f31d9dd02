"""Network addresses: parsing, free ports, and warnings about public ones."""

from __future__ import annotations

import logging
import socket
import threading

import pytest

import estimatorkit as tf
from estimatorkit.distribute.addresses import (
    check_answered,
    check_free,
    host_and_port,
    keep_trying,
    warn_if_public,
)
from tests.distribute.processes import free_cluster, known_token


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("host1:2222", ("host1", 2222)),
        ("10.0.0.1:80", ("10.0.0.1", 80)),
        ("[fd00::1]:2222", ("fd00::1", 2222)),
    ],
)
def test_host_and_port(address: str, expected: tuple[str, int]) -> None:
    assert host_and_port(address) == expected


@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_port_is_free_after_release(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    held = socket.create_server((host, 0), family=family)
    address = (
        f"[{host}]:{held.getsockname()[1]}" if ":" in host else f"{host}:{held.getsockname()[1]}"
    )
    check_answered(address)
    with pytest.raises(OSError, match="in use"):
        keep_trying(lambda: check_free(address), 0.3)
    threading.Timer(0.5, held.close).start()
    keep_trying(lambda: check_free(address), 30.0)
    with pytest.raises(ConnectionRefusedError):
        check_answered(address)


@pytest.mark.parametrize(
    ("address", "is_told"),
    [
        ("8.8.8.8:2222", True),
        ("0.0.0.0:2222", True),
        ("[::]:2222", True),
        ("[2001:4860:4860::8888]:2222", True),
        ("10.1.2.3:2222", False),
        ("192.168.1.1:2222", False),
        ("127.0.0.1:2222", False),
        ("[fd00::1]:2222", False),
        ("host1:2222", False),
    ],
)
def test_public_addresses_warn(
    address: str, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        warn_if_public(address, "/job:ps/task:0")
    assert [address in line for line in caplog.messages] == [True] * is_told


def test_server_warns_about_public_address(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (address,) = free_cluster(ps=1)["ps"].values()
    everywhere = address.replace("127.0.0.1", "0.0.0.0")  # noqa: S104 (for an instant)
    monkeypatch.setenv("ESTIMATORKIT_INSECURE", "1")
    with known_token(), caplog.at_level(logging.WARNING, "estimatorkit"):
        tf.train.Server({"ps": [everywhere]}, "ps", 0).stop()
    assert [
        f"/job:ps/task:0 listens on the public address {everywhere}" in line
        for line in caplog.messages
    ] == [True]
