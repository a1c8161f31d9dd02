"""Functions that fail or end in the middle of a dataset, the values of generators, reductions by
key and optionals: pipelines and programs as in `snippets_pipelines.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PIPELINES: dict[str, Callable[[Any], Any]] = {}
PROGRAMS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {}


def _range(tf: Any, *arguments: int) -> Any:
    return tf.data.Dataset.range(*arguments)


def _raises(error: type[Exception]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if x == 2:
            raise error("the third")
        return x

    return function


def _called(tf: Any, error: type[Exception], x: Any) -> Any:
    return tf.reshape(tf.py_func(_raises(error), [x], tf.int64), [])


def _groups(tf: Any, key: Callable[[Any], Any]) -> Callable[[Any], Any]:
    group = tf.data.experimental.group_by_window
    return lambda data: data.apply(group(key, lambda _, rows: rows.batch(2), 2))  # type: ignore[no-any-return]


def _scan(tf: Any, state: Any, function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda data: data.apply(tf.data.experimental.scan(state, function))  # type: ignore[no-any-return]


def _reduced(tf: Any, key: Any, *functions: Any) -> Callable[[Any], Any]:
    group = tf.data.experimental.group_by_reducer
    return lambda data: data.apply(group(key, tf.data.experimental.Reducer(*functions)))  # type: ignore[no-any-return]


CALLS: dict[str, Callable[[Any, Any, type[Exception]], Any]] = {
    "map": lambda tf, data, error: data.map(lambda x: _called(tf, error, x)),
    "map and batch": lambda tf, data, error: data.map(lambda x: _called(tf, error, x)).batch(2),
    "map, errors ignored": lambda tf, data, error: data.map(lambda x: _called(tf, error, x)).apply(
        tf.data.experimental.ignore_errors()
    ),
    "filter": lambda tf, data, error: data.filter(lambda x: _called(tf, error, x) >= 0),
    "take_while": lambda tf, data, error: data.apply(
        tf.data.experimental.take_while(lambda x: _called(tf, error, x) >= 0)
    ),
    "scan": lambda tf, data, error: _scan(
        tf, np.int64(0), lambda s, x: (s + x, _called(tf, error, x) + s)
    )(data),
    "flat_map": lambda tf, data, error: data.flat_map(
        lambda x: tf.data.Dataset.from_tensors(_called(tf, error, x)).repeat(2)
    ),
    "interleave": lambda tf, data, error: data.interleave(
        lambda x: tf.data.Dataset.from_tensors(_called(tf, error, x)), cycle_length=2
    ),
    "groups": lambda tf, data, error: _groups(tf, lambda x: _called(tf, error, x) * 0)(data),
    "reductions": lambda tf, data, error: _reduced(
        tf,
        lambda x: x % 2,
        lambda _: np.int64(0),
        lambda state, x: state + _called(tf, error, x),
        lambda state: state,
    )(data),
}
for _error in (StopIteration, ValueError):
    for _name, _call in CALLS.items():
        if (_name, _error) == ("map and batch", ValueError):
            continue  # TensorFlow fuses them, and loses the batch's other rows
        PIPELINES[f"{_error.__name__} in {_name}"] = lambda tf, call=_call, error=_error: call(
            tf, _range(tf, 5), error
        )

GENERATED: dict[str, tuple[list[Any], str, Any]] = {
    "nothing as integers": ([[], [1, 2], []], "int64", [None]),
    "nothing as bools": ([[], [True]], "bool", [None]),
    "nothing as strings": ([[], ["a"]], "string", [None]),
    "ints as uint8": ([1, 255, 3], "uint8", []),
    "lists of ints as uint16": ([[1, 65535]], "uint16", [2]),
    "ints as uint64": ([1, 2**63 + 5], "uint64", []),
    "ints as int8": ([-128, 127], "int8", []),
    "ints as float16": ([1, 2.5], "float16", []),
    "bools as integers": ([True, False], "int32", []),
    "ints as bools": ([1, 0], "bool", []),
}
for _name, (_values, _dtype, _shape) in GENERATED.items():
    PIPELINES[f"generated {_name}"] = lambda tf, values=_values, dtype=_dtype, shape=_shape: (
        tf.data.Dataset.from_generator(
            lambda: iter(values), tf.as_dtype(dtype), tf.TensorShape(shape)
        )
    )


def _doubled(tf: Any, state: Any, x: Any) -> Any:
    found = tf.SparseTensor(state.indices, state.values * 2 + x, state.dense_shape)
    return found, tf.reduce_sum(state.values)


PIPELINES.update(
    {
        "group_by_window of a Python key": lambda tf: _groups(tf, lambda x: 0)(_range(tf, 5)),
        "scan of a sparse state": lambda tf: _scan(
            tf,
            tf.SparseTensor([[0]], tf.constant([1], tf.int64), [2]),
            lambda state, x: _doubled(tf, state, x),
        )(_range(tf, 3)),
        "scan of a growing state": lambda tf: _scan(
            tf, tf.zeros([0], tf.int64), lambda state, x: (tf.concat([state, [x]], 0), state)
        )(_range(tf, 3)),
        "group_by_reducer": lambda tf: _reduced(
            tf, lambda x: 2 - x % 3, lambda key: key * 0, lambda s, x: s + x, lambda s: s
        )(_range(tf, 10)),
        "group_by_reducer of a nest": lambda tf: _reduced(
            tf,
            lambda x: x % 2,
            lambda key: {"sum": np.int64(0), "count": 0.0},
            lambda s, x: {"sum": s["sum"] + x, "count": s["count"] + 1.0},
            lambda s: (tf.cast(s["sum"], tf.float32) / s["count"], s["count"]),
        )(_range(tf, 7)),
        "group_by_reducer of a growing state": lambda tf: _reduced(
            tf,
            lambda x: x % 2,
            lambda key: tf.zeros([0], tf.int64),
            lambda s, x: tf.concat([s, [x]], 0),
            lambda s: s,
        )(_range(tf, 5)),
        "group_by_reducer of nothing": lambda tf: _reduced(
            tf, lambda x: x, lambda key: 0, lambda s, x: s, lambda s: s
        )(_range(tf, 0)),
        "unbatch of no rows": lambda tf: _range(tf, 3).map(lambda x: tf.fill([x], x)).unbatch(),
        "unbatch of no rows at all": lambda tf: tf.data.Dataset.from_tensors(
            {"x": np.zeros([0, 3], np.float32), "s": np.zeros([0], object)}
        ).unbatch(),
    }
)


def _optionals(tf: Any) -> Any:
    iterator = tf.data.make_initializable_iterator(_range(tf, 2))
    optional = tf.data.experimental.get_next_as_optional(iterator)
    some = optional.has_value()
    value = tf.cond(some, optional.get_value, lambda: tf.constant(-1, tf.int64))

    def run(session: Any) -> Any:
        session.run(iterator.initializer)
        return [session.run([some, value]) for _ in range(4)]

    return run


def _optional_failures(tf: Any) -> Any:
    data = _range(tf, 4).map(lambda x: _called(tf, ValueError, x))
    iterator = tf.data.make_initializable_iterator(data)
    value = tf.data.experimental.get_next_as_optional(iterator).get_value()

    def once(session: Any) -> Any:
        try:
            return session.run(value)
        except tf.errors.OpError as error:
            return type(error).__name__

    def run(session: Any) -> Any:
        session.run(iterator.initializer)
        return [once(session) for _ in range(6)]

    return run


def _optional_of_handle(tf: Any) -> Any:
    iterator = tf.data.make_one_shot_iterator(
        tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": ["x", "y"]})
    )
    handle = tf.placeholder(tf.string, [])
    fed = tf.data.Iterator.from_string_handle(
        handle, {"a": tf.int32, "b": tf.string}, {"a": [], "b": []}
    )
    optional = tf.data.experimental.get_next_as_optional(fed)
    both = [optional.has_value(), optional.get_value()]

    def run(session: Any) -> Any:
        feed = {handle: session.run(iterator.string_handle())}
        return [session.run(both, feed), session.run(both, feed), session.run(both[0], feed)]

    return run


def _optionals_in_a_loop(tf: Any) -> Any:
    iterator = tf.data.make_one_shot_iterator(_range(tf, 5))

    def body(goes_on: Any, total: Any) -> Any:
        optional = tf.data.experimental.get_next_as_optional(iterator)
        more = optional.has_value()
        return more, tf.cond(more, lambda: total + optional.get_value(), lambda: total)

    start = [tf.constant(True), tf.constant(0, tf.int64)]
    total = tf.while_loop(lambda goes_on, _: goes_on, body, start)[1]
    return lambda session: session.run(total)


def _optional_values(tf: Any) -> Any:
    kind = tf.data.experimental.Optional
    some = kind.from_value({"a": 1.0, "b": [2, 3]})
    none = kind.empty(some.element_spec)
    tensors = [some.has_value(), some.get_value(), none.has_value()]
    return lambda session: session.run(tensors)


def _sparse_reduce(tf: Any) -> Any:
    start = tf.SparseTensor([[0]], tf.constant([1], tf.int64), [2])
    found = _range(tf, 3).reduce(start, lambda state, x: _doubled(tf, state, x)[0])
    return lambda session: session.run(found)


def _ended_reduce(tf: Any) -> Any:
    found = _range(tf, 5).reduce(np.int64(0), lambda s, x: s + _called(tf, StopIteration, x))

    def run(session: Any) -> Any:
        try:
            return session.run(found)
        except tf.errors.OpError as error:
            return type(error).__name__

    return run


def _variables(tf: Any) -> Any:
    """Whatever a dataset takes as a tensor may be a variable."""
    rows = tf.get_variable("rows", initializer=tf.constant([5, 6, 7, 8], tf.int64))
    two = tf.get_variable("two", initializer=tf.constant(2, tf.int64))
    one = tf.data.Dataset.from_tensor_slices({"x": rows}).map(lambda row: row["x"])
    all_of_them = one.skip(two).repeat(two).shard(two - 1, two * 0).take(two + 1)
    nested = _range(tf, two).flat_map(lambda x: tf.data.Dataset.from_tensors(rows * x).repeat(two))
    scanned = _scan(tf, two, lambda state, x: (state + x, state * two))(all_of_them)
    datasets = [all_of_them.batch(two, drop_remainder=tf.constant(False)), nested, scanned]
    iterators = [tf.data.make_initializable_iterator(each) for each in datasets]
    elements = [each.get_next() for each in iterators]

    def run(session: Any) -> Any:
        session.run(tf.global_variables_initializer())
        session.run([each.initializer for each in iterators])
        return [session.run(elements) for _ in range(2)]

    return run


def _loops_with_variables(tf: Any) -> Any:
    """Loops in functions of rows of several lengths, which captured variables."""
    scale = tf.get_variable("scale", initializer=tf.constant(3, tf.int64))
    rows = _range(tf, 4).map(lambda x: tf.range(x))
    datasets = [
        rows.map(lambda row: tf.map_fn(lambda x: x * 2 + scale, row)),
        rows.map(lambda row: tf.reduce_sum(row) % (scale + 1)),
        rows.map(lambda row: _sum_of(tf, row, scale)),
    ]
    iterators = [tf.data.make_initializable_iterator(each) for each in datasets]
    elements = [each.get_next() for each in iterators]

    def run(session: Any) -> Any:
        session.run(tf.global_variables_initializer())
        session.run([each.initializer for each in iterators])
        return [session.run(elements) for _ in range(4)]

    return run


def _sum_of(tf: Any, row: Any, scale: Any) -> Any:
    count = tf.size(row, out_type=tf.int64)
    start = [tf.constant(0, tf.int64), tf.constant(0, tf.int64)]
    return tf.while_loop(lambda i, _: i < count, lambda i, s: (i + 1, s + row[i] * scale), start)[1]


CSV_ARGUMENTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "no columns": lambda tf: {"record_defaults": []},
    "a long delimiter": lambda tf: {"record_defaults": [tf.int32] * 2, "field_delim": ";;"},
    "no delimiter": lambda tf: {"record_defaults": [tf.int32] * 2, "field_delim": ""},
    "columns in another order": lambda tf: {
        "record_defaults": [tf.int32] * 2,
        "select_cols": [1, 0],
    },
    "more columns than defaults": lambda tf: {
        "record_defaults": [tf.int32],
        "select_cols": [0, 1],
    },
    "a negative column": lambda tf: {"record_defaults": [tf.int32], "select_cols": [-1]},
    "a column beyond": lambda tf: {"record_defaults": [tf.int32], "select_cols": [5]},
    "int16": lambda tf: {"record_defaults": [tf.int16]},
    "a default of two": lambda tf: {"record_defaults": [[1, 2], tf.int32]},
    "a default of rank 2": lambda tf: {"record_defaults": [[[1]], tf.int32]},
    "a negative buffer": lambda tf: {"record_defaults": [tf.int32] * 2, "buffer_size": -1},
    "an unknown compression": lambda tf: {
        "record_defaults": [tf.int32] * 2,
        "compression_type": "X",
    },
    "na_value None": lambda tf: {"record_defaults": [tf.int32] * 2, "na_value": None},
    "defaults that are tensors": lambda tf: {"record_defaults": [tf.constant(1), tf.constant([2])]},
}


def _csv(tf: Any) -> Any:
    def run(session: Any) -> Any:
        found: dict[str, Any] = {}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.csv")
            path.write_text("1,2\n")
            for name, arguments in CSV_ARGUMENTS.items():
                try:
                    data = tf.data.experimental.CsvDataset(str(path), **arguments(tf))
                    iterator = tf.data.make_initializable_iterator(data)
                    session.run(iterator.initializer)
                    found[name] = session.run(iterator.get_next())
                except (tf.errors.OpError, TypeError, ValueError) as error:
                    found[name] = type(error).__name__
        return found

    return run


def _not_returned(tf: Any) -> Any:
    """What functions do besides what they return: asserts and calls of Python."""
    seen: list[int] = []

    def noted(x: Any) -> Any:
        tf.py_func(lambda value: seen.append(int(value)) or np.int64(0), [x], tf.int64)
        return x

    def checked(x: Any) -> Any:
        tf.debugging.assert_less(x, tf.constant(3, tf.int64))
        return tf.constant("a")

    def in_a_branch(x: Any) -> Any:
        tf.cond(x > 1, lambda: noted(x + 10), lambda: x)
        return {"b": x, "c": (x, x)}

    kinds = [
        _range(tf, 3).map(noted),
        _range(tf, 2).map(lambda x: (tf.constant(5), noted(x))[0]),
        _range(tf, 4).map(in_a_branch),
        _range(tf, 3).filter(lambda x: noted(x) > 1),
        _range(tf, 3).flat_map(lambda x: (noted(x), tf.data.Dataset.range(x))[1]),
        _range(tf, 3).apply(_scan(tf, np.int64(0), lambda s, x: (s + noted(x) * 0, s))),
    ]
    iterators = [tf.data.make_initializable_iterator(each) for each in kinds]
    elements = [iterator.get_next() for iterator in iterators]
    failing = tf.data.make_initializable_iterator(_range(tf, 5).map(checked))
    element = failing.get_next()

    def run(session: Any) -> Any:
        found: list[Any] = []
        for iterator, each in zip(iterators, elements, strict=True):
            session.run(iterator.initializer)
            try:
                while True:
                    found.append(session.run(each))
            except tf.errors.OutOfRangeError:
                found.append(sorted(seen))
                seen.clear()
        session.run(failing.initializer)
        for _ in range(4):
            try:
                found.append(session.run(element))
            except tf.errors.InvalidArgumentError:
                found.append("asserted")
        return found

    return run


PROGRAMS.update(
    {
        "not returned": _not_returned,
        "optionals": _optionals,
        "optionals of elements that fail": _optional_failures,
        "optional of a handle": _optional_of_handle,
        "optionals in a loop": _optionals_in_a_loop,
        "optional values": _optional_values,
        "reduce of a sparse state": _sparse_reduce,
        "reduce whose function ends": _ended_reduce,
        "arguments of CsvDataset": _csv,
        "parameters that are variables": _variables,
        "loops with variables": _loops_with_variables,
    }
)
