"""Common idioms of public TensorFlow 1 programs, as short programs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.storage.retention import CheckpointRotation


def compilations(session: tf.Session) -> int:
    return sum(session.state.compilations.values())


def run_program(text: str) -> subprocess.CompletedProcess[str]:
    path = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_strided_slice_with_computed_bounds() -> None:
    data = np.arange(60).reshape(3, 20)
    with tf.Graph().as_default(), tf.Session() as session:
        at = tf.placeholder(tf.int32, [])
        text = tf.constant(data)
        part = tf.strided_slice(text, [0, at * 5], [3, (at + 1) * 5])
        row = tf.strided_slice(text, [at, at], [at + 1, at + 4], shrink_axis_mask=1)
        corner = tf.strided_slice(text, tf.stack([at, 0]), tf.stack([at + 1, 2]), [1, 1])
        assert part.shape.as_list() == [3, None]
        parts, rows, corners = session.run([part, row, corner], {at: 2})
    np.testing.assert_array_equal(parts, data[:, 10:15])
    np.testing.assert_array_equal(rows, data[2, 2:6])
    np.testing.assert_array_equal(corners, data[2:3, :2])


@pytest.mark.usefixtures("compiled")
def test_moving_window_compiles_once_per_length() -> None:
    data = np.arange(44, dtype=np.float32).reshape(22, 2)
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.placeholder(tf.int32, [])
        table = tf.Variable(data)
        batch = table[step * 5 : (step + 1) * 5]
        total = tf.reduce_sum(tf.square(batch))
        gradient = tf.gradients(total, [table])[0]
        session.run(tf.global_variables_initializer())
        before = compilations(session)
        for at in range(-1, 6):
            sums, slope = session.run([total, gradient], {step: at})
            cut = data[at * 5 : (at + 1) * 5]
            assert sums == np.sum(cut**2)
            expected = np.zeros_like(data)
            expected[at * 5 : (at + 1) * 5] = 2 * cut
            np.testing.assert_array_equal(slope, expected)
        # The bounds, and windows of 5, of 2 (the last rows) and of none.
        assert compilations(session) - before == 4


@pytest.mark.parametrize("shape", [[None, 4], [6, 4]])
def test_windows_with_mixed_indices(shape: list[int | None]) -> None:
    data = np.arange(24).reshape(6, 4)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int64, shape)
        i, j = tf.placeholder(tf.int64, []), tf.placeholder(tf.int32, [])
        parts = [
            x[i : i + 2, 1],
            x[..., j : j + 2],
            x[None, i : i + 3, ::-1],
            x[-i:-j],
            x[i : i + 4, j : j + 1],
            x[i:j:2],
        ]
        got = session.run(parts, {x: data, i: 3, j: 1})
    expected = [
        data[3:5, 1],
        data[..., 1:3],
        data[None, 3:6, ::-1],
        data[-3:-1],
        data[3:7, 1:2],
        data[3:1:2],
    ]
    for found, wanted in zip(got, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_static_bounds_need_no_extra_run() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
        half = tf.shape(y)[0] // 2
        middle = x[half : half + 2]
        assert len(session.plan(middle, [x, y]).segments) == 1
        assert session.run(middle, {x: range(8), y: range(6)}).tolist() == [3, 4]


def test_window_in_loop() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(np.arange(10.0))
        sums = tf.map_fn(lambda at: tf.reduce_sum(x[at : at + 3]), tf.range(8), tf.float64)
        assert session.run(sums).tolist() == [3 * at + 3 for at in range(8)]
        assert compilations(session) < 8


def test_feedable_and_fetchable() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        a = tf.add(2, 5)
        b = tf.multiply(a, 3)
        assert graph.is_feedable(a)
        assert session.run(b, {a: 15}) == 45
        graph.prevent_feeding(a)
        graph.prevent_fetching(b)
        assert (graph.is_feedable(a), graph.is_fetchable(b)) == (False, False)
        with pytest.raises(ValueError, match="may not be fed"):
            session.run(a, {a: 1})
        with pytest.raises(ValueError, match="not fetchable"):
            session.run(b)


@pytest.mark.slow
def test_threads_train_one_model_in_one_session() -> None:
    """As asynchronous reinforcement learning does; a run's results are another's to take over."""
    with tf.Graph().as_default(), tf.Session() as session:
        weight, counts = tf.Variable(tf.zeros([200, 200])), tf.Variable(tf.zeros([3]))
        x, worker = tf.placeholder(tf.float32, [200, 200]), tf.placeholder(tf.int32, [])
        pull = tf.assign_add(weight, tf.matmul(x, x))
        push = tf.group(pull, tf.scatter_add(counts, worker, 1.0))
        session.run(tf.global_variables_initializer())
        failures: list[Exception] = []

        def work(index: int) -> None:
            try:
                for _ in range(300):
                    session.run(push, {x: np.ones((200, 200)), worker: index})
                    session.run([weight, counts])
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert session.run(counts).tolist() == [300, 300, 300]
        assert session.run(weight)[0, 0] == 900 * 200


_DAEMON = """
import threading
import estimatorkit.compat.v1 as tf

