"""Converts the data of `fit`, `evaluate` and `predict` to datasets of (x, y, sample weights)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.nest import flatten, map_structure
from estimatorkit.core.sparse_tensor import SparseTensorValue
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import Iterator as GraphIterator
from estimatorkit.data.readers.frames import open_frames
from estimatorkit.data.spec import TensorSpec


@dataclass(frozen=True)
class Batches:
    """The batches of one `fit`, `evaluate` or `predict`.

    Attributes:
        dataset: elements `(x,)`, `(x, y)` or `(x, y, weights)`.
        steps: batches per epoch; None if unknown until the end of the data.
        once: whether the data is iterated once, each epoch consuming the next `steps` batches.
        on_epoch_end: called after each epoch.
        samples, batch_size: of arrays, the number of examples and that of a batch.
    """

    dataset: Dataset
    steps: int | None
    once: bool = False
    on_epoch_end: Callable[[], Any] | None = None
    samples: int | None = None
    batch_size: int | None = None

    def place(self, index: int) -> dict[str, int]:
        """The logs that callbacks receive for a batch: its index, and its size if known."""
        if self.samples is None or self.batch_size is None:
            return {"batch": index}
        left = self.batch_size if self.once else self.samples - index * self.batch_size
        return {"batch": index, "size": min(self.batch_size, left)}


def batches_of(
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    batch_size: int | None = None,
    steps: int | None = None,
    shuffle: Any = False,
    what: str = "fit",
) -> Batches:
    """Converts a user's data to `Batches`.

    Args:
        x: arrays, lists or DataFrames (nested in lists and dicts), a `Dataset` or an iterator of
            batches, a generator, or a `keras.utils.Sequence`.
        y, sample_weight: labels and weights of examples, only if `x` are arrays.
        batch_size: for arrays; 32 by default.
        steps: batches per epoch.
        shuffle: whether to shuffle arrays in every epoch; 'batch' shuffles whole batches.
        what: the method's name in errors.

    Raises:
        ValueError: lengths differ, there are no examples, or arguments are incompatible.
        TypeError: `x` is none of these.
    """
    if isinstance(x, (Dataset, GraphIterator)) or _is_sequence(x) or hasattr(x, "__next__"):
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise ValueError(
                    f"`{name}` argument is not supported when using {type(x).__name__} as input."
                )
        if isinstance(x, GraphIterator):
            x = x.dataset
        if isinstance(x, Dataset):
            known = x._plan.cardinality if x._plan.cardinality >= 0 else None
            return Batches(_as_tuples(x), steps or known, once=steps is not None and steps != known)
        if _is_sequence(x):
            return _of_sequence(x, steps)
        return _of_generator(x, steps, what)
    if isinstance(x, Tensor) or any(isinstance(each, Tensor) for each in flatten(x)):
        raise type_error(
            f"{what}() takes no tensors",
            expected="arrays, a Dataset, a generator or a Sequence",
            received=x,
            hint="give the Dataset that the tensors come from",
        )
    return _of_arrays(x, y, sample_weight, batch_size or 32, steps, shuffle, what)


def as_arrays(value: Any) -> Any:
    """Converts a user's value to nested arrays; lists become tuples, float64 float32.

    As in Keras, a numeric DataFrame becomes a matrix; with strings it becomes a dict of columns.
    """
    if type(value) not in (dict, tuple):  # the parts of these are opened separately below
        opened = open_frames(value)
        if isinstance(opened, Mapping) and not isinstance(value, Mapping):
            columns = [np.asarray(each) for each in opened.values()]
            if all(each.ndim == 1 and each.dtype.kind in "biuf" for each in columns):
                opened = np.stack(columns, 1)
        value = opened
    if hasattr(value, "tocsr"):  # of scipy
        rows = value.tocsr()
        return rows.astype(np.float32) if rows.dtype == np.float64 else rows
    if isinstance(value, Mapping):
        return {key: as_arrays(each) for key, each in value.items()}
    if isinstance(value, tuple) or (
        isinstance(value, list)
        and value
        and all(np.ndim(each) > 0 for each in value)
        and all(hasattr(each, "shape") for each in value)
    ):
        return tuple(as_arrays(each) for each in value)
    array = np.asarray(value)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    elif array.dtype.kind == "U":
        array = array.astype(object)
    return np.ascontiguousarray(array)


def split_off(
    x: Any, y: Any, sample_weight: Any, part: float
) -> tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]:
    """Splits arrays into training examples and the last `part` for validation.

    Raises:
        ValueError: one of the two would be empty.
    """
    if not 0 < part < 1:
        raise ValueError(f"`validation_split` must be between 0 and 1, received: {part}")
    values = [None if each is None else as_arrays(each) for each in (x, y, sample_weight)]
    count = _count(values, "fit")
    at = math.floor(count * (1.0 - part))
    if at in (0, count):
        raise ValueError(
            f"Training data contains {count} samples, which is not sufficient to split it into a "
            f"validation and training set as specified by `validation_split={part}`. Either "
            "provide more data, or a different value for the `validation_split` argument."
        )

    def cut(start: int, stop: int) -> tuple[Any, Any, Any]:
        first, second, third = (
            None if each is None else map_structure(lambda array: array[start:stop], each)
            for each in values
        )
        return first, second, third

    return cut(0, at), cut(at, count)


def _count(values: Any, what: str) -> int:
    lengths = {
        array.shape[0] if np.ndim(array) else -1
        for value in values
        if value is not None
        for array in flatten(value)
    }
    if len(lengths) != 1 or -1 in lengths:
        raise value_error(
            f"{what}(): the arrays have different numbers of examples",
            expected="one first dimension for x, y and sample_weight",
            received=f"lengths {sorted(lengths)}",
        )
    count = lengths.pop()
    if count == 0:
        raise ValueError(f"{what}(): expected at least one example, received empty arrays.")
    return count


def _of_arrays(
    x: Any, y: Any, sample_weight: Any, batch_size: int, steps: int | None, shuffle: Any, what: str
) -> Batches:
    values = _given((x, y, sample_weight))
    count = _count(values, what)
    dataset = Dataset.from_tensor_slices(map_structure(_sliced, values))
    if shuffle == "batch":
        dataset = dataset.batch(batch_size).shuffle(-(-count // batch_size))
    else:
        if shuffle:
            dataset = dataset.shuffle(count)
        dataset = dataset.batch(batch_size)
    whole = -(-count // batch_size)
    once = steps is not None and steps != whole
    return Batches(dataset, steps or whole, once, samples=count, batch_size=batch_size)


def _sliced(array: Any) -> Any:
    """A matrix of scipy as a sparse tensor."""
    if not hasattr(array, "tocsr"):
        return array
    array.sort_indices()
    found = array.tocoo()
    places = np.stack([found.row, found.col], 1).astype(np.int64)
    return SparseTensorValue(places, found.data, np.array(found.shape, np.int64))


def _as_tuples(dataset: Dataset) -> Dataset:
    """Converts elements to tuples of one to three components."""
    spec = dataset.element_spec
    if isinstance(spec, tuple) and len(spec) <= 3 and not hasattr(spec, "_fields"):
        return dataset
    return dataset.map(lambda *element: (element[0] if len(element) == 1 else element,))


def _is_sequence(value: Any) -> bool:
    """Whether `x` is a `keras.utils.Sequence`, or duck-types as one."""
    return hasattr(value, "__getitem__") and hasattr(value, "on_epoch_end")


def _of_sequence(sequence: Any, steps: int | None) -> Batches:
    def generate() -> Iterable[Any]:
        for index in range(len(sequence)):
            yield _tuple_of(sequence[index])

    first = _tuple_of(sequence[0])
    dataset = Dataset.from_generator(generate, output_signature=_signature(first))
    return Batches(dataset, steps or len(sequence), on_epoch_end=sequence.on_epoch_end)


def _of_generator(generator: Any, steps: int | None, what: str) -> Batches:
    try:
        first = _tuple_of(next(generator))
    except StopIteration as error:
        raise ValueError(f"{what}(): the generator has yielded nothing.") from error

    elements = itertools.chain([first], map(_tuple_of, generator))  # without losing the first
    dataset = Dataset.from_generator(lambda: elements, output_signature=_signature(first))
    if steps is not None and what != "fit":  # later batches are for the next call
        dataset = dataset.take(steps)
    return Batches(dataset, steps, once=True)


def _tuple_of(element: Any) -> tuple[Any, ...]:
    parts = element if isinstance(element, tuple) else (element,)
    if len(parts) > 3:
        raise value_error(
            "Data is expected as `x`, `(x,)`, `(x, y)` or `(x, y, sample_weight)`",
            received=f"{len(parts)} parts",
        )
    return _given(parts)


def _given(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The components of `(x, y, sample_weight)` that are given, as arrays.

    Raises:
        ValueError: one is missing before a given one, e.g. weights without labels.
    """
    found = tuple(as_arrays(each) for each in parts if each is not None)
    if any(each is None for each in parts[: len(found)]):
        raise value_error(
            "sample_weight is given without y, or y without x",
            expected="`(x,)`, `(x, y)` or `(x, y, sample_weight)`",
            received=", ".join("None" if each is None else "arrays" for each in parts),
        )
    return found


def _signature(element: Any) -> Any:
    def spec(array: Any) -> TensorSpec:
        shape = [None] * array.ndim
        shape[1:] = array.shape[1:]
        return TensorSpec(shape, "string" if array.dtype == object else array.dtype)

    return map_structure(spec, element)


__all__ = ["Batches", "as_arrays", "batches_of", "split_off"]
