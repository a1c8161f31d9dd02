"""Killed and failing writers: committed checkpoints stay, and nothing is left over.

The writers are forked, a few milliseconds each, by one process that has imported the store.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimatorkit.core import errors
from estimatorkit.storage import atomic_files as durable, checkpoint, checkpoint_format
from estimatorkit.storage.checkpoint import latest_checkpoint, read_checkpoint, read_latest
from estimatorkit.storage.checkpoint_state import update_checkpoint_state
from estimatorkit.storage.directory_lock import DirectoryLock
from estimatorkit.storage.retention import CheckpointRotation

REPOSITORY = Path(__file__).parents[2]

WRITERS = """
import json, os, signal, sys
import numpy as np
from estimatorkit.core import errors
from estimatorkit.storage import checkpoint
from estimatorkit.storage.retention import CheckpointRotation

def tensors(step, version=0):
    return {"w": np.full(5000, step, np.int64), "v": np.array(version)}

def save(manager, step, version=0):
    state = {"step": step, "version": version}
    manager.save(f"model.ckpt-{step}", tensors(step, version), state, shard_bytes=20000)

def save_for_ever(folder, log):
    # Each step is saved twice, so that replacing is killed as often as adding.
    manager = CheckpointRotation(folder, max_to_keep=2)
    latest = checkpoint.latest_checkpoint(folder)
    step = 0 if latest is None else checkpoint.read_checkpoint(latest).step
    with open(log, "a") as committed:
        while True:
            step += 1
            for version in range(2):
                save(manager, step, version)
                print(step, file=committed, flush=True)

def save_and_die_at(folder, step, version, moment):
    # Dies just before its file operation number `moment`, as told by Python's audit events.
    manager = CheckpointRotation(folder, max_to_keep=1)
    seen = 0
    def die(event, arguments):
        nonlocal seen
        if event == "open" or event.startswith(("os.", "shutil.")) and event != "os.kill":
            if seen == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1
    sys.addaudithook(die)
    save(manager, step, version)

def limited(folder, size):
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    report(lambda: save(CheckpointRotation(folder), 2))

def unprivileged(folder):
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    from estimatorkit.storage.directory_lock import DirectoryLock
    report(lambda: save(CheckpointRotation(folder), 2))
    report(lambda: DirectoryLock(folder).acquire())

def report(action):
    try:
        action()
        print(json.dumps(["no error", ""]), flush=True)
    except errors.OpError as error:
        print(json.dumps([type(error).__name__, str(error)]), flush=True)

import estimatorkit.storage.directory_lock
for line in sys.stdin:
    name, *arguments = json.loads(line)
    pid = os.fork()
    if pid == 0:
        print(os.getpid(), flush=True)  # by the child: the parent's line may come after a report
        globals()[name](*arguments)
        os._exit(0)
    print(os.waitpid(pid, 0)[1], flush=True)
"""


class Writers:
    """Starts writers one after the other; `wait` gives how the last one ended."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITERS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def start(self, name: str, *arguments: Any) -> int:
        """Returns the writer's process id."""
        self.stdin.write(json.dumps([name, *map(_plain, arguments)]) + "\n")
        self.stdin.flush()
        return int(self.stdout.readline())

    def report(self) -> tuple[str, str]:
        """Reads the class and the message of the error that the writer met."""
        kind, message = json.loads(self.stdout.readline())
        return kind, message

    def wait(self) -> int:
        """Returns the wait status: 0, or the signal that killed the writer."""
        return int(self.stdout.readline())

    def close(self) -> None:
        self.stdin.close()
        self.process.wait(10)
        self.stdout.close()


def _plain(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, Path) else value


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    started = Writers()
    yield started
    started.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach, as pytest's own cannot be."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def save(manager: CheckpointRotation, step: int, version: int = 0) -> None:
    tensors = {"w": np.full(5000, step, np.int64), "v": np.array(version)}
    state = {"step": step, "version": version}
    manager.save(f"model.ckpt-{step}", tensors, state, shard_bytes=20000)


def check_whole(loaded: checkpoint.Checkpoint) -> int:
    """Checks that tensors, state and name are of one save, and returns its step."""
    step = loaded.state["step"]
    assert loaded.step == step
    assert loaded.tensors["v"] == loaded.state["version"]
    np.testing.assert_array_equal(loaded.tensors["w"], np.full(5000, step))
    return int(step)


def leftovers(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if ".tmp-" in name or ".old-" in name]


@pytest.mark.slow
def test_killed_at_random_moments(writers: Writers, tmp_path: Path) -> None:
    log = tmp_path / "committed"
    log.touch()
    folder = tmp_path / "model"
    chance = random.Random(0)
    interrupted = 0
    for _ in range(50):
        already = log.stat().st_size
        pid = writers.start("save_for_ever", folder, log)
        while log.stat().st_size == already:  # from its first commit on
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.03))
        os.kill(pid, signal.SIGKILL)
        assert writers.wait() == signal.SIGKILL
        interrupted += bool(leftovers(folder))
        announced = int(log.read_text().split()[-1])
        assert check_whole(read_latest(folder)) >= announced
    assert interrupted > 5  # or the moments were not in the midst of saves
    step = announced + 10
    save(CheckpointRotation(folder, max_to_keep=2), step)
    assert leftovers(folder) == []
    assert check_whole(read_latest(folder)) == step


