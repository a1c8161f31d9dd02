"""Small input pipelines: `make_data.py` runs them on TensorFlow, tests run them on this package.

A pipeline is a function of the module that it uses as `tf` and gives a Dataset without randomness;
an input is a function of `tf.compat.v1.estimator.inputs` (or what stands in for it) and gives an
`input_fn`; a mistake is a function of `tf` that ought to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

PIPELINES: dict[str, Callable[[Any], Any]] = {}
INPUTS: dict[str, Callable[[Any], Callable[[], Any]]] = {}
INPUT_ERRORS: dict[str, Callable[[Any], object]] = {}
DATA_ERRORS: dict[str, Callable[[Any], object]] = {}


def _rows() -> tuple[dict[str, Any], Any]:
    features = {
        "number": np.array([0.5, 1.5, 2.5, 3.5, 4.5], np.float32),
        "pair": np.arange(10, dtype=np.int32).reshape(5, 2),
        "word": np.array(["a", "b", "c", "d", "e"]),
    }
    return features, np.array([0, 1, 0, 1, 1], np.int64)


PIPELINES.update(
    {
        "range": lambda tf: tf.data.Dataset.range(5),
        "range from": lambda tf: tf.data.Dataset.range(2, 5),
        "range with step": lambda tf: tf.data.Dataset.range(8, 1, -3),
        "range empty": lambda tf: tf.data.Dataset.range(0),
        "from_tensors": lambda tf: tf.data.Dataset.from_tensors([1, 2, 3]),
        "from_tensor_slices list": lambda tf: tf.data.Dataset.from_tensor_slices([1, 2, 3]),
        "from_tensor_slices floats": lambda tf: tf.data.Dataset.from_tensor_slices([1.5, 2.5]),
        "from_tensor_slices strings": lambda tf: tf.data.Dataset.from_tensor_slices(["a", "b"]),
        "from_tensor_slices matrix": lambda tf: tf.data.Dataset.from_tensor_slices(
            np.arange(6.0).reshape(3, 2)
        ),
        "from_tensor_slices tuple": lambda tf: tf.data.Dataset.from_tensor_slices(
            ([1, 2], ["a", "b"])
        ),
        "from_tensor_slices dict and labels": lambda tf: tf.data.Dataset.from_tensor_slices(
            _rows()
        ),
        "from_tensor_slices nested": lambda tf: tf.data.Dataset.from_tensor_slices(
            {"b": ([1, 2], [3, 4]), "a": [True, False]}
        ),
        "from_generator": lambda tf: tf.data.Dataset.from_generator(
            lambda: iter([(1, "a"), (2, "b")]), output_types=(tf.int64, tf.string)
        ),
        "from_generator with shapes": lambda tf: tf.data.Dataset.from_generator(
            lambda: iter([[1, 2], [3, 4]]), output_types=tf.float32, output_shapes=[2]
        ),
        "batch": lambda tf: tf.data.Dataset.from_tensor_slices(_rows()).batch(2),
        "batch drop_remainder": lambda tf: tf.data.Dataset.from_tensor_slices(_rows()).batch(
            2, drop_remainder=True
        ),
        "batch larger than the data": lambda tf: tf.data.Dataset.range(3).batch(5),
        "batch of batch": lambda tf: tf.data.Dataset.range(7).batch(2, True).batch(2),
        "repeat batch": lambda tf: tf.data.Dataset.range(3).repeat(2).batch(2),
        "batch repeat": lambda tf: tf.data.Dataset.range(3).batch(2).repeat(2),
        "repeat endless take": lambda tf: tf.data.Dataset.range(3).repeat().take(7),
        "repeat zero": lambda tf: tf.data.Dataset.range(3).repeat(0),
        "take": lambda tf: tf.data.Dataset.range(5).take(2),
        "take too many": lambda tf: tf.data.Dataset.range(2).take(5),
        "take all": lambda tf: tf.data.Dataset.range(3).take(-1),
        "skip": lambda tf: tf.data.Dataset.range(5).skip(3),
        "skip too many": lambda tf: tf.data.Dataset.range(2).skip(5),
        "skip all": lambda tf: tf.data.Dataset.range(3).skip(-1),
        "map": lambda tf: tf.data.Dataset.range(4).map(lambda x: x * x),
        "map to a pair": lambda tf: tf.data.Dataset.range(3).map(lambda x: (x, -x)),
        "map of a pair": lambda tf: tf.data.Dataset.from_tensor_slices(([1, 2], [10, 20])).map(
            lambda x, y: x + y
        ),
        "map to a dict": lambda tf: tf.data.Dataset.range(2).map(
            lambda x: {"x": x, "half": tf.cast(x, tf.float32) / 2.0}
        ),
        "map of features and label": lambda tf: tf.data.Dataset.from_tensor_slices(_rows()).map(
            lambda features, label: ({"twice": features["number"] * 2.0}, 1 - label)
        ),
        "map of strings": lambda tf: tf.data.Dataset.from_tensor_slices(["a", "b"]).map(
            lambda word: tf.strings.join([word, word], "-")
        ),
        "map to a list": lambda tf: tf.data.Dataset.range(2).map(lambda x: [x, x + 1]),
        "map to a constant": lambda tf: tf.data.Dataset.range(2).map(lambda x: 7),
        "map after batch": lambda tf: tf.data.Dataset.range(5).batch(2).map(tf.reduce_sum),
        "map in parallel": lambda tf: tf.data.Dataset.range(4).map(
            lambda x: x + 1, num_parallel_calls=2
        ),
        "filter": lambda tf: tf.data.Dataset.range(6).filter(lambda x: x % 2 == 0),
        "filter of features": lambda tf: tf.data.Dataset.from_tensor_slices(_rows()).filter(
            lambda features, label: features["number"] > 2.0
        ),
        "zip": lambda tf: tf.data.Dataset.zip(
            (tf.data.Dataset.range(3), tf.data.Dataset.from_tensor_slices(["a", "b"]))
        ),
        "zip of a dict": lambda tf: tf.data.Dataset.zip(
            {"a": tf.data.Dataset.range(2), "b": tf.data.Dataset.range(5, 9)}
        ),
        "concatenate": lambda tf: tf.data.Dataset.range(2).concatenate(tf.data.Dataset.range(5, 7)),
        "concatenate of shapes": lambda tf: tf.data.Dataset.from_tensors([1, 2]).concatenate(
            tf.data.Dataset.from_tensors([3])
        ),
        "shard": lambda tf: tf.data.Dataset.range(7).shard(3, 1),
        "shard last": lambda tf: tf.data.Dataset.range(7).shard(3, 2),
        "cache": lambda tf: tf.data.Dataset.range(3).cache().repeat(2),
        "enumerate": lambda tf: tf.data.Dataset.from_tensor_slices(["a", "b"]).enumerate(),
        "enumerate from": lambda tf: tf.data.Dataset.from_tensor_slices(["a", "b"]).enumerate(5),
        "prefetch": lambda tf: tf.data.Dataset.range(3).prefetch(2),
        "unbatch": lambda tf: tf.data.Dataset.range(5).batch(2).unbatch(),
        "flat_map": lambda tf: tf.data.Dataset.range(4).flat_map(tf.data.Dataset.range),
        "interleave": lambda tf: tf.data.Dataset.range(1, 4).interleave(
            lambda x: tf.data.Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=1
        ),
        "interleave with blocks": lambda tf: tf.data.Dataset.range(1, 5).interleave(
            lambda x: tf.data.Dataset.from_tensors(x).repeat(5), cycle_length=2, block_length=3
        ),
        "padded_batch": lambda tf: (
            tf.data.Dataset.range(1, 5)
            .map(lambda x: tf.fill([x], x))
            .padded_batch(2, padded_shapes=[None])
        ),
        "padded_batch with value": lambda tf: (
            tf.data.Dataset.range(1, 4)
            .map(lambda x: tf.fill([x], x))
            .padded_batch(2, padded_shapes=[4], padding_values=np.int64(-1))
        ),
        "shuffle of one": lambda tf: tf.data.Dataset.range(4).shuffle(1),
        "order of a chain": lambda tf: (
            tf.data.Dataset.range(10)
            .skip(1)
            .filter(lambda x: x % 3 != 0)
            .map(lambda x: x * 10)
            .repeat(2)
            .batch(4)
            .take(3)
        ),
        "take_while": lambda tf: tf.data.Dataset.range(9).take_while(lambda x: x < 4),
        "scan": lambda tf: tf.data.Dataset.range(5).scan(np.int64(0), lambda s, x: (s + x, s + x)),
        "window flattened": lambda tf: (
            tf.data.Dataset.range(5)
            .window(3, shift=1, drop_remainder=True)
            .flat_map(lambda window: window.batch(3))
        ),
        "unique": lambda tf: tf.data.Dataset.from_tensor_slices([3, 1, 3, 2, 1]).unique(),
    }
)

DATA_ERRORS.update(
    {
        "slices of different lengths": lambda tf: tf.data.Dataset.from_tensor_slices(
            ([1, 2, 3], [1, 2])
        ),
        "slices of a scalar": lambda tf: tf.data.Dataset.from_tensor_slices(3),
        "slices of a ragged list": lambda tf: tf.data.Dataset.from_tensor_slices([[1], [1, 2]]),
        "batch of zero": lambda tf: tf.data.Dataset.range(3).batch(0),
        "batch of different shapes": lambda tf: list(
            tf.data.Dataset.range(1, 4).map(lambda x: tf.fill([x], x)).batch(3)
        ),
        "filter that gives a number": lambda tf: tf.data.Dataset.range(3).filter(lambda x: x),
        "filter that gives a vector": lambda tf: tf.data.Dataset.range(3).filter(
            lambda x: [x > 1, x > 2]
        ),
        "map with too few arguments": lambda tf: tf.data.Dataset.from_tensor_slices(
            ([1, 2], [3, 4])
        ).map(lambda x: x),
        "map of something else": lambda tf: tf.data.Dataset.range(3).map(3),
        "map that returns nothing": lambda tf: tf.data.Dataset.range(3).map(lambda x: None),
        "map of a missing key": lambda tf: tf.data.Dataset.from_tensor_slices({"a": [1]}).map(
            lambda features: features["b"]
        ),
        "map of wrong types": lambda tf: tf.data.Dataset.from_tensor_slices(["a"]).map(
            lambda word: word * 2
        ),
        "zip of a list": lambda tf: tf.data.Dataset.zip(
            [tf.data.Dataset.range(3), tf.data.Dataset.range(3)]
        ),
        "zip of something else": lambda tf: tf.data.Dataset.zip((tf.data.Dataset.range(3), 3)),
        "concatenate of other types": lambda tf: tf.data.Dataset.range(2).concatenate(
            tf.data.Dataset.from_tensor_slices([1.5])
        ),
        "shard index too large": lambda tf: tf.data.Dataset.range(3).shard(2, 2),
        "shard of zero": lambda tf: tf.data.Dataset.range(3).shard(0, 0),
        "shuffle of zero": lambda tf: tf.data.Dataset.range(3).shuffle(0),
        "repeat of a string": lambda tf: tf.data.Dataset.range(3).repeat("a"),
        "generator of another shape": lambda tf: list(
            tf.data.Dataset.from_generator(
                lambda: iter([[1, 2, 3]]), output_types=tf.float32, output_shapes=[2]
            )
        ),
        "generator of another type": lambda tf: list(
            tf.data.Dataset.from_generator(lambda: iter(["a"]), output_types=tf.float32)
        ),
        "generator that fails": lambda tf: list(
            tf.data.Dataset.from_generator(_failing, output_types=tf.int64)
        ),
        "generator that is no callable": lambda tf: tf.data.Dataset.from_generator(
            [1, 2], output_types=tf.int64
        ),
        "parse of a bad number": lambda tf: list(
            tf.data.Dataset.from_tensor_slices(["1", "x"]).map(tf.strings.to_number)
        ),
    }
)


def _failing() -> Iterator[int]:
    yield 1
    raise KeyError("the third column")


def _arrays() -> tuple[dict[str, Any], Any]:
    features = {
        "width": np.arange(10, dtype=np.float32) / 2,
        "age": np.arange(20, dtype=np.float64).reshape(10, 2),
    }
    return features, np.arange(100, 110, dtype=np.int32)


def _frame() -> tuple[Any, Any]:
    import pandas as pd

    index = list(range(5, 15))
    frame = pd.DataFrame(
        {"width": np.arange(10) / 2, "age": np.arange(10, dtype=np.int64)}, index=index
    )
    return frame, pd.Series(np.arange(100, 110, dtype=np.int32), index=index, name="label")


def _numpy(x: Any = None, y: Any = "default", **arguments: Any) -> Callable[[Any], Any]:
    def make(inputs: Any) -> Any:
        features, labels = _arrays()
        return inputs.numpy_input_fn(
            features if x is None else x,
            labels if isinstance(y, str) else y,
            shuffle=False,
            **arguments,
        )

    return make


def _pandas(kind: str, **arguments: Any) -> Callable[[Any], Any]:
    def make(inputs: Any) -> Any:
        frame, series = _frame()
        labels = {"series": series, "none": None, "frame": frame * 2}[kind]
        return inputs.pandas_input_fn(frame, labels, shuffle=False, **arguments)

    return make


INPUTS.update(
    {
        "numpy 1 epoch": _numpy(batch_size=4, num_epochs=1),
        "numpy 2 epochs": _numpy(batch_size=4, num_epochs=2),
        "numpy 3 epochs, batch of 16": _numpy(batch_size=16, num_epochs=3),
        "numpy 1 epoch, batch of 16": _numpy(batch_size=16, num_epochs=1),
        "numpy 1 epoch, batch of 5": _numpy(batch_size=5, num_epochs=1),
        "numpy without end": _numpy(batch_size=4, num_epochs=None),
        "numpy default batch": _numpy(),
        "numpy without labels": _numpy(y=None, batch_size=6),
        "numpy labels in a dict": _numpy(
            y={"z": np.arange(10), "b": np.arange(10, 20)}, batch_size=6
        ),
        "numpy one array": _numpy(x=np.arange(10, dtype=np.float32), batch_size=6),
        "numpy strings": _numpy(x={"s": np.array(list("abcdefghij"))}, batch_size=6),
        "pandas 1 epoch": _pandas("series", batch_size=4, num_epochs=1),
        "pandas 2 epochs": _pandas("series", batch_size=4, num_epochs=2),
        "pandas without end": _pandas("series", batch_size=4, num_epochs=None),
        "pandas without labels": _pandas("none", batch_size=6),
        "pandas labels in a frame": _pandas("frame", batch_size=6),
    }
)

INPUT_ERRORS.update(
    {
        "numpy without shuffle": lambda inputs: inputs.numpy_input_fn(*_arrays()),
        "numpy of no dict": lambda inputs: inputs.numpy_input_fn([1, 2], shuffle=False)(),
        "numpy of an empty dict": lambda inputs: inputs.numpy_input_fn({}, shuffle=False)(),
        "numpy of a list": lambda inputs: inputs.numpy_input_fn({"x": [1, 2]}, shuffle=False)(),
        "numpy labels of another length": lambda inputs: inputs.numpy_input_fn(
            {"x": np.zeros(3)}, np.zeros(2), shuffle=False
        )(),
        "numpy labels of an empty dict": lambda inputs: inputs.numpy_input_fn(
            {"x": np.zeros(3)}, {}, shuffle=False
        )(),
        "numpy label with the name of a feature": lambda inputs: inputs.numpy_input_fn(
            {"x": np.zeros(3)}, {"x": np.zeros(3)}, shuffle=False
        )(),
        "pandas without shuffle": lambda inputs: inputs.pandas_input_fn(*_frame()),
        "pandas with another index": lambda inputs: inputs.pandas_input_fn(
            _frame()[0], _frame()[1].reset_index(drop=True), shuffle=False
        ),
        "pandas with the target's name": lambda inputs: inputs.pandas_input_fn(
            _frame()[0], _frame()[1], shuffle=False, target_column="age"
        ),
    }
)