started = threading.Event()
x = tf.random_normal([300, 300])
for _ in range({work}):
    x = tf.matmul(x, x) / 300
queue = tf.FIFOQueue({capacity}, [tf.float32], [[300, 300]])
fill, take = queue.enqueue(x), queue.dequeue()
session = tf.Session()
session.run(fill)

def work():
    while True:
        started.set()
        session.run(fill)

threading.Thread(target=work, daemon=True).start()
started.wait()
session.run(take)
print("end")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("work", "capacity"), [(400, 10000), (1, 2)])
def test_program_exits_while_daemon_threads_run(work: int, capacity: int) -> None:
    """Computing, and waiting for room: neither an abort nor a thread's traceback."""
    done = run_program(_DAEMON.format(work=work, capacity=capacity))
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


_FLAGS = """
import sys
import estimatorkit.compat.v1 as tf

sys.argv = ["program", "--rate=0.5"]
flags = tf.app.flags
flags.DEFINE_float(flag_name="rate", default_value=0.1, docstring="The learning rate.")
flags.DEFINE_string("name", "a", "Some name.")
FLAGS = flags.FLAGS
FLAGS.name = "b"
print(FLAGS.rate, FLAGS.name, "rate" in FLAGS, FLAGS.flag_values_dict()["rate"])

def main(arguments):
    print(FLAGS.rate, tf.flags.FLAGS.name, arguments)

tf.app.run(argv=[*sys.argv, "--rate=0.2", "rest"])
"""


def test_flags_are_parsed_on_first_read() -> None:
    done = run_program(_FLAGS)
    assert done.stdout == "0.5 b True 0.5\n0.2 b ['program', 'rest']\n", done.stderr


_UNKNOWN_FLAGS = """
import argparse, sys
import estimatorkit.compat.v1 as tf

tf.flags.DEFINE_integer("steps", 1, "Steps.")
FLAGS = None

def main(arguments):
    print(FLAGS.rate, tf.flags.FLAGS.steps, arguments[1:])

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.1)
sys.argv = ["program", "--rate=0.5", "--steps", "3", "--other=1", "rest"]
{read}
FLAGS, unparsed = parser.parse_known_args()
tf.app.run(main=main, argv=[sys.argv[0]] + unparsed)
"""


@pytest.mark.parametrize("read", ["", "print(tf.flags.FLAGS.steps)"])
def test_undefined_flags_are_left_to_program(read: str) -> None:
    done = run_program(_UNKNOWN_FLAGS.format(read=read))
    expected = "0.5 3 ['--other=1', 'rest']\n"
    assert done.stdout == ("3\n" if read else "") + expected, done.stderr


