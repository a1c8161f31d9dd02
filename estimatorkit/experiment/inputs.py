"""The examples of an experiment as datasets: of a table in memory, or of chunks of files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import estimatorkit as ek
from estimatorkit.experiment import examples, row_sets, tables
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.preprocessing import preprocessed
from estimatorkit.experiment.row_sets import MAIN
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.tables import Table

_CANDIDATES = 1024
"""The batch size in which candidates are embedded."""


@dataclass(frozen=True)
class Examples:
    """Examples of an experiment.

    Attributes:
        sample: (features, labels), or features: all of them in memory, or those of a chunk.
        dataset: makes a dataset of one example each.
        count: how many there are; if they are streamed, this reads all files.
    """

    sample: Any
    dataset: Callable[[], ek.data.Dataset]
    count: Callable[[], int]

    @property
    def labels(self) -> NDArray[Any] | None:
        """The labels of the sample, if there are any."""
        return self.sample[1] if isinstance(self.sample, tuple) else None


def training(experiment: Experiment) -> Examples:
    """The training examples.

    Raises:
        DataError: the data does not fit the experiment.
    """
    origin = tables.source_name(experiment.data.train)
    return _examples(
        experiment, lambda: row_sets.training_chunks(experiment), origin, training=True
    )


def evaluation(
    experiment: Experiment, name: str = MAIN, *, class_weights: bool = False
) -> Examples:
    """The examples of an evaluation.

    Args:
        name: as in `row_sets.evaluation_chunks`.
        class_weights: whether `train.class_weights` count.

    Raises:
        DataError: the data does not fit the experiment.
    """
    origin = row_sets.evaluation_source(experiment, name)
    return _examples(
        experiment,
        lambda: row_sets.evaluation_chunks(experiment, name),
        origin,
        training=class_weights,
    )


def candidates(experiment: Experiment) -> Callable[[], Any]:
    """Returns an input function that yields each item of `data.candidates` once, in batches.

    Its first call reads them, and raises DataError if they do not fit the experiment.
    """
    items = experiment.of_items

    @functools.cache
    def rows() -> dict[str, NDArray[Any]]:
        source = experiment.data.candidates
        origin = tables.source_name(source)
        table = tables.read_source(experiment.data.as_read(source))
        found = examples.features_of(items, table, origin, weighted=False)
        _, first = np.unique(found[str(experiment.item_id)], return_index=True)
        distinct = {key: column[np.sort(first)] for key, column in found.items()}
        return preprocessed(items, distinct)

    return lambda: ek.data.Dataset.from_tensor_slices(rows()).batch(_CANDIDATES)


def _examples(
    experiment: Experiment, chunks: Callable[[], Iterator[Table]], origin: str, training: bool
) -> Examples:
    first = next(chunks())
    sample = examples.examples_of(experiment, first, origin, training=training)
    if not experiment.data.stream:
        rows = tables.row_count(first)
        return Examples(sample, lambda: ek.data.Dataset.from_tensor_slices(sample), lambda: rows)

    def generate() -> Iterator[Any]:
        for table in chunks():
            made = examples.examples_of(experiment, table, origin, training=training)
            _check_widths(sample, made, origin)
            yield made

    types = ek.nest.map_structure(_type, sample)
    shapes = ek.nest.map_structure(lambda array: [None, *array.shape[1:]], sample)
    return Examples(
        sample,
        lambda: ek.data.Dataset.from_generator(generate, types, shapes).unbatch(),
        lambda: sum(map(tables.row_count, chunks())),
    )


def _check_widths(sample: Any, made: Any, origin: str) -> None:
    """Raises DataError if lists are padded to another width than in the first chunk."""
    for name, column in (made[0] if isinstance(made, tuple) else made).items():
        first = (sample[0] if isinstance(sample, tuple) else sample)[name]
        if column.shape[1:] != first.shape[1:]:
            raise DataError.explained(
                f"{origin}: lists of {name!r} are longer in one chunk than another",
                expected="the same width in each chunk of a stream",
                received=f"{column.shape[1:]} values after {first.shape[1:]}",
                hint=f"give it beside the files: lists: {{{name}: {{length: 50}}}}.",
            )


def _type(array: NDArray[Any]) -> Any:
    return ek.string if array.dtype.kind in "OUS" else ek.as_dtype(np.dtype(array.dtype))
