"""The first steps of an evaluation run in NumPy, while that is less than a share of compiling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.graph import Graph
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import cursor_of, make_one_shot_iterator
from estimatorkit.runtime import interpreted
from estimatorkit.runtime.loop import StepSpec
from estimatorkit.runtime.session import Session
from estimatorkit.runtime.steps.local_loop import LocalStepLoop
from tests.runtime.executor_programs import change_after

ROWS, BATCH = 42, 8
BATCHES = 6
"""Of which the last one has 2 rows."""


class Evaluation:
    """Sums of an epoch, whose steps also fetch the mean of their rows.

    Args:
        is_brief: see `StepSpec`.
        allowed: the rows that are no error.
        hidden: the columns of a product.
    """

    def __init__(self, is_brief: bool = True, allowed: int = ROWS, hidden: int = 4) -> None:
        graph = Graph()
        with graph.as_default():
            values = np.random.default_rng(0).normal(size=(ROWS, 3)).astype(np.float32)
            values[:, 0] = np.arange(ROWS)
            rows = make_one_shot_iterator(Dataset.from_tensor_slices(values).batch(BATCH))
            x = rows.get_next()
            ones = tf.gather(tf.ones([allowed]), tf.cast(x[:, :1], tf.int32))
            made = tf.tanh(tf.matmul(x, tf.ones([3, hidden]))) * ones
            total = tf.get_variable("total", [hidden], initializer=tf.zeros_initializer())
            add = tf.assign_add(total, tf.reduce_sum(made, 0))
            self.session = Session(graph=graph)
            self.session.run(tf.global_variables_initializer())
            after = [total._as_graph_element()]
            mean = tf.reduce_mean(made)

        def source(op: Any) -> Any:
            return cursor_of(self.session.state, op.attrs["iterator"])

        spec = StepSpec([mean], [add.op], after, source, "step", is_brief=is_brief)
        self.loop = LocalStepLoop(self.session.state, spec)

    @property
    def compilations(self) -> int:
        return self.session.state.compilations["step"]

    def run(self, *parts: int) -> tuple[Any, Any]:
        """The values of all steps, and the sums after the last, of calls of so many steps."""
        done = [self.loop.run(part) for part in parts]
        return np.concatenate([each.every[0] for each in done]), done[-1].after[0]


def test_short_evaluation_is_not_compiled(interpreted_rows: list[int]) -> None:
    brief, whole = Evaluation(), Evaluation(is_brief=False)
    every, total = brief.run(BATCHES)
    assert brief.compilations == 0
    assert interpreted_rows == [8, 8, 8, 8, 8, 2]
    expected = whole.run(BATCHES)
    assert whole.compilations == 1
    assert interpreted_rows[6:] == [2]  # the last batch alone
    np.testing.assert_allclose(every, expected[0], atol=1e-6)
    np.testing.assert_allclose(total, expected[1], rtol=1e-6)


@pytest.mark.parametrize("parts", [(BATCHES,), (1,) * BATCHES, (2, 4), (3, 3)])
def test_change_to_xla_depends_on_steps_alone(
    parts: tuple[int, ...], interpreted_rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    change_after(monkeypatch, 2)
    first, again = Evaluation(), Evaluation()
    found, expected = first.run(*parts), again.run(BATCHES)
    assert interpreted_rows == [8, 8, 2] * 2  # one step has two rows
    assert first.compilations
    assert again.compilations
    assert found[0].tobytes() == expected[0].tobytes()
    assert found[1].tobytes() == expected[1].tobytes()


def test_later_evaluations_stay_with_xla(
    interpreted_rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    change_after(monkeypatch, 1)
    evaluation = Evaluation()
    evaluation.run(1, 1, 1)
    monkeypatch.undo()
    before = len(interpreted_rows)
    evaluation.run(3)
    assert len(interpreted_rows) == before == 1


def test_long_steps_are_compiled_without_trace(
    interpreted_rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreted, "LONGEST", 0.001)
    evaluation = Evaluation(hidden=20_000)
    evaluation.run(2)
    assert interpreted_rows == []
    assert evaluation.compilations == 1


@pytest.mark.parametrize("executor", ["xla", "interpret"])
def test_chosen_executor_runs_all_steps(
    executor: str, interpreted_rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", executor)
    evaluation = Evaluation()
    evaluation.run(BATCHES)
    assert interpreted_rows == ([] if executor == "xla" else [8, 8, 8, 8, 8, 2])


def test_error_of_a_step_comes_after_the_steps_before_it() -> None:
    """As in a compiled loop: those are complete, and the loop goes on with the next element."""
    evaluation = Evaluation(allowed=20)
    every, total = evaluation.run(BATCHES)
    assert len(every) == 2
    with pytest.raises(InvalidArgumentError, match="indices"):
        evaluation.loop.run(1)
    compiled = Evaluation(is_brief=False, allowed=20).run(BATCHES)
    np.testing.assert_allclose(every, compiled[0], atol=1e-6)
    np.testing.assert_allclose(total, compiled[1], rtol=1e-6)
