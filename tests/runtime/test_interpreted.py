"""Values of interpreted runs: nothing that is fed or fetched shares memory with variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime.executor import CompiledSegment
from estimatorkit.runtime.xla import compiler_thread
from tests.runtime.executor_programs import (
    EXECUTORS,
    INTERPRETED_RUNS,
    change_soon,
    config,
    never,
)
from tests.threads import run_together

RUNS = INTERPRETED_RUNS + 2
"""Of which XLA has the last ones, with `auto`."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` changes to XLA after a few runs."""
    change_soon(monkeypatch)


@pytest.fixture(params=EXECUTORS)
def session(request: pytest.FixtureRequest) -> Iterator[tf.Session]:
    """A session of each executor."""
    with tf.Graph().as_default(), tf.Session(config=config(request.param)) as opened:
        yield opened


def given(run: int) -> Any:
    """An array that is not changed by conversion."""
    return np.arange(6, dtype=np.float32).reshape(3, 2) + run


def passed_in_loop(x: Any) -> Any:
    return tf.while_loop(lambda at, y: at < 1, lambda at, y: (at + 1, y), (0, x))[1]


def written_in_loop(x: Any) -> Any:
    rows = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(x)

    def body(at: Any, rows: Any) -> Any:
        return at + 1, rows.write(at, rows.read(at) * 1.0)

    return tf.while_loop(lambda at, _: at < 3, body, (0, rows))[1].stack()


SAME: dict[str, Callable[[Any], Any]] = {
    "identity": tf.identity,
    "reshape": lambda x: tf.reshape(tf.reshape(x, [6]), [3, 2]),
    "slice": lambda x: x[:, :],
    "transpose": lambda x: tf.transpose(tf.transpose(x)),
    "cond": lambda x: tf.cond(x[0, 0] > -1.0, lambda: x, lambda: x + 1.0),
    "loop": passed_in_loop,
    "array": written_in_loop,
}
"""Functions of an array that give it, or a view of it, back."""


@pytest.mark.parametrize("name", SAME)
def test_feeds_are_not_aliased(name: str, session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [3, 2])
    v = tf.get_variable("v", [3, 2])
    same = SAME[name](x)
    both = [same, tf.assign(v, same)]
    for run in range(RUNS):
        fed = given(run)
        fetched = session.run(both, {x: fed})
        np.testing.assert_array_equal(fed, given(run))
        fed[:] = -1.0
        for each in (*fetched, session.run(v)):
            np.testing.assert_array_equal(each, given(run))
            each[:] = -2.0
        np.testing.assert_array_equal(fed, -np.ones([3, 2]))
        np.testing.assert_array_equal(session.run(v), given(run))


def test_loops_do_not_write_to_feeds_and_variables(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [3, 2])
    v = tf.get_variable("v", initializer=given(0))
    changed = []
    for rows in (x, v.read_value()):
        start = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(rows)
        loop = tf.while_loop(
            lambda at, _: at < 3,
            lambda at, rows: (at + 1, rows.write(at, rows.read(at) * 10.0)),
            (0, start),
        )
        changed.append(loop[1].stack())
    session.run(v.initializer)
    for run in range(RUNS):
        fed = given(run)
        ours, theirs = session.run(changed, {x: fed})
        np.testing.assert_array_equal(ours, 10.0 * given(run))
        np.testing.assert_array_equal(theirs, 10.0 * given(0))
        np.testing.assert_array_equal(fed, given(run))
        np.testing.assert_array_equal(session.run(v), given(0))


def test_variables_assigned_from_each_other_stay_apart(session: tf.Session) -> None:
    one = tf.get_variable("one", initializer=given(0))
    two = tf.get_variable("two", initializer=given(1))
    copy = tf.assign(two, one)
    more = tf.scatter_add(one, [0, 2, 0], tf.ones([3, 2]))
    session.run(tf.global_variables_initializer())
    expected = given(0)
    for _ in range(RUNS):
        session.run(copy.op)
        session.run(more.op)
        before = expected.copy()
        np.add.at(expected, [0, 2, 0], 1.0)
        np.testing.assert_array_equal(session.run(one), expected)
        np.testing.assert_array_equal(session.run(two), before)


