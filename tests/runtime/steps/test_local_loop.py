"""Many steps in one call: the same numbers for every partition, and few compilations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import estimatorkit as tf
from estimatorkit.core import registry
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Spec, op_def, table
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import (
    cursor_of,
    iterator_states,
    make_one_shot_iterator,
    restore_iterators,
)
from estimatorkit.runtime.loop import StepSpec
from estimatorkit.runtime.session import Session
from estimatorkit.runtime.steps.local_loop import LocalStepLoop
from estimatorkit.train.checks import add_step_check
from estimatorkit.train.training import CheckedLoop
from tests.train import toy

STEPS = 60


def make_loop(
    session: Session, every: list[Tensor], targets: list[Any], after: list[Tensor] | None = None
) -> LocalStepLoop:
    """A loop over the iterators of the session."""

    def source(op: Any) -> Any:
        return cursor_of(session.state, op.attrs["iterator"])

    return LocalStepLoop(session.state, StepSpec(every, targets, after or [], source, "step"))


class Snapshot:
    """The whole state of a session: variables, random counters, positions of the input."""

    def __init__(self, session: Session) -> None:
        self._values = {name: np.array(value) for name, value in session.state.values.items()}
        self._iterators = iterator_states(session.state)

    def restore(self, session: Session) -> None:
        session.state.values.clear()
        session.state.values.update({name: np.array(v) for name, v in self._values.items()})
        assert all(restore_iterators(session.state, self._iterators).values())


class Training:
    """A model with dropout and momentum on shuffled data that never ends, and its loop."""

    def __init__(self, convolution: bool = False) -> None:
        self.model, self.session = toy.session_of(toy.dataset(42), convolution=convolution)
        graph = self.session.graph
        with graph.as_default():
            counter = tf.train.get_global_step()._as_graph_element()
        self.loop = make_loop(
            self.session, [self.model.loss], [self.model.train_op], after=[counter]
        )
        self.loop.run(1)  # the first step draws the random counters' first values
        self.start = Snapshot(self.session)

    def run(self, parts: Any) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
        """Losses and weights after steps in calls of these sizes, always from the same state."""
        self.start.restore(self.session)
        losses = [self.loop.run(part).every[0] for part in parts]
        return np.concatenate(losses), toy.weights(self.session)


@pytest.fixture(scope="module", params=[False, True], ids=["in one loop", "one by one"])
def training(request: pytest.FixtureRequest) -> Iterator[Training]:
    """On a CPU, steps with convolutions are calls of their own."""
    made = Training(convolution=request.param)
    yield made
    made.session.close()


@pytest.fixture(scope="module")
def at_once(training: Training) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    return training.run([STEPS])


@pytest.mark.parametrize("seed", range(6))
def test_every_partition_gives_same_bits(training: Training, at_once: Any, seed: int) -> None:
    parts = toy.partition(STEPS, np.random.default_rng(seed), most=2 ** (seed + 1))
    losses, weights = training.run(parts)
    assert losses.tobytes() == at_once[0].tobytes()
    toy.assert_same_bits(weights, at_once[1])


def test_one_step_per_call_gives_same_bits(training: Training, at_once: Any) -> None:
    losses, weights = training.run([1] * STEPS)
    assert losses.tobytes() == at_once[0].tobytes()
    toy.assert_same_bits(weights, at_once[1])


def test_all_partitions_share_one_executable(training: Training, at_once: Any) -> None:
    training.run([1, 7, 30])
    training.run([2, 3])
    assert training.session.state.compilations["step"] == 1


@pytest.mark.slow
def test_session_run_gives_same_steps(
    training: Training, at_once: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On CPU they are equal to the bit too; XLA does not promise that between two programs."""
    monkeypatch.setattr(training.session.state, "executor", "xla")
    training.start.restore(training.session)
    fetches = [training.model.loss, training.model.train_op]
    losses = [training.session.run(fetches)[0] for _ in range(STEPS)]
    np.testing.assert_allclose(losses, at_once[0], atol=1e-6)
    for name, value in toy.weights(training.session).items():
        np.testing.assert_allclose(value, at_once[1][name], atol=1e-6)