def test_invalid_flag_value_exits() -> None:
    program = _UNKNOWN_FLAGS.format(read="").replace('"3"', '"three"')
    done = run_program(program)
    assert done.returncode == 1
    assert "flag --steps=three: invalid literal" in done.stderr


def test_sparse_tensor_functions() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.sparse_placeholder(tf.float32)
        rows = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]), tf.constant([3, 1]))
        kept = [tf.cast(x, tf.int32), tf.to_int64(x), tf.abs(x), tf.square(x), tf.negative(x)]
        kept.append(tf.tuple([x, None])[0])
        sizes = [
            tf.shape(x),
            tf.size(x),
            tf.rank(x),
            tf.zeros_like(x),
            tf.clip_by_value(rows, 2.0, 3.0),
        ]
        fed = tf.SparseTensorValue([[0, 1], [1, 2]], [-1.5, 2.0], [2, 3])
        got, (shape, size, rank, zeros, same) = session.run([kept, sizes], {x: fed})
    values = [[-1, 2], [-1, 2], [1.5, 2], [2.25, 4], [1.5, -2], [-1.5, 2]]
    assert [each.values.tolist() for each in got] == values
    assert [each.values.dtype.name for each in got[:3]] == ["int32", "int64", "float32"]
    assert all(each.indices.tolist() == fed.indices for each in got)
    assert (shape.tolist(), size, rank) == ([2, 3], 6, 2)
    np.testing.assert_array_equal(zeros, np.zeros([2, 3]))
    assert (same.indices.tolist(), same.values.tolist()) == ([2], [[2]])


@pytest.mark.slow
def test_ctc_with_more_labels_does_not_recompile() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        logits = tf.constant(np.sin(np.arange(12 * 2 * 5)).reshape(12, 2, 5), tf.float32)
        labels = tf.sparse_placeholder(tf.int32)
        loss = tf.nn.ctc_loss(labels, logits, [12, 10])
        alone: list[float] = []
        compiled: set[int] = set()
        for count in range(2, 9):
            places = [[0, at] for at in range(count)] + [[1, 0]]
            values = [at % 4 for at in range(count)] + [3]
            alone.append(session.run(loss, {labels: (places, values, [2, count])})[1])
            compiled.add(compilations(session))
        assert len(compiled) == 1
    np.testing.assert_allclose(alone, alone[:1] * 7)


def test_sparse_products_in_any_order() -> None:
    places = np.array([[2, 0], [0, 1], [0, 0], [2, 3], [1, 1], [0, 1]])
    values, dense = np.arange(1.0, 7.0), np.arange(8.0).reshape(4, 2)
    whole = np.zeros([3, 4])
    np.add.at(whole, tuple(places.T), values)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.sparse_placeholder(tf.float64)
        product = tf.sparse_tensor_dense_matmul(x, dense)
        back = tf.sparse_tensor_dense_matmul(x, product, adjoint_a=True)
        for order in (np.arange(6), np.lexsort(places.T[::-1]), np.lexsort(places.T)):
            fed = (places[order], values[order], [3, 4])
            forth, again = session.run([product, back], {x: fed})
            np.testing.assert_allclose(forth, whole @ dense)
            np.testing.assert_allclose(again, whole.T @ whole @ dense)
        places[0, 1] = 4
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"k \(4\) from index\[0,1\]"):
            session.run(product, {x: (places, values, [3, 4])})