@pytest.mark.slow
@pytest.mark.parametrize("replace", [False, True])
def test_pain_point_34_killed_before_each_file_operation(
    replace: bool, writers: Writers, tmp_path: Path
) -> None:
    """Checkpoint 1 is there; a save of 2, or of 1 again, is killed; 1 or the new one is read."""
    before = tmp_path / "before"
    save(CheckpointRotation(before), 1)
    step, version = (1, 1) if replace else (2, 0)
    found = []
    for moment in range(500):
        folder = tmp_path / f"m{moment}"
        shutil.copytree(before, folder)
        writers.start("save_and_die_at", folder, step, version, moment)
        status = writers.wait()
        loaded = read_latest(folder)
        check_whole(loaded)
        found.append((loaded.state["step"], loaded.state["version"]))
        save(CheckpointRotation(folder, max_to_keep=1), 3)
        assert check_whole(read_latest(folder)) == 3
        assert sorted(os.listdir(folder)) == ["checkpoint", "model.ckpt-3"]
        if status == 0:
            break
        assert status == signal.SIGKILL
    assert len(found) > 30
    assert found == sorted(found)  # once the new one is found, it stays
    assert set(found) == {(1, 0), (step, version)}


def test_data_is_synced_before_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[tuple[str, str]] = []

    def name_of(path: Any) -> str:
        name = os.path.basename(os.fspath(path))
        return "TEMPORARY" if ".tmp-" in name else name

    def record(module: Any, attribute: str, label: str, index: int) -> None:
        real = getattr(module, attribute)

        def call(*arguments: Any) -> Any:
            steps.append((label, name_of(arguments[index])))
            return real(*arguments)

        monkeypatch.setattr(module, attribute, call)

    def fsync(descriptor: int) -> None:
        steps.append(("sync", name_of(os.readlink(f"/proc/self/fd/{descriptor}"))))

    monkeypatch.setattr(os, "fsync", fsync)
    record(os, "rename", "rename to", 1)
    record(os, "replace", "rename to", 1)
    folder = tmp_path / "model"
    save(CheckpointRotation(folder), 1)
    assert steps == [
        *(("sync", f"variables-0000{i}-of-00002.safetensors") for i in range(2)),
        ("sync", "state.json"),
        ("sync", "MANIFEST.json"),
        ("sync", "TEMPORARY"),
        ("rename to", "model.ckpt-1"),
        ("sync", "model"),
        ("sync", "TEMPORARY"),
        ("rename to", "checkpoint"),
        ("sync", "model"),
    ]


@pytest.mark.parametrize("size", [0, 1, 500, 15_000, 40_200])
def test_pain_point_34_full_disk_raises_and_harms_nothing(
    size: int, writers: Writers, tmp_path: Path
) -> None:
    """Two shards of 40 kB and 80 B, state of 40 B, manifest of 1 kB, cut at different places."""
    save(CheckpointRotation(tmp_path), 1)
    listing = sorted(os.listdir(tmp_path))
    writers.start("limited", tmp_path, size)
    kind, message = writers.report()
    assert writers.wait() == 0
    if size < 40_200:
        assert kind == "ResourceExhaustedError"
        assert os.fspath(tmp_path / "model.ckpt-2") in message
        assert f"(EFBIG, errno {errno.EFBIG})" in message
        assert "free space" in message
        assert sorted(os.listdir(tmp_path)) == listing
        assert check_whole(read_latest(tmp_path)) == 1
    else:
        assert kind == "no error"
        assert check_whole(read_latest(tmp_path)) == 2