def test_runs_and_loop_calls_share_position(
    training: Training, at_once: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training.session.state, "executor", "xla")
    training.start.restore(training.session)
    fetches = [training.model.loss, training.model.train_op]
    losses = [*training.loop.run(7).every[0], training.session.run(fetches)[0]]
    losses += [*training.loop.run(STEPS - 8).every[0]]
    np.testing.assert_allclose(losses, at_once[0], atol=1e-6)


def test_losses_differ_between_steps(at_once: Any) -> None:
    assert len(set(at_once[0].tolist())) == STEPS
    assert at_once[0][-5:].mean() < at_once[0][:5].mean()


def test_final_fetches_see_last_update(training: Training) -> None:
    training.start.restore(training.session)
    assert [int(training.loop.run(steps).after[0]) for steps in (1, 5, 10)] == [2, 7, 17]


# -- the end of the input


@pytest.fixture
def counting() -> Iterator[Callable[..., tuple[Session, LocalStepLoop]]]:
    """Makes loops whose step adds the sum of an element to a variable and fetches it."""
    sessions = []

    def make(data: Dataset) -> tuple[Session, LocalStepLoop]:
        graph = Graph()
        with graph.as_default():
            element = make_one_shot_iterator(data).get_next()
            total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
            added = tf.assign_add(total, tf.reduce_sum(element))
            start, value = tf.global_variables_initializer(), total._as_graph_element()
        session = Session(graph=graph)
        sessions.append(session)
        session.run(start)
        return session, make_loop(session, [tf_sum(element)], [added.op], [value])

    def tf_sum(element: Tensor) -> Tensor:
        with element.graph.as_default():
            made: Tensor = tf.reduce_sum(element)
        return made

    yield make
    for session in sessions:
        session.close()


def numbers(count: int, batch: int) -> Dataset:
    return Dataset.from_tensor_slices(np.arange(1.0, count + 1, dtype=np.float32)).batch(batch)


