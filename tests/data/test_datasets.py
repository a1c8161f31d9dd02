"""Bundled and downloaded data sets: lookup, downloading (from a local server), and content."""

from __future__ import annotations

import gzip
import hashlib
import io
import logging
import multiprocessing
import os
import struct
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import estimatorkit as tf
from estimatorkit.compat import mnist_input_data
from estimatorkit.core.errors import DataLossError
from estimatorkit.data.datasets import mnist, text8
from estimatorkit.data.datasets.download import DataFile, Downloader
from estimatorkit.data.datasets.files import DataSet, cache_folder, zip_member
from estimatorkit.data.readers.idx import read_idx
from tests.slides.data import data_dir

CONTENT = bytes(range(256)) * 400


class Server:
    """A server on this machine: what it answers is a function of the request."""

    def __init__(self) -> None:
        self.requests: list[dict[str, str]] = []
        self.answer: Callable[[Any], None] = self.whole
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append({"path": self.path, **dict(self.headers.items())})
                outer.answer(self)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/file"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @staticmethod
    def send(handler: Any, status: int, body: bytes, **headers: str) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    def whole(self, handler: Any) -> None:
        self.send(handler, 200, CONTENT, Content_Length=str(len(CONTENT)))

    def cut(self, handler: Any) -> None:
        """A third of what is asked for, and the connection ends."""
        start = int(handler.headers.get("Range", "bytes=0-")[6:-1])
        rest = CONTENT[start:]
        end = len(CONTENT) if len(rest) < 2000 else start + len(rest) // 3
        self.send(
            handler,
            206 if start else 200,
            CONTENT[start:end],
            Content_Length=str(len(rest)),
            Content_Range=f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}",
        )

    def cut_from_the_beginning(self, handler: Any) -> None:
        """Half the file twice, then all; it knows nothing of ranges."""
        size = len(CONTENT) if len(self.requests) > 2 else len(CONTENT) // 2
        self.send(handler, 200, CONTENT[:size], Content_Length=str(len(CONTENT)))


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ESTIMATORKIT_DATA_DIR", raising=False)
    monkeypatch.setenv("ESTIMATORKIT_CACHE_DIR", str(tmp_path / "cache"))


def data_set(*urls: str, content: bytes = CONTENT, name: str = "file.bin") -> DataSet:
    file = DataFile(name, len(content), hashlib.sha256(content).hexdigest(), urls)
    return DataSet("test", "a test", "none", "folder", (file,), lambda: None)


LOCAL = Downloader(schemes=("http",), attempts=3, timeout=5.0, pause=0.001)


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.suffix != ".lock")


# -- finding and fetching


def test_file_is_downloaded_once(server: Server, tmp_path: Path) -> None:
    described = data_set(server.url)
    assert not described.has("file.bin")
    for _ in range(2):
        path = described.path("file.bin", LOCAL)
        assert path == tmp_path / "cache/folder/file.bin"
        assert path.read_bytes() == CONTENT
    assert described.has("file.bin")
    assert len(server.requests) == 1
    assert left_over(tmp_path / "cache") == ["file.bin", "folder"]


