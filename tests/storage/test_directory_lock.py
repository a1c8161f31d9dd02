"""One writer per folder: across processes and objects, after a crash, after a fork."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from estimatorkit.core import errors
from estimatorkit.storage.checkpoint import write_checkpoint
from estimatorkit.storage.directory_lock import DirectoryLock

HOLD = """
import sys, time
from estimatorkit.storage.directory_lock import DirectoryLock
with DirectoryLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, os.fspath(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_two_processes_exclude_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "größe"
    with holder(folder) as process:
        lock = DirectoryLock(folder)
        with pytest.raises(errors.FailedPreconditionError) as caught:
            lock.acquire()
        assert not lock.is_held
        message = str(caught.value)
        assert os.fspath(folder) in message
        since = json.loads((folder / "writer.lock.json").read_text())["since"]
        assert f"process {process.pid} on {socket.gethostname()} holds it since {since}" in message
        assert "another model_dir" in message
    with lock:
        assert json.loads((folder / "writer.lock.json").read_text())["pid"] == os.getpid()
    assert os.listdir(folder) == ["writer.lock"]


def test_killed_holder_releases_lock(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (tmp_path / "writer.lock.json").exists()
        with DirectoryLock(tmp_path) as lock:
            assert lock.is_held


def test_two_objects_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path), pytest.raises(errors.FailedPreconditionError) as caught:
        DirectoryLock(tmp_path).acquire()
    assert f"process {os.getpid()} on" in str(caught.value)


def test_lock_is_reentrant_and_shared_by_threads(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    with lock:
        with lock:
            assert lock.is_held
        assert lock.is_held
        assert (tmp_path / "writer.lock.json").exists()
        thread = threading.Thread(target=lock.acquire)
        thread.start()
        thread.join()
        lock.release()
        assert lock.is_held
    assert not lock.is_held
    lock.release()  # once too often does nothing
    with DirectoryLock(tmp_path):
        pass


def test_released_when_body_raises(tmp_path: Path) -> None:
    with pytest.raises(KeyError), DirectoryLock(tmp_path):
        raise KeyError
    with DirectoryLock(tmp_path) as lock:
        assert lock.is_held


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"{}", b"3", b"[" * 5000, None])
def test_unreadable_holder_note(content: bytes | None, tmp_path: Path) -> None:
    with DirectoryLock(tmp_path):
        note = tmp_path / "writer.lock.json"
        note.unlink() if content is None else note.write_bytes(content)
        with pytest.raises(errors.FailedPreconditionError, match="another process holds it"):
            DirectoryLock(tmp_path).acquire()


def test_uncreatable_folder_raises(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(errors.FailedPreconditionError, match="a file is where a folder"):
            DirectoryLock(folder).acquire()
    (tmp_path / "m" / "writer.lock.json").mkdir(parents=True)
    lock = DirectoryLock(tmp_path / "m")
    with pytest.raises(errors.FailedPreconditionError, match=r"writer\.lock\.json"):
        lock.acquire()
    assert not lock.is_held


def test_removed_folder_is_locked_again_by_the_next_save(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "model"
    value = {"x": np.zeros(2)}
    with DirectoryLock(folder) as lock, lock:
        write_checkpoint(folder, "model.ckpt-1", value)
        assert not caplog.messages
        shutil.rmtree(folder)
        write_checkpoint(folder, "model.ckpt-2", value)
        assert "was removed" in caplog.text
        with pytest.raises(errors.FailedPreconditionError, match=f"process {os.getpid()} on"):
            DirectoryLock(folder).acquire()
    assert sorted(os.listdir(folder)) == ["model.ckpt-2", "writer.lock"]


def test_folder_that_another_writer_made_anew_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with DirectoryLock(folder) as lock:
        shutil.rmtree(folder)
        with holder(folder) as process:
            with pytest.raises(errors.FailedPreconditionError, match=f"process {process.pid} on"):
                write_checkpoint(folder, "model.ckpt-2", {"x": np.zeros(2)})
            assert not lock.is_held
            lock.release()
            assert sorted(os.listdir(folder)) == ["writer.lock", "writer.lock.json"]


def test_end_of_a_folder_that_became_a_file_is_silent(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with DirectoryLock(folder):
        shutil.rmtree(folder)
        folder.touch()
    assert folder.is_file()
