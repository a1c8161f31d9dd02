"""Datasets of parsed `Example`s: `parse_example_dataset` and `make_batched_features_dataset`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.dataset_methods import AUTOTUNE
from estimatorkit.ops.parsing.parsing import parse_example


def parse_example_dataset(
    features: Mapping[str, Any], num_parallel_calls: int = 1, deterministic: bool | None = None
) -> Callable[[Dataset], Dataset]:
    """Parses batches of serialized `Example`s to dicts of tensors, for `Dataset.apply`.

    Args:
        features: features by name, see `io.parse_example`.
        num_parallel_calls, deterministic: have no effect.
    """
    return lambda dataset: dataset.map(lambda serialized: parse_example(serialized, features))


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Any = None,
    label_key: str | None = None,
    reader_args: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of parsed `Example`s from files.

    Args:
        file_pattern: a pattern of file names, or a list of them.
        batch_size: examples per batch.
        features: features by name, see `io.parse_example`.
        reader: maps file names to a dataset of serialized examples; `TFRecordDataset` by default.
        label_key: the feature that becomes the labels.
        reader_args: further arguments of `reader`.
        num_epochs: the number of epochs; None repeats indefinitely.
        shuffle: whether to shuffle files and examples.
        shuffle_buffer_size: examples in the shuffle buffer.
        shuffle_seed: makes the order reproducible.
        prefetch_buffer_size: batches to prefetch.
        reader_num_threads: the number of files to interleave; 1 by default.
        parser_num_threads, sloppy_ordering: have no effect.
        drop_final_batch: drop a smaller last batch.

    Returns:
        A dataset of dicts of tensors and sparse tensors; with `label_key` pairs (dict, labels).

    Raises:
        ValueError: there is no feature `label_key`.
    """
    if label_key is not None and label_key not in features:
        raise value_error(
            f"The `label_key` provided ({label_key!r}) must be one of the `features` keys.",
            expected=sorted(features),
            received=repr(label_key),
            hint=did_you_mean(label_key, list(features)),
        )
    if reader is None:
        from estimatorkit.data.readers.tfrecords import TFRecordDataset as reader
    files = Dataset.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    more = list(reader_args or ())
    records = files.interleave(lambda name: reader(name, *more), reader_num_threads or 1)
    if shuffle:
        records = records.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        records = records.repeat(num_epochs)
    whole = drop_final_batch or num_epochs is None
    batches = records.batch(batch_size, drop_remainder=whole)
    parsed = batches.apply(parse_example_dataset(features))
    if label_key is not None:

        def take_label(example: dict[str, Any]) -> tuple[dict[str, Any], Any]:
            return {key: example[key] for key in example if key != label_key}, example[label_key]

        # A dict is a single argument.
        parsed = parsed.map(take_label)
    return parsed.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


__all__ = ["make_batched_features_dataset", "parse_example_dataset"]
