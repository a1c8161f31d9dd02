"""`get_file`, images as arrays, and `Progbar`."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import estimatorkit as tf
from estimatorkit.core.errors import DataLossError, InvalidArgumentError, UnavailableError

get_file = tf.keras.utils.get_file
CONTENT = bytes(range(256)) * 40


def packed(members: dict[str, bytes], kind: str) -> bytes:
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            for name, content in members.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    files = {"/data.bin": CONTENT}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = files.get(self.path)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def test_get_file_downloads_once_and_verifies(server: str, tmp_path: Path) -> None:
    checksum = hashlib.sha256(CONTENT).hexdigest()
    path = get_file("a.bin", f"{server}/data.bin", file_hash=checksum, cache_dir=tmp_path)
    assert Path(path) == tmp_path / "datasets" / "a.bin"
    assert Path(path).read_bytes() == CONTENT
    Path(path).write_bytes(b"damaged")  # another checksum: fetched again
    get_file("a.bin", f"{server}/data.bin", md5_hash=md5(CONTENT), cache_dir=tmp_path)
    assert Path(path).read_bytes() == CONTENT
    assert get_file("a.bin", "https://nowhere.invalid/a.bin", cache_dir=tmp_path) == path
    with pytest.raises(DataLossError, match="its md5 is"):
        get_file("b.bin", f"{server}/data.bin", file_hash="0" * 32, cache_dir=tmp_path)
    assert not (tmp_path / "datasets" / "b.bin").exists()
    with pytest.raises(UnavailableError, match="404"):
        get_file("c.bin", f"{server}/c.bin", file_hash=checksum, cache_dir=tmp_path)
    with pytest.raises(ValueError, match="origin"):
        get_file("d.bin")
    with pytest.raises(ValueError, match="is no checksum"):
        get_file("d.bin", f"{server}/data.bin", file_hash="123")


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_archives_are_unpacked_beside_file(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "datasets"
    folder.mkdir()
    name = "flowers.tar.gz" if kind == "tar" else "flowers.zip"
    (folder / name).write_bytes(packed({"flowers/a.txt": b"daisy"}, kind))
    origin = f"https://nowhere.invalid/{name}"
    assert get_file(origin=origin, extract=True, cache_dir=tmp_path) == str(folder / name)
    assert (folder / "flowers" / "a.txt").read_bytes() == b"daisy"
    (folder / name).write_bytes(packed({"../outside.txt": b"daisy"}, kind))
    with pytest.raises(InvalidArgumentError, match="outside its folder"):
        get_file(origin=origin, extract=True, cache_dir=tmp_path)
    assert not (tmp_path / "outside.txt").exists()


def test_archive_that_unpacks_to_folder(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    archive = tmp_path / "photos" / "flowers.tar.gz"
    archive.write_bytes(packed({"flowers/a.txt": b"daisy"}, "tar"))
    path = get_file(
        "flowers",
        "https://nowhere.invalid/flowers.tgz",
        untar=True,
        cache_subdir="photos",
        cache_dir=tmp_path,
    )
    assert Path(path, "a.txt").read_bytes() == b"daisy"


def test_progress_bar_shows_averages(capsys: pytest.CaptureFixture[str]) -> None:
    bar = tf.keras.utils.Progbar(4, stateful_metrics=["accuracy"])
    for step in range(4):
        bar.add(1, [("loss", float(step)), ("accuracy", step / 4)])
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert line.startswith(f"4/4 [{'=' * 30}] - ")
    assert line.endswith("/step - loss: 1.5000 - accuracy: 0.7500\n")
    tf.keras.utils.Progbar(2, verbose=0).update(2)
    assert capsys.readouterr().out == ""
