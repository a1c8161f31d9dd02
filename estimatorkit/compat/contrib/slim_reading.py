"""`slim.dataset`, `data_provider`, `dataset_data_provider`, `parallel_reader` (items of records
read by threads), `slim.queues` and `slim.model_analyzer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from estimatorkit.compat.train.queues.input_producers import string_input_producer
from estimatorkit.core.dtypes import float32, string
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import name_scope
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.files.summary import scalar
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.queues.queue_kinds import FIFOQueue, RandomShuffleQueue
from estimatorkit.storage.gfile import glob
from estimatorkit.train.queues.queue_runner import (
    QueueRunner,
    add_queue_runner,
    start_queue_runners,
)
from estimatorkit.train.sessions.coordinator import Coordinator


class Dataset:
    """The description of a data set; every argument is an attribute (`tf.contrib.slim.dataset`).

    Args:
        data_sources: file names or patterns.
        reader: a reader class, such as `TFRecordReader`.
        decoder: decodes a record to items (see `TFExampleDecoder`).
        num_samples: the number of records.
        items_to_descriptions: descriptions of the items by name.
        **kwargs: further attributes.
    """

    def __init__(
        self,
        data_sources: Any,
        reader: Any,
        decoder: Any,
        num_samples: int | None,
        items_to_descriptions: Mapping[str, str],
        **kwargs: Any,
    ) -> None:
        self.data_sources = data_sources
        self.reader = reader
        self.decoder = decoder
        self.num_samples = num_samples
        self.items_to_descriptions = items_to_descriptions
        vars(self).update(kwargs)


class DataProvider:
    """Tensors by item name (`tf.contrib.slim.data_provider.DataProvider`).

    Args:
        items_to_tensors: the tensors.
        num_samples: the number of samples in the data set.
    """

    def __init__(self, items_to_tensors: Mapping[str, Any], num_samples: int | None) -> None:
        self._tensors = items_to_tensors
        self._num_samples = num_samples

    def get(self, items: Sequence[str]) -> list[Any]:
        """The tensors of the items, in order.

        Raises:
            ValueError: `items` is not a list or tuple, or one of them is unknown.
        """
        if not isinstance(items, (list, tuple)):
            raise ValueError("items must be a list or tuple")
        for item in items:
            if item not in self._tensors:
                known = ", ".join(self._tensors)
                raise value_error(f"Item [{item}] is invalid", expected=f"one of {known}")
        return [self._tensors[item] for item in items]

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._tensors)

    def num_samples(self) -> int | None:
        """The number of samples in the data set."""
        return self._num_samples


def get_data_files(data_sources: Any) -> list[str]:
    """The files that match file names or patterns.

    Raises:
        ValueError: there are none.
    """
    if isinstance(data_sources, (list, tuple)):
        files = [each for source in data_sources for each in get_data_files(source)]
    else:
        files = glob(data_sources) if set("*?[") & set(data_sources) else [data_sources]
    if not files:
        raise ValueError(f"No data files found in {data_sources}")
    return files


def parallel_read(
    data_sources: Any,
    reader_class: Callable[..., Any],
    num_epochs: int | None = None,
    num_readers: int = 4,
    reader_kwargs: Mapping[str, Any] | None = None,
    shuffle: bool = True,
    dtypes: Sequence[Any] | None = None,
    capacity: int = 256,
    min_after_dequeue: int = 128,
    seed: int | None = None,
    scope: str | None = None,
) -> list[Tensor]:
    """A key and a record, from a queue filled by several readers
    (`tf.contrib.slim.parallel_reader.parallel_read`).

    Args:
        data_sources: file names or patterns.
        reader_class: makes a reader.
        num_epochs: the number of epochs; indefinitely by default.
        num_readers: the number of readers, each with a thread.
        reader_kwargs: arguments of `reader_class`.
        shuffle: whether to shuffle files and records.
        dtypes: of key and record; strings by default.
        capacity, min_after_dequeue, seed: see `RandomShuffleQueue`.
        scope: the name scope.

    Raises:
        ValueError: there are no files.
    """
    files = get_data_files(data_sources)
    with name_scope(scope, "parallel_read"):
        names = string_input_producer(
            files, num_epochs=num_epochs, shuffle=shuffle, seed=seed, name="filenames"
        )
        kinds = list(dtypes or (string, string))
        queue: Any = (
            RandomShuffleQueue(capacity, min_after_dequeue, kinds, seed=seed, name="common_queue")
            if shuffle
            else FIFOQueue(capacity, kinds, name="common_queue")
        )
        full = elementwise.cast(queue.size(), float32) * (1.0 / capacity)
        scalar(f"fraction_of_{capacity}_full", full)
        readers = [reader_class(**reader_kwargs or {}) for _ in range(num_readers)]
        add_queue_runner(
            QueueRunner(queue, [queue.enqueue(reader.read(names)) for reader in readers])
        )
        record: list[Tensor] = queue.dequeue()
        return record


def single_pass_read(
    data_sources: Any,
    reader_class: Callable[..., Any],
    reader_kwargs: Mapping[str, Any] | None = None,
    scope: str | None = None,
) -> Any:
    """A key and a record of the files, read once, in order; see `parallel_read`."""
    files = get_data_files(data_sources)
    with name_scope(scope, "single_pass_read"):
        names = string_input_producer(
            files, num_epochs=1, shuffle=False, capacity=1, name="filenames"
        )
        return reader_class(**reader_kwargs or {}).read(names)


class DatasetDataProvider(DataProvider):
    """The items of one record of a data set, a different one in each run
    (`tf.contrib.slim.dataset_data_provider.DatasetDataProvider`).

    Args:
        dataset: see `Dataset`.
        num_readers, reader_kwargs, shuffle, num_epochs, seed, scope: see `parallel_read`.
        common_queue_capacity, common_queue_min: its `capacity` and `min_after_dequeue`.
        record_key: the name of the item that holds the record's key.

    Raises:
        ValueError: `record_key` is an item of the data set, or there are no files.
    """

    def __init__(
        self,
        dataset: Any,
        num_readers: int = 1,
        reader_kwargs: Mapping[str, Any] | None = None,
        shuffle: bool = True,
        num_epochs: int | None = None,
        common_queue_capacity: int = 256,
        common_queue_min: int = 128,
        record_key: str = "record_key",
        seed: int | None = None,
        scope: str | None = None,
    ) -> None:
        key, data = parallel_read(
            dataset.data_sources,
            dataset.reader,
            num_epochs,
            num_readers,
            reader_kwargs,
            shuffle,
            capacity=common_queue_capacity,
            min_after_dequeue=common_queue_min,
            seed=seed,
            scope=scope,
        )
        items = dataset.decoder.list_items()
        if record_key in items:
            raise ValueError(
                "The item name used for `record_key` cannot also be used for a dataset item: "
                f"{record_key}"
            )
        tensors = dict(zip(items, dataset.decoder.decode(data, items), strict=True))
        super().__init__({**tensors, record_key: key}, dataset.num_samples)


@contextmanager
def QueueRunners(session: Any) -> Iterator[None]:
    """Runs the session's queue runners within a `with` block (`tf.contrib.slim.queues`)."""
    coordinator = Coordinator()
    threads = start_queue_runners(sess=session, coord=coordinator)
    try:
        yield
    finally:
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=120)