@pytest.mark.parametrize("call", ["fsync", "rename", "replace", "mkdir"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_failing_system_call_raises_and_harms_nothing(
    call: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = CheckpointRotation(tmp_path)
    save(manager, 1)
    real = getattr(os, call)
    for failing in range(10):
        calls = 0

        def fail(*arguments: Any, failing: int = failing, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == failing + 1:
                raise OSError(code, os.strerror(code))
            return real(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail)
            try:
                save(manager, 1, version=failing + 1)
                message = None
            except errors.OpError as error:
                message = str(error)
        if calls <= failing:
            break
        assert message is None or f"errno {code}" in message
        assert check_whole(read_latest(tmp_path)) == 1
        save(manager, 1)
        assert leftovers(tmp_path) == []
    assert failing > 0


def test_unwritable_folder_raises(writers: Writers, open_folder: Path) -> None:
    """The writer gives up root's rights first, where it has them."""
    model = open_folder / "model"
    save(CheckpointRotation(model), 1)
    listing = sorted(os.listdir(model))
    model.chmod(0o555)
    writers.start("unprivileged", model)
    for _ in range(2):  # saving; and, before any training, taking the lock
        kind, message = writers.report()
        assert kind == "PermissionDeniedError"
        assert os.fspath(model) in message
        assert f"(EACCES, errno {errno.EACCES})" in message
        assert "give this user the right" in message
    assert writers.wait() == 0
    model.chmod(0o755)
    assert sorted(os.listdir(model)) == listing
    assert check_whole(read_latest(model)) == 1


def test_file_in_place_of_folder_raises(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    for folder in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(errors.FailedPreconditionError, match="a file is where a folder"):
            checkpoint.write_checkpoint(folder, "c-1", {})
        assert latest_checkpoint(folder) is None
    assert (tmp_path / "file").read_text() == "content"


def test_stale_temporary_files_are_distinguished_from_live_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    dead, live, host = done.pid, os.getppid(), durable._host()
    old = time.time() - 90_000
    ours = [
        *(f"c-1.tmp-{dead}-{host}0000a", f"c-1.tmp-{live}-{host}0000b"),
        f"c-1.tmp-{os.getpid()}-{host}0000c",  # an earlier process of our number
    ]
    others = [
        *(f"c-1.tmp-{live}-{host}0000d", f"c-1.tmp-{dead}-0000000e", f"c-1.tmp-{dead}-mine"),
        *(f"c-1.tmp-{dead}-{'0' * 6}0000f", "target"),
    ]
    for name in [*ours, *others]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.json").touch()
    os.utime(tmp_path / ours[1], (old, old))
    (tmp_path / f"checkpoint.tmp-{dead}-{host}0000c").touch()
    (tmp_path / f"events.tmp-{dead}-{'0' * 6}0000c").touch()  # of an evaluator, which has no lock
    others.append(f"events.tmp-{dead}-{'0' * 6}0000c")
    (tmp_path / f"c-1.tmp-{dead}-{host}0000f").symlink_to("target")
    (tmp_path / "target" / f"trial.tmp-{dead}-{host}00001").touch()
    with durable.temporary_beside(tmp_path / "other") as current:
        current.mkdir()
        checkpoint.write_checkpoint(tmp_path, "c-2", {})
        assert sorted(os.listdir(tmp_path)) == sorted([*others, "c-2", current.name])
        with DirectoryLock(tmp_path):  # only its holder makes checkpoints
            kept = [others[0], others[2], "target", others[-1], "c-2", current.name]
            locks = ["writer.lock", "writer.lock.json"]
            assert sorted(os.listdir(tmp_path)) == sorted([*kept, *locks])
    assert os.listdir(tmp_path / "target") == ["state.json"]


def test_only_what_a_killed_process_wrote_last_is_adopted(tmp_path: Path) -> None:
    """Older checkpoints, and those that a user has put aside or gone back from, stay."""
    first = CheckpointRotation(tmp_path, max_to_keep=2)
    for step in range(5, 8):
        save(first, step)
    checkpoint.write_checkpoint(tmp_path, "model.ckpt-4", {})  # older than what is listed
    checkpoint.write_checkpoint(tmp_path, "other.ckpt-9", {})
    checkpoint.write_checkpoint(tmp_path, "model.ckpt-8", {})
    checkpoint.write_checkpoint(tmp_path, "model.ckpt-10", {})
    (tmp_path / "model.ckpt-10" / "notes.txt").touch()
    resumed = CheckpointRotation(tmp_path, max_to_keep=2, basename="model.ckpt")
    names = [os.path.basename(path) for path in resumed.last_checkpoints]
    assert names == ["model.ckpt-8", "model.ckpt-6", "model.ckpt-7"]
    update_checkpoint_state(tmp_path, "model.ckpt-6")  # a user goes back
    back = CheckpointRotation(tmp_path, max_to_keep=2, basename="model.ckpt")
    assert [os.path.basename(path) for path in back.last_checkpoints] == ["model.ckpt-6"]
    (tmp_path / "checkpoint").unlink()
    assert CheckpointRotation(tmp_path, max_to_keep=2).last_checkpoints == []


@pytest.mark.slow
def test_evaluator_reads_during_removal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One thread saves and keeps a single checkpoint, the others read the newest."""
    manager = CheckpointRotation(tmp_path, max_to_keep=1)
    save(manager, 1)
    stop = threading.Event()
    seen: list[list[int]] = [[], []]
    failures: list[BaseException] = []

    def evaluate(steps: list[int]) -> None:
        try:
            while not stop.is_set():
                steps.append(check_whole(read_latest(tmp_path)))
        except (errors.OpError, AssertionError) as error:
            failures.append(error)

    readers = [threading.Thread(target=evaluate, args=(steps,)) for steps in seen]
    for reader in readers:
        reader.start()
    for step in range(2, 25):
        save(manager, step)
        save(manager, step, version=1)
    stop.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert caplog.records == []
    for steps in seen:
        assert steps == sorted(steps)
        assert len(set(steps)) > 1


def test_vanished_checkpoint_is_not_found(tmp_path: Path) -> None:
    path = checkpoint.write_checkpoint(tmp_path, "c-1", {"w": np.zeros(1)})

    def vanish(files: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            checkpoint.remove_checkpoint(path)
            return files(*arguments)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "read_tensors", vanish(checkpoint_format.read_tensors))
        with pytest.raises(errors.NotFoundError, match="removed or replaced while it was read"):
            read_checkpoint(path)