def test_values_of_a_step_are_of_their_moment(session: tf.Session) -> None:
    """A variable that is read, passes the host, and is changed: in several segments."""
    v = tf.get_variable("v", initializer=given(0))
    before = tf.identity(v.read_value())
    with tf.control_dependencies([before]):
        one = tf.py_func(lambda: np.float32(1.0), [], tf.float32)
    with tf.control_dependencies([one]):
        after = tf.assign_add(v, tf.fill([3, 2], one))
    session.run(v.initializer)
    for run in range(RUNS):
        found = session.run([before, after])
        np.testing.assert_array_equal(found[0], given(run))
        np.testing.assert_array_equal(found[1], given(run + 1))


# -- variables between NumPy and XLA


def test_variables_of_unknown_shape_grow(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None])
    v = tf.Variable([1.0], validate_shape=False, name="v")
    longer = tf.assign(v, tf.concat([v, x], 0), validate_shape=False)
    total = tf.reduce_sum(v.read_value() * 2.0)
    session.run(v.initializer)
    expected = [1.0]
    for run in range(RUNS):
        session.run(longer.op, {x: [run, run]})
        expected += [run, run]
        assert session.run(v).tolist() == expected
        assert session.run(total) == 2 * sum(expected)


def alternating(target: str, graph: tf.Graph) -> Iterator[tf.Session]:
    """Sessions of one target that interpret, and that compile, in turn."""
    with (
        tf.Session(target, graph, config("interpret")) as ours,
        tf.Session(target, graph, config("xla")) as theirs,
    ):
        for _ in range(3):
            yield ours
            yield theirs


def test_variables_go_between_numpy_and_xla() -> None:
    with tf.Graph().as_default() as graph:
        v = tf.get_variable("v", initializer=given(0))
        whole = tf.get_variable("whole", initializer=np.arange(3, dtype=np.int64) << 40)
        half = tf.get_variable("half", initializer=tf.constant([1.0, 2.0], tf.bfloat16))
        step = [tf.assign_add(v, tf.ones([3, 2])), tf.assign_add(whole, whole)]
        step += [tf.assign(half, half * 2.0), tf.scatter_add(v, [1], [[1.0, 2.0]])]
        initial = tf.global_variables_initializer()
    target = tf.train.Server.create_local_server().target
    with tf.Session(target, graph) as session:
        session.run(initial)
        snapshots = [session.run([v, whole, half])]
        for each in alternating(target, graph):
            each.run([one.op for one in step])
            snapshots.append(session.run([v, whole, half]))
    for run, (dense, integers, small) in enumerate(snapshots):
        expected = given(run)
        expected[1] += [run, 2 * run]
        np.testing.assert_array_equal(dense, expected)
        assert integers.tolist() == [0, 1 << 40 + run, 2 << 40 + run]
        assert small.astype(np.float32).tolist() == [1.0 * 2**run, 2.0 * 2**run]


def test_donated_variables_are_copies() -> None:
    with tf.Graph().as_default() as graph:
        ones = [tf.get_variable(f"one{at}", initializer=given(at)) for at in range(16)]
        twos = [tf.get_variable(f"two{at}", initializer=given(at)) for at in range(16)]
        copy = [tf.assign(two, one).op for one, two in zip(ones, twos, strict=True)]
        more = [tf.assign_add(one, tf.ones([3, 2])).op for one in ones]
        initial = tf.global_variables_initializer()
    target = tf.train.Server.create_local_server().target
    with (
        tf.Session(target, graph, config("interpret")) as ours,
        tf.Session(target, graph, config("xla")) as theirs,
    ):
        ours.run(initial)
        for run in range(3):
            ours.run(copy)
            theirs.run(more)
            for at, (one, two) in enumerate(zip(*ours.run([ones, twos]), strict=True)):
                np.testing.assert_array_equal(two, given(at + run))
                np.testing.assert_array_equal(one, given(at + run + 1))


