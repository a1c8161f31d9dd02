"""`tf.contrib.data`: functions that have other names in `data.experimental`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.data.dataset import Dataset
from estimatorkit.lazy import listing
from estimatorkit.train.hooks.hooks import SessionRunHook


def batch_and_drop_remainder(batch_size: Any) -> Callable[[Dataset], Dataset]:
    """For `Dataset.apply`: batches of exactly `batch_size` elements."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: Any, padded_shapes: Any, padding_values: Any = None
) -> Callable[[Dataset], Dataset]:
    """For `Dataset.apply`: padded batches of exactly `batch_size` elements."""
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )


def sloppy_interleave(
    map_func: Callable[..., Dataset], cycle_length: Any, block_length: int = 1
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply` that interleaves datasets in deterministic order."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Any,
    reader: Any = None,
    reader_args: Any = None,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    capacity: int = 10000,
) -> Any:
    """Tensors of the next batch of `Example`s from files; see `make_batched_features_dataset`."""
    from estimatorkit.data.readers.example_datasets import make_batched_features_dataset

    dataset = make_batched_features_dataset(
        file_pattern,
        batch_size,
        features,
        reader=reader,
        reader_args=reader_args,
        num_epochs=num_epochs,
        shuffle=randomize_input,
        shuffle_buffer_size=capacity,
    )
    return dataset.make_one_shot_iterator().get_next()


class _NothingMore:
    """A saveable without tensors: checkpoints include the positions of all iterators anyway."""

    saved_suffixes: Sequence[str] = ()

    def __init__(self, name: str) -> None:
        self.name = name

    def values_to_save(self, state: Any) -> Sequence[Any]:
        """No tensors."""
        return ()

    def restore_values(self, state: Any, values: Sequence[Any]) -> None:
        """Does nothing: the position is restored with the session's."""


def make_saveable_from_iterator(iterator: Any, external_state_policy: Any = None) -> Any:
    """A saveable for an iterator; checkpoints include its position even without it."""
    return _NothingMore(f"{iterator._op.name}-position")


class CheckpointInputPipelineHook(SessionRunHook):
    """Does nothing: checkpoints of an Estimator include the positions of its iterators anyway.

    Args:
        estimator: the Estimator.
        external_state_policy: has no effect.
    """

    def __init__(self, estimator: Any, external_state_policy: Any = None) -> None:
        super().__init__()


__dir__ = listing(__name__)
