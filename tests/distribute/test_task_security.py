"""Security between tasks: TLS, access control, and limits of those with the token."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import trustme
from pyarrow import flight

import estimatorkit as tf
from estimatorkit.core.errors import (
    INVALID_ARGUMENT,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from estimatorkit.distribute.tasks import task_endpoint
from estimatorkit.distribute.tasks.array_messages import _EMPTY, receive, send
from estimatorkit.distribute.tasks.rpc import (
    VERSION,
    AreInitialized,
    Done,
    Failure,
    Handshake,
    Message,
    ReadVariables,
    Request,
    RunPrograms,
    SaveVariables,
    WriteVariables,
    decode,
    encode,
)
from estimatorkit.distribute.tasks.task_channel import TaskChannel, TaskConnection
from estimatorkit.distribute.tasks.task_cluster import TaskCluster
from estimatorkit.distribute.tasks.task_placement import HERE
from estimatorkit.distribute.tasks.task_service import _check_shard
from estimatorkit.distribute.tasks.token import cluster_token
from estimatorkit.distribute.tls import VARIABLES, check_encrypted, identity
from tests.distribute.processes import free_cluster, known_token

PROGRAM = """
import numpy as np, sys
import estimatorkit as tf

def model_fn(features, labels, mode):
    prediction = tf.layers.dense(features["x"], 1)
    loss = tf.reduce_mean((prediction - labels) ** 2)
    step = tf.train.get_global_step()
    return tf.estimator.EstimatorSpec(
        mode, {"y": prediction}, loss, tf.train.GradientDescentOptimizer(0.01).minimize(loss, step)
    )

def input_fn():
    x = np.ones((8, 2), np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1])).batch(4).repeat()

