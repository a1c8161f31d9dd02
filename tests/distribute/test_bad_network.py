"""Trainings behind networks that delay, lose, reorder and repeat packets, fail for seconds, and end
connections: they come to the numbers of undisturbed ones, or say what they cannot reach.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.distribute.bad_network import start_through
from tests.distribute.packets import FAR
from tests.distribute.processes import Processes, free_cluster, known_token
from tests.distribute.proxies import BadProxy, session_by
from tests.distribute.trainings import Training, all_end, spread

pytestmark = pytest.mark.multiprocess

ALONE = {"ps": 2, "chief": 1}
BOTH = {**ALONE, "worker": 1}


@pytest.fixture(scope="module")
def namespace() -> list[str]:
    """The words before a program that runs it where it may make network devices."""
    words = ["unshare", "-rn", sys.executable]
    try:
        code = "from tests.distribute.packets import BadNetwork; BadNetwork((0, 0))"
        subprocess.run([*words, "-c", code], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        told = getattr(error, "stderr", None) or str(error)
        pytest.skip(f"no network device of one's own: {told.splitlines()[-1]}")
    return words


def fitted(training: Training) -> dict[str, Any]:
    """All variables of the program `fitted`."""
    names = "global_step", "linear/linear_model/x/weights", "linear/linear_model/bias_weights"
    return {name: training.value(name) for name in names}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program `fitted` comes to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with Processes(folder) as processes:
        training = Training(processes, folder, "fitted", ALONE)
        all_end(training.start_all())
        return fitted(training)


def assert_fitted(training: Training, expected: Mapping[str, Any]) -> None:
    for name, value in fitted(training).items():
        np.testing.assert_array_equal(value, expected[name], name)


# -- packets: every system call of the processes is an ordinary one


class Behind:
    """A training in a network namespace of its own, behind `packets.BadNetwork`.

    Args:
        namespace: see the fixture.
        folder: for all files.
        program, jobs, options: see `Training`.
    """

    def __init__(
        self,
        namespace: list[str],
        folder: Path,
        program: str,
        jobs: Mapping[str, int],
        **options: Any,
    ) -> None:
        self._namespace = namespace
        self._given = {"folder": str(folder), "program": program, "jobs": jobs, "options": options}
        self.training = Training(Processes(folder), folder, program, jobs)  # to read its values

    def run(self, network: Mapping[str, Any], outages: Sequence[float] = ()) -> tuple[int, str]:
        """The exit code, and what was printed; see `bad_network`."""
        words = json.dumps({**self._given, "network": network, "outages": outages})
        ended = subprocess.run(
            [*self._namespace, "-m", "tests.distribute.bad_network", words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=500,
            check=False,
        )
        return ended.returncode, ended.stdout


@pytest.mark.slow
def test_lost_and_reordered_packets_change_no_number(
    namespace: list[str], undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    behind = Behind(namespace, tmp_path, "fitted", ALONE)
    code, told = behind.run({"delay": [0.005, 0.03], "loss": 0.03, "twice": 0.02})
    assert code == 0, told
    assert int(told.splitlines()[-1]) > 500
    assert_fitted(behind.training, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outages", "torn"),
    # After 4 s TCP sends again within 10, which is how long a task waits; after 8 it may not.
    [([1, 4, 2], 0), ([25], len(("chief", "worker")))],
    ids=["connections come back", "longer than a task waits"],
)
def test_outages_lose_no_step(
    namespace: list[str], tmp_path: Path, outages: list[float], torn: int
) -> None:
    """Who gives a connection up may leave the step half applied that it was in; then it goes on."""
    # The worker ends 100 steps before the chief's last save, which reads no half step then.
    behind = Behind(namespace, tmp_path, "asynchronous", BOTH, max_steps=500, worker_steps=400)
    network = {"delay": [0.002, 0.01], "loss": 0.01, "twice": 0.02}
    code, told = behind.run(network, outages)
    assert code == 0, told
    assert behind.training.value("global_step") >= 500
    assert spread(behind.training) <= torn


@pytest.mark.slow
def test_network_that_stays_away_is_named(namespace: list[str], tmp_path: Path) -> None:
    behind = Behind(namespace, tmp_path, "asynchronous", ALONE, max_steps=10**6, wait_secs=5)
    code, told = behind.run({"delay": [0.0, 0.001]}, outages=[1000])
    assert code == 1
    assert "chief 0 ended with 138" in told
    assert "did not become reachable within 5 seconds" in told
    assert FAR in told


# -- connections


def test_broken_connections_repeat_no_run() -> None:
    with tf.device("/job:ps/task:0"):
        sums = tf.get_variable("sums", [1000], initializer=tf.zeros_initializer())
    more = tf.assign_add(sums, tf.ones([1000]))
    with known_token():
        server = tf.train.Server(free_cluster(ps=1), "ps", 0)
        proxy = BadProxy(server.target.removeprefix("grpc://"), seed=0, ends=0.05)
        try:
            with session_by(proxy.address) as session:
                session.run(sums.initializer)
                for run in range(1, 31):
                    np.testing.assert_array_equal(session.run(more), np.full(1000, run))
            assert proxy.cuts > 3
        finally:
            proxy.close()
            server.stop()


@pytest.fixture
def proxies() -> Iterator[dict[str, BadProxy]]:
    """By address."""
    made: dict[str, BadProxy] = {}
    yield made
    for each in made.values():
        each.close()


@pytest.mark.slow
def test_broken_connections_change_no_number(
    processes: Processes,
    proxies: dict[str, BadProxy],
    undisturbed: dict[str, Any],
    tmp_path: Path,
) -> None:
    training = Training(processes, tmp_path, "fitted", ALONE)
    all_end(start_through(training, through(proxies)))
    assert sum(each.cuts for each in proxies.values()) > 3
    assert_fitted(training, undisturbed)


@pytest.mark.slow
def test_broken_connections_lose_no_step(
    processes: Processes, proxies: dict[str, BadProxy], tmp_path: Path
) -> None:
    training = Training(processes, tmp_path, "asynchronous", BOTH, max_steps=300)
    all_end(start_through(training, through(proxies)))
    assert sum(each.cuts for each in proxies.values()) > 10
    assert spread(training) == 0


def through(proxies: dict[str, BadProxy]) -> Callable[[str], str]:
    """Gives each address a proxy."""

    def address_of(address: str) -> str:
        if address not in proxies:
            proxies[address] = BadProxy(address, seed=len(proxies), ends=0.02)
        return proxies[address].address

    return address_of
