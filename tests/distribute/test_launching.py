"""Local clusters: environment, output, exit codes, restarts and signals of real processes."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from estimatorkit.distribute.launch.launchers import LocalLauncher
from estimatorkit.distribute.launch.launching import Launch, local_cluster, tasks_of
from tests.distribute.processes import until

ASYNC = {"chief": 1, "ps": 1, "worker": 1}
SYNC = {"worker": 2}

ROLE = """
import json, os, signal, sys, time
task = json.loads(os.environ["TF_CONFIG"])["task"]
name = f"{task['type']} {task['index']}"
"""


def program(tmp_path: Path, body: str) -> list[str]:
    """A program that knows its task's `name`."""
    path = tmp_path / "program.py"
    path.write_text(ROLE + textwrap.dedent(body))
    return [sys.executable, "-S", str(path)]


def launched(command: list[str], tasks: Any = ASYNC, **options: Any) -> tuple[int, list[str]]:
    """The exit code and the lines."""
    out = io.StringIO()
    code = Launch(command, tasks, out=out, **options).run()
    return code, out.getvalue().splitlines()


def test_addresses_are_free_local_ports() -> None:
    cluster = local_cluster(2, 3)
    assert {job: len(hosts) for job, hosts in cluster.items()} == {"chief": 1, "ps": 2, "worker": 2}
    addresses = [address for hosts in cluster.values() for address in hosts]
    assert len(set(addresses)) == 5
    assert all(address.startswith("127.0.0.1:") for address in addresses)
    assert {job: len(hosts) for job, hosts in local_cluster(0, 3, True).items()} == {"worker": 3}
    assert list(local_cluster(0, 1)) == ["chief"]


def test_processes_know_their_task_and_lines_are_prefixed(tmp_path: Path) -> None:
    command = program(
        tmp_path,
        """
        cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
        print("of", sum(map(len, cluster.values())), flush=True)
        print("error line", file=sys.stderr)
        """,
    )
    code, lines = launched(command, evaluator=True)
    assert code == 0
    names = ["chief 0", "ps 0", "worker 0", "evaluator 0"]
    expected = [f"[{name}]".ljust(14) + text for name in names for text in ("of 3", "error line")]
    assert sorted(lines) == sorted(expected)


def test_exit_code_is_chiefs(tmp_path: Path) -> None:
    body = "sys.exit({'chief 0': 3, 'worker 0': 7}.get(name, 0))"
    code, lines = launched(program(tmp_path, body))
    assert code == 3
    assert "[launch]   chief 0 ended with 3" in lines
    code, _ = launched(program(tmp_path, "if name == 'chief 0': os.kill(os.getpid(), 9)"))
    assert code == 128 + 9


@pytest.mark.slow
def test_remaining_processes_are_stopped_after_chief(tmp_path: Path) -> None:
    command = program(
        tmp_path,
        """
        if name != "chief 0":
            if name == "worker 0":
                signal.signal(signal.SIGTERM, lambda *_: (print("saved"), sys.exit(143)))
            print("ready", flush=True)
            time.sleep(1000)
        time.sleep(1)
        """,
    )
    started = time.monotonic()
    code, lines = launched(command, grace=0.5)
    assert code == 0
    assert time.monotonic() - started < 600
    assert "[launch]   ps 0, worker 0: still running 0.5 s after the chief's end; stopped" in lines
    assert "[worker 0] saved" in lines


@pytest.mark.parametrize(
    ("tasks", "dies", "code"),
    [(ASYNC, "ps 0", 5), (SYNC, "worker 1", 5), (ASYNC, "worker 0", 0)],
    ids=["a parameter server", "one of equals", "a worker"],
)
def test_indispensable_processes(tasks: Any, dies: str, code: int, tmp_path: Path) -> None:
    body = f"""
        if name == {dies!r}:
            sys.exit(5)
        time.sleep({100 if code else 1})
        """
    found, lines = launched(program(tmp_path, body), tasks, grace=0.2)
    assert found == code
    assert any(line.endswith(f"{dies} ended with 5") for line in lines)
    told = f"the others cannot go on without {dies}; they are stopped"
    assert any(told in line for line in lines) == bool(code)


def test_process_ended_by_signal_is_restarted(tmp_path: Path) -> None:
    command = program(
        tmp_path,
        f"""
        from pathlib import Path
        marks = Path({str(tmp_path)!r}, name.replace(" ", "-"))
        count = len(marks.read_text()) if marks.exists() else 0
        marks.write_text("x" * (count + 1))
        if name == "worker 0" and count < 2:
            os.kill(os.getpid(), 9) if count else os._exit(138)
        if name == "worker 0":
            Path({str(tmp_path)!r}, "done").touch()
        while not Path({str(tmp_path)!r}, "done").exists():
            time.sleep(0.05)
        """,
    )
    code, lines = launched(command, restarts=2)
    assert code == 0
    assert "[launch]   worker 0 ended with 138; it is started again" in lines
    assert "[launch]   worker 0 ended with 137; it is started again" in lines
    assert (tmp_path / "worker-0").read_text() == "xxx"
    assert (tmp_path / "ps-0").read_text() == "x"
    # An error of the program is not mended by trying it again.
    code, lines = launched(program(tmp_path, "sys.exit(1)"), restarts=2)
    assert code == 1
    assert not any("again" in line for line in lines)


