"""`tensorflow.python.lib.io.file_io`: files by its older function names."""

from __future__ import annotations

from estimatorkit.core import gfile
from estimatorkit.core.gfile import GFile as FileIO

file_exists = gfile.exists
delete_file = gfile.remove
get_matching_files = gfile.glob
create_dir = gfile.mkdir
recursive_create_dir = gfile.makedirs
copy = gfile.copy
rename = gfile.rename
delete_recursively = gfile.rmtree
is_directory = gfile.isdir
list_directory = gfile.listdir
walk = gfile.walk
stat = gfile.stat


def read_file_to_string(filename: str, binary_mode: bool = False) -> str | bytes:
    """What a file holds."""
    with gfile.GFile(filename, "rb" if binary_mode else "r") as file:
        content: str | bytes = file.read()
    return content


def write_string_to_file(filename: str, file_content: str) -> None:
    """Writes a file."""
    with gfile.GFile(filename, "w") as file:
        file.write(file_content)


__all__ = [
    "FileIO",
    "copy",
    "create_dir",
    "delete_file",
    "delete_recursively",
    "file_exists",
    "get_matching_files",
    "is_directory",
    "list_directory",
    "read_file_to_string",
    "recursive_create_dir",
    "rename",
    "stat",
    "walk",
    "write_string_to_file",
]
