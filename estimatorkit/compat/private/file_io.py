"""`tensorflow.python.lib.io.file_io`: file functions under their older names."""

from __future__ import annotations

import uuid
import zlib

from estimatorkit.core.errors import OpError
from estimatorkit.lazy import listing
from estimatorkit.storage import gfile

FileIO = gfile.GFile
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
stat = gfile.stat
walk = gfile.Walk
file_exists_v2, delete_file_v2, get_matching_files_v2 = file_exists, delete_file, get_matching_files
create_dir_v2, recursive_create_dir_v2 = create_dir, recursive_create_dir
copy_v2, rename_v2 = copy, rename
delete_recursively_v2, is_directory_v2 = delete_recursively, is_directory
list_directory_v2, walk_v2, stat_v2 = list_directory, gfile.walk, stat


def read_file_to_string(filename: str, binary_mode: bool = False) -> str | bytes:
    """The content of a file."""
    with gfile.GFile(filename, "rb" if binary_mode else "r") as file:
        content: str | bytes = file.read()
    return content


def write_string_to_file(filename: str, file_content: str) -> None:
    """Writes a file."""
    with gfile.GFile(filename, "w") as file:
        file.write(file_content)


def atomic_write_string_to_file(filename: str, contents: str, overwrite: bool = True) -> None:
    """Writes a file atomically, by renaming.

    Raises:
        AlreadyExistsError: it exists, and `overwrite` is False.
    """
    temporary = f"{filename}.tmp{uuid.uuid4().hex}"
    write_string_to_file(temporary, contents)
    try:
        rename(temporary, filename, overwrite)
    except OpError:
        delete_file(temporary)
        raise


def has_atomic_move(path: str) -> bool:
    """True: renaming is atomic."""
    return True


def filecmp(filename_a: str, filename_b: str) -> bool:
    """Whether two files have the same content."""
    sizes = stat(filename_a).length, stat(filename_b).length
    return sizes[0] == sizes[1] and file_crc32(filename_a) == file_crc32(filename_b)


def file_crc32(filename: str, block_size: int = 1 << 24) -> str:
    """The CRC-32 of a file, in hexadecimal."""
    crc = 0
    with gfile.GFile(filename, "rb") as file:
        while block := file.read(block_size):
            crc = zlib.crc32(block, crc)
    return hex(crc & 0xFFFFFFFF)


__dir__ = listing(__name__)
