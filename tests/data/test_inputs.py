"""numpy_input_fn and pandas_input_fn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import estimatorkit as tf
from estimatorkit.data import numpy_input_fn, pandas_input_fn


def _batches(tensors: Any, count: int = 10**6) -> list[Any]:
    found: list[Any] = []
    with tf.Session() as session:
        while len(found) < count:
            try:
                found.append(session.run(tensors))
            except tf.errors.OutOfRangeError:
                break
    return found


def test_batches_cross_epochs_and_last_is_short() -> None:
    x = {"a": np.arange(5), "b": np.arange(10.0).reshape(5, 2)}
    input_fn = numpy_input_fn(x, np.arange(5) * 10, batch_size=4, num_epochs=2, shuffle=False)
    batches = _batches(input_fn())
    assert [features["a"].tolist() for features, _ in batches] == [
        [0, 1, 2, 3],
        [4, 0, 1, 2],
        [3, 4],
    ]
    assert [labels.tolist() for _, labels in batches][1] == [40, 0, 10, 20]
    assert batches[0][0]["b"].shape == (4, 2)
    assert batches[0][0]["b"].dtype == np.float64


def test_no_labels_and_array_labels() -> None:
    batches = _batches(numpy_input_fn(np.arange(3), shuffle=False)())
    assert [batch.tolist() for batch in batches] == [[0, 1, 2]]


def test_labels_may_be_dict() -> None:
    y = {"u": np.arange(3), "v": np.ones(3)}
    ((_, labels),) = _batches(numpy_input_fn(np.arange(3), y, shuffle=False)())
    assert sorted(labels) == ["u", "v"]


def test_endless_and_shuffled() -> None:
    input_fn = numpy_input_fn(np.arange(6), np.arange(6), 6, num_epochs=None, shuffle=True)
    batches = _batches(input_fn(), 40)
    assert all(sorted(x.tolist()) == list(range(6)) for x, _ in batches)
    assert all(x.tolist() == y.tolist() for x, y in batches)
    assert len({tuple(x.tolist()) for x, _ in batches}) > 20


def test_frame_becomes_dict_of_columns() -> None:
    frame = pd.DataFrame(
        {"n": [1, 2, 3], "s": ["x", "y", "z"], "f": [0.5, 1.5, 2.5]}, index=[7, 8, 9]
    )
    labels = pd.Series([1, 0, 1], index=[7, 8, 9])
    input_fn = pandas_input_fn(frame, labels, batch_size=2, shuffle=False)
    frame["n"] = 0  # changes after the call do not reach the input
    batches = _batches(input_fn())
    assert batches[0][0]["n"].tolist() == [1, 2]
    assert batches[0][0]["s"].tolist() == [b"x", b"y"]
    assert batches[1][1].tolist() == [1]
    two = pandas_input_fn(frame, pd.DataFrame({"p": labels, "q": labels}), shuffle=False)
    assert sorted(_batches(two())[0][1]) == ["p", "q"]
    alone = _batches(pandas_input_fn(frame, shuffle=False)())
    assert sorted(alone[0]) == ["f", "n", "s"]


@pytest.mark.parametrize("make", [numpy_input_fn, pandas_input_fn])
def test_shuffle_is_required(make: Any) -> None:
    x = pd.DataFrame({"a": [1]}) if make is pandas_input_fn else np.arange(1)
    with pytest.raises(ValueError, match="shuffle must be provided and explicitly set as boolean"):
        make(x)


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        ({"a": np.ones(1)}, {"a": np.ones(1)}, ValueError, "keys are found in both x and y"),
        ({}, None, ValueError, "x cannot be an empty dict"),
        (np.arange(2), {}, ValueError, "y cannot be empty dict"),
        ([1, 2], None, TypeError, "x must be a dict or array"),
        (np.arange(2), [1, 2], TypeError, "y must be a dict or array"),
        (np.arange(2), np.arange(3), ValueError, "Length of tensors in x and y is mism"),
        ({"a": np.arange(2), "b": np.arange(3)}, None, ValueError, "lengths {'a': 2, 'b': 3} in x"),
    ],
)
def test_wrong_arrays_raise(x: Any, y: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        numpy_input_fn(x, y, shuffle=False)


def test_wrong_frames_raise() -> None:
    frame = pd.DataFrame({"a": [1, 2], "target": [3, 4]})
    with pytest.raises(ValueError, match="Cannot use name target for target column"):
        pandas_input_fn(frame, pd.Series([1, 2]), shuffle=False)
    with pytest.raises(ValueError, match="Index for x and y are mismatched"):
        pandas_input_fn(frame, pd.Series([1, 2], index=[1, 0]), shuffle=False, target_column="t")
    with pytest.raises(TypeError, match="x must be a DataFrame"):
        pandas_input_fn({"a": [1]}, shuffle=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("labels", [np.arange(-32, -28), None], ids=["labels", "no labels"])
def test_tensors_are_in_users_graph(labels: Any) -> None:
    input_fn = numpy_input_fn({"a": np.arange(4)}, labels, 3, num_epochs=1, shuffle=False)
    with tf.Graph().as_default(), tf.Session() as session:
        batch = input_fn()
        features = batch if labels is None else batch[0]
        doubled = features["a"] * 2
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord=coordinator)
        assert session.run(doubled).tolist() == [0, 2, 4]
        assert session.run(doubled).tolist() == [6]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(batch)
        coordinator.request_stop()
        coordinator.join(threads)


def test_zero_epochs_yield_nothing() -> None:
    assert _batches(numpy_input_fn(np.arange(4), num_epochs=0, shuffle=False)()) == []


def test_mismatched_input_raises() -> None:
    rows = np.arange(4)
    with pytest.raises(ValueError, match="1 duplicate keys are found in both x and y"):
        numpy_input_fn({"a": rows}, {"a": rows}, shuffle=False)
    with pytest.raises(ValueError, match="x cannot be an empty array"):
        numpy_input_fn(np.zeros((2, 0)), shuffle=False)
    with pytest.raises(TypeError, match="target_column must be a string"):
        pandas_input_fn(
            pd.DataFrame({"a": rows}),
            shuffle=False,
            target_column=["a"],  # type: ignore[arg-type]
        )
