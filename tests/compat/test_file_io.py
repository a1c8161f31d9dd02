"""`tensorflow.python.lib.io.file_io`: seeking, closing, and functions."""

from __future__ import annotations

from pathlib import Path

import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.v1.python.lib.io import file_io


def test_closing_twice_keeps_content(tmp_path: Path) -> None:
    name = str(tmp_path / "file")
    with file_io.FileIO(name, "w") as file:
        file.write("text")
        file.close()
    assert file_io.read_file_to_string(name) == "text"
    file_io.write_string_to_file(str(tmp_path / "empty"), "")
    assert file_io.read_file_to_string(str(tmp_path / "empty")) == ""


@pytest.mark.parametrize("mode", ["r", "rb"])
def test_seek_whence(tmp_path: Path, mode: str) -> None:
    name = str(tmp_path / "file")
    file_io.write_string_to_file(name, "begin\na1\na2\n")
    with file_io.FileIO(name, mode) as file:
        file.read(1)
        file.seek(1, 1)
        assert file.tell() == 2
        file.seek(-3, 2)
        assert tf.compat.as_text(file.read()) == "a2\n"
        file.seek(position=6)
        assert tf.compat.as_text(file.readline()) == "a1\n"
        with pytest.raises(tf.errors.InvalidArgumentError, match="new position is negative"):
            file.seek(-1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid whence argument: 7"):
            file.seek(0, 7)
        with pytest.raises(TypeError, match="offset argument required"):
            file.seek()


def test_functions(tmp_path: Path) -> None:
    first, second = str(tmp_path / "a"), str(tmp_path / "b")
    file_io.atomic_write_string_to_file(first, "same")
    with pytest.raises(tf.errors.AlreadyExistsError):
        file_io.atomic_write_string_to_file(first, "other", overwrite=False)
    file_io.write_string_to_file(second, "same")
    assert file_io.filecmp(first, second)
    assert file_io.file_crc32(first) == "0xfc50f144"
    file_io.write_string_to_file(second, "more")
    assert not file_io.filecmp(first, second)
    assert sorted(file_io.list_directory_v2(str(tmp_path))) == ["a", "b"]
    assert file_io.has_atomic_move(first)
    file_io.recursive_create_dir_v2(str(tmp_path / "c" / "d"))
    found = [Path(folder).name for folder, _, _ in file_io.walk(str(tmp_path), in_order=False)]
    assert found == ["d", "c", tmp_path.name]