model = tf.estimator.Estimator(model_fn, sys.argv[1])
tf.estimator.train_and_evaluate(
    model, tf.estimator.TrainSpec(input_fn, 20), tf.estimator.EvalSpec(input_fn, 2)
)
print("step", model.get_variable_value("global_step"))
"""


def environment(authority: trustme.CA, folder: Path) -> dict[str, str]:
    """The variables of a host, 127.0.0.1."""
    folder.mkdir()
    paths = [folder / name for name in ("cert.pem", "key.pem", "ca.pem")]
    own = authority.issue_cert("127.0.0.1")
    own.cert_chain_pems[0].write_to_path(paths[0])
    own.private_key_pem.write_to_path(paths[1])
    authority.cert_pem.write_to_path(paths[2])
    return dict(zip(VARIABLES, map(str, paths), strict=True))


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    return environment(trustme.CA(), tmp_path / "own")


@pytest.mark.slow
def test_cluster_trains_over_tls(own: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "estimatorkit", "launch", "--ps", "1", "--workers", "2"]
    command += ["--", sys.executable, str(program), str(tmp_path / "model")]
    done = subprocess.run(
        command, env={**os.environ, **own}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "step 20" in done.stdout or "step 21" in done.stdout
    assert (tmp_path / "model" / "checkpoint").exists()


def test_unauthenticated_peers_are_refused(
    own: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = free_cluster(ps=1)
    (address,) = cluster["ps"].values()
    with known_token():
        for name, path in own.items():
            monkeypatch.setenv(name, path)
        server = tf.train.Server(cluster, "ps", 0, wait_secs=2)
        try:
            with tf.Graph().as_default(), tf.Session(f"grpc://{address}") as session:
                assert session.run(tf.constant(2.0) * 3.0) == 6.0
            found = identity()
            assert found is not None
            stranger = environment(trustme.CA(), tmp_path / "stranger")
            cert, key = (Path(stranger[each]).read_bytes() for each in VARIABLES[:2])
            for location, options in (
                (f"grpc://{address}", {}),
                (f"grpc+tls://{address}", {"tls_root_certs": found.authority}),
                (
                    f"grpc+tls://{address}",
                    {"tls_root_certs": found.authority, "cert_chain": cert, "private_key": key},
                ),
            ):
                client = flight.FlightClient(location, **options)
                with pytest.raises(flight.FlightUnavailableError):
                    list(client.list_flights(options=flight.FlightCallOptions(timeout=5)))
            for name in VARIABLES:
                monkeypatch.setenv(name, stranger[name])
            with pytest.raises(UnauthenticatedError, match="do not agree on TLS"):
                TaskConnection(address, "/job:ps/task:0", cluster_token()).channel()
        finally:
            server.stop()


def _session_on(address: str, wait_secs: float = 600.0) -> None:
    tasks = TaskCluster({"/job:ps/task:0": address}, HERE, None, wait_secs)
    tasks.channel("/job:ps/task:0")


def test_wrong_certificate_is_named_instead_of_waited_for(
    own: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = free_cluster(ps=1)
    (address,) = cluster["ps"].values()
    stranger = environment(trustme.CA(), tmp_path / "stranger")
    with known_token():
        for name in VARIABLES:
            monkeypatch.setenv(name, own[name])
        server = tf.train.Server(cluster, "ps", 0)
        try:
            for name in VARIABLES:
                monkeypatch.setenv(name, stranger[name])
            with pytest.raises(UnauthenticatedError, match="certificate verify failed"):
                _session_on(address)
            monkeypatch.setenv(VARIABLES[2], own[VARIABLES[2]])  # the server refuses, and is silent
            with pytest.raises(DeadlineExceededError, match=r"with one authority\?"):
                _session_on(address, 6.0)
            assert f"Waiting for /job:ps/task:0 at {address}" in caplog.text
            assert "Does it use TLS as this process does" in caplog.text
        finally:
            server.stop()
        for name in VARIABLES:
            monkeypatch.delenv(name)
        open_server = tf.train.Server(cluster, "ps", 0)
        try:
            for name in VARIABLES:
                monkeypatch.setenv(name, own[name])
            with pytest.raises(UnauthenticatedError, match="wrong version number"):
                _session_on(address)
        finally:
            open_server.stop()


def test_partial_settings(own: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert identity() is None
    monkeypatch.setenv(VARIABLES[0], own[VARIABLES[0]])
    with pytest.raises(ValueError, match="TLS between tasks is only partly configured"):
        identity()
    monkeypatch.setenv(VARIABLES[1], own[VARIABLES[1]])
    monkeypatch.setenv(VARIABLES[2], "/nowhere/ca.pem")
    with pytest.raises(NotFoundError, match=r"could not read the TLS file at '/nowhere/ca.pem'"):
        identity()


@pytest.mark.parametrize("address", ["0.0.0.0:2222", "10.1.2.3:2222", "[::]:2222"])
def test_traffic_beyond_loopback_is_encrypted(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="would leave this host without encryption"):
        check_encrypted(address, "/job:ps/task:0", is_encrypted=False)
    check_encrypted(address, "/job:ps/task:0", is_encrypted=True)
    monkeypatch.setenv("ESTIMATORKIT_INSECURE", "1")
    check_encrypted(address, "/job:ps/task:0", is_encrypted=False)


def test_loopback_needs_no_tls() -> None:
    for address in ("127.0.0.1:2222", "localhost:2222", "[::1]:2222", "no.such:1"):
        check_encrypted(address, "/job:ps/task:0", is_encrypted=False)


def test_server_beyond_loopback_suggests_fix() -> None:
    (address,) = free_cluster(ps=1)["ps"].values()
    everywhere = address.replace("127.0.0.1", "0.0.0.0")  # noqa: S104 (it does not come to that)
    with known_token(), pytest.raises(ValueError, match="launch --insecure"):
        tf.train.Server({"ps": [everywhere]}, "ps", 0)


# -- authenticated, and still not trusted


@pytest.fixture
def channel() -> Iterator[TaskChannel]:
    cluster = free_cluster(ps=1)
    (address,) = cluster["ps"].values()
    with known_token():
        server = tf.train.Server(cluster, "ps", 0)
        connection = TaskConnection(address, "/job:ps/task:0", cluster_token())
        found = connection.channel()
        yield found
        found.end()
        server.stop()


def test_task_writes_only_checkpoint_shards(channel: TaskChannel, tmp_path: Path) -> None:
    channel.call(WriteVariables(("v",), arrays=[np.ones(3, np.float32)]))
    folder = tmp_path / "model.ckpt-1.tmp-123-0123abcd"
    folder.mkdir()
    shard = "variables-00000-of-00001.safetensors"
    (tmp_path / "elsewhere.tmp-1-0123abcd").symlink_to("/etc")
    (folder / "variables-00000-of-00002.safetensors").symlink_to("/etc/passwd")
    for path in (
        *(tmp_path / shard, folder / "evil.py", folder / ".." / shard, Path("/etc/cron.d/evil")),
        *(tmp_path / "elsewhere.tmp-1-0123abcd" / shard, folder / "../../.bashrc"),
        folder / "variables-00000-of-00002.safetensors",
    ):
        with pytest.raises(PermissionDeniedError, match="writes only new files of checkpoints"):
            channel.call(SaveVariables(str(path), {"v": "v"}))
    channel.call(SaveVariables(str(folder / shard), {"v": "v"}))
    assert (folder / shard).exists()
    with pytest.raises(PermissionDeniedError, match="writes only new files"):
        channel.call(SaveVariables(str(folder / shard), {"v": "v"}))


def test_task_writes_only_below_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model" / "model.ckpt-1.tmp-123-0123abcd"
    shard = "variables-00000-of-00001.safetensors"
    _check_shard(folder / shard, str(tmp_path / "model"))
    with pytest.raises(PermissionDeniedError, match="a path below"):
        _check_shard(folder / shard, str(tmp_path / "other"))


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"", r"expected: one of AreInitialized, .*\n.*received: b''"),
        (b"ReadVariables", "ReadVariables: Invalid JSON"),
        (b"Nothing {}", "received: b'Nothing'"),
        (b"Failure {}", "received: b'Failure'"),
        (b"Request {}", "received: b'Request'"),
        (b"ReadVariables []", "ReadVariables: Input should be an object"),
        (b"ReadVariables {}", "ReadVariables.names: "),
        (b'ReadVariables {"names": 5}', "ReadVariables.names: "),
        (b'ReadVariables {"names": ["v", 5]}', "ReadVariables.names.1: Input should be a valid s"),
        (b'ReadVariables {"names": [], "x": 1}', "ReadVariables.x: Unexpected keyword argument"),
        (b'Heartbeat {"member": 3, "process": "p"}', "Heartbeat.member: "),
        (b'OpenSharedMemory {"areas": [[1, 2, 3]]}', "OpenSharedMemory.areas.0"),
        (b'SaveVariables {"path": null, "names": {}}', "SaveVariables.path: "),
        (b'LoadProgram {"name": "x", "partition": {}}', "LoadProgram.partition."),
        (b'RunPrograms {"programs": [], "updates": "2"}', "RunPrograms.updates: "),
        (b'TakeShard {"worker": "w", "order": {"name": "n"}}', "TakeShard.order.count: "),
    ],
    ids=str,
)
def test_malformed_request_ends_only_its_call(
    channel: TaskChannel, header: bytes, problem: str
) -> None:
    send(channel._writer, header, number=1)
    failure = decode(*receive(channel._reader.read_chunk)[:2], Failure)
    assert failure.code == INVALID_ARGUMENT
    assert "a request of another task is malformed" in failure.message
    assert re.search(problem, failure.message)
    assert channel.call(AreInitialized(("v",))).flags == (False,)  # the number was not used up


@pytest.mark.parametrize(
    ("refused", "kind", "problem"),
    [
        (WriteVariables(("v",)), InvalidArgumentError, "WriteVariables has the wrong number of a"),
        (RunPrograms(("p",)), NotFoundError, "/job:ps/task:0 has no such program"),
        (ReadVariables(("v",)), FailedPreconditionError, "uninitialized value v"),
    ],
    ids=str,
)
def test_requests_that_cannot_be_executed(
    channel: TaskChannel, refused: Request[Any], kind: type[OpError], problem: str
) -> None:
    with pytest.raises(kind, match=problem):
        channel.call(refused)
    assert channel.call(AreInitialized(("v",))).flags == (False,)


@pytest.mark.parametrize("theirs", [Handshake("0.0", "t", "i", {}, False), Done()])
def test_another_version_of_the_package(
    theirs: Message, channel: TaskChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster tells so at once, and does not wait for the task."""

    def send_theirs(writer: Any, header: bytes, *rest: Any) -> None:
        send(writer, encode(theirs), *rest)

    cluster = TaskCluster({"/job:ps/task:0": channel.connection.address}, HERE, None)
    monkeypatch.setattr(task_endpoint, "send", send_theirs)
    with pytest.raises(
        FailedPreconditionError,
        match=r"/job:ps/task:0 runs another version of this package.*\n"
        rf".*expected: {re.escape(VERSION)}\n.*received: {getattr(theirs, 'version', 'unknown')}",
    ):
        cluster.heartbeat()


def test_malformed_bytes_end_only_their_call(channel: TaskChannel) -> None:
    for metadata in (b"", b"x", b"\xff" * 24, b"\0" * 24):
        channel._writer.write_with_metadata(_EMPTY, pa.py_buffer(metadata))
        failure = decode(*receive(channel._reader.read_chunk)[:2], Failure)
        assert "malformed" in failure.message
    assert channel.call(AreInitialized(("v",))).flags == (False,)
