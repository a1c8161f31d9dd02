"""Datasets as descriptions: sources, specs, cardinality and errors."""

from __future__ import annotations

import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from estimatorkit.core.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from estimatorkit.data import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Dataset,
    TensorSpec,
    traced_functions,
)
from tests.data.models import BlockFunction

Point = namedtuple("Point", ["x", "y"])


@pytest.fixture
def _tracer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced_functions, "dataset_function", BlockFunction)


def _spec(value: Any) -> TensorSpec:
    spec = Dataset.from_tensor_slices(value).element_spec
    assert isinstance(spec, TensorSpec)
    return spec


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([1, 2], "int32"),
        ([2**40, 1], "int64"),
        ([1.5, 2], "float32"),
        ([1, 2.5], "float32"),
        ([True, False], "bool"),
        (["a", b"b"], "string"),
        ([1j], "complex128"),
        ([], "float32"),
        ([np.float64(1.0), 2.0], "float32"),
        ([np.int64(3)], "int32"),
        ([np.array([1.0, 2.0])], "float64"),
        ([(1, 2), (3, 4)], "int32"),
        (np.array([1, 2]), "int64"),
        (np.array([1.0]), "float64"),
        (np.array([1.0], ">f4"), "float32"),
        (np.array(["a", "b"]), "string"),
        (np.array([b"a"]), "string"),
        (pd.Series([1, 2]), "int64"),
        (pd.Series(["a", "b"], dtype="category"), "string"),
        (pd.Series([1, 2], dtype="Int64"), "int64"),
        (pd.Series([1.5, None]), "float64"),
    ],
)
def test_dtypes_match_tf_data(value: Any, dtype: str) -> None:
    assert _spec(value).dtype.name == dtype