def tensor_description(var: Any) -> str:
    """A tensor's dtype and shape as text: '(float32 3x4)'."""
    dims = var.shape.dims or ()
    sizes = "x".join("?" if dim is None else str(dim) for dim in dims)
    return f"({var.dtype.name} {sizes})"


def analyze_vars(variables: Sequence[Any], print_info: bool = False) -> tuple[int, int]:
    """The numbers of elements and of bytes in variables (`slim.model_analyzer.analyze_vars`).

    Args:
        variables: the variables.
        print_info: whether to print each of them, and the totals.
    """
    elements = [prod(variable.shape.as_list()) for variable in variables]
    sizes = [variable.dtype.size for variable in variables]
    space = [count * size for count, size in zip(elements, sizes, strict=True)]
    if print_info:
        print("---------\nVariables: name (type shape) [size]\n---------")
        for variable, count, used in zip(variables, elements, space, strict=True):
            print(f"{variable.name} {tensor_description(variable)} [{count}, bytes: {used}]")
        print(f"Total size of variables: {sum(elements)}")
        print(f"Total bytes of variables: {sum(space)}")
    return sum(elements), sum(space)


def analyze_ops(graph: Any, print_info: bool = False) -> None:
    """Prints a graph's operations with their outputs (`slim.model_analyzer.analyze_ops`)."""
    if print_info:
        print("---------\nOperations: name -> (type shapes) [size]\n---------")
        for op in graph.get_operations():
            print(f"{op.name}\t->", ", ".join(map(tensor_description, op.outputs)))
