"""`tf.resource_loader`: files relative to the calling module."""

from __future__ import annotations

import inspect
import os


def get_data_files_path() -> str:
    """The directory of the calling module."""
    return os.path.dirname(inspect.getfile(inspect.stack()[1].frame))


def get_path_to_datafile(path: str) -> str:
    """A path relative to the calling module."""
    return os.path.join(os.path.dirname(inspect.getfile(inspect.stack()[1].frame)), path)


def load_resource(path: str) -> bytes:
    """The content of a file relative to the calling module."""
    folder = os.path.dirname(inspect.getfile(inspect.stack()[1].frame))
    with open(os.path.join(folder, path), "rb") as file:
        return file.read()
