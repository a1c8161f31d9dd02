"""Functions in datasets: what they may use, and how they run on blocks.

The operations are `DatasetVariant`, `ReduceDataset` and `DatasetToSingleElement`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.runtime import lower
from estimatorkit.runtime.steps import batched_executor as block_functions
from tests.data.models import drain

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def values(dataset: Any) -> list[Any]:
    return [np.asarray(each).tolist() for each in dataset]


def test_numeric_function_runs_once_per_block_and_rarely_compiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = []
    make = block_functions.ProcessState

    def remembered(*args: Any) -> Any:
        states.append(make(*args))
        return states[-1]

    monkeypatch.setattr(block_functions, "ProcessState", remembered)
    dataset = Dataset.range(1000).map(lambda x: tf.sqrt(tf.cast(x, tf.float32)))
    iterator = dataset.make_block_iterator()
    found = [iterator.next_block(size)[0] for size in (200, 250, 255, 195, 100)]
    np.testing.assert_allclose(np.concatenate(found), np.sqrt(np.arange(1000)), rtol=1e-6)
    (state,) = states
    assert state.compilations["dataset function"] == 3  # for 224, 256 and 112 rows


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (tf.strings.upper, [b"A", b"BC", b""]),
        (tf.strings.length, [1, 2, 0]),
        (lambda s: tf.strings.join([s, "!"]), [b"a!", b"bc!", b"!"]),
        (lambda s: tf.strings.substr(s, 0, 1), [b"a", b"b", b""]),
        (
            lambda s: tf.strings.substr(s, [0, 0, 0], [0, 1, 2]),
            [[b"", b"a", b"a"], [b"", b"b", b"bc"], [b"", b"", b""]],
        ),
        (lambda s: tf.strings.regex_replace(s, "b", "x"), [b"a", b"xc", b""]),
        (lambda s: tf.equal(s, "bc"), [False, True, False]),
        (lambda s: tf.string_split([s], "").values, [[b"a"], [b"b", b"c"], []]),
    ],
)
def test_string_functions(function: Any, expected: list[Any]) -> None:
    assert values(Dataset.from_tensor_slices(["a", "bc", ""]).map(function)) == expected


def test_pattern_may_differ_between_rows() -> None:
    rows = Dataset.from_tensor_slices((["ab", "bc"], ["a", "c"]))
    replaced = rows.map(lambda text, pattern: tf.strings.regex_replace(text, pattern, "x"))
    assert values(replaced) == [b"xb", b"bx"]


def test_elementwise_string_operations_run_once_per_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    interpret = lower.interpret

    def counting(ops: Any, *args: Any, **kwargs: Any) -> None:
        calls.extend(op.type for op in ops)
        interpret(ops, *args, **kwargs)

    monkeypatch.setattr("estimatorkit.runtime.steps.batched_executor.interpret", counting)
    lines = [f"{i},{i * 0.5}" for i in range(100)]

    def parse(line: Any) -> Any:
        first, second = tf.decode_csv(line, [[0], [""]])
        return first, tf.equal("1", tf.strings.substr(second, 0, 1))

    iterator = Dataset.from_tensor_slices(lines).map(parse).make_block_iterator()
    first, begins_with_one = iterator.next_block(100)
    assert first.tolist() == list(range(100))
    assert begins_with_one.tolist() == [str(i * 0.5).startswith("1") for i in range(100)]
    assert sorted(calls) == ["DecodeCSV", "Equal", "Substr"]


@pytest.mark.slow
def test_random_operations_draw_per_element_and_resume() -> None:
    tf.set_random_seed(3)
    dataset = Dataset.range(40).repeat(2).map(lambda x: (x, tf.random_uniform([2])))
    whole = np.array([drawn for _, drawn in dataset])
    assert len(np.unique(whole)) == 160
    for position in (0, 13, 40, 79):
        iterator = dataset.make_block_iterator(3)
        iterator.skip(position)
        other = dataset.make_block_iterator(4)
        other.set_state(iterator.get_state())
        expected = iterator.next_block(5)[1]
        np.testing.assert_array_equal(other.next_block(5)[1], expected)
        one_by_one = dataset.make_block_iterator(3)
        rows = [one_by_one.next_block(1)[1] for _ in range(min(position + 5, 80))]
        np.testing.assert_array_equal(np.concatenate(rows)[position:], expected)


@pytest.mark.slow
def test_each_pass_draws_new_numbers() -> None:
    dataset = Dataset.range(5).map(
        lambda x: tf.cast(x, tf.float32) * 0 + tf.random_uniform([], seed=1)
    )
    first, second = np.array(values(dataset.repeat(2))).reshape(2, 5)
    assert len(set(first) | set(second)) == 10
    np.testing.assert_array_equal(values(dataset), first)


def test_loops_and_conditions_in_functions() -> None:
    def power(x: Any) -> Any:
        _, result = tf.while_loop(lambda i, _: i < x, lambda i, y: (i + 1, y * 2), [np.int64(0), 1])
        return tf.cond(x > 2, lambda: result, lambda: -result)

    assert values(Dataset.range(5).map(power)) == [-1, -2, -4, 8, 16]


def test_py_func() -> None:
    dataset = Dataset.range(4).map(lambda x: tf.py_func(lambda v: v * 2.5, [x], tf.float64))
    assert values(dataset) == [0, 2.5, 5, 7.5]
    assert dataset.output_shapes.rank is None


@pytest.mark.slow
def test_data_dependent_shapes() -> None:
    dataset = Dataset.range(4).map(lambda x: (tf.range(x), tf.ones([x, 2])))
    assert [(a.tolist(), b.shape) for a, b in dataset] == [
        ([], (0, 2)),
        ([0], (1, 2)),
        ([0, 1], (2, 2)),
        ([0, 1, 2], (3, 2)),
    ]
    sums = dataset.map(lambda a, b: tf.reduce_sum(b) + tf.cast(tf.reduce_sum(a), tf.float32))
    assert values(sums) == [0, 2, 5, 9]


def test_constants_and_inputs_can_be_returned() -> None:
    dataset = Dataset.range(3).map(lambda x: {"x": x, "one": 1.0, "text": "t"})
    assert list(dataset)[2] == {"x": 2, "one": 1.0, "text": b"t"}


def test_dict_is_one_argument_and_tuple_several() -> None:
    pairs = Dataset.from_tensor_slices(({"a": [1, 2]}, [3, 4]))
    assert values(pairs.map(lambda features, label: features["a"] + label)) == [4, 6]


def test_reduce_returns_tensors() -> None:
    total = Dataset.range(10).reduce(np.int64(0), lambda state, x: state + x)
    pair = Dataset.range(4).reduce((0.0, np.int64(1)), lambda s, x: (s[0] + 1, s[1] * (x + 1)))
    limit = tf.placeholder(tf.int64, [])
    fed = Dataset.range(limit).reduce(np.int64(0), lambda state, x: state + x)
    with tf.Session() as session:
        assert session.run(total) == 45
        assert session.run(pair) == (4.0, 24)
        assert session.run(fed, {limit: 4}) == 6
    with pytest.raises(TypeError, match=r"reduce\(\): the function returns a state that differs"):
        Dataset.range(3).reduce(0.0, lambda state, x: x)


def test_get_single_element() -> None:
    one = tf.data.experimental.get_single_element(Dataset.range(5).batch(5))
    with tf.Session() as session:
        assert session.run(one).tolist() == [0, 1, 2, 3, 4]
        with pytest.raises(InvalidArgumentError, match="Dataset was empty"):
            session.run(Dataset.range(0).get_single_element())
        with pytest.raises(InvalidArgumentError, match="more than one element"):
            session.run(Dataset.range(2).get_single_element())


def test_flat_map_of_datasets_from_outer_tensors() -> None:
    scale = tf.placeholder(tf.int64, [])
    dataset = Dataset.range(3).flat_map(lambda x: Dataset.range(x).map(lambda y: x * scale + y))
    iterator = dataset.make_initializable_iterator()
    with tf.Session() as session:
        session.run(iterator.initializer, {scale: 100})
        assert drain(session, iterator.get_next()) == [100, 200, 201]


def test_windows_of_windows() -> None:
    dataset = (
        Dataset.range(6)
        .window(2)
        .window(2)
        .flat_map(lambda outer: outer.flat_map(lambda inner: inner.batch(2)))
    )
    assert values(dataset) == [[0, 1], [2, 3], [4, 5]]


def test_windows_of_pairs() -> None:
    pairs = Dataset.from_tensor_slices((np.arange(4), np.arange(4.0) / 2))
    zipped = pairs.window(2).flat_map(lambda a, b: Dataset.zip((a.batch(2), b.batch(2))))
    assert [(a.tolist(), b.tolist()) for a, b in zipped] == [([0, 1], [0, 0.5]), ([2, 3], [1, 1.5])]


def test_function_without_dataset_result_raises() -> None:
    with pytest.raises(TypeError, match="must return a `Dataset` object"):
        Dataset.range(3).flat_map(lambda x: x)


def test_errors_name_user_line() -> None:
    numbers = Dataset.from_tensor_slices(["1", "x"]).map(tf.string_to_number)  # here
    with pytest.raises(InvalidArgumentError, match=r"(?s)StringToNumber.*test_dataset_functions"):
        list(numbers)


def test_elements_around_failure_are_returned() -> None:
    texts = [str(number) for number in range(100)]
    texts[50] = "bad"
    numbers = Dataset.from_tensor_slices(texts).map(tf.string_to_number)
    found = []
    element = numbers.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        for position in range(100):
            if position == 50:
                with pytest.raises(InvalidArgumentError, match="bad"):
                    session.run(element)
            else:
                found.append(session.run(element))
    assert found == [*range(50), *range(51, 100)]
    assert values(numbers.filter(lambda x: x > 45.0).take(4)) == [46, 47, 48, 49]
    assert values(numbers.ignore_errors())[48:52] == [48, 49, 51, 52]


def test_unique_and_assert_cardinality_restart_and_resume() -> None:
    numbers = Dataset.from_tensor_slices([2, 1, 2, 3, 1, 4])
    unique = numbers.unique()
    assert list(unique.repeat(2)) == [2, 1, 3, 4] * 2
    counted = numbers.apply(tf.data.experimental.assert_cardinality(6))
    assert counted.cardinality() == 6
    for dataset in (unique, counted, counted.repeat(2)):
        whole = list(dataset)
        for position in range(len(whole)):
            iterator = dataset.make_block_iterator(0)
            for _ in range(position):
                iterator.next_block(1)
            again = dataset.make_block_iterator(0)
            again.set_state(iterator.get_state())
            assert again.next_block(1)[0][0] == whole[position]
    with pytest.raises(TypeError, match="unique"):
        Dataset.from_tensors([1, 2]).unique()


@pytest.mark.parametrize(
    ("expected", "words"), [(5, "5 elements but contained at least 6"), (7, "only 6 elements")]
)
def test_assert_cardinality(expected: int, words: str) -> None:
    dataset = Dataset.range(6).apply(tf.data.experimental.assert_cardinality(expected))
    element = tf.data.make_one_shot_iterator(dataset.batch(1)).get_next()
    with tf.Session() as session:
        for number in range(min(expected, 6)):
            assert session.run(element) == [number]
        with pytest.raises(tf.errors.FailedPreconditionError, match=words):
            session.run(element)


@pytest.mark.slow
@pytest.mark.parametrize("initial", [None, [0.25, 0.75, 0.0]])
def test_rejection_resample_meets_target_distribution(initial: Any) -> None:
    dataset = Dataset.range(2000).map(lambda x: {"x": x, "odd": x % 2})
    resampled = dataset.apply(
        tf.data.experimental.rejection_resample(
            lambda element: tf.cast(element["x"] % 4 > 0, tf.int64), [0.5, 0.5, 0.0], initial, 3
        )
    )
    found = list(resampled)
    assert all(label == (element["x"] % 4 > 0) for label, element in found)
    assert 600 < len(found) < 1400
    assert 0.42 < np.mean([label for label, _ in found]) < 0.58


STRING_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a new axis": lambda line: line[tf.newaxis],
    "a new axis of a result": lambda line: tf.strings.lower(line)[tf.newaxis],
    "split": lambda line: tf.string_split([line]).values,
    "padded": lambda line: tf.pad([line], [[0, 1]], constant_values="-"),
    "cond": lambda line: tf.cond(tf.equal(line, "b c"), lambda: line, lambda: tf.constant("no")),
}


@pytest.mark.parametrize("name", STRING_FUNCTIONS)
def test_string_scalars_match_graph_semantics(name: str) -> None:
    function, lines = STRING_FUNCTIONS[name], ["A", "b c"]
    dataset = tf.data.Dataset.from_tensor_slices(lines)
    mapped = tf.data.make_one_shot_iterator(dataset.map(function)).get_next()
    kept = dataset.filter(lambda line: tf.greater(tf.size(function(line)), 1))
    last = tf.data.make_one_shot_iterator(kept.map(tf.identity)).get_next()
    line = tf.placeholder(tf.string, [])
    result = function(line)
    with tf.Session() as session:
        for each in lines:
            expected = session.run(result, {line: each})
            np.testing.assert_array_equal(session.run(mapped), expected)
        if name == "split":
            assert session.run(last) == b"b c"