def test_freeze_graph_with_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        weight = tf.get_variable("weight", initializer=[[1.0], [2.0]])
        tf.matmul(x, weight, name="y")
        assert weight.op.values()[0] is weight.op.outputs[0]
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
        tf.train.write_graph(graph.as_graph_def(), str(tmp_path), "graph.pbtxt")
    frozen = tmp_path / "frozen.pb"
    for kind in ({"input_graph": tmp_path / "graph.pbtxt"}, {"input_meta_graph": f"{path}.meta"}):
        tf.python.tools.freeze_graph.freeze_graph(
            input_checkpoint=path, output_node_names="y", output_graph=frozen, **kind
        )
        with tf.Graph().as_default(), tf.Session() as session:
            graph_def = tf.GraphDef.FromString(frozen.read_bytes())
            (y,) = tf.import_graph_def(graph_def, return_elements=["y:0"], name="")
            assert session.run(y, {"x:0": [[3, 4]]}).tolist() == [[11]]
    inspect = tf.python.tools.inspect_checkpoint
    inspect.print_tensors_in_checkpoint_file(path, "weight", False)
    printed = "tensor: weight (float32) [2, 1]\n[[1.]\n [2.]]\n# Total number of params: 2\n"
    assert capsys.readouterr().out == printed


def test_save_waits_for_running_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a `Supervisor`'s thread: the pointer must not go back to an earlier step."""
    begun, write = threading.Event(), CheckpointRotation.save

    def slow(self: CheckpointRotation, name: str, *args: Any, **more: Any) -> str:
        if name == "model-1":
            begun.set()
            time.sleep(0.3)
        return write(self, name, *args, **more)

    monkeypatch.setattr(CheckpointRotation, "save", slow)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("weight", initializer=1.0)
        session.run(tf.global_variables_initializer())
        saver, path = tf.train.Saver(), str(tmp_path / "model")
        first = threading.Thread(target=saver.save, args=(session, path, 1))
        first.start()
        assert begun.wait(60)
        saver.save(session, path, 2)
        first.join()
        assert tf.train.latest_checkpoint(str(tmp_path)) == f"{path}-2"


def test_shape_and_dtype_methods() -> None:
    shape = tf.TensorShape([2, None])
    assert shape.with_rank_at_least(2) is shape.with_rank_at_most(2) is shape
    shape.assert_same_rank([1, 1])
    for check in (
        lambda: shape.with_rank_at_least(3),
        lambda: shape.with_rank_at_most(1),
        lambda: shape.assert_same_rank([1]),
        shape.assert_is_fully_defined,
    ):
        with pytest.raises(ValueError, match=r"^Shape"):
            check()
    assert (tf.complex128.real_dtype, tf.int32.real_dtype) == (tf.float64, tf.int32)
    assert (tf.float32.limits, tf.uint8.limits) == ((0, 1), (0, 255))
    assert tf.float32.is_compatible_with("float32")
    assert not tf.float32.is_compatible_with(tf.int32)
    with tf.Graph().as_default() as graph:
        table = tf.Variable(tf.zeros([5, 3]))
        (rows,) = tf.gradients(tf.gather(table, [1, 2]), [table])
        assert isinstance(rows, tf.IndexedSlices)
        assert (rows.shape.as_list(), rows.graph, rows.device) == ([5, 3], graph, "")


@pytest.mark.parametrize("kind", ["map", "loop", "cond", "nested"])
def test_gradients_of_variables_inside_bodies(kind: str) -> None:
    """As learning to learn does: a step of descent for each task, in `map_fn`."""
    with tf.Graph().as_default(), tf.Session() as session:
        weight = tf.Variable(3.0)
        outer = weight + 0.0

        def slope(x: Any) -> Any:
            first, second = tf.gradients(x * tf.square(weight) + tf.square(outer), [weight, outer])
            return first + second

        x = tf.constant([1.0, 2.0])
        if kind == "map":
            result = tf.map_fn(slope, x)
        elif kind == "loop":
            result = tf.while_loop(lambda i, _: i < 2, lambda i, _: (i + 1, slope(x)), [0, 0.0])[1]
        elif kind == "cond":
            result = tf.cond(tf.reduce_all(x > 0), lambda: slope(x), lambda: x[0])
        else:
            result = tf.map_fn(lambda each: tf.cond(each > 0, lambda: slope(each), lambda: each), x)
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(np.sum(session.run(result)), 42)
        back = session.run(tf.gradients(result, [weight])[0])
        np.testing.assert_allclose(back, 14)  # `outer` moves with `weight`