def test_strings_become_bytes() -> None:
    assert list(Dataset.from_tensor_slices(["a", "é", b"\xff\x00"])) == [
        b"a",
        "é".encode(),
        b"\xff\x00",
    ]
    assert list(Dataset.from_tensor_slices(np.array(["a", "bc"]))) == [b"a", b"bc"]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ({}, ValueError, "empty structure"),
        ((), ValueError, "empty structure"),
        (3, ValueError, "the value is a scalar"),
        ({"a": [1], "b": 2}, ValueError, r"component \['b'\] is a scalar"),
        (
            ([1, 2], [3, 4, 5]),
            ValueError,
            r"2 rows, as component \[0\] has\n.*3 rows in component \[1\]",
        ),
        ([[1], [2, 3]], ValueError, "ragged list"),
        ([["a"], ["b", "c"]], ValueError, "ragged list"),
        ([None], ValueError, "missing value at position 0"),
        (np.array([1, None], object), TypeError, "int at position 0"),
        (np.array(["a", None], object), ValueError, "missing value at position 1"),
        (pd.Series(["a", None]), ValueError, "missing value at position 1"),
        (pd.Series(["a", pd.NA], dtype="string"), ValueError, "missing value at position 1"),
        (["a", 1], TypeError, "int at position 1"),
        ([1, "a"], TypeError, "int at position 0"),
        (np.array(["2020-01-01"], "datetime64[s]"), TypeError, "cannot be converted to a tensor"),
        (
            {"when": pd.Series(pd.to_datetime(["2020-01-01"]))},
            TypeError,
            r"\['when'\].*\n(.*\n)*.*hint",
        ),
    ],
)
def test_non_tensor_values_raise(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Dataset.from_tensor_slices(value)


def test_elements_keep_structure() -> None:
    made = Dataset.from_tensor_slices(
        ({"b": np.arange(2), "a": [[1.0], [2.0]]}, Point(["p", "q"], (np.ones(2), np.zeros(2))))
    )
    first, second = made
    assert list(first[0]) == ["b", "a"]
    assert first[0]["a"].tolist() == [1.0]
    assert isinstance(second[1], Point)
    assert second[1].x == b"q"
    assert second[1].y == (1.0, 0.0)
    assert made.output_types[0] == {"b": np.int64, "a": np.float32}
    assert made.output_shapes[1] == Point((), ((), ()))
    batched = made.batch(2, drop_remainder=True)
    assert batched.output_shapes[0]["a"].as_list() == [2, 1]
    assert made.batch(2).output_shapes[0]["a"].as_list() == [None, 1]


def test_data_frame_becomes_dict_of_columns() -> None:
    frame = pd.DataFrame({"a": [1, 2], "s": ["x", "y"]})
    assert list(Dataset.from_tensor_slices((frame, [0, 1]))) == [
        ({"a": 1, "s": b"x"}, 0),
        ({"a": 2, "s": b"y"}, 1),
    ]


def test_from_tensors_is_one_element() -> None:
    made = Dataset.from_tensors({"a": [1, 2, 3], "b": 5})
    (element,) = made
    assert element["a"].tolist() == [1, 2, 3]
    assert element["b"] == 5
    assert [x["a"].shape for x in made.repeat(3).batch(2)] == [(2, 3), (1, 3)]


def test_arrays_are_not_copied_until_read() -> None:
    rows = np.arange(6.0).reshape(3, 2)
    made = Dataset.from_tensor_slices(rows)
    element = next(iter(made))
    element[:] = -1  # what is handed out is a copy
    assert rows[0].tolist() == [0, 1]
    rows[0] = 7
    assert next(iter(made)).tolist() == [7, 7]


def _even(x: Any) -> Any:
    return x % 2 == 0


@pytest.mark.usefixtures("_tracer")
@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda d: d, 10),
        (lambda d: d.shuffle(3), 10),
        (lambda d: d.repeat(3), 30),
        (lambda d: d.repeat(0), 0),
        (lambda d: d.repeat(), INFINITE_CARDINALITY),
        (lambda d: d.repeat(-5), INFINITE_CARDINALITY),
        (lambda d: d.take(0).repeat(), 0),
        (lambda d: d.repeat().take(7), 7),
        (lambda d: d.take(-1), 10),
        (lambda d: d.take(40), 10),
        (lambda d: d.skip(4), 6),
        (lambda d: d.skip(-1), 0),
        (lambda d: d.skip(40), 0),
        (lambda d: d.repeat().skip(3), INFINITE_CARDINALITY),
        (lambda d: d.shard(3, 0), 4),
        (lambda d: d.shard(3, 1), 3),
        (lambda d: d.batch(3), 4),
        (lambda d: d.batch(3, drop_remainder=True), 3),
        (lambda d: d.repeat().batch(3), INFINITE_CARDINALITY),
        (lambda d: d.concatenate(Dataset.range(4)), 14),
        (lambda d: d.concatenate(Dataset.range(4).repeat()), INFINITE_CARDINALITY),
        (lambda d: Dataset.zip((d, Dataset.range(4))), 4),
        (lambda d: Dataset.zip((d.repeat(), Dataset.range(4).repeat())), INFINITE_CARDINALITY),
        (lambda d: Dataset.zip((d.filter(_even), d.take(0))), 0),
        (lambda d: d.enumerate(), 10),
        (lambda d: d.map(_even), 10),
        (lambda d: d.cache(), 10),
        (lambda d: d.prefetch(2), 10),
        (lambda d: d.filter(_even), UNKNOWN_CARDINALITY),
        (lambda d: d.filter(_even).take(3), UNKNOWN_CARDINALITY),
        (lambda d: d.filter(_even).repeat(2), UNKNOWN_CARDINALITY),
        (lambda d: d.filter(_even).repeat(), INFINITE_CARDINALITY),
    ],
)
def test_cardinality(make: Callable[[Dataset], Dataset], count: int) -> None:
    made = make(Dataset.range(10))
    assert made.cardinality() == count
    if count >= 0:
        assert len(list(made)) == len(made) == count
    else:
        with pytest.raises(TypeError, match="infinite" if count == -1 else "unknown"):
            len(made)
    assert bool(made)


def test_ranges() -> None:
    assert list(Dataset.range(3)) == [0, 1, 2]
    assert list(Dataset.range(2, 5)) == [2, 3, 4]
    assert list(Dataset.range(5, 0, -2)) == [5, 3, 1]
    assert Dataset.range(3).element_spec == TensorSpec((), "int64")
    with pytest.raises(InvalidArgumentError, match="step must be a non-zero integer"):
        Dataset.range(1, 5, 0)