def test_variables_go_to_the_device_once() -> None:
    with tf.Graph().as_default() as graph:
        v = tf.get_variable("v", initializer=given(0))
        more, total = tf.assign_add(v, tf.ones([3, 2])), tf.reduce_sum(v * 2.0)
    target = tf.train.Server.create_local_server().target
    with (
        tf.Session(target, graph, config("interpret")) as ours,
        tf.Session(target, graph, config("xla")) as theirs,
    ):
        ours.run(v.initializer)
        ours.run(more.op)
        assert theirs.run(total) == 42.0
        there = theirs.state.values["v"]
        assert isinstance(there, jax.Array)
        assert ours.run(total) == theirs.run(total) == 42.0
        assert theirs.state.values["v"] is there


@pytest.mark.parametrize("first", EXECUTORS)
def test_checkpoints_are_of_any_executor(first: str, tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        v = tf.get_variable("v", initializer=given(0))
        noise = tf.random_uniform([2], seed=4)
        step = [tf.assign_add(v, v), noise]
        initial, saver = tf.global_variables_initializer(), tf.train.Saver()
    with tf.Session(graph=graph, config=config(first)) as session:
        session.run(initial)
        for _ in range(2):
            session.run(step)
        path = saver.save(session, str(tmp_path / "model"))
        session.run(step)
    for executor in EXECUTORS:
        with tf.Session(graph=graph, config=config(executor)) as session:
            saver.restore(session, path)
            np.testing.assert_array_equal(session.run(v), 4 * given(0))
            np.testing.assert_array_equal(session.run(step)[0], 8 * given(0))


# -- threads


@pytest.mark.parametrize("lengths", [(2, 2, 2, 2), (2, 3, 4, 5)], ids=["same", "different"])
def test_threads_run_at_once(lengths: tuple[int, ...]) -> None:
    with tf.Graph().as_default(), tf.Session(config=config("auto")) as session:
        x = tf.placeholder(tf.float32, [None])
        count = tf.get_variable("count", initializer=np.int64(0))
        rows = tf.get_variable("rows", initializer=tf.zeros([4]))
        total = tf.reduce_sum(x * 2.0)
        step = [total, tf.assign_add(count, 1), tf.scatter_add(rows, [0, 2], [1.0, 2.0])]
        session.run(tf.global_variables_initializer())
        session.state.compilations.clear()
        seen: list[int] = []

        def work(length: int) -> Callable[[], None]:
            def run() -> None:
                for value in range(8):
                    found, counted, _ = session.run(step, {x: np.full(length, value)})
                    assert found == 2 * length * value
                    seen.append(int(counted))

            return run

        run_together([work(length) for length in lengths])
        assert sorted(seen) == list(range(1, 33))
        assert session.run(rows).tolist() == [32.0, 0.0, 64.0, 0.0]
        compiled = session.state.compilations
        assert set(compiled.values()) == {len(set(lengths))}


# -- errors of the compiler


@pytest.mark.parametrize("submit", [compiler_thread.submit, never])
def test_the_run_that_wants_an_executable_raises_its_error(
    submit: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("the compiler has failed")

    with tf.Graph().as_default(), tf.Session(config=config("auto")) as session:
        x = tf.placeholder(tf.float32, [2])
        y = x + 1.0
        monkeypatch.setattr(compiler_thread, "submit", submit)
        monkeypatch.setattr(CompiledSegment, "_compile_ahead", fail)
        for _ in range(INTERPRETED_RUNS):
            assert session.run(y, {x: [1.0, 2.0]}).tolist() == [2.0, 3.0]
        for _ in range(2):
            with pytest.raises(RuntimeError, match="the compiler has failed"):
                session.run(y, {x: [1.0, 2.0]})


@pytest.mark.parametrize(("executor", "first", "second"), [("auto", 0, 1), ("interpret", 0, 0)])
def test_few_runs_are_compiled_late_and_without_thread(
    executor: str, first: int, second: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run takes a share of the compilation's time here: the second one compiles itself."""
    monkeypatch.setattr(compiler_thread, "submit", never)
    with tf.Graph().as_default(), tf.Session(config=config(executor)) as session:
        x = tf.placeholder(tf.float32, [None, 2])
        y = tf.tanh(x)
        session.state.is_brief = True
        values = [session.run(y, {x: given(0)})]
        assert sum(session.state.compilations.values()) == first
        values.append(session.run(y, {x: given(0)}))
        assert sum(session.state.compilations.values()) == second
    np.testing.assert_allclose(values[0], values[1], atol=1e-6)