@pytest.mark.parametrize(("executor", "compilations"), [("auto", 1), ("xla", 2)])
def test_short_last_batch(
    counting: Any, executor: str, compilations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", executor)
    session, loop = counting(numbers(11, 4))
    done = loop.run(100)
    assert (done.count, done.ended) == (3, True)
    np.testing.assert_array_equal(done.every[0], [10, 26, 30])
    np.testing.assert_array_equal(done.after[0], 66)
    assert session.state.compilations["step"] == compilations


def test_full_batches_compile_once(counting: Any) -> None:
    session, loop = counting(numbers(12, 4).repeat(3))
    assert [loop.run(steps).count for steps in (1, 2, 5)] == [1, 2, 5]
    done = loop.run(5)
    assert (done.count, done.ended) == (1, True)
    assert session.state.compilations["step"] == 1


def test_end_is_noticed_after_last_element(counting: Any) -> None:
    session, loop = counting(numbers(8, 4))
    done = loop.run(2)
    assert (done.count, done.ended) == (2, False)
    for _ in range(2):
        with pytest.raises(OutOfRangeError):
            loop.run(1)
    np.testing.assert_array_equal(toy.weights(session)["total"], 36)


def test_no_elements(counting: Any) -> None:
    session, loop = counting(numbers(0, 4))
    with pytest.raises(OutOfRangeError):
        loop.run(3)
    assert session.state.compilations["step"] == 0


def test_several_blocks_in_one_call(counting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("estimatorkit.data.execution.cursor.MAX_BLOCK", 5)
    session, loop = counting(numbers(92, 4))
    parts = [loop.run(steps) for steps in (3, 1, 11, 100)]
    assert [part.count for part in parts] == [3, 1, 11, 8]
    every = np.concatenate([part.every[0] for part in parts])
    np.testing.assert_array_equal(every, np.arange(1, 93).reshape(23, 4).sum(1))
    assert parts[-1].ended
    assert session.state.compilations["step"] == 1


def test_input_error_reaches_caller(counting: Any) -> None:
    def generator() -> Iterator[float]:
        yield from range(3)
        raise KeyError("row 3 is bad")

    _, loop = counting(Dataset.from_generator(generator, tf.float32, ()))
    with pytest.raises(KeyError, match="row 3 is bad") as caught:
        [loop.run(1) for _ in range(4)]
    assert "generator" in [frame.name for frame in caught.traceback]


# -- plans that do not fit into one call


def apply_host_op(monkeypatch: pytest.MonkeyPatch, kernel: Any, value: Tensor) -> Tensor:
    """An op of this test alone that runs on the host: a string or a number to a float."""
    row = op_def.define(
        "TestHost",
        kernel,
        infer=lambda inputs, attrs: [Spec(float32, inputs[0].shape)],
        gradient=None,
        where="host",
    )
    monkeypatch.setitem(table._REGISTRY, "TestHost", row)
    with value.graph.as_default():
        op = registry.apply("TestHost", (value,), {}, "TestHost")
    output: Tensor = op.outputs[0]
    return output


def summing_graph(data: Dataset, host: Callable[[Tensor], Tensor]) -> tuple[Session, LocalStepLoop]:
    graph = Graph()
    with graph.as_default():
        element = make_one_shot_iterator(data).get_next()
        value = tf.reduce_sum(host(element))
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        added = tf.assign_add(total, value)
        start, read = tf.global_variables_initializer(), total._as_graph_element()
    session = Session(graph=graph)
    session.run(start)
    return session, make_loop(session, [value], [added.op], [read])


def test_host_work_on_elements_runs_per_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lengths(words: Any) -> Any:
        return np.vectorize(len, otypes=[np.float32])(words)

    data = Dataset.from_tensor_slices(["a", "bcd", "", "ef", "ghijk"]).batch(2)
    session, loop = summing_graph(data, lambda x: apply_host_op(monkeypatch, lengths, x))
    assert loop.one_call
    first = loop.run(2)
    np.testing.assert_array_equal(first.every[0], [4, 2])
    np.testing.assert_array_equal(first.after[0], 6)
    last = loop.run(5)
    assert (last.count, last.ended) == (1, True)
    np.testing.assert_array_equal(last.after[0], 11)
    with pytest.raises(OutOfRangeError):
        loop.run(1)
    session.close()


def test_host_work_on_numbers_runs_one_step_per_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def doubled(value: Any) -> Any:
        calls.append(value)
        return np.asarray(value * 2, np.float32)

    session, loop = summing_graph(
        numbers(6, 2), lambda x: apply_host_op(monkeypatch, doubled, x * 1.0)
    )
    assert not loop.one_call
    np.testing.assert_array_equal(loop.run(10).every[0], [6, 14, 22])
    assert len(calls) == 3
    session.close()


def test_host_error_names_op(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(value: Any) -> Any:
        raise ValueError("not today")

    session, loop = summing_graph(numbers(6, 2), lambda x: apply_host_op(monkeypatch, refuse, x))
    with pytest.raises(InvalidArgumentError, match=r"(?s)TestHost.*not today.*test_local_loop\.py"):
        loop.run(1)
    session.close()


def test_steps_without_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("estimatorkit.runtime.steps.compiled_loop.STEPS_WITHOUT_INPUT", 8)
    graph = Graph()
    graph.seed = 3
    with graph.as_default():
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        added = tf.assign_add(total, tf.random_uniform([]))
        start = tf.global_variables_initializer()
    results = []
    for parts in ([20], [1] * 20, [7, 13]):
        session = Session(graph=graph)
        session.run(start)
        loop = make_loop(session, [added], [])
        results.append(np.concatenate([loop.run(part).every[0] for part in parts]))
        assert session.state.compilations["step"] == 1
        session.close()
    assert len(set(np.diff(results[0]).tolist())) == 19
    for other in results[1:]:
        assert other.tobytes() == results[0].tobytes()


def test_fetch_elements_constants_and_duplicates() -> None:
    graph = Graph()
    with graph.as_default():
        element = make_one_shot_iterator(numbers(6, 2)).get_next()
        twice, seven = element * 2.0, tf.constant(7)
    session = Session(graph=graph)
    loop = make_loop(session, [element, twice, seven, twice], [], [seven])
    done = loop.run(3)
    np.testing.assert_array_equal(done.every[0], [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(done.every[1], done.every[0] * 2)
    np.testing.assert_array_equal(done.every[2], [7, 7, 7])
    np.testing.assert_array_equal(done.every[3], done.every[1])
    np.testing.assert_array_equal(done.after[0], 7)
    session.close()


def test_large_constants_are_arguments() -> None:
    """XLA would fold and copy them: they are inputs of the executable, in both ways to run."""
    table = np.random.default_rng(0).normal(size=(100, 64)).astype(np.float32)
    graph = Graph()
    with graph.as_default():
        element = make_one_shot_iterator(numbers(6, 2)).get_next()
        rows = tf.gather(tf.constant(table), tf.cast(element, tf.int32))
        value = tf.reduce_sum(rows)
    session = Session(graph=graph)
    loop = make_loop(session, [value], [])
    assert loop.one_call
    assert [tensor.op.type for tensor in loop.plan.segments[-1].inputs].count("Const") == 1
    expected = [table[[i, i + 1]].sum() for i in (1, 3, 5)]
    np.testing.assert_allclose(loop.run(3).every[0], expected, rtol=1e-5)
    session.close()


def test_shape_from_input_values() -> None:
    """XLA must know it to compile, so the loop falls back to single steps."""
    graph = Graph()
    with graph.as_default():
        element = make_one_shot_iterator(Dataset.range(1, 4)).get_next()
        value = tf.reduce_sum(tf.ones(tf.reshape(element, [1])))
    session = Session(graph=graph)
    loop = make_loop(session, [value], [])
    assert not loop.one_call
    np.testing.assert_array_equal(loop.run(9).every[0], [1, 2, 3])
    session.close()


def test_wide_numbers_stay_wide() -> None:
    graph = Graph()
    big = 2**40
    with graph.as_default():
        element = make_one_shot_iterator(Dataset.range(3)).get_next()
        total = tf.get_variable(
            "total", [], dtype=tf.int64, initializer=tf.constant_initializer(big)
        )
        added = tf.assign_add(total, element)
        half = tf.cast(element, tf.float64) / 3.0
        start = tf.global_variables_initializer()
    session = Session(graph=graph)
    session.run(start)
    done = make_loop(session, [added, half], []).run(3)
    np.testing.assert_array_equal(done.every[0], [big, big + 1, big + 3])
    assert done.every[0].dtype == np.int64
    np.testing.assert_array_equal(done.every[1], np.arange(3) / 3.0)
    assert done.every[1].dtype == np.float64
    session.close()


def test_uninitialized_variable_is_named() -> None:
    graph = Graph()
    with graph.as_default():
        total = tf.get_variable("total", [])
        added = tf.assign_add(total, 1.0)
    session = Session(graph=graph)
    with pytest.raises(FailedPreconditionError, match="uninitialized value total"):
        make_loop(session, [added], []).run(1)
    session.close()


# -- step checks and the length of calls


class TestChecks:
    @pytest.fixture
    def checked(self) -> Iterator[tuple[CheckedLoop, Session, list[int]]]:
        """A loop over 1, 2, 3, ... whose check refuses 5; and how many values each call checked."""
        graph = Graph()
        seen: list[int] = []

        def check(values: list[NDArray[Any]]) -> None:
            (largest,) = values
            seen.append(len(largest))
            if (largest >= 5).any():
                raise InvalidArgumentError(None, None, f"{largest.max():g} is too large")

        with graph.as_default():
            element = make_one_shot_iterator(numbers(1000, 1)).get_next()
            largest = tf.reduce_max(element)
            add_step_check([largest], check)
            total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
            added = tf.assign_add(total, largest)
            start = tf.global_variables_initializer()
        session = Session(graph=graph)
        session.run(start)
        yield CheckedLoop(session, [largest], [added.op], [], "step"), session, seen
        session.close()

    def test_sees_every_step_and_raises(self, checked: Any) -> None:
        loop, _, seen = checked
        done = loop.run(4)
        assert len(done.every) == 1
        with pytest.raises(InvalidArgumentError, match="too large"):
            [loop.run(1000) for _ in range(5)]
        assert seen[0] == done.count
        assert sum(seen) >= 5

    def test_first_call_is_one_step(self, checked: Any) -> None:
        """It compiles, so that nothing is known yet about how long a step takes."""
        loop, _, seen = checked
        assert loop.run(sys.maxsize).count == 1
        assert seen == [1]

    def test_calls_grow_to_target_duration(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A clock that gives a step 1 ms: calls of 0.2 s are 200 steps."""
        now = [0.0]
        monkeypatch.setattr("estimatorkit.train.training.time.perf_counter", lambda: now[0])
        graph = Graph()
        with graph.as_default():
            total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
            added = tf.assign_add(total, 1.0)
            start = tf.global_variables_initializer()
        session = Session(graph=graph)
        session.run(start)
        loop = CheckedLoop(session, [added], [], [], "step")
        run = loop.loop.run

        def timed(steps: int, until: float) -> Any:
            now[0] += steps / 1000
            return run(steps, until)

        monkeypatch.setattr(loop.loop, "run", timed)
        counts = [loop.run(10_000).count for _ in range(5)]
        assert counts[0] == 1
        assert counts[-1] in (199, 200)
        assert counts == sorted(counts)
        session.close()


def test_element_shapes_may_differ(counting: Any) -> None:
    """Each shape is one compilation, as a short last batch is."""
    lengths = [3, 3, 5, 3, 5, 5]

    def generator() -> Iterator[NDArray[Any]]:
        for length in lengths:
            yield np.ones(length, np.float32)

    data = Dataset.from_generator(generator, tf.float32, TensorShape([None]))
    session, loop = counting(data)
    np.testing.assert_array_equal(loop.run(10).every[0], lengths)
    assert session.state.compilations["step"] <= 3


@pytest.mark.slow
def test_words_become_ids_per_block() -> None:
    """Lookups, crosses and rows of several lengths: one call for many steps, few compilations."""
    words = ["a", "b", "c", "a", "x", "b", "c", "c"] * 6
    ages = np.arange(48, dtype=np.float32)
    lists = tf.SparseTensorValue(
        [[row, place] for row in range(48) for place in range(row % 4)],
        [words[(row + place) % 48] for row in range(48) for place in range(row % 4)],
        [48, 3],
    )
    graph = Graph()
    with graph.as_default():
        data = Dataset.from_tensor_slices({"w": words, "age": ages, "many": lists})
        features = make_one_shot_iterator(data.batch(4).repeat(3)).get_next()
        column = tf.feature_column
        w = column.categorical_column_with_vocabulary_list("w", ["a", "b", "c"])
        many = column.categorical_column_with_hash_bucket("many", 20)
        age = column.bucketized_column(column.numeric_column("age"), [10.0, 30.0])
        crossed = column.crossed_column(["w", age], 50)
        sums = column.linear_model(features, [w, many, age, crossed], units=1)
        loss = tf.reduce_mean(tf.square(sums - 1.0))
        step = tf.train.FtrlOptimizer(0.5).minimize(loss)
        names = [variable.op.name for variable in tf.global_variables()]
        init = [tf.global_variables_initializer(), tf.tables_initializer()]
    sessions = []
    for one_call in (True, False):
        session = Session(graph=graph)
        session.run(init)
        sessions.append(session)
        loop = make_loop(session, [loss], [step])
        assert loop.one_call
        if one_call:
            done = loop.run(20).every[0], loop.run(100).every[0]
            found = np.concatenate(done)
            assert session.state.compilations["step"] <= 3
        else:
            expected = np.array([session.run([loss, step])[0] for _ in range(36)])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found[-1] < 0.2 * found[0]
    for name in names:
        values = [np.asarray(session.state.values[name]) for session in sessions]
        np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-6)


def test_stateful_host_work_is_not_done_ahead() -> None:
    seen = []

    def note(value: Any) -> Any:
        seen.append(int(value[0]))
        return np.float32(value.sum())

    graph = Graph()
    with graph.as_default():
        element = make_one_shot_iterator(Dataset.range(6).batch(2)).get_next()
        value = tf.py_func(note, [element], tf.float32)
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        added = tf.assign_add(total, value)
        session = Session(graph=graph)
        session.run(tf.global_variables_initializer())
        loop = make_loop(session, [value], [added.op])
    assert not loop.one_call
    loop.run(1)
    assert seen == [0]