def test_zip_enumerate_apply_and_concatenate() -> None:
    numbers = Dataset.range(3)
    letters = Dataset.from_tensor_slices(["a", "b"])
    assert list(Dataset.zip((numbers, {"k": letters}))) == [(0, {"k": b"a"}), (1, {"k": b"b"})]
    assert list(Dataset.zip(numbers, letters)) == [(0, b"a"), (1, b"b")]
    assert list(letters.enumerate(5)) == [(5, b"a"), (6, b"b")]
    assert letters.enumerate().element_spec[0] == TensorSpec((), "int64")
    assert list(numbers.apply(lambda d: d.take(1))) == [0]
    joined = numbers.batch(2).concatenate(numbers.batch(3, drop_remainder=True))
    assert [x.tolist() for x in joined] == [[0, 1], [2], [0, 1, 2]]
    assert joined.element_spec == TensorSpec([None], "int64")
    with pytest.raises(TypeError, match="differ in structure or dtypes"):
        numbers.concatenate(letters)
    with pytest.raises(TypeError, match=r"structures of `tf\.data\.Dataset` objects"):
        Dataset.zip([numbers, letters])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d: d.batch(0), r"batch_size is too small.\n.*>= 1\n.*0"),
        (lambda d: d.shuffle(0), "buffer_size is too small"),
        (lambda d: d.prefetch(-2), "buffer_size is too small"),
        (lambda d: d.shard(0, 0), "num_shards is too small"),
        (lambda d: d.shard(2, 2), "index is out of range"),
        (lambda d: d.shard(2, -1), "index is too small"),
    ],
)
def test_out_of_range_arguments_raise(make: Callable[[Dataset], Dataset], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make(Dataset.range(3))


def test_arguments_of_wrong_type_raise() -> None:
    with pytest.raises(TypeError, match="count is not an integer"):
        Dataset.range(3).repeat("a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="batch_size is not an integer"):
        Dataset.range(3).batch(2.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a function of an element is required"):
        Dataset.range(3).map(3)  # type: ignore[arg-type]
    assert len(Dataset.range(3).repeat(np.int64(2))) == 6  # type: ignore[arg-type]


@pytest.mark.usefixtures("_tracer")
def test_map_unpacks_tuples_only() -> None:
    pairs = Dataset.from_tensor_slices((np.arange(3), np.arange(3) * 10))
    assert list(pairs.map(lambda a, b: a + b)) == [0, 11, 22]
    assert list(pairs.map(lambda a, b: {"s": a, "t": (a, b)}))[1] == {"s": 1, "t": (1, 10)}
    point = Dataset.from_tensor_slices(Point(np.arange(3), np.arange(3)))
    assert list(point.map(lambda p: p.x * 2)) == [0, 2, 4]
    record = Dataset.from_tensor_slices({"a": np.arange(3)})
    assert list(record.map(lambda r: r["a"] * 2, num_parallel_calls=4)) == [0, 2, 4]
    assert list(pairs.filter(lambda a, b: b > 5)) == [(1, 10), (2, 20)]


@pytest.mark.usefixtures("_tracer")
def test_predicate_must_return_scalar_bool() -> None:
    with pytest.raises(ValueError, match=r"must return a `tf\.bool` scalar tensor"):
        Dataset.range(3).filter(lambda x: x + 1)
    with pytest.raises(ValueError, match=r"must return a `tf\.bool` scalar tensor"):
        Dataset.range(3).batch(2, drop_remainder=True).filter(lambda x: x > 1)


@pytest.mark.slow
def test_functions_are_traced_into_graphs() -> None:
    # Found where nobody has set a tracer, in a process that has imported the data package alone.
    program = (
        "from estimatorkit.data.dataset import Dataset\n"
        "import sys; assert 'jax' not in sys.modules and 'pandas' not in sys.modules\n"
        "print([int(x) for x in Dataset.range(6).map(lambda x: x * x).filter(lambda x: x > 3)])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[4, 9, 16, 25]\n"


@pytest.mark.usefixtures("_tracer")
def test_filter_predicate_gets_blocks_of_one_size() -> None:
    sizes = []

    def predicate(x: np.ndarray) -> Any:
        sizes.append(len(x))
        return x % 3 == 0

    iterator = Dataset.range(3000).filter(predicate).make_block_iterator()
    sizes.clear()
    assert iterator.next_block(128)[0].tolist() == list(range(0, 384, 3))
    assert sizes == [128, 128, 128]


def test_unbatch_of_rows_without_values() -> None:
    rows = Dataset.from_tensor_slices(np.zeros((5, 0), np.float32)).batch(2).unbatch()
    assert [row.shape for row in rows.as_numpy_iterator()] == [(0,)] * 5


def test_empty_dataset_ends_at_once() -> None:
    iterator = Dataset.from_tensor_slices(np.zeros((0, 3))).shuffle(5).repeat().batch(2)
    blocks = iterator.make_block_iterator()
    for _ in range(2):
        with pytest.raises(OutOfRangeError, match="End of sequence"):
            blocks.next_block(1)


def test_batching_unequal_shapes_names_elements() -> None:
    ragged = Dataset.from_generator(lambda: [[1], [1, 2]], "int32", (None,))
    with pytest.raises(
        InvalidArgumentError, match=r"component 0.*shape \[1\] and element 1 .*\[2\]"
    ):
        list(ragged.batch(2))
    assert len(list(ragged.batch(1))) == 2


def test_last_batch_may_be_shorter() -> None:
    iterator = Dataset.range(10).batch(4).make_block_iterator()
    (column,) = iterator.next_block(5)
    assert [row.tolist() for row in column] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    with pytest.raises(OutOfRangeError):
        iterator.next_block(5)


def test_numeric_blocks_are_64_byte_aligned() -> None:
    columns = np.random.default_rng(0).random((1000, 3)).astype(np.float32), np.arange(1000)
    iterator = (
        Dataset.from_tensor_slices(columns).shuffle(10).repeat().batch(7).make_block_iterator()
    )
    for size in (1, 2, 30):
        block = iterator.next_block(size)
        assert block[0].shape == (size, 7, 3)
        assert all(column.ctypes.data % 64 == 0 and column.flags.c_contiguous for column in block)


def test_rows_are_gathered_once_for_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    take = np.take

    def counted(column: Any, indices: Any, **options: Any) -> Any:
        calls.append(len(indices))
        return take(column, indices, **options)

    monkeypatch.setattr(np, "take", counted)
    made = Dataset.from_tensor_slices((np.zeros((50, 4)), np.zeros(50))).shuffle(100).repeat()
    made.batch(10).make_block_iterator().next_block(100)
    assert calls == [1000, 1000]  # each column, of 20 epochs


def test_position_of_another_pipeline_is_refused() -> None:
    state = Dataset.range(5).batch(2).make_block_iterator().get_state()
    with pytest.raises(InvalidArgumentError, match="another pipeline"):
        Dataset.range(5).make_block_iterator().set_state(state)
    with pytest.raises(InvalidArgumentError, match="another pipeline"):
        Dataset.range(5).take(3).batch(2).make_block_iterator().set_state(state)


def test_closed_iterator_raises() -> None:
    iterator = Dataset.range(5).batch(2).prefetch(1).make_block_iterator()
    iterator.close()
    iterator.close()
    with pytest.raises(CancelledError, match="closed"):
        iterator.next_block(1)
    with pytest.raises(ValueError, match="n >= 1"):
        Dataset.range(5).make_block_iterator().next_block(0)


def test_iteration_reads_only_next_element() -> None:
    made = []

    def generate() -> Any:
        for i in range(100):
            made.append(i)
            yield i

    iterator = iter(Dataset.from_generator(generate, "int32"))
    next(iterator)
    assert made == [0]
    iterator.close()  # type: ignore[attr-defined]


def test_iterators_in_graphs() -> None:
    from estimatorkit.core.tensor import Tensor

    made = Dataset.from_tensor_slices({"a": [1, 2], "b": ["x", "y"]})
    assert made.output_classes == {"a": Tensor, "b": Tensor}
    assert made.make_one_shot_iterator().output_types == made.output_types
    iterator = made.make_initializable_iterator()
    assert iterator.initializer.type == "MakeIterator"
    assert iterator.get_next()["a"].op.type == "IteratorGetNext"
