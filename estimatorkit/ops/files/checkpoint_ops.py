"""Ops that write and read checkpoints: SaveV2, RestoreV2, and their predecessors.

`Saver` does not use them; they are for graphs that save themselves and for initializers that read
checkpoints (`train.init_from_checkpoint`). They write this package's format and read TensorFlow's
too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, string
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.registry import Case, Spec, apply, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor

_UNKNOWN = TensorShape(None)
_SLICE = re.compile(r"(?:-|(?P<start>[0-9]+),(?P<length>[0-9]+))")


def _path(prefix: Any) -> str:
    return os.fsdecode(np.asarray(prefix).item())


def _names(values: Any) -> list[str]:
    return [os.fsdecode(value) for value in np.asarray(values, object).ravel()]


def parse_spec(name: str, spec: str) -> tuple[tuple[int, ...], tuple[slice, ...]]:
    """Parses TensorFlow's slice notation, such as '10 4 0,5:-', into the full shape and the slice.

    Raises InvalidArgumentError if the notation is invalid or the slice is out of bounds.
    """
    *sizes, places = spec.split(" ")
    matches = [_SLICE.fullmatch(place) for place in places.split(":")]
    if sizes and len(matches) == len(sizes) and all(size.isdecimal() for size in sizes):
        shape = tuple(map(int, sizes))
        at = tuple(
            slice(int(m["start"]), int(m["start"]) + int(m["length"]))
            if m is not None and m["start"]
            else slice(0, size)
            for m, size in zip(matches, shape, strict=True)
        )
        if all(matches) and all(p.stop <= size for p, size in zip(at, shape, strict=True)):
            return shape, at
    raise InvalidArgumentError.explained(
        f"the slice of {name!r} is invalid",
        expected="'' for the whole tensor, or its shape and a slice, such as '10 4 0,5:-'",
        received=repr(spec),
    )


def _save(
    prefix: Any, tensor_names: Any, shape_and_slices: Any, *tensors: NDArray[Any]
) -> tuple[()]:
    from estimatorkit.storage.checkpoint import write_checkpoint

    found: dict[str, NDArray[Any]] = {}
    covered: dict[str, int] = {}
    rows = zip(_names(tensor_names), _names(shape_and_slices), tensors, strict=True)
    for name, spec, value in rows:
        if not spec:
            found[name] = value
            continue
        shape, at = parse_spec(name, spec)
        whole = found.setdefault(name, np.empty(shape, value.dtype))
        if whole.shape != shape or whole[at].shape != value.shape:
            raise InvalidArgumentError.explained(
                f"a slice of {name!r} does not have the specified shape",
                expected=f"{whole[at].shape} of {shape}",
                received=value.shape,
            )
        whole[at] = value
        covered[name] = covered.get(name, 0) + value.size
    for name, count in covered.items():
        if count != found[name].size:
            raise InvalidArgumentError.explained(
                f"the slices of {name!r} do not cover it",
                expected=f"{found[name].size} elements: all slices are saved together",
                received=count,
            )
    directory, name = os.path.split(_path(prefix))
    write_checkpoint(directory or ".", name, found)
    return ()


def _restore(
    prefix: Any, tensor_names: Any, shape_and_slices: Any, dtypes: Sequence[Any]
) -> tuple[NDArray[Any], ...]:
    from estimatorkit.storage.checkpoint import read_checkpoint

    names, specs = _names(tensor_names), _names(shape_and_slices)
    tensors: Mapping[str, NDArray[Any]] = read_checkpoint(_path(prefix), names).tensors
    result = []
    for name, spec, dtype in zip(names, specs, dtypes, strict=True):
        value = tensors[name]
        if as_dtype(value.dtype) is not as_dtype(dtype):
            raise InvalidArgumentError.explained(
                f"tensor_name = {name}; expected dtype {as_dtype(dtype).name} does not equal "
                f"original dtype {as_dtype(value.dtype).name}",
                hint="restore it with the dtype it was saved with, then cast it",
            )
        if spec:
            shape, at = parse_spec(name, spec)
            if shape != value.shape:
                raise InvalidArgumentError.explained(
                    f"Shapes in the slice of {name!r} and in the checkpoint do not match",
                    expected=list(shape),
                    received=list(value.shape),
                )
            value = value[at]
        result.append(value)
    return tuple(result)


def _merge(prefixes: Any, destination: Any) -> tuple[()]:
    """Makes one checkpoint of shards, which are removed."""
    from estimatorkit.storage.checkpoint import (
        list_variables,
        read_checkpoint,
        remove_checkpoint,
        write_checkpoint,
    )

    shards = _names(prefixes)
    found: dict[str, NDArray[Any]] = {}
    for shard in shards:
        found.update(read_checkpoint(shard, [name for name, _ in list_variables(shard)]).tensors)
    directory, name = os.path.split(_path(destination))
    write_checkpoint(directory or ".", name, found)
    for shard in shards:
        remove_checkpoint(shard)
    return ()


def _shard_name(name: Any, shard: Any, count: Any) -> NDArray[Any]:
    return np.array(f"{_path(name)}-{int(shard):05d}-of-{int(count):05d}".encode(), object)


def _shard_pattern(name: Any, count: Any) -> NDArray[Any]:
    return np.array(f"{_path(name)}-?????-of-{int(count):05d}".encode(), object)


def _of_dtypes(inputs: Any, attrs: Any) -> list[Spec]:
    return [Spec(as_dtype(dtype), _UNKNOWN) for dtype in attrs["dtypes"]]


_HOST: dict[str, Any] = {"where": "host", "gradient": None, "pure": False, "effects": "files"}

register("MergeV2Checkpoints", _merge, infer=registry.no_outputs, **_HOST)
for _type, _kernel, _case in (
    ("ShardedFilename", _shard_name, Case((b"m", 1, 12), {}, b"m-00001-of-00012")),
    ("ShardedFilespec", _shard_pattern, Case((b"m", 12), {}, b"m-?????-of-00012")),
):
    register(
        _type,
        _kernel,
        infer=registry.fixed(string),
        where="host",
        gradient=None,
        cases=lambda case=_case: [case],
    )
register("SaveV2", _save, infer=registry.no_outputs, **_HOST)
RESTORE = register("RestoreV2", _restore, infer=_of_dtypes, **_HOST)
register(
    "Save",
    lambda filename, tensor_names, *data: _save(filename, tensor_names, [b""] * len(data), *data),
    infer=registry.no_outputs,
    **_HOST,
)
register(
    "Restore",
    lambda file_pattern, tensor_name, dtypes: _restore(
        file_pattern, [np.asarray(tensor_name).item()], [b""], dtypes
    ),
    infer=_of_dtypes,
    **_HOST,
)


def save_v2(
    prefix: Any,
    tensor_names: Any,
    shape_and_slices: Any,
    tensors: Sequence[Any],
    name: str | None = None,
) -> Operation:
    """An operation that writes tensors to a checkpoint (`tf.raw_ops.SaveV2`).

    Difference from TensorFlow: the checkpoint is in this package's format, and the slices of a
    tensor must be saved together.

    Args:
        prefix: string scalar: the checkpoint's path.
        tensor_names: strings `(n,)`.
        shape_and_slices: strings `(n,)`: '' for a whole tensor, or the full shape and the given
            slice, as in '10 4 0,5:-'.
        tensors: n tensors.
    """
    inputs = _strings(prefix=prefix, tensor_names=tensor_names, shape_and_slices=shape_and_slices)
    return apply("SaveV2", [*inputs, *map(convert_to_tensor, tensors)], {}, name)


def restore_v2(
    prefix: Any,
    tensor_names: Any,
    shape_and_slices: Any,
    dtypes: Sequence[Any],
    name: str | None = None,
) -> list[Tensor]:
    """Reads tensors from a checkpoint, this package's or TensorFlow's (`tf.raw_ops.RestoreV2`).

    Args:
        prefix: string scalar: the checkpoint's path.
        tensor_names: strings `(n,)`.
        shape_and_slices: strings `(n,)`, see `save_v2`.
        dtypes: n dtypes, those of the tensors in the checkpoint.

    Raises (at run time):
        NotFoundError: there is no such checkpoint or tensor.
        InvalidArgumentError: a dtype or a shape differs.
    """
    inputs = _strings(prefix=prefix, tensor_names=tensor_names, shape_and_slices=shape_and_slices)
    attrs = {"dtypes": tuple(map(as_dtype, dtypes))}
    return list(apply("RestoreV2", inputs, attrs, name).outputs)


def save(filename: Any, tensor_names: Any, data: Sequence[Any], name: str | None = None) -> Any:
    """An operation that writes whole tensors (`tf.raw_ops.Save`); see `save_v2`."""
    inputs = _strings(filename=filename, tensor_names=tensor_names)
    return apply("Save", [*inputs, *map(convert_to_tensor, data)], {}, name)


def restore(
    file_pattern: Any,
    tensor_name: Any,
    dt: Any,
    preferred_shard: int = -1,
    name: str | None = None,
) -> Tensor:
    """Reads one tensor from a checkpoint (`tf.raw_ops.Restore`); see `restore_v2`.

    `preferred_shard` is accepted for compatibility only.
    """
    inputs = _strings(file_pattern=file_pattern, tensor_name=tensor_name)
    return apply("Restore", inputs, {"dtypes": (as_dtype(dt),)}, name).outputs[0]


def _strings(**values: Any) -> list[Tensor]:
    return [convert_to_tensor(value, string, name) for name, value in values.items()]