def test_given_folder_takes_precedence(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", str(tmp_path / "mine"))
    mine = tmp_path / "mine/folder/file.bin"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(CONTENT)
    assert data_set(server.url).path("file.bin", LOCAL) == mine
    assert not server.requests
    for wrong, words in ((b"", "is empty"), (b"x" * len(CONTENT), "is not the expected file")):
        mine.write_bytes(wrong)
        with pytest.raises(tf.errors.DataLossError, match=f"file.bin {words}") as raised:
            data_set(server.url).path("file.bin", LOCAL)
        assert hashlib.sha256(CONTENT).hexdigest() in str(raised.value)


@pytest.mark.parametrize("how", ["cut", "cut_from_the_beginning"])
def test_interrupted_download_resumes(server: Server, how: str, tmp_path: Path) -> None:
    server.answer = getattr(server, how)
    patient = Downloader(("http",), attempts=30, timeout=5.0, pause=0.0)
    assert data_set(server.url).path("file.bin", patient).read_bytes() == CONTENT
    assert len(server.requests) > 2
    starts = [request.get("Range", "") for request in server.requests]
    assert starts[0] == ""
    assert starts[1].startswith("bytes=")
    assert left_over(tmp_path / "cache") == ["file.bin", "folder"]


def test_retries_then_next_url(server: Server, tmp_path: Path) -> None:
    server.answer = lambda handler: (
        server.send(handler, 503, b"")
        if handler.path == "/busy"
        else server.send(handler, 404, b"")
        if handler.path == "/gone"
        else server.whole(handler)
    )
    base = server.url.removesuffix("/file")
    path = data_set(f"{base}/gone", f"{base}/busy", server.url).path("file.bin", LOCAL)
    assert path.read_bytes() == CONTENT
    assert [each["path"] for each in server.requests] == ["/gone", *["/busy"] * 3, "/file"]
    with pytest.raises(
        tf.errors.UnavailableError, match=r"could not fetch the file b\.bin"
    ) as error:
        data_set(f"{base}/gone", f"{base}/busy", name="b.bin").path("b.bin", LOCAL)
    for words in ("404 Not Found", "503 Service Unavailable, 3 times", "put it at", "by hand"):
        assert words in str(error.value)
    assert str(tmp_path / "cache/folder/b.bin") in str(error.value)
    assert "folder/b.bin in a folder that ESTIMATORKIT_DATA_DIR names" in str(error.value)
    assert left_over(tmp_path / "cache") == ["file.bin", "folder"]


@pytest.mark.parametrize("body", [CONTENT[:-1] + b"?", CONTENT + b"more", b"<html>sorry</html>"])
def test_wrong_checksum_is_refused(server: Server, body: bytes, tmp_path: Path) -> None:
    server.answer = lambda handler: server.send(handler, 200, body)
    kinds = (tf.errors.DataLossError, tf.errors.UnavailableError)
    with pytest.raises(kinds, match=r"could not fetch the file file\.bin"):
        data_set(server.url).path("file.bin", LOCAL)
    assert left_over(tmp_path / "cache") == ["folder"]


def test_endless_download_is_stopped(server: Server) -> None:
    sent = []

    def endless(handler: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            for _ in range(10_000):
                handler.wfile.write(bytes(1 << 16))
                sent.append(1)
        except OSError:
            pass

    server.answer = endless
    with pytest.raises(tf.errors.DataLossError, match=f"more than {len(CONTENT)} bytes"):
        data_set(server.url).path("file.bin", LOCAL)
    assert len(sent) < 10_000


def test_only_https_by_default(server: Server) -> None:
    with pytest.raises(tf.errors.UnavailableError, match="is not https"):
        data_set(server.url).path("file.bin")
    with pytest.raises(tf.errors.UnavailableError, match="is not https"):
        data_set("file:///etc/passwd").path("file.bin")
    assert not server.requests


@pytest.mark.parametrize(
    "where", ["file:///etc/passwd", "ftp://127.0.0.1/x", "https://127.0.0.1:1"]
)
def test_unsafe_redirects_are_refused(server: Server, where: str) -> None:
    server.answer = lambda handler: server.send(handler, 302, b"", Location=where)
    with pytest.raises(tf.errors.UnavailableError, match=r"is not http|is not allowed"):
        data_set(server.url).path("file.bin", LOCAL)


def test_offline(tmp_path: Path) -> None:
    server = Server()
    server.close()
    for url in (server.url, "http://a.name.that.does.not.exist.invalid/file"):
        with pytest.raises(tf.errors.UnavailableError, match="could not fetch") as error:
            data_set(url).path("file.bin", LOCAL)
        assert url in str(error.value)
    with pytest.raises(
        tf.errors.NotFoundError, match=r"the file file.bin is not there\.\n.*put it"
    ):
        data_set().path("file.bin", LOCAL)
    with pytest.raises(KeyError, match="did you mean"):
        data_set().path("flie.bin", LOCAL)


def test_unwritable_folder(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATORKIT_CACHE_DIR", "/dev/null/cache")
    with pytest.raises(tf.errors.FailedPreconditionError, match="could not write"):
        data_set(server.url).path("file.bin", LOCAL)


def _fetch(url: str) -> None:
    data_set(url).path("file.bin", LOCAL)


@pytest.mark.slow
def test_two_processes_download_once(server: Server, tmp_path: Path) -> None:
    both_wait = threading.Event()

    def slow(handler: Any) -> None:
        both_wait.wait(0.3)
        server.whole(handler)

    server.answer = slow
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_fetch, args=(server.url,)) for _ in range(2)]
    for each in others:
        each.start()
    for each in others:
        each.join(60)
    assert [each.exitcode for each in others] == [0, 0]
    assert len(server.requests) == 1
    assert (tmp_path / "cache/folder/file.bin").read_bytes() == CONTENT


def test_threads_download_once_and_waiting_is_logged(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from estimatorkit.data.datasets import download

    monkeypatch.setattr(download, "_PATIENCE", 0.01)
    said = threading.Event()

    def slow(handler: Any) -> None:
        said.wait(0.2)
        server.whole(handler)

    server.answer = slow
    with caplog.at_level(logging.INFO, logger="estimatorkit"):
        threads = [threading.Thread(target=_fetch, args=(server.url,)) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(server.requests) == 1
    assert "waiting for another process that fetches" in caplog.text


def test_cache_location(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("ESTIMATORKIT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg/estimatorkit"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home/.cache/estimatorkit"


# -- archives


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name.replace("_up_", "../"), content)
    return path


def test_archives_are_read_in_memory(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", _up_evil=b"out of here", text8=b"some words")
    before = sorted(tmp_path.parent.rglob("*"))
    assert zip_member(path, "text8", 10) == b"some words"
    assert sorted(tmp_path.parent.rglob("*")) == before
    with pytest.raises(tf.errors.DataLossError, match="too large"):
        zip_member(path, "text8", 9)
    bomb = archive(tmp_path / "bomb.zip", text8=bytes(10_000_000))
    with pytest.raises(tf.errors.DataLossError, match="too large"):
        zip_member(bomb, "text8", 1000)
    with pytest.raises(tf.errors.DataLossError, match="no valid file 'other'"):
        zip_member(path, "other", 10)
    damaged = bytearray(path.read_bytes())
    damaged[40] ^= 255  # in the content of the first one
    for content in (b"", b"no archive", bytes(damaged), path.read_bytes()[:60]):
        (tmp_path / "b.zip").write_bytes(content)
        with pytest.raises(tf.errors.DataLossError, match="contains no valid file"):
            zip_member(tmp_path / "b.zip", "../evil", 100)


# -- descriptions


def test_descriptions_are_complete() -> None:
    found = tf.datasets.catalogue()
    assert set(found) == {
        *("abalone", "automobile", "california_housing", "census", "digits", "fashion_mnist"),
        *("iris", "mnist", "movie_reviews", "movielens_100k", "movielens_1m", "text8"),
    }
    for name, each in found.items():
        module = getattr(tf.datasets, name)
        assert module.DATA_SET is each
        assert each.load is module.load_data
        assert each.title
        assert each.licence
        for file in each.files:
            assert len(bytes.fromhex(file.sha256)) == 32
            assert file.size > 0
            assert all(url.startswith("https://") for url in file.urls)
            assert Path(file.name).name == file.name


# -- what they hold


def test_iris_and_digits_are_bundled() -> None:
    (x, y), (test_x, test_y) = tf.datasets.iris.load_data()
    assert (len(x), len(y), len(test_x), len(test_y)) == (120, 120, 30, 30)
    (x, y), (test_x, test_y) = tf.datasets.digits.load_data()
    assert x.shape == (1438, 8, 8)
    assert test_x.shape == (359, 8, 8)
    assert x.dtype == y.dtype == np.uint8
    assert np.bincount(np.concatenate([y, test_y])).tolist() == [
        *(178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
    ]
    assert int(x.max()) == 16
    again = tf.datasets.digits.load_data()
    np.testing.assert_array_equal(again[0][1], y)
    other = tf.datasets.digits.load_data(seed=1)
    assert (other[0][1] != y).any()


def idx(array: np.ndarray[Any, Any]) -> bytes:
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return gzip.compress(header + array.astype(np.uint8).tobytes(), mtime=0)


def test_mnist_reads_downloaded_files(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The whole way, with four small files in the form of MNIST's."""
    images = np.arange(2 * 28 * 28).reshape(2, 28, 28) % 256
    contents = {
        "train-images-idx3-ubyte.gz": idx(images),
        "train-labels-idx1-ubyte.gz": idx(np.array([3, 7])),
        "t10k-images-idx3-ubyte.gz": idx(images[:1]),
        "t10k-labels-idx1-ubyte.gz": idx(np.array([9])),
    }
    server.answer = lambda handler: server.send(handler, 200, contents[handler.path[1:]])
    base = server.url.removesuffix("file")
    small = DataSet(
        *("mnist", "small", "none", "mnist"),
        tuple(
            DataFile(name, len(each), hashlib.sha256(each).hexdigest(), (base + name,))
            for name, each in contents.items()
        ),
        mnist.load_data,
    )
    for name in contents:
        small.path(name, LOCAL)
    monkeypatch.setattr(mnist, "DATA_SET", small)
    (x, y), (test_x, test_y) = tf.datasets.mnist.load_data()
    np.testing.assert_array_equal(x, images)
    assert x.dtype == y.dtype == np.uint8
    assert y.tolist() == [3, 7]
    assert test_x.shape == (1, 28, 28)
    assert test_y.tolist() == [9]
    sets = mnist_input_data.read_data_sets(str(tmp_path), one_hot=True, validation_size=1)
    assert sets.train.images.shape == (1, 784)
    assert sets.test.labels.tolist() == [[0.0] * 9 + [1.0]]
    assert len(server.requests) == 4


def test_text8_from_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("text8", " anarchism originated as a term")
    content = buffer.getvalue()
    file = DataFile("text8.zip", len(content), hashlib.sha256(content).hexdigest())
    small = DataSet("text8", "", "", "text", (file, text8.DATA_SET.files[1]), text8.load_data)
    monkeypatch.setattr(text8, "DATA_SET", small)
    folder = cache_folder() / "text"
    folder.mkdir(parents=True)
    (folder / "text8.zip").write_bytes(content)
    assert tf.datasets.text8.load_data().split()[:2] == ["anarchism", "originated"]
    assert tf.datasets.text8.load_data(head=True) == tf.datasets.text8.load_data()


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets loaders read the real files, where they are; the test is skipped where not."""

    def use(folder: str) -> None:
        monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", str(data_dir(folder).parent))

    return use


# What the fixture `folders` removes is needed to find the data.
NAMED = os.environ.get("ESTIMATORKIT_DATA_DIR")


@pytest.fixture(autouse=True)
def named(folders: None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if NAMED and "shared" in request.fixturenames:
        monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", NAMED)


def test_mnist(shared: Callable[[str], None]) -> None:
    shared("mnist")
    (x, y), (test_x, test_y) = tf.datasets.mnist.load_data()
    assert x.shape == (60000, 28, 28)
    assert test_x.shape == (10000, 28, 28)
    assert x.dtype == y.dtype == np.uint8
    assert y[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.bincount(test_y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_census(shared: Callable[[str], None]) -> None:
    shared("census")
    train, test = tf.datasets.census.load_data()
    assert (train.shape, test.shape) == ((32561, 15), (16281, 15))
    assert list(train.columns) == list(tf.datasets.census.CSV_COLUMNS)
    assert (train.income_bracket == ">50K").sum() == 7841
    assert (test.income_bracket == ">50K").sum() == 3846
    assert set(test.income_bracket) == {"<=50K", ">50K"}
    assert (train.workclass == "?").sum() == 1836
    assert train.age.dtype == np.int64
    assert test.age[0] == 25
    train, test = tf.datasets.census.load_data(question_marks=False)
    assert train.workclass.isna().sum() == 1836
    assert not (train == "?").any(axis=None)


def test_tables(shared: Callable[[str], None]) -> None:
    shared("automobile")
    cars = tf.datasets.automobile.load_data()
    assert cars.shape == (205, 26)
    assert cars.price.notna().sum() == 201
    assert cars.price.mean() == pytest.approx(13207.13, abs=0.01)
    shared("abalone")
    shells = tf.datasets.abalone.load_data()
    assert shells.shape == (4177, 9)
    assert shells.rings.dtype == np.int64
    assert set(shells.sex) == {"M", "F", "I"}
    shared("california")
    houses = tf.datasets.california_housing.load_data()
    assert houses.shape == (20640, 10)
    assert houses.total_bedrooms.isna().sum() == 207
    (x, y), (test_x, test_y) = tf.datasets.split_rows(cars, "price")
    assert (len(x), len(y), len(test_x), len(test_y)) == (141, 141, 60, 60)
    assert "price" not in x.columns


def test_text(shared: Callable[[str], None]) -> None:
    shared("rt-polarity")
    (x, y), (test_x, test_y) = tf.datasets.movie_reviews.load_data()
    assert (len(x), len(test_x)) == (9596, 1066)
    assert y.sum() + test_y.sum() == 5331
    together = dict(zip(x + test_x, [*y, *test_y], strict=True))
    assert together["simplistic , silly and tedious ."] == 0
    again = tf.datasets.movie_reviews.load_data()
    assert again[1][0] == test_x
    shared("text")
    head = tf.datasets.text8.load_data(head=True)
    assert len(head) == 6_877_824
    assert len(head.split()) == 1_171_946


def test_splits() -> None:
    table = pd.DataFrame({"a": range(10), "b": [*range(9), None]})
    (x, y), (test_x, test_y) = tf.datasets.split_rows(table, "b", 0.5, seed=3)
    assert sorted([*x.a, *test_x.a]) == list(range(9))
    assert (x.a == y).all()
    assert (test_x.a == test_y).all()
    (_, same), _ = tf.datasets.split_rows(table, "b", 0.5, seed=3)
    assert same.tolist() == y.tolist()
    with pytest.raises(KeyError, match="there is no column 'c'"):
        tf.datasets.split_rows(table, "c")
    for fraction in (0.0, 1.0):
        with pytest.raises(ValueError, match="a part of the split is empty"):
            tf.datasets.split_rows(table, "b", fraction)


def test_header_sizes_are_compared_with_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    whole = gzip.decompress(idx(array))
    for data in (whole, idx(array)):
        path.write_bytes(data)
        np.testing.assert_array_equal(read_idx(path), array)
    huge = struct.pack(">HBB3I", 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1)
    bomb = whole + bytes(1 << 26)
    for data in (huge, gzip.compress(huge), bomb, gzip.compress(bomb), whole[:-1], idx(array)[:-9]):
        path.write_bytes(data)
        with pytest.raises(DataLossError, match="is not a valid IDX file"):
            read_idx(path)
