"""Sequence preprocessing (`tf.keras.preprocessing.sequence`): padding, skip-grams, time windows.

`pad_sequences` combines lists of different lengths into one array; `make_sampling_table` and
`skipgrams` generate training examples for word2vec; `TimeseriesGenerator` generates batches of
windows.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import value_error
from estimatorkit.keras import utils
from estimatorkit.lazy import listing

_EULER = 0.577  # the Euler-Mascheroni constant as TensorFlow has it
_LARGEST_SEED = 10_000_000


def pad_sequences(
    sequences: Any,
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> NDArray[Any]:
    """Pads or truncates sequences to the same length and stacks them as the rows of an array.

    Args:
        sequences: a list of lists, or of arrays `(length, ...)` that differ only in length.
        maxlen: the length of the rows; by default that of the longest sequence.
        dtype: the dtype of the array; `object` for strings of different lengths.
        padding: 'pre' or 'post': whether to pad before or after each sequence.
        truncating: 'pre' or 'post': whether to drop values from the beginning or the end of
            sequences longer than `maxlen`.
        value: the padding value.

    Returns:
        An array `(number of sequences, maxlen, ...)`.

    Raises:
        ValueError: `sequences` is not a list of sequences, their shapes differ in more than the
            length, or an argument is invalid.
    """
    if not hasattr(sequences, "__len__"):
        raise ValueError("`sequences` must be iterable.")
    for name, chosen in (("Truncating", truncating), ("Padding", padding)):
        if chosen not in ("pre", "post"):
            raise ValueError(f'{name} type "{chosen}" not understood: it is "pre" or "post"')
    for each in sequences:
        if not hasattr(each, "__len__"):
            raise ValueError(
                f"`sequences` must be a list of iterables. Found non-iterable: {each!s}"
            )
    texts = np.issubdtype(dtype, np.str_)
    if isinstance(value, str) and dtype is not object and not texts:
        raise value_error(
            f"`dtype` {dtype} is not compatible with `value`'s type: {type(value)}",
            hint="You should set `dtype=object` for variable length strings.",
        )
    filled = [np.asarray(each, dtype) for each in sequences if len(each)]
    length = max((len(each) for each in sequences), default=0) if maxlen is None else maxlen
    shape = filled[0].shape[1:] if filled else ()
    result = np.full((len(sequences), length, *shape), value, dtype)
    rows = (at for at, each in enumerate(sequences) if len(each))
    for at, values in zip(rows, filled, strict=True):
        if values.shape[1:] != shape:
            raise ValueError(
                f"Shape of sample {values.shape[1:]} of sequence at position {at} is different "
                f"from expected shape {shape}"
            )
        kept = values[max(0, len(values) - length) :] if truncating == "pre" else values[:length]
        first = length - len(kept) if padding == "pre" else 0
        result[at, first : first + len(kept)] = kept
    return result


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> NDArray[np.float64]:
    """Returns the probability of keeping each word, for `skipgrams`.

    Words must be numbered by descending frequency, which is assumed to follow Zipf's law: the
    frequency of the word of rank r is 1 / (r (ln r + 0.577) + 1/2 - 1 / (12 r)).

    Args:
        size: the number of words.
        sampling_factor: the frequency above which words are subsampled (t in Mikolov et al. 2013).

    Returns:
        Floats `(size,)`: min(1, sqrt(sampling_factor / frequency)).
    """
    rank = np.maximum(np.arange(size), 1).astype(np.float64)
    inverse_frequency = rank * (np.log(rank) + _EULER) + 0.5 - 1.0 / (12.0 * rank)
    ratio = sampling_factor * inverse_frequency
    table: NDArray[np.float64] = np.minimum(1.0, ratio / np.sqrt(ratio))
    return table


def skipgrams(
    sequence: Sequence[int],
    vocabulary_size: int,
    window_size: int = 4,
    negative_samples: float = 1.0,
    shuffle: bool = True,
    categorical: bool = False,
    sampling_table: Any = None,
    seed: int | None = None,
) -> tuple[list[list[int]], list[Any]]:
    """Generates pairs of neighboring words, and random negative pairs (word2vec).

    Uses Python's `random` module: after `random.seed(n)`, the results equal TensorFlow's.

    Args:
        sequence: the word ids of a text; 0 marks a position without a word.
        vocabulary_size: the largest id plus one.
        window_size: the maximum distance between the words of a pair.
        negative_samples: the number of negative pairs per positive pair.
        shuffle: whether to shuffle the pairs.
        categorical: whether labels are [0, 1] and [1, 0] instead of 1 and 0.
        sampling_table: the probability of keeping each word; see `make_sampling_table`.
        seed: the seed for shuffling; random by default.

    Returns:
        `(pairs, labels)`: pairs `[word, other word]`, and for each its label: 1 for neighboring
        words, 0 for a negative pair.
    """
    true, false = ([0, 1], [1, 0]) if categorical else (1, 0)
    couples: list[list[int]] = []
    for at, word in enumerate(sequence):
        if not word:
            continue
        if sampling_table is not None and sampling_table[word] < random.random():  # noqa: S311
            continue
        near = range(max(0, at - window_size), min(len(sequence), at + window_size + 1))
        couples += [[word, sequence[to]] for to in near if to != at and sequence[to]]
    labels: list[Any] = [true] * len(couples)
    if negative_samples > 0:
        count = int(len(labels) * negative_samples)
        words = [word for word, _ in couples]
        random.shuffle(words)
        couples += [
            [words[at % len(words)], random.randint(1, vocabulary_size - 1)]  # noqa: S311
            for at in range(count)
        ]
        labels += [false] * count
    if shuffle:
        chosen = random.randint(0, _LARGEST_SEED) if seed is None else seed  # noqa: S311
        for each in (couples, labels):
            random.seed(chosen)
            random.shuffle(each)
    return couples, labels


class TimeseriesGenerator(utils.Sequence):
    """Generates batches of windows of a time series, each with the target that follows it.

    Args:
        data: an array or list `(steps, ...)`.
        targets: the target of each step, of the same length as `data`.
        length: the number of steps that a window spans.
        sampling_rate: the stride between the steps of a window.
        stride: the number of steps between windows.
        start_index, end_index: the first and the last step to use.
        shuffle: whether to draw windows at random (with NumPy's global generator).
        reverse: whether to reverse the steps of each window.
        batch_size: the number of windows per batch; the last batch may have fewer.

    Raises:
        ValueError: data and targets differ in length, or no window fits.
    """

    def __init__(
        self,
        data: Any,
        targets: Any,
        length: int,
        sampling_rate: int = 1,
        stride: int = 1,
        start_index: int = 0,
        end_index: int | None = None,
        shuffle: bool = False,
        reverse: bool = False,
        batch_size: int = 128,
    ) -> None:
        if len(data) != len(targets):
            raise ValueError(
                "Data and targets have to be of same length. Data length is "
                f"{len(data)} while target length is {len(targets)}"
            )
        self.data, self.targets = data, targets
        self.length, self.sampling_rate, self.stride = length, sampling_rate, stride
        self.start_index = start_index + length
        self.end_index = len(data) - 1 if end_index is None else end_index
        self.shuffle, self.reverse, self.batch_size = shuffle, reverse, batch_size
        if self.start_index > self.end_index:
            raise ValueError(
                f"`start_index+length={self.start_index} > end_index={self.end_index}` is "
                "disallowed, as no part of the sequence would be left to be used as current step."
            )

    def __len__(self) -> int:
        """The number of batches."""
        steps = self.batch_size * self.stride
        return (self.end_index - self.start_index + steps) // steps

    def __getitem__(self, index: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Returns the windows and targets of the batch with index `index`."""
        if self.shuffle:
            rows = np.random.randint(self.start_index, self.end_index + 1, size=self.batch_size)
        else:
            first = self.start_index + self.batch_size * self.stride * index
            last = min(first + self.batch_size * self.stride, self.end_index + 1)
            rows = np.arange(first, last, self.stride)
        windows = np.array(
            [self.data[row - self.length : row : self.sampling_rate] for row in rows]
        )
        targets = np.array([self.targets[row] for row in rows])
        return (windows[:, ::-1, ...] if self.reverse else windows), targets

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments as plain values, with data and targets as JSON."""
        texts = {}
        for name in ("data", "targets"):
            values = getattr(self, name)
            try:
                texts[name] = json.dumps(values.tolist() if hasattr(values, "tolist") else values)
            except TypeError as error:
                raise TypeError(f"{name.capitalize()} not JSON Serializable: {values}") from error
        names = ("length", "sampling_rate", "stride", "start_index", "end_index", "shuffle")
        return {
            **texts,
            **{name: getattr(self, name) for name in (*names, "reverse", "batch_size")},
        }

    def to_json(self, **kwargs: Any) -> str:
        """Returns the config as JSON; `kwargs` are passed to `json.dumps`."""
        return json.dumps(
            {"class_name": type(self).__name__, "config": self.get_config()}, **kwargs
        )


__all__ = ["TimeseriesGenerator", "make_sampling_table", "pad_sequences", "skipgrams"]
__dir__ = listing(__name__)
