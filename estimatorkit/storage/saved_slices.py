"""Reader of TensorFlow's V1 checkpoints.

A checkpoint is one sorted table (or several, `PREFIX-?????-of-0000N`) of `SavedTensorSlices`: the
list of tensors and their slices under the key '', then a message per slice with its values. Damage
raises `DataLossError` with file and offset.
"""

from __future__ import annotations

import glob
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType
from estimatorkit.storage.sorted_table import SortedTable, damaged, is_table
from estimatorkit.storage.tensor_proto import FIELDS
from estimatorkit.storage.tensor_slices import (
    Slice,
    Stored,
    assemble,
    parse_shape,
    parse_slice,
    slice_key,
    slice_shape,
)
from estimatorkit.storage.wire import messages, numbers


class SavedSlices:
    """A V1 checkpoint, given its file or a pattern with `?????`.

    Raises NotFoundError if the file does not exist, DataLossError if a table is damaged.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._places: dict[str, list[tuple[Slice, SortedTable, str]]] = {}
        self._files = matching(path) or [path]
        self.tensors: dict[str, Stored] = {}
        for file in self._files:
            table = SortedTable(file)
            try:
                for name, stored in _contents(table.get(b"")):
                    known = self.tensors.setdefault(name, stored)
                    if (known.dtype, known.shape) != (stored.dtype, stored.shape):
                        raise ValueError(f"tensor {name!r} has two shapes or dtypes")
                    self._places.setdefault(name, []).extend(
                        (piece, table, file) for piece in stored.slices
                    )
            except ValueError as error:
                raise damaged(file, 0, f"the list of tensors is malformed: {error}") from error

    def files(self) -> list[str]:
        """The paths of its files."""
        return self._files

    def read(self, name: str) -> NDArray[Any]:
        """Reads a tensor of `tensors`.

        Raises DataLossError if its bytes are missing or damaged, UnimplementedError if its dtype is
        unsupported.
        """
        stored = self.tensors[name]
        dtype = stored.require_dtype(name)
        pieces = []
        for piece, table, file in self._places[name]:
            try:
                shape = slice_shape(stored.shape, piece)
                pieces.append((piece, _values(table.get(slice_key(name, piece)), dtype, shape)))
            except ValueError as error:
                raise damaged(file, 0, f"tensor {name!r}, slice {piece}: {error}") from error
        try:
            return assemble(stored, dtype, pieces)
        except ValueError as error:
            raise damaged(self._files[0], 0, f"tensor {name!r}: {error}") from error


def matching(path: str) -> list[str]:
    """Returns the tables of a V1 checkpoint: one file, or those that match a pattern."""
    folder, name = os.path.split(path)
    if name.endswith(".index"):
        return []  # the index of a V2 checkpoint
    if "?????" not in name:
        return [path] if is_table(path) else []
    pattern = glob.escape(name.replace("?????", "\0")).replace("\0", "?????")
    found = glob.glob(os.path.join(glob.escape(folder), pattern))
    return sorted(file for file in found if is_table(file))


def _contents(message: bytes | None) -> list[tuple[str, Stored]]:
    """Parses the list of tensors (`SavedTensorSliceMeta`)."""
    if message is None:
        raise ValueError("it is missing")
    result = []
    for meta in messages(message, 1):
        for tensor in messages(meta, 1):
            names, shapes = messages(tensor, 1), messages(tensor, 2)
            slices = tuple(parse_slice(piece) for piece in messages(tensor, 4))
            shape = parse_shape(shapes[-1]) if shapes else ()
            stored = Stored(numbers(tensor).get(3, 0), shape, slices)
            result.append((names[-1].decode() if names else "", stored))
    return result


def _values(message: bytes | None, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """Parses the values of a slice (`SavedSlice`), in the typed lists of a `TensorProto`."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    data = messages(message or b"", 2)
    tensors = messages(data[-1], 3) if data else []
    if not tensors:
        raise ValueError("there are no values")
    try:
        proto = TensorProto.FromString(tensors[-1])
    except DecodeError as error:
        raise ValueError(f"the values are malformed: {error}") from error
    values = list(getattr(proto, FIELDS[dtype.name]))
    array: NDArray[Any]
    if dtype.is_complex:
        array = np.array(values, dtype.numpy_dtype.type(0).real.dtype)
        if array.size % 2:
            raise ValueError("an imaginary part is missing")
        array = array.view(dtype.numpy_dtype)
    elif dtype.name in ("float16", "bfloat16"):
        array = _integers(values, np.dtype(np.uint16)).view(dtype.numpy_dtype)
    elif dtype.is_integer:
        array = _integers(values, dtype.numpy_dtype)
    else:
        array = np.empty(len(values), dtype.numpy_dtype)
        array[:] = values
    size = int(np.prod(shape, dtype=np.int64))
    if array.size != size:
        raise ValueError(f"there are {array.size} values, not {size}")
    return array.reshape(shape)


def _integers(values: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Converts numbers to an array; raises an error on overflow."""
    wide = np.array(values, np.uint64 if dtype == np.uint64 else np.int64)
    array = wide.astype(dtype)
    if (array.astype(wide.dtype) != wide).any():
        raise ValueError(f"a value is too large for {dtype}")
    return array