def started(command: list[str], workers: int) -> tuple[subprocess.Popen[str], list[int]]:
    """A launch with one parameter server, and its tasks, which print 'pid' and theirs."""
    launch = [sys.executable, "-m", "estimatorkit", "launch", "--ps", "1"]
    process = subprocess.Popen(
        [*launch, "--workers", str(workers), "--", *command],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    return process, [int(process.stdout.readline().split()[-1]) for _ in range(workers + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_every_process(number: int, tmp_path: Path) -> None:
    body = """
        def handle(number, frame):
            print("got", number, flush=True)
            sys.exit(128 + number)
        signal.signal(signal.SIGINT, handle)
        signal.signal(signal.SIGTERM, handle)
        print("pid", os.getpid(), flush=True)
        time.sleep(100)
        """
    process, children = started(program(tmp_path, body), workers=2)
    process.send_signal(number)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert rest.count(f"got {int(number)}") == 3
    assert not any(psutil.pid_exists(child) for child in children)


@pytest.mark.slow
def test_processes_end_with_killed_launcher(tmp_path: Path) -> None:
    body = """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("pid", os.getpid(), flush=True)
        time.sleep(600)
        """
    process, children = started(program(tmp_path, body), workers=1)
    assert all(map(is_alive, children))
    process.kill()
    until(lambda: not any(map(is_alive, children)), "somebody lives on")
    process.communicate()


def test_missing_program_is_not_started(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such file"):
        launched([str(tmp_path / "none")])


def test_child_processes_end_with_their_parent(tmp_path: Path) -> None:
    """They hold the pipe with its lines."""
    command = program(
        tmp_path,
        """
        import subprocess
        left = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        print("left", left.pid, flush=True)
        """,
    )
    code, lines = launched(command, {"chief": 1})
    assert code == 0
    left = int(lines[0].split()[-1])
    until(lambda: not is_alive(left), "it was left behind")


def is_alive(pid: int) -> bool:
    """Whether a process is there; one that has ended and that nobody has waited for is not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Crowded(LocalLauncher):
    """A place where one waits for room; meanwhile somebody stops the launch."""

    is_closed = False

    def open(self, counts: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
        return super().open(counts)

    def close(self) -> None:
        self.is_closed = True


def test_signal_ends_wait_for_resources(tmp_path: Path) -> None:
    place = Crowded()
    with pytest.raises(SystemExit) as caught:
        launched(program(tmp_path, "print('never')"), launcher=place)
    assert caught.value.code == 128 + signal.SIGINT
    assert place.is_closed


@pytest.mark.slow
def test_command_options(tmp_path: Path) -> None:
    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = program(tmp_path, "print(name, len(sys.argv))")
        words = [sys.executable, "-m", "estimatorkit", "launch", *options, "--", *command, "--a"]
        return subprocess.run(words, capture_output=True, text=True, timeout=120)

    alone = run()
    assert alone.stdout == "[chief 0] chief 0 2\n"
    both = run("--sync", "2", "--evaluator")
    assert sorted(both.stdout.split("\n")[:3]) == [
        "[evaluator 0] evaluator 0 2",
        "[worker 0]    worker 0 2",
        "[worker 1]    worker 1 2",
    ]
    wrong = run("--sync", "2", "--ps", "1")
    assert wrong.returncode == 2
    assert "--sync cannot be combined" in wrong.stderr
    words = [sys.executable, "-m", "estimatorkit", "launch", "--", "/no/such/program"]
    missing = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert missing.returncode == 1
    assert "No such file or directory: '/no/such/program'" in missing.stderr


def test_tf_config_matches_parser(tmp_path: Path) -> None:
    from estimatorkit.distribute.cluster_task import ClusterTask

    command = program(tmp_path, "print(os.environ['TF_CONFIG'])")
    _, lines = launched(command, tasks_of(2, 3), evaluator=True)
    found = [json.loads(line.split("]", 1)[1]) for line in lines]
    tasks = [ClusterTask.of_environment({"TF_CONFIG": json.dumps(each)}) for each in found]
    assert sum(each.is_chief for each in tasks) == 1
    assert {(each.type, each.index) for each in tasks} == {
        *(("chief", 0), ("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1), ("evaluator", 0))
    }
