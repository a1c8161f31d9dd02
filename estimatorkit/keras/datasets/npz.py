"""Reads Keras's `.npz` dataset files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import NotFoundError, value_error

Part: TypeAlias = tuple[NDArray[Any], NDArray[Any]]


def read_npz(path: str | Path) -> tuple[Part, Part]:
    """Reads the training and test sets: arrays x_train, y_train, x_test, y_test.

    Raises:
        NotFoundError: the file does not exist.
        ValueError: an array is missing, or is one of Python objects.
    """
    if not Path(path).is_file():
        raise NotFoundError.explained(
            f"No file {path}",
            hint="leave out `path` to fetch the data set where it is not here yet",
        )
    names = ("x_train", "y_train", "x_test", "y_test")
    with np.load(path, allow_pickle=False) as file:
        missing = [name for name in names if name not in file.files]
        if missing:
            raise value_error(
                f"{path} lacks the array {missing[0]}",
                expected=", ".join(names),
                received=", ".join(file.files),
            )
        arrays = [file[name] for name in names]
    return (arrays[0], arrays[1]), (arrays[2], arrays[3])


__all__ = ["Part", "read_npz"]
