"""Processes placed by Ray: the launcher starts a local Ray."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.distribute.processes import LOOPBACK, listening_hosts, until

# Not imported here: Ray reads how it is to authenticate when it is.
pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")


PROGRAM = """
import json, os, pathlib, signal, sys, time
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
name = f"{task['type']} {task['index']}"
folder = pathlib.Path(sys.argv[1])
"""


def command(tmp_path: Path, body: str) -> list[str]:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + textwrap.dedent(body))
    return [sys.executable, "-S", str(path), str(tmp_path)]


def run(
    words: list[str], watch: Callable[[psutil.Process], None] = lambda process: None
) -> tuple[int, list[str]]:
    """The exit code and the lines of a command: Ray forks, which a process of JAX must not.

    Args:
        watch: gets the process while it runs.
    """
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        watch(psutil.Process(process.pid))
        shown, _ = process.communicate(timeout=300)
    return process.returncode, shown.splitlines()


def launched(
    tmp_path: Path,
    body: str,
    *options: str,
    watch: Callable[[psutil.Process], None] = lambda process: None,
) -> tuple[int, list[str]]:
    """The exit code and the lines of a launched program."""
    words = ["-m", "estimatorkit", "launch", "--ray", "--cpus", "0.5", "--ps", "1"]
    words += ["--workers", "2", "--restarts", "1", *options, "--", *command(tmp_path, body)]
    return run(words, watch)


def servers_of_ray(parent: psutil.Process) -> dict[str, psutil.Process]:
    """The processes of Ray's servers that a process has started, by name."""
    found = {}
    for process in parent.children(recursive=True):
        try:
            words = process.cmdline()
            name = "dashboard" if any(word.endswith("dashboard.py") for word in words) else ""
            name = name or process.name()
        except psutil.NoSuchProcess:  # it has ended since, a task that was killed say
            continue
        if name in ("dashboard", "gcs_server", "raylet"):
            found[name] = process
    return found


@pytest.mark.slow
def test_ended_processes_restart_in_place(tmp_path: Path) -> None:
    body = """
        print(json.dumps(config["cluster"]), flush=True)
        if name == "worker 0" and not (folder / "died").exists():
            (folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "chief 0":
            while not (folder / "back").exists():
                time.sleep(0.05)
            sys.exit(7)
        if name == "worker 0":
            (folder / "back").touch()
            print("token", bool(os.environ["ESTIMATORKIT_TOKEN"]), flush=True)
        time.sleep(100)
        """
    hosts: set[str] = set()
    servers: dict[str, dict[str, Any]] = {}

    def watch(launch: psutil.Process) -> None:
        """Looks at Ray's processes once the tasks run."""
        until((tmp_path / "died").exists, "no task was started")
        hosts.update(listening_hosts(launch))
        for name, process in servers_of_ray(launch).items():
            servers[name] = {"words": process.cmdline(), "environ": process.environ()}

    code, lines = launched(tmp_path, body, watch=watch)
    assert code == 7
    assert any("worker 0 ended with 137; it is started again" in line for line in lines)
    assert "[worker 0] token True" in lines
    found = [json.loads(line.split("]", 1)[1]) for line in lines if "{" in line]
    clusters = {json.dumps(each, sort_keys=True) for each in found}
    assert len(clusters) == 1  # the places are the same
    assert all(address.startswith("127.0.0.1:") for each in found for address in each["ps"])
    assert hosts
    assert hosts <= LOOPBACK
    # Who is not of this user may not submit work: a token is asked for, and there is no page.
    modes = {name: each["environ"].get("RAY_AUTH_MODE") for name, each in servers.items()}
    assert modes.items() >= {"gcs_server": "token", "raylet": "token"}.items()
    assert "--disable-frontend" in servers.get("dashboard", {}).get("words", "--disable-frontend")


@pytest.mark.slow
def test_all_are_replaced_after_loss(tmp_path: Path) -> None:
    body = """
        (folder / f"{name} started {time.time_ns()}").touch()
        if name == "worker 0" and len(list(folder.glob("worker*"))) == 1:
            (folder / "pid").write_text(str(os.getpid()))
            time.sleep(0.5)
            actor = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text().split()[3]
            os.kill(int(actor), signal.SIGKILL)
            time.sleep(100)
        started = lambda job: len(list(folder.glob(f"{job}*")))
        while name == "chief 0" and started("chief") == 2:
            if min(map(started, ("ps", "worker"))) == 2:
                sys.exit(0)
            time.sleep(0.05)
        time.sleep(100)
        """
    code, lines = launched(tmp_path, body, "--grace", "0.2")
    assert code == 0
    assert any("worker 0 is lost with its place; all are started again" in line for line in lines)
    for job in ("chief", "ps", "worker"):
        assert len(list(tmp_path.glob(f"{job}*"))) == 2
    orphan = Path(f"/proc/{(tmp_path / 'pid').read_text()}")
    assert not orphan.exists()  # it has not outlived its actor


NO_ROOM = """
import os
from estimatorkit.core.errors import DeadlineExceededError
from estimatorkit.distribute.launch import ray_launcher as ray_place

ray_place._LOG_SECS = 0.5
first = ray_place.RayLauncher(1)
first.open({"chief": 1})
second = ray_place.RayLauncher(1, wait_secs=1)  # of the same Ray, which has one processor
try:
    second.open({"chief": 1, "ps": 1})
except DeadlineExceededError as error:
    print(error)
first.close()
"""


@pytest.mark.slow
def test_insufficient_resources() -> None:
    code, lines = run(["-c", NO_ROOM])
    assert code == 0, lines
    text = "\n".join(lines)
    assert "Ray has too few free CPUs for chief 0, ps 0" in text
    assert "add nodes" in text


@pytest.mark.slow
def test_processes_end_with_killed_launcher(tmp_path: Path) -> None:
    body = """
        (folder / name).write_text(str(os.getpid()))
        time.sleep(300)
        """
    names = ("chief 0", "ps 0", "worker 0")

    def pids() -> list[str]:
        return [path.read_text() for name in names if (path := tmp_path / name).exists()]

    def kill(launch: psutil.Process) -> None:
        until(lambda: len(list(filter(None, pids()))) == len(names), "the tasks were not started")
        launch.kill()

    code, _ = launched(tmp_path, body, watch=kill)
    assert code == -9
    until(lambda: not any(map(psutil.pid_exists, map(int, pids()))), "a task was left")
