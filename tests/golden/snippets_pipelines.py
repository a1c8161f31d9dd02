"""Datasets in graphs: `make_pipelines.py` runs them on TensorFlow, tests run them on this package.

A pipeline is a function of the module that it uses as `tf` (TensorFlow's is `tf.compat.v1`), called
within a graph, and gives a Dataset without randomness. A program is a function of `tf` and gives a
function of a session, whose result is what counts.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

Row = namedtuple("Row", ["number", "word"])

PIPELINES: dict[str, Callable[[Any], Any]] = {}
PROGRAMS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {}


def _filled(tf: Any, count: int = 7, start: int = 0) -> Any:
    """Vectors of 0, 1, 2, ... numbers."""
    return tf.data.Dataset.range(start, start + count).map(lambda x: tf.fill([x], x))


def _sparse(tf: Any) -> Any:
    indices = [[0, 0], [0, 3], [2, 1], [3, 0], [3, 3]]
    return tf.SparseTensor(indices, [1.0, 2.0, 3.0, 4.0, 5.0], [4, 4])


def _sparse_rows(tf: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(_sparse(tf))


def _numbers(tf: Any, *texts: str) -> Any:
    return tf.data.Dataset.from_tensor_slices(list(texts)).map(tf.string_to_number)


def _unfused(tf: Any) -> Any:
    """Options that keep TensorFlow from making one step of `map` and `batch`."""
    options = tf.data.Options()
    options.experimental_optimization.map_and_batch_fusion = False
    return options


def _rows(tf: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(
        {"x": np.arange(5, dtype=np.float32), "s": ["a", "b", "c", "d", "e"]}
    )


def _examples(tf: Any) -> Any:
    def feature(**kinds: Any) -> Any:
        return tf.train.Feature(**kinds)

    def example(age: Any, words: Any, pair: Any) -> bytes:
        fields = {
            "words": feature(bytes_list=tf.train.BytesList(value=words)),
            "pair": feature(float_list=tf.train.FloatList(value=pair)),
        }
        if age is not None:
            fields["age"] = feature(int64_list=tf.train.Int64List(value=[age]))
        made = tf.train.Example(features=tf.train.Features(feature=fields))
        data: bytes = made.SerializeToString()
        return data

    rows = [
        example(3, [b"a", b"b"], [1.0, 2.0]),
        example(None, [], [3.0, 4.0]),
        example(5, [b"c"], [5.0, 6.5]),
    ]
    return tf.data.Dataset.from_tensor_slices(np.array(rows, object))


def _features(tf: Any) -> Any:
    return {
        "age": tf.FixedLenFeature([], tf.int64, default_value=-1),
        "words": tf.VarLenFeature(tf.string),
        "pair": tf.FixedLenFeature([2], tf.float32),
    }


def _triples() -> Any:
    yield 1, "a", [0.5, 1.5]
    yield 2, b"b", (2.5, 3.5)
    yield np.int64(3), "c", np.array([4.5, 5.5])


def _words(tf: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(["a b", "", "c  d e", "f"])


def _turns(tf: Any, cycle: int, block: int) -> Any:
    """Inputs of 3, 0, 1, 5, 2 elements in turns."""
    counts = tf.data.Dataset.from_tensor_slices(np.array([3, 0, 1, 5, 2], np.int64)).enumerate()
    return counts.interleave(
        lambda i, n: tf.data.Dataset.range(n).map(lambda x: i * 100 + x),
        cycle_length=cycle,
        block_length=block,
    )


def _in_parallel(tf: Any, cycle: int, block: int) -> Any:
    return tf.data.Dataset.range(1, 6).apply(
        tf.data.experimental.parallel_interleave(
            lambda x: tf.data.Dataset.from_tensors(x).repeat(block * x),
            cycle_length=cycle,
            block_length=block,
        )
    )


def _branches(tf: Any, x: Any) -> Any:
    return tf.cond(tf.equal(x % 2, 0), lambda: x * 10, lambda: -x)


def _collatz(tf: Any, x: Any) -> Any:
    steps = tf.while_loop(
        lambda n, _: n > 1,
        lambda n, k: (tf.where(tf.equal(n % 2, 0), n // 2, 3 * n + 1), k + 1),
        (x, tf.constant(0)),
    )
    return steps[1]


def _range(tf: Any, *arguments: int) -> Any:
    return tf.data.Dataset.range(*arguments)


PIPELINES.update(
    {
        "range": lambda tf: _range(tf, 3, 20, 5),
        "range down": lambda tf: _range(tf, 5, -5, -4),
        "slices of a nest": lambda tf: tf.data.Dataset.from_tensor_slices(
            {"a": ([1, 2], [[1.0], [2.0]]), "b": Row([True, False], ["x", "y"])}
        ),
        "slices of tensors": lambda tf: tf.data.Dataset.from_tensor_slices(
            (tf.constant([[1, 2], [3, 4]]) * 2, tf.constant(["p", "q"]))
        ),
        "tensors of a nest": lambda tf: tf.data.Dataset.from_tensors({"a": [1, 2], "b": "t"}),
        "generator of types": lambda tf: tf.data.Dataset.from_generator(
            _triples, (tf.int64, tf.string, tf.float32)
        ),
        "generator of shapes": lambda tf: tf.data.Dataset.from_generator(
            _triples, (tf.int32, tf.string, tf.float64), ([], [], [None])
        ),
        "generator of a signature": lambda tf: tf.data.Dataset.from_generator(
            lambda: ({"v": np.arange(n)} for n in range(3)),
            output_signature={"v": tf.TensorSpec([None], tf.int32)},
        ),
        "generator with arguments": lambda tf: tf.data.Dataset.from_generator(
            lambda n, word: ((i, word * int(i)) for i in range(n)),
            (tf.int64, tf.string),
            ([], []),
            args=(np.int64(3), "ab"),
        ),
        "map to a dict": lambda tf: _range(tf, 3).map(lambda x: {"x": x, "y": tf.ones([2])}),
        "map to a tuple": lambda tf: _range(tf, 3).map(lambda x: (x, (x + 1, "t"))),
        "map to a list": lambda tf: _range(tf, 3).map(lambda x: [x, x + 1]),
        "map to a namedtuple": lambda tf: _range(tf, 2).map(lambda x: Row(x, tf.as_string(x))),
        "map to a constant": lambda tf: _range(tf, 2).map(lambda x: 2.5),
        "map to an array": lambda tf: _range(tf, 2).map(lambda x: np.array([1, 2], np.int16)),
        "map of a namedtuple": lambda tf: tf.data.Dataset.from_tensor_slices(
            Row([1, 2], ["x", "y"])
        ).map(lambda row: (row.word, row.number)),
        "map of strings": lambda tf: _words(tf).map(lambda s: (tf.strings.length(s), s + "!")),
        "map of decode_csv": lambda tf: tf.data.Dataset.from_tensor_slices(
            ["1,a,0.5", ',"b,c",', "3,,-2"]
        ).map(lambda line: tf.decode_csv(line, [[7], ["none"], [0.0]])),
        "map of string_split": lambda tf: _words(tf).map(lambda s: tf.string_split([s]).values),
        "map to a sparse tensor": lambda tf: _words(tf).map(lambda s: tf.string_split([s])),
        "map of a regex": lambda tf: _words(tf).map(lambda s: tf.regex_replace(s, "[ac]", "<>")),
        "map of py_func": lambda tf: _range(tf, 3).map(
            lambda x: tf.py_func(lambda v: (v * 0.5, str(v)), [x], (tf.float64, tf.string))
        ),
        "map of cond": lambda tf: _range(tf, 4).map(lambda x: _branches(tf, x)),
        "map of while_loop": lambda tf: _range(tf, 1, 8).map(lambda x: _collatz(tf, x)),
        "map with shapes": lambda tf: _filled(tf, 4),
        "map of batches": lambda tf: _range(tf, 5).batch(2).map(lambda x: (x[:1], tf.size(x))),
        "filter": lambda tf: _rows(tf).filter(lambda row: tf.not_equal(row["s"], "c")),
        "filter of all": lambda tf: _range(tf, 5).filter(lambda x: x > 9),
        "batch": lambda tf: _rows(tf).batch(2),
        "batch without remainder": lambda tf: _rows(tf).batch(2, drop_remainder=True),
        "batch of batches": lambda tf: _range(tf, 8).batch(2).batch(3),
        "padded batch": lambda tf: _filled(tf).padded_batch(3, [None]),
        "padded batch to a size": lambda tf: _filled(tf, 4).padded_batch(2, [5], np.int64(-1)),
        "padded batch dropping": lambda tf: _filled(tf).padded_batch(
            3, [None], drop_remainder=True
        ),
        "padded batch of shapes known": lambda tf: _rows(tf).padded_batch(2, {"x": [], "s": []}),
        "padded batch of strings": lambda tf: (
            _words(tf)
            .map(lambda s: tf.string_split([s]).values)
            .map(lambda v: (v, tf.size(v)))
            .padded_batch(2, ([None], []), ("<pad>", 0))
        ),
        "padded batch of matrices": lambda tf: (
            _range(tf, 1, 5)
            .map(lambda x: tf.fill([x, 5 - x], tf.cast(x, tf.float32)))
            .padded_batch(2, [None, 4], 0.5)
        ),
        "padded batch by -1": lambda tf: _filled(tf, 4).padded_batch(2, [-1]),
        "buckets": lambda tf: _filled(tf, 9).apply(
            tf.data.experimental.bucket_by_sequence_length(lambda x: tf.size(x), [3, 6], [2, 3, 2])
        ),
        "buckets padded to a shape": lambda tf: _filled(tf, 6).apply(
            tf.data.experimental.bucket_by_sequence_length(
                tf.size, [3], [2, 2], padded_shapes=[9], padding_values=np.int64(-7)
            )
        ),
        "buckets to the boundary": lambda tf: _filled(tf, 6).apply(
            tf.data.experimental.bucket_by_sequence_length(
                tf.size, [3, 6], [2, 2, 2], pad_to_bucket_boundary=True
            )
        ),
        "buckets without padding": lambda tf: (
            _range(tf, 8)
            .map(lambda x: tf.fill([x // 2], x))
            .apply(
                tf.data.experimental.bucket_by_sequence_length(
                    tf.size, [1, 2, 3], [2, 2, 2, 2], no_padding=True
                )
            )
        ),
        "buckets dropping": lambda tf: _filled(tf, 9).apply(
            tf.data.experimental.bucket_by_sequence_length(
                tf.size, [3, 6], [2, 2, 2], drop_remainder=True
            )
        ),
        "unbatch": lambda tf: _rows(tf).batch(2).apply(tf.data.experimental.unbatch()),
        "unbatch of lengths": lambda tf: _filled(tf, 5).map(lambda x: (x, x * 2)).unbatch(),
        "unbatch of matrices": lambda tf: (
            _range(tf, 1, 4).map(lambda x: tf.fill([2, x], x)).unbatch()
        ),
        "unbatch of sparse": lambda tf: _sparse_rows(tf).batch(3).unbatch(),
        "window": lambda tf: _range(tf, 7).window(3).flat_map(lambda w: w.batch(3)),
        "window of a shift": lambda tf: (
            _range(tf, 7).window(3, shift=2).flat_map(lambda w: w.batch(5))
        ),
        "window of a stride": lambda tf: (
            _range(tf, 9).window(3, 1, 2, drop_remainder=True).flat_map(lambda w: w.batch(3))
        ),
        "window of a long shift": lambda tf: (
            _range(tf, 9).window(2, shift=5).flat_map(lambda w: w.batch(2))
        ),
        "window dropping with a long shift": lambda tf: (
            _range(tf, 11).window(2, shift=5, drop_remainder=True).flat_map(lambda w: w.batch(2))
        ),
        "window of a long stride": lambda tf: (
            _range(tf, 8).window(3, 2, 3).flat_map(lambda w: w.batch(3))
        ),
        "window of a nest": lambda tf: (
            _rows(tf)
            .window(2)
            .flat_map(lambda row: tf.data.Dataset.zip((row["x"].batch(2), row["s"].batch(2))))
        ),
        "windows as they are": lambda tf: _rows(tf).window(2).map(lambda row: 1),
        "flat_map": lambda tf: _range(tf, 4).flat_map(
            lambda x: tf.data.Dataset.from_tensor_slices(tf.fill([x, 2], x))
        ),
        "flat_map of pairs": lambda tf: _rows(tf).flat_map(
            lambda row: tf.data.Dataset.from_tensors((row["s"], row["x"])).repeat(2)
        ),
        "interleave": lambda tf: _turns(tf, 2, 1),
        "interleave of blocks": lambda tf: _turns(tf, 3, 2),
        "interleave of one": lambda tf: _turns(tf, 1, 2),
        "interleave of many": lambda tf: _turns(tf, 9, 1),
        "interleave in parallel": lambda tf: _range(tf, 1, 6).interleave(
            lambda x: tf.data.Dataset.from_tensors(x).repeat(x), 2, 2, num_parallel_calls=2
        ),
        "parallel_interleave": lambda tf: _in_parallel(tf, 2, 1),
        "parallel_interleave of blocks": lambda tf: _in_parallel(tf, 3, 2),
        "group_by_window": lambda tf: _range(tf, 10).apply(
            tf.data.experimental.group_by_window(
                lambda x: x % 3, lambda key, window: window.batch(4), window_size=2
            )
        ),
        "group_by_window of sizes": lambda tf: _range(tf, 11).apply(
            tf.data.experimental.group_by_window(
                lambda x: x % 2,
                lambda key, window: window.map(lambda x: (key, x)),
                window_size_func=lambda key: key + 2,
            )
        ),
        "scan": lambda tf: _range(tf, 5).apply(
            tf.data.experimental.scan(np.int64(1), lambda s, x: (s * 2, (s, s + x)))
        ),
        "scan of a nest": lambda tf: _range(tf, 4).scan(
            (0.0, np.int64(1)), lambda s, x: ((s[0] + 0.5, s[1] * (x + 1)), s[1])
        ),
        "scan of growing states": lambda tf: _range(tf, 4).scan(
            tf.zeros([0], tf.int64), lambda s, x: (tf.concat([s, [x]], 0), tf.size(s))
        ),
        "take_while": lambda tf: _range(tf, 9).apply(
            tf.data.experimental.take_while(lambda x: x * x < 20)
        ),
        "unique": lambda tf: tf.data.Dataset.from_tensor_slices([3, 1, 3, 2, 1, 4]).apply(
            tf.data.experimental.unique()
        ),
        "unique strings": lambda tf: (
            tf.data.Dataset.from_tensor_slices(["b", "a", "b"])
            .repeat(2)
            .apply(tf.data.experimental.unique())
        ),
        "the number of elements, as it should be": lambda tf: _range(tf, 3).apply(
            tf.data.experimental.assert_cardinality(3)
        ),
        "take of a negative number": lambda tf: _range(tf, 3).take(-2),
        "skip of a negative number": lambda tf: _range(tf, 3).skip(-2),
        "shard of batches": lambda tf: _range(tf, 9).batch(2).shard(2, 1),
        "zip of nests": lambda tf: tf.data.Dataset.zip(
            {"a": (_range(tf, 3), _rows(tf)), "b": _range(tf, 5, 9)}
        ),
        "zip of one": lambda tf: tf.data.Dataset.zip(_range(tf, 3)),
        "rebatch": lambda tf: _range(tf, 8).batch(4).rebatch(3),
        "rebatch without remainder": lambda tf: _range(tf, 8).batch(3).rebatch(5, True),
        "rebatch in turns": lambda tf: _rows(tf).batch(2).rebatch([1, 3]),
        "counter of floats": lambda tf: tf.data.Dataset.counter(1.5, 0.25, tf.float32).take(3),
        "sparse batches of known width": lambda tf: (
            tf.data.Dataset.range(1, 4)
            .map(lambda x: tf.fill([x, x], x))
            .apply(tf.data.experimental.dense_to_sparse_batch(2, [5, None]))
        ),
        "components of None": lambda tf: (
            tf.data.Dataset.from_tensor_slices(({"x": [1, 2, 3]}, None))
            .map(lambda features, label: (features["x"] + 1, label))
            .batch(2)
            .concatenate(tf.data.Dataset.from_tensors((tf.constant([7]), None)))
            .map(lambda x, label: x if label is None else -x)
        ),
        "zip with an empty one": lambda tf: tf.data.Dataset.zip((_range(tf, 3), _range(tf, 0))),
        "concatenate of shapes": lambda tf: (
            _range(tf, 4).batch(2, True).concatenate(_range(tf, 9).batch(3, True))
        ),
        "concatenate of ranks": lambda tf: _range(tf, 2).concatenate(_range(tf, 3).batch(2)),
        "enumerate": lambda tf: _words(tf).enumerate(7),
        "enumerate_dataset": lambda tf: _rows(tf).apply(tf.data.experimental.enumerate_dataset()),
        "cache": lambda tf: _rows(tf).batch(2).cache().repeat(2),
        "prefetch": lambda tf: _rows(tf).batch(2).prefetch(1),
        "repeat of partial batches": lambda tf: _range(tf, 5).batch(3).repeat(3),
        "repeat of nothing": lambda tf: _range(tf, 0).repeat(),
        "choose": lambda tf: tf.data.experimental.choose_from_datasets(
            [_range(tf, 2), _range(tf, 10, 15)],
            tf.data.Dataset.from_tensor_slices(np.array([1, 0, 0, 0, 1, 1, 0, 1], np.int64)),
        ),
        "choose until one is empty": lambda tf: tf.data.Dataset.choose_from_datasets(
            [_range(tf, 2), _range(tf, 10, 15)],
            tf.data.Dataset.from_tensor_slices(np.array([1, 0, 0, 1, 0, 1, 0, 1], np.int64)),
            stop_on_empty_dataset=True,
        ),
        "choose of shapes": lambda tf: tf.data.experimental.choose_from_datasets(
            [_range(tf, 4).batch(2, True), _range(tf, 6).batch(3, True)], _range(tf, 2).repeat(2)
        ),
        "sample of one": lambda tf: tf.data.experimental.sample_from_datasets(
            [_range(tf, 4), _range(tf, 10, 15)], [0.0, 1.0]
        ),
        "ignored bad numbers": lambda tf: _numbers(tf, "1", "x", "3", "", "5").apply(
            tf.data.experimental.ignore_errors()
        ),
        "bad numbers": lambda tf: _numbers(tf, "1", "x", "3", "y", "z", "6"),
        "bad numbers in batches": lambda tf: (
            _numbers(tf, "1", "2", "3", "x", "5", "6", "7", "8", "y", "10", "11")
            .batch(3)
            .with_options(_unfused(tf))
        ),
        "ignored bad numbers in batches": lambda tf: (
            _numbers(tf, "1", "2", "3", "x", "5", "6", "7", "8", "y", "10", "11")
            .batch(3)
            .apply(tf.data.experimental.ignore_errors())
            .with_options(_unfused(tf))
        ),
        "ignored bad numbers filtered": lambda tf: (
            _numbers(tf, "1", "x", "3", "4", "y", "6")
            .filter(lambda x: x > 2.0)
            .apply(tf.data.experimental.ignore_errors())
        ),
        "ignored checks": lambda tf: (
            tf.data.Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0, 0.0])
            .map(lambda x: tf.check_numerics(1.0 / x, "bad"))
            .apply(tf.data.experimental.ignore_errors())
        ),
        "ignored divisions": lambda tf: (
            tf.data.Dataset.from_tensor_slices([1, 2, 0, 4])
            .map(lambda x: 12 // x)
            .apply(tf.data.experimental.ignore_errors())
        ),
        "ignored in a filter": lambda tf: (
            tf.data.Dataset.from_tensor_slices(["1", "x", "0", "4", "y", "6"])
            .filter(lambda s: tf.string_to_number(s) > 0.5)
            .apply(tf.data.experimental.ignore_errors())
        ),
        "ignored in batches": lambda tf: (
            _filled(tf, 3)
            .concatenate(_filled(tf, 1, 3).repeat(4))
            .batch(2)
            .apply(tf.data.experimental.ignore_errors())
        ),
        "map_and_batch": lambda tf: _range(tf, 5).apply(
            tf.data.experimental.map_and_batch(lambda x: (x, tf.as_string(x)), 2)
        ),
        "map_and_batch dropping": lambda tf: _range(tf, 5).apply(
            tf.data.experimental.map_and_batch(lambda x: x * x, 2, drop_remainder=True)
        ),
        "dense_to_sparse_batch": lambda tf: _filled(tf, 5).apply(
            tf.data.experimental.dense_to_sparse_batch(2, [6])
        ),
        "dense_to_sparse_batch of None": lambda tf: _filled(tf, 4, 1).apply(
            tf.data.experimental.dense_to_sparse_batch(3, [None])
        ),
        "sparse slices": _sparse_rows,
        "from_sparse_tensor_slices": lambda tf: tf.data.Dataset.from_sparse_tensor_slices(
            _sparse(tf)
        ),
        "sparse tensors": lambda tf: tf.data.Dataset.from_tensors(_sparse(tf)),
        "batches of sparse": lambda tf: _sparse_rows(tf).batch(3),
        "batches of batches of sparse": lambda tf: _sparse_rows(tf).batch(2).batch(2),
        "sparse to dense": lambda tf: _sparse_rows(tf).map(
            lambda row: tf.sparse.to_dense(row, default_value=-1.0)
        ),
        "sparse of lengths in a batch": lambda tf: (
            _words(tf).map(lambda s: tf.string_split([s])).batch(3)
        ),
        "parse_single_example": lambda tf: _examples(tf).map(
            lambda data: tf.parse_single_example(data, _features(tf))
        ),
        "parse_single_example, then batch": lambda tf: (
            _examples(tf).map(lambda data: tf.parse_single_example(data, _features(tf))).batch(2)
        ),
        "parse_example after batch": lambda tf: (
            _examples(tf).batch(2).map(lambda data: tf.parse_example(data, _features(tf)))
        ),
        "parse_example_dataset": lambda tf: (
            _examples(tf).batch(2).apply(tf.data.experimental.parse_example_dataset(_features(tf)))
        ),
        "order of a chain": lambda tf: (
            _range(tf, 20)
            .filter(lambda x: x % 3 > 0)
            .map(lambda x: (x, x * x))
            .repeat(2)
            .skip(3)
            .batch(4)
            .prefetch(1)
            .shard(2, 0)
        ),
    }
)


def _all(session: Any, element: Any, errors: Any, feeds: Any = None) -> list[Any]:
    """All elements that a session gets, at most 20."""
    found = []
    for _ in range(20):
        try:
            found.append(session.run(element, feeds))
        except errors.OutOfRangeError:
            break
    return found


def _placeholder(tf: Any) -> Any:
    rows, size = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int64, [])
    iterator = tf.data.make_initializable_iterator(
        tf.data.Dataset.from_tensor_slices(rows).batch(size)
    )
    element = iterator.get_next()

    def run(session: Any) -> Any:
        results = []
        for count in (3, 2):
            feeds = {rows: np.arange(2.0 * count).reshape(count, 2), size: 2}
            session.run(iterator.initializer, feeds)
            results.append(_all(session, element, tf.errors))
        return [element.shape.as_list(), results]

    return run


def _structure(tf: Any) -> Any:
    one, two = _rows(tf).batch(2), _rows(tf).take(1).batch(2)
    iterator = tf.data.Iterator.from_structure(
        tf.data.get_output_types(one), tf.data.get_output_shapes(one)
    )
    begin = [iterator.make_initializer(each) for each in (one, two)]
    element = iterator.get_next()

    def run(session: Any) -> Any:
        results = []
        for operation in (begin[0], begin[1], begin[0]):
            session.run(operation)
            results.append(_all(session, element, tf.errors))
        return results

    return run


def _handles(tf: Any) -> Any:
    train = _range(tf, 3).repeat().make_one_shot_iterator()
    test = _range(tf, 10, 12).make_initializable_iterator()
    handle = tf.placeholder(tf.string, [])
    chosen = tf.data.Iterator.from_string_handle(handle, train.output_types, train.output_shapes)
    element = chosen.get_next()

    def run(session: Any) -> Any:
        of_train, of_test = session.run([train.string_handle(), test.string_handle()])
        results = [[session.run(element, {handle: of_train}) for _ in range(4)]]
        session.run(test.initializer)
        results.append(_all(session, element, tf.errors, {handle: of_test}))
        results.append([session.run(element, {handle: of_train})])
        return results

    return run


def _options(tf: Any) -> Any:
    options = tf.data.Options()
    options.experimental_deterministic = True
    options.experimental_optimization.map_parallelization = True
    options.experimental_threading.private_threadpool_size = 2
    dataset = _range(tf, 3).with_options(options).map(lambda x: x + 1)
    element = dataset.make_one_shot_iterator().get_next()
    return lambda session: _all(session, element, tf.errors)


def _merged_options(tf: Any) -> Any:
    first, second = tf.data.Options(), tf.data.Options()
    first.experimental_deterministic = False
    first.threading.private_threadpool_size = 3
    second.experimental_slack = True
    second.threading.max_intra_op_parallelism = 2
    one, two = (_range(tf, 2).with_options(each) for each in (first, second))
    first.deterministic = True  # afterwards: it changes nothing

    def given(dataset: Any) -> list[Any]:
        options = dataset.options()
        threads = options.threading
        counts = [threads.private_threadpool_size, threads.max_intra_op_parallelism]
        return [options.deterministic, options.experimental_slack, *counts]

    made = [one.batch(2).repeat(), one.with_options(second), two.concatenate(one)]
    made += [tf.data.Dataset.zip({"a": one, "b": two}), one.flat_map(lambda x: two)]
    return lambda session: [given(each) for each in made]


def _shared(tf: Any) -> Any:
    names = ["one", "one", "two"]
    iterators = [_range(tf, 9).make_initializable_iterator(shared_name=name) for name in names]
    elements = [iterator.get_next() for iterator in iterators]

    def run(session: Any) -> Any:
        session.run([iterators[0].initializer, iterators[2].initializer])
        return [session.run(elements[number]) for number in (0, 1, 2, 1, 0, 2)]

    return run


def _twice(tf: Any) -> Any:
    iterator = _range(tf, 6).make_one_shot_iterator()
    first, second = iterator.get_next(), iterator.get_next()
    return lambda session: [sorted(session.run([first, second])) for _ in range(3)]


def _value(make: Callable[[Any], Any]) -> Callable[[Any], Callable[[Any], Any]]:
    def program(tf: Any) -> Callable[[Any], Any]:
        tensors = make(tf)
        return lambda session: session.run(tensors)

    return program


PROGRAMS.update(
    {
        "options of several": _merged_options,
        "shared iterators": _shared,
        "cardinality in a session": lambda tf: (
            lambda session: session.run(
                [_range(tf, 7).batch(2).cardinality(), _range(tf, 2).repeat().cardinality()]
            )
        ),
        "placeholder": _placeholder,
        "from_structure": _structure,
        "string handles": _handles,
        "options": _options,
        "two elements of one run": _twice,
        "reduce": _value(lambda tf: _range(tf, 5).reduce(np.int64(2), lambda s, x: s * 2 + x)),
        "reduce of a nest": _value(
            lambda tf: _rows(tf).reduce(
                {"sum": 0.0, "text": ""},
                lambda s, row: {"sum": s["sum"] + row["x"], "text": s["text"] + row["s"]},
            )
        ),
        "reduce of nothing": _value(
            lambda tf: _range(tf, 0).reduce(np.int64(7), lambda s, x: s + x)
        ),
        "get_single_element": _value(
            lambda tf: tf.data.experimental.get_single_element(_rows(tf).batch(5))
        ),
    }
)
