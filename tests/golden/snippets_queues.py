"""Queues, their runners and sessions, as functions of the module used as `tf`.

`SNIPPETS`: each gives facts that JSON can hold. `ERRORS`: each fails.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def _run(tf: Any, *fetches: Any) -> list[Any]:
    with tf.Session() as session:
        return [session.run(each) for each in fetches]


def _runner(tf: Any) -> Any:
    """A runner with two threads, of a queue below a scope."""
    with tf.name_scope("inner"):
        queue = tf.FIFOQueue(10, tf.float32, [()], name="Queue")
        ended = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
        runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)] * 2, None, None, ended)
    tf.train.add_queue_runner(runner)
    return queue, runner


def runner_proto(tf: Any) -> Any:
    """What a `QueueRunnerDef` says, and what it makes."""
    _, runner = _runner(tf)
    proto = runner.to_proto()
    again = tf.train.QueueRunner.from_proto(proto)
    return [
        proto.SerializeToString().hex(),
        runner.to_proto("inner").SerializeToString().hex(),
        runner.to_proto("other") is None,
        [again.name, again.queue.name, again.close_op.name, again.cancel_op.name],
        [op.name for op in again.enqueue_ops],
        [each.__name__ for each in again.queue_closed_exception_types],
    ]


def runner_in_meta_graph(tf: Any) -> Any:
    """Runners that come out of a `MetaGraphDef` and run."""
    queue, _ = _runner(tf)
    queue.dequeue(name="taken")
    meta_graph = tf.train.export_meta_graph()
    found: list[Any] = [meta_graph.collection_def["queue_runners"].bytes_list.value[0].hex()]
    for scope in ("", "outer/"):
        with tf.Graph().as_default() as graph:
            tf.train.import_meta_graph(meta_graph, import_scope=scope.rstrip("/") or None)
            found.append([each.name for each in graph.get_collection("queue_runners")])
            with tf.Session() as session:
                coord = tf.train.Coordinator()
                threads = tf.train.start_queue_runners(session, coord)
                found.append([float(session.run(f"{scope}taken:0")) for _ in range(3)])
                coord.request_stop()
                coord.join(threads)
    return found


def sparse_batches(tf: Any) -> Any:
    """Batches of sparse tensors whose rank is not known when the graph is built."""
    found = []
    for many in (False, True):
        with tf.Graph().as_default():
            places = tf.placeholder_with_default(tf.constant([[0, 0], [1, 2]], tf.int64), None)
            shape = tf.placeholder_with_default(tf.constant([2, 3], tf.int64), None)
            sparse = tf.SparseTensor(places, tf.constant([5, 6]), shape)
            batch = tf.train.batch([sparse], 2, enqueue_many=many)
            with tf.Session() as session:
                coord = tf.train.Coordinator()
                threads = tf.train.start_queue_runners(session, coord)
                value = session.run(batch)
                coord.request_stop()
                coord.join(threads)
            found.append([part.tolist() for part in value])
    return found


def shared_queue(tf: Any) -> Any:
    """Two handles of one queue; seeds that follow from its name."""
    tf.set_random_seed(1)
    one, other = (
        tf.RandomShuffleQueue(3, 0, tf.float32, [()], shared_name="shared") for _ in range(2)
    )
    return [float(each or 0) for each in _run(tf, one.enqueue(3.0), other.dequeue(), one.size())]


class _StopsAfter:
    """Makes a hook behind which a thread tells the coordinator of an error after some runs."""

    def __new__(cls, tf: Any, runs: int, error: Exception) -> Any:
        reached, told = threading.Event(), threading.Event()

        class Hook(tf.train.SessionRunHook):  # type: ignore[misc]
            left = runs

            def after_create_session(self, session: Any, coord: Any) -> None:
                def tell() -> None:
                    reached.wait()
                    with coord.stop_on_exception():
                        raise error
                    told.set()

                if not reached.is_set():
                    threading.Thread(target=tell, daemon=True).start()

            def after_run(self, run_context: Any, run_values: Any) -> None:
                self.left -= 1
                if self.left == 0:
                    reached.set()
                    told.wait()

        return Hook()


def _recovery(tf: Any, error: Exception, asks: bool) -> Any:
    """Runs around an error that the coordinator holds."""
    value = tf.constant(7) + 0
    made = []

    class Creator(tf.train.ChiefSessionCreator):  # type: ignore[misc]
        def create_session(self) -> Any:
            made.append(1)
            return super().create_session()

    session = tf.train.MonitoredSession(Creator(), [_StopsAfter(tf, 2, error)])
    found: list[Any] = [int(session.run(value)), session.should_stop(), int(session.run(value))]
    if asks:
        found += [session.should_stop(), len(made)]
    found += [int(session.run(value)), len(made)]
    try:
        session.close()
    except Exception as raised:
        found.append(type(raised).__name__)
    return found


def lost_task_in_coordinator(tf: Any) -> Any:
    """A new session is made when somebody asks whether to stop."""
    return _recovery(tf, tf.errors.AbortedError(None, None, "lost"), asks=True)


def lost_task_in_coordinator_unasked(tf: Any) -> Any:
    """Nobody asks."""
    return _recovery(tf, tf.errors.AbortedError(None, None, "lost"), asks=False)


def error_in_coordinator(tf: Any) -> Any:
    """The session asks for the end, and closing raises the error."""
    return _recovery(tf, tf.errors.UnknownError(None, None, "fatal"), asks=True)


def unfilled_table(tf: Any) -> Any:
    """The size of a table before it is filled, and after."""
    filling = tf.lookup.KeyValueTensorInitializer(["a"], [1])
    table = tf.lookup.StaticHashTable(filling, -1)
    before, _, after = _run(tf, table.size(), table.initializer, table.size())
    return [int(before), int(after)]


def sparse_accumulators(tf: Any) -> Any:
    """Accumulators whose shape says nothing, or all but the number of rows."""
    found: list[Any] = []
    for shape in ((), [], None, [None, 2], [3, 2]):
        accumulator = tf.SparseConditionalAccumulator(tf.float32, shape=shape)
        apply = accumulator.apply_grad(tf.constant([1], tf.int64), tf.constant([[1.0, 2.0]]))
        found += map(int, _run(tf, accumulator.num_accumulated()))
        with tf.Session() as session:
            session.run(apply)
            indices, values, dense = session.run(accumulator.take_grad(1))
            found.append([indices.tolist(), values.tolist(), dense.tolist()])
    return found


SNIPPETS: dict[str, Callable[[Any], Any]] = {
    each.__name__: each
    for each in (
        *(runner_proto, runner_in_meta_graph, sparse_batches, shared_queue),
        *(lost_task_in_coordinator, lost_task_in_coordinator_unasked, error_in_coordinator),
        *(unfilled_table, sparse_accumulators),
    )
}


def _sizes(tf: Any, one: Any, other: Any) -> Any:
    return _run(tf, one.size(), other.size())


def _fifo(tf: Any, capacity: int = 2, dtypes: Any = None, shapes: Any = None) -> Any:
    return tf.FIFOQueue(capacity, dtypes or tf.float32, shapes, shared_name="x")


def _chosen(tf: Any, index: int) -> Any:
    queues = [tf.FIFOQueue(1, tf.float32), tf.FIFOQueue(1, tf.float32)]
    return _run(tf, tf.QueueBase.from_list(index, queues).enqueue(1.0))


def _fed(tf: Any, make: Callable[[Any], Any], value: Any) -> Any:
    fed = tf.placeholder(tf.float32)
    with tf.Session() as session:
        return session.run(make(fed), {fed: value})


def _partial(tf: Any, *parts: Any) -> Any:
    """A run in parts: each names what is fetched and what is fed."""
    a, b, c = (tf.placeholder(tf.float32, []) for _ in range(3))
    one = a + b
    two = one * b
    named = {"a": a, "b": b, "c": c, "one": one, "two": two}
    with tf.Session() as session:
        handle = session.partial_run_setup([one, two], [a, b])
        for fetches, feeds in parts:
            wanted = [named.get(each, one) if each else c * 2 for each in fetches]
            session.partial_run(handle, wanted, {named[each]: 1.0 for each in feeds})


def _timed(tf: Any, run: Callable[[Any, Any], Any]) -> Any:
    taken = tf.FIFOQueue(1, tf.float32).dequeue()
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=20)) as session:
        return run(session, taken)


ERRORS: dict[str, Callable[[Any], Any]] = {
    "shared capacity": lambda tf: _sizes(tf, _fifo(tf), _fifo(tf, 3)),
    "shared dtypes": lambda tf: _sizes(tf, _fifo(tf), _fifo(tf, 2, tf.int32)),
    "shared shapes": lambda tf: _sizes(tf, _fifo(tf), _fifo(tf, 2, None, [(1,)])),
    "shared components": lambda tf: _sizes(tf, _fifo(tf), _fifo(tf, 2, [tf.float32] * 2)),
    "shared kind": lambda tf: _sizes(
        tf, _fifo(tf), tf.RandomShuffleQueue(2, 0, tf.float32, shared_name="x")
    ),
    "shared seeds": lambda tf: _sizes(
        tf,
        *(tf.RandomShuffleQueue(2, 0, tf.float32, seed=n, shared_name="x") for n in (1, 2)),
    ),
    "no components": lambda tf: tf.FIFOQueue(1, []),
    "names of another kind": lambda tf: tf.FIFOQueue(1, [tf.float32] * 2, names=3),
    "index too large": lambda tf: _chosen(tf, 5),
    "index negative": lambda tf: _chosen(tf, -1),
    "no list of queues": lambda tf: tf.QueueBase.from_list(0, 3),
    "negative count": lambda tf: tf.FIFOQueue(1, tf.float32, [()]).dequeue_many(-1),
    "shape of an element": lambda tf: _fed(
        tf, lambda fed: tf.FIFOQueue(1, tf.float32, [(2,)]).enqueue(fed), [1.0]
    ),
    "shape of elements": lambda tf: _fed(
        tf, lambda fed: tf.FIFOQueue(5, tf.float32, [(2,)]).enqueue_many(fed), [1.0, 2.0]
    ),
    "lengths of components": lambda tf: _fed(
        tf,
        lambda fed: tf.FIFOQueue(5, [tf.float32] * 2).enqueue_many([fed, [1.0, 2.0]]),
        [1.0],
    ),
    "accumulator of strings": lambda tf: tf.ConditionalAccumulator(tf.string, [2]),
    "runner of two kinds": lambda tf: tf.train.QueueRunner(
        _runner(tf)[0], [tf.no_op()], queue_runner_def=_runner(tf)[1].to_proto()
    ),
    "deadline of a session": lambda tf: _timed(tf, lambda session, taken: session.run(taken)),
    "deadline of a callable": lambda tf: _timed(
        tf, lambda session, taken: session.make_callable(taken)()
    ),
    "deadline of a Python function": lambda tf: _timed(
        tf, lambda session, taken: session.run(tf.py_func(_waits(), [], tf.float32))
    ),
    "feed not announced": lambda tf: _partial(tf, (["one"], ["a", "b", "c"])),
    "fetch not announced": lambda tf: _partial(tf, ([""], ["a", "b"])),
    "fed again": lambda tf: _partial(tf, (["one"], ["a", "b"]), (["two"], ["a"])),
    "fetched again": lambda tf: _partial(tf, (["one"], ["a", "b"]), (["one"], [])),
    "target of another kind": lambda tf: tf.Session(37),
    "graph of another kind": lambda tf: tf.Session(graph="x"),
    "config of another kind": lambda tf: tf.Session(config="x"),
    "fetch of None": lambda tf: _run(tf, [tf.constant(1), None]),
    "fetch of a set": lambda tf: _run(tf, {tf.constant(1)}),
    "feeds of another kind": lambda tf: tf.Session().run(tf.constant(1), [1]),
    "feed list of another kind": lambda tf: tf.Session().make_callable(tf.constant(1), 37),
    "stop that is no exception": lambda tf: tf.train.Coordinator().request_stop(3),
    "runners of no session": lambda tf: tf.train.start_queue_runners(3),
    "server of an unknown job": lambda tf: tf.train.Server({"w": ["localhost:0"]}, "x"),
    "server of two jobs": lambda tf: tf.train.Server({"v": ["localhost:0"], "w": ["localhost:0"]}),
    "server of two tasks": lambda tf: tf.train.Server({"w": ["localhost:0", "localhost:1"]}),
    "session entered twice": lambda tf: _enter_twice(tf.Session()),
    "session ended out of order": lambda tf: _out_of_order(tf),
}


def _waits() -> Callable[[], Any]:
    """A function that takes longer than a deadline of 20 ms, however slow the machine is."""

    def wait() -> Any:
        time.sleep(0.2)
        return np.float32(1)

    return wait


def _enter_twice(session: Any) -> None:
    with session, session:
        pass


def _out_of_order(tf: Any) -> None:
    one, other = tf.Session().as_default(), tf.Session().as_default()
    one.__enter__()
    other.__enter__()
    try:
        one.__exit__(None, None, None)
    finally:
        other.__exit__(None, None, None)


def fail(tf: Any, name: str) -> Any:
    """Runs one of `ERRORS` in a graph of its own."""
    with tf.Graph().as_default():
        tf.constant(0)  # a session of an empty graph fails otherwise
        return ERRORS[name](tf)
