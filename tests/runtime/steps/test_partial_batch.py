"""Batches of two sizes in one call: the last of every epoch is smaller."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import cursor_of
from estimatorkit.runtime.loop import StepSpec
from estimatorkit.runtime.steps import partial_batch
from estimatorkit.runtime.steps.columns import RaggedColumn
from estimatorkit.runtime.steps.local_loop import LocalStepLoop
from estimatorkit.runtime.steps.partial_batch import in_partial_batches
from tests.runtime.executor_programs import change_after
from tests.sweep import sweep
from tests.train import toy

STEPS = 36  # six epochs of 42 rows in batches of 8


class Training:
    """The toy on epochs whose last batch has two rows."""

    def __init__(self, convolution: bool = False) -> None:
        data = Dataset.from_tensor_slices(toy.rows(42)).shuffle(42).batch(8).repeat()
        self.model, self.session = toy.session_of(data, convolution=convolution)
        state = self.session.state

        def source(op: Any) -> Any:
            return cursor_of(state, op.attrs["iterator"])

        with self.session.graph.as_default():
            counter = tf.train.get_global_step()._as_graph_element()
        spec = StepSpec([self.model.loss], [self.model.train_op], [counter], source, "step")
        self.loop = LocalStepLoop(state, spec)

    def following(self) -> Any:
        """The rows of the next element."""
        return cursor_of(self.session.state, "OneShotIterator").next_element()[0]

    def close(self) -> None:
        self.session.close()


@pytest.fixture(params=[False, True], ids=["in one loop", "one by one"])
def training(request: pytest.FixtureRequest) -> Iterator[Training]:
    made = Training(convolution=request.param)
    yield made
    made.close()


@functools.cache
def singly(convolution: bool) -> tuple[Any, Any, Any]:
    """Losses, weights and the next element after as many runs of the session."""
    made = Training(convolution)
    run = made.session.run
    losses = [run([made.model.loss, made.model.train_op])[0] for _ in range(STEPS)]
    weights = toy.weights(made.session)
    following = made.following()
    made.close()
    return np.stack(losses), weights, following


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Any:
    return singly(request.node.callspec.params["training"])


@pytest.fixture(params=[1, 64], ids=["a call a run", "a call a block"])
def long(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """From how many rows on a run of full batches and the partial one are calls of their own."""
    monkeypatch.setattr(partial_batch, "LONG", request.param)
    number: int = request.param
    return number


@sweep("parts", [[STEPS], [5, 1, 6, 12, 12], [1] * 8 + [28], [7, 29]], quick=1)
def test_matches_one_step_per_run(
    training: Training, reference: Any, parts: Any, long: int
) -> None:
    losses: list[Any] = []
    for part in parts:
        done = training.loop.run(part)
        assert done.count == part
        losses.extend(done.every[0])
    np.testing.assert_allclose(losses, reference[0], rtol=1e-5)
    for name, value in toy.weights(training.session).items():
        np.testing.assert_allclose(value, reference[1][name], rtol=2e-5, atol=1e-6, err_msg=name)
    np.testing.assert_array_equal(training.following(), reference[2])


def test_two_executables_for_any_blocks(training: Training, long: int) -> None:
    for part in (9, 20, 4, 6, 1, 100):
        training.loop.run(part)
    # One for full batches (the first element is looked at alone), one for partial ones or both.
    assert training.session.state.compilations["step"] <= 2


@sweep("parts", [[STEPS], [5, 1, 6, 12, 12], [1] * 8 + [28], [7, 29]], quick=2)
def test_partial_batches_are_compiled_after_the_same_step(
    parts: list[int], interpreted_rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial_batch, "LONG", 1)
    change_after(monkeypatch, 2)
    weights = []
    for own in (parts, [STEPS]):
        training = Training()
        for part in own:
            training.loop.run(part)
        weights.append(toy.weights(training.session))
        training.close()
    assert interpreted_rows == [2, 2] * 2
    toy.assert_same_bits(*weights)


def test_elements_belong_to_their_steps(training: Training) -> None:
    done = training.loop.run(12)
    sizes = [len(done.element(step)[0]) for step in range(12)]  # type: ignore[index]
    assert sizes == [8] * 5 + [2] + [8] * 5 + [2]
    assert done.element(12) is None


# -- the columns


def ragged(*lengths: int, width: int = 2) -> RaggedColumn:
    values = np.arange(sum(lengths) * width, dtype=np.float32)
    return RaggedColumn(values, np.array([[length, width] for length in lengths], np.int64))


def test_runs_and_padded_rows() -> None:
    column = ragged(3, 3, 1, 3, 1, 1)
    found = in_partial_batches([column, np.ones((6, 4), np.int32)], lambda rows: 8)
    assert found is not None
    (filled, plain), two = found
    assert filled.shape == (8, 3, 2)
    assert plain.shape == (8, 4)
    assert plain[:6].sum() == 24
    assert two.shapes == (((3, 2), (4,)), ((1, 2), (4,)))
    assert two.runs.tolist() == [[[0, 2], [2, 3]], [[3, 4], [4, 6]]]
    for row in range(6):
        length = column.shapes[row, 0]
        np.testing.assert_array_equal(filled[row, :length], column[row])
        assert not filled[row, length:].any()


def test_ends_with_full_batch() -> None:
    found = in_partial_batches([ragged(1, 3, 1)], lambda rows: 3)
    assert found is not None
    assert found[1].runs.tolist() == [[[0, 1], [1, 2]], [[2, 3], [3, 3]]]


@pytest.mark.parametrize(
    "columns",
    [
        [np.zeros((3, 2))],
        [ragged(1, 2, 3)],
        [RaggedColumn(np.zeros(9, np.float32), np.array([[1, 3], [2, 3]]))][:0],
        [RaggedColumn(np.zeros(10, np.float32), np.array([[2, 2], [2, 3]], np.int64))],
        [RaggedColumn(np.array([b"a"] * 3, object), np.array([[1], [2]], np.int64))],
        [RaggedColumn(np.zeros(3, np.float32), np.array([[2, -1], [1, 1]], np.int64))],
    ],
    ids=["plain", "three", "none", "other axis", "strings", "other ranks"],
)
def test_unsupported_shapes_are_unchanged(columns: Any) -> None:
    assert in_partial_batches(columns, lambda rows: 9) is None
