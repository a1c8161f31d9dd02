"""File systems: local and compressed files, and those of fsspec."""

from __future__ import annotations

import gzip
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

from estimatorkit import gfile
from estimatorkit.core import errors
from estimatorkit.storage.filesystem import is_remote, locate, open_file, scheme

CONTENT = b"one\ntwo\r\n" * 50_000  # larger than a piece of the decompressor


class _Bucket(MemoryFileSystem):  # type: ignore[misc]
    """A store of its own, whose names are `bucket/file`, as gs:// and s3:// have them."""

    protocol = ("gs", "s3")
    store: dict[str, object] = {}  # noqa: RUF012 (as in the class above)
    pseudo_dirs: list[str] = [""]  # noqa: RUF012

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.removeprefix("gs://").removeprefix("s3://"))


@pytest.fixture(autouse=True)
def _stores() -> Iterator[None]:
    registered = dict(_registry)
    fsspec.register_implementation("gs", _Bucket, clobber=True)
    fsspec.register_implementation("s3", _Bucket, clobber=True)
    yield
    _registry.clear()
    _registry.update(registered)
    for kind in (MemoryFileSystem, _Bucket):
        kind.store.clear()
        kind.pseudo_dirs[:] = [""]


def test_remote_paths() -> None:
    local = ("a.csv", "/a/b.csv", "C:\\data\\a.csv", "file:///a/b", b"a", Path("a"), "a::b", "")
    assert [scheme(path) for path in local] == [""] * len(local)
    remote = ("gs://b/f", "s3a://b/f", "memory://f", "simplecache::s3://b/f", b"hdfs://nn:8020/f")
    assert [scheme(path) for path in remote] == ["gs", "s3a", "memory", "simplecache::s3", "hdfs"]
    assert all(map(is_remote, remote))
    assert locate("file:///a/b")[1] == "/a/b"


