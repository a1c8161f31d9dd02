"""Files: `gfile`, and the operations ReadFile, WriteFile and MatchingFiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as compat
import estimatorkit as tf
from estimatorkit import gfile
from tests.golden.snippets_gfile import MODES, folders, results

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "gfile.json").read_text(encoding="utf-8")
)


def test_file_operations(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        name = tf.placeholder(tf.string, [])
        path = str(tmp_path / "made" / "file.bin").encode()
        written = tf.write_file(name, tf.constant(b"a\0b"))
        content = tf.read_file(filename=name)
        assert content.shape.rank == 0
        with pytest.raises(tf.errors.NotFoundError, match=r"file\.bin"):
            session.run(content, {name: path})
        session.run(written, {name: path})
        assert session.run(content, {name: path}) == b"a\0b"
        with tf.control_dependencies([tf.write_file(name, "new")]):
            assert session.run(tf.read_file(name), {name: path}) == b"new"


def test_matching_files(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.txt", ".d.csv"):
        (tmp_path / name).write_bytes(b"")
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.matching_files(f"{tmp_path}/*.csv")
        assert found.shape.as_list() == [None]
        expected = [f"{tmp_path}/{name}".encode() for name in (".d.csv", "a.csv", "b.csv")]
        assert session.run(found).tolist() == expected
        both = tf.io.matching_files([f"{tmp_path}/*.csv", f"{tmp_path}/[ac].*"])
        assert session.run(both).tolist() == [*expected, f"{tmp_path}/c.txt".encode()]
        assert session.run(tf.io.matching_files(f"{tmp_path}/nothing*")).shape == (0,)


def test_folders(tmp_path: Path) -> None:
    top = str(tmp_path / "a")
    gfile.makedirs(f"{top}/b")
    gfile.makedirs(f"{top}/b")
    gfile.mkdir(f"{top}/b")
    with pytest.raises(tf.errors.NotFoundError):
        gfile.mkdir(f"{top}/c/d")
    with gfile.GFile(f"{top}/f", "w") as file:
        file.write("text")
    assert gfile.listdir(top) == ["b", "f"]
    assert list(gfile.walk(top)) == [(top, ["b"], ["f"]), (f"{top}/b", [], [])]
    assert [folder for folder, _, _ in gfile.Walk(top, in_order=False)] == [f"{top}/b", top]
    assert gfile.isdir(top)
    assert not gfile.IsDirectory(f"{top}/f")
    assert gfile.stat(f"{top}/f").length == 4
    assert gfile.Stat(filename=top).is_directory
    with pytest.raises(tf.errors.FailedPreconditionError):
        gfile.remove(top)
    with pytest.raises(tf.errors.FailedPreconditionError):
        gfile.makedirs(f"{top}/f")
    gfile.rmtree(top)
    assert not gfile.exists(path=top)
    for missing in (gfile.rmtree, gfile.listdir, gfile.remove, gfile.stat):
        with pytest.raises(tf.errors.NotFoundError):
            missing(top)


def test_copy_and_rename(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    gfile.copy(one, two)
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.Copy(oldpath=one, newpath=two)
    one.write_text("new")
    gfile.copy(src=one, dst=two, overwrite=True)
    assert two.read_text() == "new"
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.rename(one, two)
    gfile.Rename(one, two, overwrite=True)
    assert gfile.Glob(filename=f"{tmp_path}/*") == [str(two)]
    with pytest.raises(tf.errors.NotFoundError):
        gfile.copy(one, two, overwrite=True)
    with pytest.raises(tf.errors.UnimplementedError, match="scheme 'nowhere' not implemented"):
        gfile.exists("nowhere://bucket/file")
    assert gfile.exists(f"file://{two}")


@pytest.mark.parametrize(("mode", "content"), [("", "größer\r\nb\n\nc"), ("b", b"a\n\xff\n")])
def test_gfile_round_trip(mode: str, content: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    with tf.gfile.GFile(path, "w" + mode) as file:
        file.write(content)
        file.flush()
        assert file.size() == len(content.encode() if isinstance(content, str) else content)
    with tf.gfile.Open(path, "a" + mode) as file:
        file.write(content)
    with tf.io.gfile.GFile(path, "r" + mode) as file:
        assert file.read() == content * 2
        file.seek(0)
        first = file.readline()
        assert file.tell() > 0
        assert [first, *file] == (content * 2).splitlines(keepends=True)
        with pytest.raises(TypeError, match="may not be set simultaneously"):
            file.seek(0, position=0)
        file.seek(position=0)
        assert len(file.readlines()) == len((content * 2).splitlines())
        assert file.read(3) == content[:0]


def test_writing_truncates_read_write_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    with gfile.GFile(path, "w+"):
        pass
    with gfile.GFile(path, "w+") as file:
        assert (file.read(3), file.tell(), file.read()) == ("bef", 3, "ore")
        file.write("new")
        assert file.size() == 3
        file.seek(0)
        assert file.read() == "new"
    assert path.read_text() == "new"
    with gfile.GFile(path, "wb+") as file:
        assert file.read() == b"new"
    assert path.read_text() == "new"
    with pytest.raises(tf.errors.NotFoundError):
        gfile.GFile(tmp_path / "missing", "w+").read()


@pytest.mark.parametrize("mode", MODES)
def test_file_modes_match_tensorflow(mode: str, tmp_path: Path) -> None:
    assert json.loads(json.dumps(results(compat, mode, str(tmp_path)))) == GOLDEN[mode]


def test_folders_match_tensorflow() -> None:
    assert folders(compat) == GOLDEN["folders"]


def test_file_errors(tmp_path: Path) -> None:
    missing = gfile.GFile(str(tmp_path / "missing"))  # nothing is opened yet
    with pytest.raises(tf.errors.NotFoundError, match="missing"):
        missing.read()
    with pytest.raises(tf.errors.InvalidArgumentError, match="mode is not"):
        gfile.GFile("x", "rw")
    file = gfile.GFile(str(tmp_path / "file"), "w")
    with pytest.raises(tf.errors.PermissionDeniedError, match="File isn't open for reading"):
        file.read()
    file.close()
    assert not (tmp_path / "file").exists()  # nothing was written
    (tmp_path / "file").touch()
    file = gfile.GFile(tmp_path / "file")
    with pytest.raises(tf.errors.PermissionDeniedError, match="File isn't open for writing"):
        file.write("x")
    file.close()
    with gfile.GFile(tmp_path / "empty", "w"):
        pass
    assert not gfile.exists(tmp_path / "empty")


def test_every_public_name_exists() -> None:
    for namespace in (tf.gfile, tf.io, tf.strings, tf.python_io):
        for name in dir(namespace):
            assert getattr(namespace, name) is not None, name
    assert tf.io.gfile is tf.gfile
    assert np.ndim(tf.io.gfile.glob("nothing*")) == 1


def test_remote_files() -> None:
    pytest.importorskip("fsspec", reason="the extra `remote` is not installed")
    written = tf.write_file("memory://folder/words.txt", "b\na\n")
    with tf.control_dependencies([written]):
        content = tf.read_file("memory://folder/words.txt")
    table = tf.lookup.index_table_from_file("memory://folder/words.txt", default_value=7)
    with tf.Session() as session:
        assert session.run(content) == b"b\na\n"
        session.run(tf.tables_initializer())
        assert session.run(table.lookup(tf.constant(["a", "x"]))).tolist() == [1, 7]
