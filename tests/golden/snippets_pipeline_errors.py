"""Mistakes with datasets in graphs: each a function of the module used as `tf` and of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

ERRORS: dict[str, Callable[[Any, Any], object]] = {}


def _range(tf: Any, *arguments: int) -> Any:
    return tf.data.Dataset.range(*arguments)


def _run(tf: Any, session: Any, dataset: Any, times: int = 10) -> None:
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    session.run(iterator.initializer)
    for _ in range(times):
        session.run(element)


def _filled(tf: Any) -> Any:
    return _range(tf, 1, 4).map(lambda x: tf.fill([x], x))


def _generated(tf: Any, session: Any, elements: Any, *arguments: Any) -> None:
    _run(tf, session, tf.data.Dataset.from_generator(lambda: iter(elements), *arguments))


def _failing() -> Iterator[int]:
    yield 1
    raise KeyError("the third column")


def _handle(tf: Any, session: Any, handle: str) -> None:
    iterator = tf.data.Iterator.from_string_handle(handle, tf.int64, tf.TensorShape([]))
    session.run(iterator.get_next())


def _restructured(tf: Any, dataset: Any) -> None:
    tf.data.Iterator.from_structure(tf.int64, tf.TensorShape([])).make_initializer(dataset)


ERRORS.update(
    {
        "filter to a number": lambda tf, session: _range(tf, 3).filter(lambda x: x),
        "filter to a vector": lambda tf, session: _range(tf, 3).filter(lambda x: [x > 1, x > 2]),
        "take_while to a number": lambda tf, session: _range(tf, 3).take_while(lambda x: x),
        "concatenate of types": lambda tf, session: _range(tf, 3).concatenate(
            tf.data.Dataset.from_tensors(1.5)
        ),
        "concatenate of structures": lambda tf, session: _range(tf, 3).concatenate(
            tf.data.Dataset.from_tensors((1, 2))
        ),
        "padded_shapes too small": lambda tf, session: _run(
            tf, session, _filled(tf).padded_batch(3, [2])
        ),
        "padded_shapes statically too small": lambda tf, session: tf.data.Dataset.from_tensors(
            [1, 2, 3]
        ).padded_batch(3, [2]),
        "padded_shapes of a rank": lambda tf, session: _filled(tf).padded_batch(3, [None, None]),
        "padded_shapes of a structure": lambda tf, session: _filled(tf).padded_batch(
            3, ([None], [None])
        ),
        "padding_values of a type": lambda tf, session: _filled(tf).padded_batch(3, [None], 0.5),
        "padded_batch of unknown rank": lambda tf, session: (
            _range(tf, 3).map(lambda x: tf.py_func(lambda v: v, [x], tf.int64)).padded_batch(2)
        ),
        "padded_batch of sparse": lambda tf, session: (
            _range(tf, 3).map(lambda x: tf.SparseTensor([[0]], [x], [1])).padded_batch(2, [None])
        ),
        "batch of ragged rows": lambda tf, session: _run(tf, session, _filled(tf).batch(3)),
        "batch of zero": lambda tf, session: _run(tf, session, _range(tf, 3).batch(0)),
        "batch of text": lambda tf, session: _range(tf, 3).batch("two"),
        "batch of a float": lambda tf, session: _range(tf, 3).batch(2.5),
        "unbatch of scalars": lambda tf, session: _range(tf, 3).unbatch(),
        "unbatch of lengths": lambda tf, session: _run(
            tf, session, _filled(tf).map(lambda x: (x, x[:1])).unbatch()
        ),
        "flat_map to a tensor": lambda tf, session: _range(tf, 3).flat_map(lambda x: x),
        "interleave to a tensor": lambda tf, session: _range(tf, 3).interleave(lambda x: x, 2),
        "interleave of none": lambda tf, session: _run(
            tf, session, _range(tf, 3).interleave(lambda x: _range(tf, 2), cycle_length=0)
        ),
        "interleave of a negative number": lambda tf, session: _run(
            tf, session, _range(tf, 3).interleave(lambda x: _range(tf, 2), cycle_length=-3)
        ),
        "interleave in blocks of none": lambda tf, session: _run(
            tf, session, _range(tf, 3).interleave(lambda x: _range(tf, 2), 2, 0)
        ),
        "window of zero": lambda tf, session: _run(tf, session, _range(tf, 3).window(0)),
        "window shifted by zero": lambda tf, session: _run(
            tf, session, _range(tf, 3).window(2, shift=0)
        ),
        "shard of a large index": lambda tf, session: _run(tf, session, _range(tf, 3).shard(2, 2)),
        "shard of a negative index": lambda tf, session: _run(
            tf, session, _range(tf, 3).shard(2, -1)
        ),
        "shard of none": lambda tf, session: _run(tf, session, _range(tf, 3).shard(0, 0)),
        "shuffle of zero": lambda tf, session: _run(tf, session, _range(tf, 3).shuffle(0)),
        "prefetch of a negative number": lambda tf, session: _run(
            tf, session, _range(tf, 3).prefetch(-3)
        ),
        "range by zero": lambda tf, session: _run(tf, session, _range(tf, 3, 5, 0)),
        "range of nothing": lambda tf, session: _range(tf),
        "slices of lengths": lambda tf, session: tf.data.Dataset.from_tensor_slices(
            ([1, 2], [1, 2, 3])
        ),
        "slices of a scalar": lambda tf, session: tf.data.Dataset.from_tensor_slices(5),
        "zip of no dataset": lambda tf, session: tf.data.Dataset.zip((_range(tf, 3), 5)),
        "map to None": lambda tf, session: _range(tf, 3).map(lambda x: None),
        "map to an object": lambda tf, session: _range(tf, 3).map(lambda x: object()),
        "map with too many arguments": lambda tf, session: _range(tf, 3).map(lambda x, y: x),
        "map that raises": lambda tf, session: _range(tf, 3).map(lambda x: {}["width"]),
        "group_by_window of a float key": lambda tf, session: _range(tf, 3).apply(
            tf.data.experimental.group_by_window(
                lambda x: 0.5, lambda key, window: window.batch(2), 2
            )
        ),
        "group_by_window to a tensor": lambda tf, session: _range(tf, 3).apply(
            tf.data.experimental.group_by_window(lambda x: x, lambda key, window: key, 2)
        ),
        "group_by_window of no size": lambda tf, session: tf.data.experimental.group_by_window(
            lambda x: x, lambda key, window: window
        )(_range(tf, 3)),
        "group_by_window of size 0": lambda tf, session: _run(
            tf,
            session,
            _range(tf, 3).apply(
                tf.data.experimental.group_by_window(
                    lambda x: x, lambda key, window: window.batch(2), 0
                )
            ),
        ),
        "buckets and sizes": lambda tf, session: _filled(tf).apply(
            tf.data.experimental.bucket_by_sequence_length(tf.size, [2, 4], [1, 1])
        ),
        "buckets of a longer one": lambda tf, session: _run(
            tf,
            session,
            _filled(tf).apply(
                tf.data.experimental.bucket_by_sequence_length(
                    tf.size, [2], [1, 1], pad_to_bucket_boundary=True
                )
            ),
        ),
        "scan of types": lambda tf, session: _range(tf, 3).scan(0, lambda s, x: (x, x)),
        "scan of one value": lambda tf, session: _range(tf, 3).scan(np.int64(0), lambda s, x: x),
        "reduce of types": lambda tf, session: _range(tf, 3).reduce(0, lambda s, x: x),
        "choose of a large number": lambda tf, session: _run(
            tf,
            session,
            tf.data.experimental.choose_from_datasets([_range(tf, 3)], _range(tf, 1, 3)),
        ),
        "choose of types": lambda tf, session: tf.data.experimental.choose_from_datasets(
            [_range(tf, 3), tf.data.Dataset.from_tensors(1.0)], _range(tf, 2)
        ),
        "choose by floats": lambda tf, session: tf.data.experimental.choose_from_datasets(
            [_range(tf, 3)], tf.data.Dataset.from_tensors(1.0)
        ),
        "sample of lengths": lambda tf, session: tf.data.experimental.sample_from_datasets(
            [_range(tf, 3)], [0.5, 0.5]
        ),
        "dense_to_sparse_batch too large": lambda tf, session: _run(
            tf,
            session,
            _filled(tf).apply(tf.data.experimental.dense_to_sparse_batch(3, [2])),
        ),
        "single of none": lambda tf, session: session.run(
            tf.data.experimental.get_single_element(_range(tf, 0))
        ),
        "single of two": lambda tf, session: session.run(
            tf.data.experimental.get_single_element(_range(tf, 2))
        ),
        "bad number": lambda tf, session: _run(
            tf, session, tf.data.Dataset.from_tensors("x").map(tf.string_to_number)
        ),
        "division by zero": lambda tf, session: _run(
            tf, session, tf.data.Dataset.from_tensors(0).map(lambda x: 1 // x)
        ),
        "after the end": lambda tf, session: _run(tf, session, _range(tf, 2), 3),
        "not initialized": lambda tf, session: session.run(
            _range(tf, 3).make_initializable_iterator().get_next()
        ),
        "placeholder in a one-shot iterator": lambda tf, session: (
            tf.data.Dataset.from_tensors(tf.placeholder(tf.int32, [], "fed"))
        ).make_one_shot_iterator(),
        "placeholder not fed": lambda tf, session: session.run(
            tf.data.Dataset.from_tensors(tf.placeholder(tf.int32, [], "fed"))
            .make_initializable_iterator()
            .initializer
        ),
        "initializer of a one-shot iterator": lambda tf, session: (
            _range(tf, 3).make_one_shot_iterator().initializer
        ),
        "initializer of a structure": lambda tf, session: (
            tf.data.Iterator.from_structure(tf.int64, tf.TensorShape([])).initializer
        ),
        "structure of types": lambda tf, session: _restructured(
            tf, tf.data.Dataset.from_tensors(1.0)
        ),
        "structure of shapes": lambda tf, session: _restructured(
            tf, tf.data.Dataset.from_tensors(np.array([1, 2]))
        ),
        "structure of a nest": lambda tf, session: _restructured(
            tf, tf.data.Dataset.from_tensors((1, 2))
        ),
        "handle of nobody": lambda tf, session: _handle(tf, session, "nobody"),
        "generator of a type": lambda tf, session: _generated(tf, session, ["a"], tf.float32),
        "generator of a float": lambda tf, session: _generated(tf, session, [0.5], tf.int32),
        "generator of a shape": lambda tf, session: _generated(
            tf, session, [[1, 2, 3]], tf.int32, [2]
        ),
        "generator of a structure": lambda tf, session: _generated(
            tf, session, [(1, 2, 3)], (tf.int32, tf.int32)
        ),
        "generator that raises": lambda tf, session: _run(
            tf, session, tf.data.Dataset.from_generator(_failing, tf.int64)
        ),
        "generator that is none": lambda tf, session: tf.data.Dataset.from_generator(
            [1, 2], tf.int64
        ),
        "generator of types and a signature": lambda tf, session: tf.data.Dataset.from_generator(
            list, tf.int64, output_signature=tf.TensorSpec([], tf.int64)
        ),
        "generator of shapes and a signature": lambda tf, session: tf.data.Dataset.from_generator(
            list, output_shapes=[], output_signature=tf.TensorSpec([], tf.int64)
        ),
        "slices of a list": lambda tf, session: tf.data.Dataset.from_sparse_tensor_slices([1, 2]),
        "concatenate of other types": lambda tf, session: _range(tf, 3).concatenate(
            tf.data.Dataset.from_tensors("a")
        ),
        "choose of numbers": lambda tf, session: tf.data.Dataset.choose_from_datasets(
            [_range(tf, 3)], tf.data.Dataset.from_tensors(1)
        ),
        "choose from none": lambda tf, session: tf.data.Dataset.choose_from_datasets(
            [], _range(tf, 3)
        ),
        "sample by integers": lambda tf, session: tf.data.Dataset.sample_from_datasets(
            [_range(tf, 3), _range(tf, 2)], weights=[1, 2]
        ),
        "sample by too few weights": lambda tf, session: tf.data.Dataset.sample_from_datasets(
            [_range(tf, 3), _range(tf, 2)], weights=[1.0]
        ),
        "zip of nothing": lambda tf, session: tf.data.Dataset.zip(()),
        "an option of no name": lambda tf, session: setattr(tf.data.Options(), "fast", True),
        "an option of a type": lambda tf, session: setattr(tf.data.Options(), "threading", 3),
        "options of a dataset": lambda tf, session: setattr(
            _range(tf, 2).options(), "deterministic", True
        ),
        "map in no calls": lambda tf, session: _run(
            tf, session, _range(tf, 3).map(lambda x: x, num_parallel_calls=0)
        ),
        "padded_shapes of floats": lambda tf, session: _filled(tf).padded_batch(2, [1.5]),
        "padding of a type": lambda tf, session: _filled(tf).padded_batch(2, [None], "x"),
        "padding of a vector": lambda tf, session: _filled(tf).padded_batch(2, [None], [1]),
        "map_and_batch in both": lambda tf, session: tf.data.experimental.map_and_batch(
            lambda x: x, 2, num_parallel_batches=1, num_parallel_calls=2
        ),
        "handle of another shape": lambda tf, session: session.run(
            tf.data.Iterator.from_string_handle(
                session.run(_range(tf, 3).make_one_shot_iterator().string_handle()), tf.int64, [2]
            ).get_next()
        ),
        "unknown argument": lambda tf, session: _range(tf, 3).batch(2, drop_reminder=True),
    }
)