def test_local_files_do_not_import_fsspec(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(CONTENT)
    program = f"""
import sys
from estimatorkit import gfile
from estimatorkit.storage.filesystem import open_file
with open_file({str(path)!r}) as file:
    assert len(file.read()) == {len(CONTENT)}
assert gfile.glob({str(tmp_path / "*")!r}) == [{str(path)!r}]
assert gfile.GFile({str(path)!r}).size() == {len(CONTENT)}
assert "fsspec" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_remote_path_without_fsspec_names_extra(tmp_path: Path) -> None:
    (tmp_path / "hide.py").write_text(
        """
import importlib.util
from estimatorkit.core.errors import UnimplementedError
from estimatorkit.storage.filesystem import open_file
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "fsspec" else find_spec(name, *a)
try:
    open_file("gs://bucket/file")
except UnimplementedError as error:
    assert "File system scheme 'gs' not implemented (file: 'gs://bucket/file')" in str(error)
    assert "pip install 'estimatorkit[remote]'" in str(error)
else:
    raise SystemExit("no error")
"""
    )
    subprocess.run([sys.executable, str(tmp_path / "hide.py")], check=True, env={"PYTHONPATH": "."})


@pytest.mark.parametrize("folder", ["", "memory://data", "gs://bucket/data", "s3://bucket"])
@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB"])
def test_write_then_read(folder: str, compression: str | None, tmp_path: Path) -> None:
    path = f"{folder or tmp_path}/file"
    with open_file(path, "wb", compression) as file:
        file.write(CONTENT)
    with open_file(path) as file:
        raw = file.read()
    decompress = {None: bytes, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}[compression]
    assert decompress(raw) == CONTENT
    with open_file(path, "rb", compression) as file:
        assert file.readline() == b"one\n"
        assert file.tell() == 4
        assert file.read() == CONTENT[4:]
        assert file.read() == b""
    with open_file(path, "r", compression, newline="") as file:
        assert file.read().encode() == CONTENT


def test_concatenated_compressed_streams(tmp_path: Path) -> None:
    for compression, compress in (("GZIP", gzip.compress), ("ZLIB", zlib.compress)):
        path = tmp_path / compression
        path.write_bytes(compress(CONTENT) + compress(b"") + compress(b"end"))
        with open_file(path, "rb", compression) as file:
            assert file.read() == CONTENT + b"end"


def test_damaged_files_raise(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(CONTENT)[:-20])
    with (
        open_file(path, "rb", "GZIP") as file,
        pytest.raises(errors.DataLossError, match=f"{path} is damaged behind byte [0-9]+ of its"),
    ):
        file.read()
    path.write_bytes(b"plain text")
    with (
        open_file(path, "rb", "ZLIB") as file,
        pytest.raises(errors.DataLossError, match=r"check that compression_type matches"),
    ):
        file.read()
    path.write_bytes(b"")
    with open_file(path, "rb", "GZIP") as file:
        assert file.read() == b""
    with pytest.raises(errors.InvalidArgumentError, match=r"Unsupported compression_type: gzip\."):
        open_file(path, "rb", "gzip")


@pytest.mark.parametrize("name", ["", "memory://x/none", "gs://bucket/none"])
def test_missing_file_is_named(name: str, tmp_path: Path) -> None:
    name = name or str(tmp_path / "none")
    with pytest.raises(errors.NotFoundError, match=name):
        open_file(name)


def test_unreachable_storage_raises() -> None:
    with pytest.raises(errors.UnimplementedError, match="scheme 'nowhere' not implemented"):
        open_file("nowhere://bucket/file")
    _registry.pop("gs")
    with pytest.raises(errors.UnimplementedError, match="gcsfs"):
        gfile.exists("gs://bucket/file")
    with pytest.raises(errors.FailedPreconditionError, match="Is a directory"):
        open_file("/")


@pytest.mark.parametrize("top", ["memory://top", "gs://bucket/top"])
def test_gfile_on_remote_paths(top: str, tmp_path: Path) -> None:
    gfile.makedirs(f"{top}/b")
    with gfile.GFile(f"{top}/f", "w") as file:
        file.write("größer\n")
        file.write("two")
    assert gfile.GFile(f"{top}/f").size() == len("größer\ntwo".encode())
    with gfile.GFile(f"{top}/f") as file:
        assert file.readlines() == ["größer\n", "two"]
        with pytest.raises(errors.PermissionDeniedError, match="File isn't open for writing"):
            file.write("x")
    gfile.copy(f"{top}/f", f"{top}/b/g")
    assert gfile.listdir(top) == ["b", "f"]
    assert list(gfile.walk(top)) == [(top, ["b"], ["f"]), (f"{top}/b", [], ["g"])]
    assert gfile.glob([f"{top}/*", f"{top}/b/?"]) == [f"{top}/b", f"{top}/b/g", f"{top}/f"]
    assert gfile.glob(f"{top}/**") == [f"{top}/b", f"{top}/f"]
    assert gfile.isdir(f"{top}/b")
    assert gfile.stat(f"{top}/b").is_directory
    assert gfile.stat(f"{top}/f").length == 12
    assert gfile.stat(f"{top}/f").mtime_nsec > 10**18

    with pytest.raises(errors.AlreadyExistsError):
        gfile.copy(f"{top}/f", f"{top}/b/g")
    gfile.mkdir(f"{top}/b")  # it is there
    with pytest.raises(errors.FailedPreconditionError, match="use rmtree"):
        gfile.remove(f"{top}/b")
    gfile.rename(f"{top}/f", f"{top}/h")
    gfile.rename(f"{top}/h", f"{top}/b/g", overwrite=True)
    assert list(gfile.walk(top)) == [(top, ["b"], []), (f"{top}/b", [], ["g"])]

    local = str(tmp_path / "copy")
    gfile.copy(f"{top}/b/g", local)
    assert Path(local).read_text("utf-8") == "größer\ntwo"
    gfile.copy(local, f"{top}/back")
    assert gfile.exists(f"{top}/back")
    with pytest.raises(errors.UnimplementedError, match=r"Renaming .* not implemented"):
        gfile.rename(local, f"{top}/other")
    gfile.remove(f"{top}/back")
    gfile.rmtree(top)
    assert not gfile.exists(top)
    for missing in (gfile.rmtree, gfile.listdir, gfile.remove, gfile.stat):
        with pytest.raises(errors.NotFoundError):
            missing(top)
    assert {"", "file", "gs", "s3", "memory"} <= set(gfile.get_registered_schemes())
