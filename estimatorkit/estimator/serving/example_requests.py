"""Generates inputs for a model from its graph, for the verification of an export and its example
request.

They are rows of data if the receiver put some into the graph's collection `EXAMPLE_ROWS`. Otherwise
numbers are drawn with a fixed seed, integers are 0 and 1, words come from the vocabularies in which
the graph looks them up, and serialized `Example`s hold the features that the graph parses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType, string
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.parsing.parsing import PARSE_EXAMPLE
from estimatorkit.storage.example_proto import Example

EXAMPLE_ROWS = "_example_rows"
"""The collection of rows of data, as pairs of an input and its values."""

_WORDS = (b"one", b"two", b"three")
_LENGTH = 2  # of unknown dimensions, except the batch


def sample_inputs(feeds: Mapping[str, Tensor], rows: int) -> dict[str, NDArray[Any]]:
    """Values for fed tensors, `(rows, ...)` each."""
    graphs = {tensor.graph for tensor in feeds.values()}
    known = dict(pair for graph in graphs for pair in graph.get_collection(EXAMPLE_ROWS))
    return {
        key: _of_rows(known[tensor], tensor, rows)
        if tensor in known
        else _values(tensor, rows, seed)
        for seed, (key, tensor) in enumerate(feeds.items())
    }


def _of_rows(values: NDArray[Any], tensor: Tensor, rows: int) -> NDArray[Any]:
    """The first values of a column, repeated if there are fewer."""
    dims = tensor.shape.dims or (None,)
    some = values[np.arange(rows) % len(values)]
    if some.ndim == len(dims):
        return some
    return some.reshape(rows, *(1 if dim is None else dim for dim in dims[1:]))


def _values(tensor: Tensor, rows: int, seed: int) -> NDArray[Any]:
    dims = tensor.shape.dims or (None,)
    first = rows if dims[0] is None else dims[0]
    shape = (first, *(_LENGTH if dim is None else dim for dim in dims[1:])) if dims else ()
    parse = next((op for op in _consumers(tensor) if PARSE_EXAMPLE.made(op)), None)
    if tensor.shape.dims == ():
        shape = ()
    if parse is not None and tensor.dtype is string:
        examples = [_example(parse, row) for row in range(int(np.prod(shape)))]
        return _strings(examples, shape)
    return _of_dtype(tensor.dtype, shape, seed, words_for(tensor))


def _of_dtype(
    dtype: DType, shape: Sequence[int], seed: int, words: Sequence[Any] = _WORDS
) -> NDArray[Any]:
    count = int(np.prod(shape, dtype=np.int64))
    if dtype is string:
        return _strings([words[number % len(words)] for number in range(count)], shape)
    if dtype.is_integer or dtype.kind == "b":
        return (np.arange(count).reshape(tuple(shape)) % 2).astype(dtype.numpy_dtype)
    drawn = np.random.default_rng(seed).normal(size=tuple(shape)).round(2)
    return np.asarray(drawn, dtype.numpy_dtype)


def _strings(values: Sequence[Any], shape: Sequence[int]) -> NDArray[Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(tuple(shape))


# -- words


def _consumers(tensor: Tensor) -> list[Operation]:
    return [op for op in tensor.graph.get_operations() if tensor in op.inputs]


def words_for(tensor: Tensor) -> list[Any]:
    """Words of the graph's vocabularies for a string tensor."""
    reached = [tensor]
    for each in reached:  # grows during the traversal
        for op in _consumers(each):
            found = next(_vocabularies(op, op.inputs.index(each)), None)
            if found is not None:
                return list(found[:3])
            reached.extend(one for one in op.outputs if one.dtype is string and one not in reached)
    return list(_WORDS)


def _vocabularies(op: Operation, position: int) -> Iterator[NDArray[Any]]:
    attrs = [op.attrs]
    for kind in op.attrs.get("parts", ()):  # several lookups in one operation
        if position in kind[1]:
            attrs.append(kind[2])
    for each in attrs:
        words = each.get("vocabulary")
        if isinstance(words, np.ndarray) and words.dtype == object and len(words):
            yield words


# -- examples


def _example(parse: Operation, row: int) -> bytes:
    """A serialized `Example` with the features that an operation parses."""
    made = Example()
    outputs = iter(parse.outputs)
    for number, (kind, key, dtype, shape, _, index_keys, *_) in enumerate(parse.attrs["columns"]):
        sparse = kind not in ("dense", "padded")
        parts = [next(outputs) for _ in range(3 if sparse else 1)]
        words = words_for(parts[1 if sparse else 0])
        size = tuple(shape) if kind == "dense" else (1, *shape) if kind == "padded" else (1,)
        values = _of_dtype(dtype, (row + 1, *size), number, words)[row].reshape(-1).tolist()
        feature = made.features.feature[key]
        if dtype is string:
            feature.bytes_list.value.extend(values)
        elif dtype.is_integer or dtype.kind == "b":
            feature.int64_list.value.extend(map(int, values))
        else:
            feature.float_list.value.extend(values)
        for index_key in index_keys:
            made.features.feature[index_key].int64_list.value.append(0)
    return bytes(made.SerializeToString(deterministic=True))


__all__ = ["sample_inputs", "words_for"]
