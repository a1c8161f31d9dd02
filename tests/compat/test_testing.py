"""`tf.test.TestCase`: comparisons that pass and fail as they should, sessions, folders, errors."""

# ruff: noqa: PT009, PT027 - the asserts of unittest are what is tested
from __future__ import annotations

import os
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from absl import flags as absl_flags

import estimatorkit.compat.v1 as tf


class Example(tf.test.TestCase):  # type: ignore[misc]
    """Tests of programs; run by `test_test_case_class`."""

    __test__ = False

    def test_variables_stay_in_test_session(self) -> None:
        with self.test_session() as session:
            v = tf.Variable(2.0)
            self.evaluate(tf.global_variables_initializer())
        with self.cached_session(use_gpu=True) as again:
            self.assertIs(again, session)
            self.assertEqual(v.eval(), 2.0)
        self.assertAllClose(self.evaluate({"v": v, "w": [v * 2]}), {"v": 2.0, "w": [4.0]})
        with tf.Graph().as_default() as graph, self.session(graph=graph) as own:
            self.assertIsNot(own, session)
            self.assertEqual(tf.constant(1).eval(), 1)

    def test_tests_are_independent(self) -> None:
        self.assertEmpty(tf.global_variables())
        self.assertLen(tf.get_default_graph().get_operations(), 0)
        path = Path(self.get_temp_dir())
        self.assertEqual(str(path), self.get_temp_dir())
        (path / "file").write_text("x")
        folders.append(path)

    def test_evaluate(self) -> None:
        with self.session():
            x = tf.constant([1.0, 2.0])
            self.assertAllEqual(x, [1, 2])
            self.assertAllClose([x, (3.0, [x])], [[1, 2], (3.0, [np.array([1, 2])])])
            self.assertAllInRange(x, 1, 2)
            with self.assertRaises(AssertionError):
                self.assertAllClose(x, [1.0, 2.1])

    def test_operation_errors(self) -> None:
        with self.session() as session:
            x = tf.placeholder(tf.float32, [], name="missing")
            with self.assertRaisesOpError("must feed a value"):
                session.run(x)
            with self.assertRaisesOpError(lambda error: error.error_code == 3):
                session.run(x)
            with self.assertRaisesWithPredicateMatch(ValueError, "not broadcast|Dimensions"):
                tf.constant([1, 2]) + tf.constant([1, 2, 3])


folders: list[Path] = []


def test_test_case_class() -> None:
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Example)
    result = unittest.TestResult()
    suite.run(result)
    assert result.errors == result.failures == []
    assert result.testsRun == 5
    assert [str(case.id()).rpartition(".")[2] for case, _ in result.skipped] == ["test_session"]
    assert not any(folder.exists() for folder in folders)


BFLOAT = np.array([1.0, 2.0], tf.bfloat16.as_numpy_dtype)
HALF = np.array([1.0], np.float16)

# Of each comparison: arguments that pass, and arguments that fail.
COMPARISONS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "assertAllEqual": (([1, np.nan], [1, np.nan]), ([1, 2], [1, 3])),
    "assertNotAllEqual": (([1, 2], [1, 3]), ([1, 2], [1, 2])),
    "assertAllClose": (([1.0, 2.0], [1.0, 2.0 + 1e-6]), ([1.0], [1.1])),
    "assertNotAllClose": (([1.0], [1.1]), ([1.0], [1.0 + 1e-7])),
    "assertAllCloseAccordingToType": ((HALF, [1.0005]), (np.float32(HALF), [1.0005])),
    "assertArrayNear": (([1.0, 2.0], [1.1, 2.1], 0.2), ([1.0], [1.3], 0.2)),
    "assertNDArrayNear": (([[1.0]], [[1.1]], 0.2), ([[1.0, 1.0]], [[1.15, 1.15]], 0.2)),
    "assertNear": ((1.0, 1.1, 0.2), (1.0, 1.3, 0.2)),
    "assertAllGreater": (([2, 3], 1), ([2, 1], 1)),
    "assertAllGreaterEqual": (([2, 1], 1), ([2, 0], 1)),
    "assertAllLess": (([2, 3], 4), ([2, 4], 4)),
    "assertAllLessEqual": (([2, 4], 4), ([2, 5], 4)),
    "assertAllInRange": (([1, 2], 1, 2), ([1.0, np.nan], 1, 2)),
    "assertAllInSet": (([1, 2], {1, 2, 3}), ([1, 4], {1, 2, 3})),
    "assertShapeEqual": ((np.ones([2, 3]), np.ones([2, 3])), (np.ones([2]), np.ones([2, 1]))),
    "assertDTypeEqual": ((HALF, tf.float16), (HALF, np.float32)),
    "assertBetween": ((1, 0, 2), (3, 0, 2)),
    "assertStartsWith": (("abc", "ab"), ("abc", "b")),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name: str) -> None:
    check: Callable[..., None] = getattr(Example(), name)
    right, wrong = COMPARISONS[name]
    check(*right)
    with pytest.raises(AssertionError):
        check(*wrong)


def test_more_comparisons() -> None:
    case = Example()
    case.assertAllClose(BFLOAT, BFLOAT)
    for flags in ({"open_lower_bound": True}, {"open_upper_bound": True}):
        with pytest.raises(AssertionError, match=r"not all elements are (above 1|below 2)"):
            case.assertAllInRange([1, 2], 1, 2, **flags)
    with pytest.raises(AssertionError):
        case.assertAllClose({"a": 1.0}, {"b": 1.0})
    with pytest.raises(AssertionError):
        case.assertAllClose([1.0, 2.0], 1.0)
    with pytest.raises(AssertionError, match="no order"):
        case.assertAllInRange(["a"], 1, 2)
    tensor = tf.placeholder(tf.float32, [2, None])
    case.assertShapeEqual(tensor, tensor)
    with pytest.raises(AssertionError, match="is not in"):  # noqa: SIM117
        with case.assertRaisesWithPredicateMatch(ValueError, "one thing"):
            raise ValueError("another")


class WithoutSuper(tf.test.TestCase):  # type: ignore[misc]
    """A case whose `setUp` does not call `TestCase`'s."""

    __test__ = False

    def setUp(self) -> None:
        self.value = 3

    def runTest(self) -> None:
        with self.cached_session():
            self.assertAllEqual(tf.constant(self.value), 3)
        self.assertTrue(Path(self.get_temp_dir()).is_dir())


def test_temporary_folders_per_process_and_test() -> None:
    folder = tf.test.get_temp_dir()
    assert folder == tf.test.get_temp_dir()
    cases = [WithoutSuper(), WithoutSuper()]
    own = [case.get_temp_dir() for case in cases]
    assert own == [case.get_temp_dir() for case in cases]
    assert own[0] != own[1]
    assert all(Path(each).parent == Path(folder) for each in own)
    for case in cases:
        case.doCleanups()
    assert not any(map(os.path.exists, own))
    assert Path(folder).is_dir()


def test_set_up_without_super() -> None:
    result = unittest.TestResult()
    WithoutSuper().run(result)
    assert result.wasSuccessful(), result.errors


class Compared(tf.test.TestCase):  # type: ignore[misc]
    __test__ = False

    def runTest(self) -> None:
        """Used for its methods."""


def test_proto_and_device_comparisons() -> None:
    case = Compared()
    case.assertProtoEquals("features { }", tf.train.Example(features=tf.train.Features()))
    with pytest.raises(AssertionError):
        case.assertProtoEquals("", tf.train.Example(features=tf.train.Features()))
    case.assertDeviceEqual("/job:ps/gpu:1", "/job:ps/device:GPU:1")
    case.assertDeviceEqual(tf.DeviceSpec(job="ps"), "/job:ps")
    with pytest.raises(AssertionError):
        case.assertDeviceEqual("/cpu:0", "/gpu:0")
    case.assertItemsEqual([1, 2], [2, 1])
    with tf.Graph().as_default() as graph:
        tf.constant(1, name="a")
    with tf.Graph().as_default() as other:
        tf.constant(1, name="b")
    case.assertProtoEqualsVersion(
        "node { name: 'n' op: 'NoOp' }",
        tf.GraphDef(node=[tf.NodeDef(name="n", op="NoOp")], versions={"producer": 21}),
    )
    tf.test.assert_equal_graph_def(graph.as_graph_def(), graph.as_graph_def())
    with pytest.raises(AssertionError, match="node 'a' is only in actual"):
        tf.test.assert_equal_graph_def(graph.as_graph_def(), other.as_graph_def())
    with pytest.raises(TypeError, match="for expected, got Graph"):
        tf.test.assert_equal_graph_def(graph.as_graph_def(), other)


def test_threads_report_errors() -> None:
    case = Compared()
    found: list[int] = []
    fine = case.checkedThread(found.append, (1,))
    fine.start()
    fine.join()
    assert found == [1]
    assert not fine.is_alive()
    failing = case.checkedThread(lambda: 1 // 0)
    failing.start()
    with pytest.raises(AssertionError, match="integer division"):
        failing.join()
    case.doCleanups()


def test_captured_writes_to_stream(tmp_path: Path) -> None:
    case = Compared()
    with (tmp_path / "stream").open("w+") as stream:
        stream.write("before")
        with case.captureWritesToStream(stream) as captured:
            os.write(stream.fileno(), b"native ")
            stream.write("python")
            assert captured.contents() == "native python"
        stream.write(" after")
        stream.flush()
        assert (tmp_path / "stream").read_text() == "before after"
    case.doCleanups()


def test_stubs_are_reverted() -> None:
    stubs = tf.test.StubOutForTesting()
    before = os.path.exists
    stubs.Set(os.path, "exists", lambda path: path)
    assert os.path.exists("x") == "x"
    stubs.CleanUp()
    assert os.path.exists is before


@pytest.mark.slow
def test_symbolic_and_numeric_jacobians() -> None:
    at = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    with tf.Graph().as_default(), tf.Session():
        x, w = tf.constant(at), tf.constant([[1.0, -1.0], [0.5, 2.0]])
        y = tf.matmul(x, w)
        theoretical, numeric = tf.test.compute_gradient(x, [2, 2], y, [2, 2], x_init_value=at)
        block = [[1.0, -1.0], [0.5, 2.0]]
        np.testing.assert_array_equal(theoretical, np.kron(np.eye(2), block))
        np.testing.assert_allclose(theoretical, numeric, atol=1e-2)
        assert tf.test.compute_gradient_error([x, w], [[2, 2]] * 2, y, [2, 2]) < 1e-2
        wrong = tf.stop_gradient(x) * x
        assert tf.test.compute_gradient_error(x, [2, 2], wrong, [2, 2], x_init_value=at) > 0.9
        rows = tf.gather(x, [1, 1])
        assert tf.test.compute_gradient_error(x, [2, 2], rows, [2, 2]) < 1e-2
        with pytest.raises(TypeError, match="x must be floats"):
            tf.test.compute_gradient_error(tf.constant([1]), [1], y, [2, 2])
        with pytest.raises(ValueError, match="x_init_value does not have shape"):
            tf.test.compute_gradient(x, [2, 2], y, [2, 2], x_init_value=at[0])
    with pytest.raises(ValueError, match="as_default"):
        tf.test.compute_gradient(x, [2, 2], y, [2, 2])


def test_benchmarks_print_entries(capsys: pytest.CaptureFixture[str]) -> None:
    with tf.Graph().as_default(), tf.Session(config=tf.test.benchmark_config()) as session:
        x = tf.Variable(1.0)
        session.run(x.initializer)
        found = tf.test.Benchmark().run_op_benchmark(
            session, x.assign_add(1.0), burn_iters=1, min_iters=3, name="add", extras={"size": 1}
        )
        assert session.run(x) == 5.0
    assert (found["iters"], found["name"], found["extras"]["size"]) == (3, "add", 1)
    assert "entry { name: add, iters: 3, wall_time: " in capsys.readouterr().out


def test_test_util_decorators_change_nothing() -> None:
    from estimatorkit.compat.v1.python.framework import test_util

    class Case(test_util.TensorFlowTestCase):  # type: ignore[misc]
        __test__ = False

        @test_util.run_deprecated_v1
        @test_util.run_in_graph_and_eager_modes(use_gpu=True)
        def runTest(self) -> None:
            with test_util.device(use_gpu=True):
                self.assertAllEqual(self.evaluate(tf.constant(1)), 1)
            self.assertEqual(test_util.NHWCToNCHW([1, 2, 3, 4]), [1, 4, 2, 3])
            array = test_util.NCHWToNHWC(np.zeros([1, 4, 2, 3]))
            self.assertEqual(array.shape, (1, 2, 3, 4))
            graph = tf.get_default_graph()
            test_util.assert_ops_in_graph({"Const": "Const"}, graph)
            with self.assertRaisesRegex(ValueError, "Expected to find op x"):
                test_util.assert_ops_in_graph({"x": "Const"}, graph)

        @test_util.run_gpu_only
        def test_gpu(self) -> None:
            raise AssertionError

    for name in ("runTest", *(() if tf.test.is_gpu_available() else ("test_gpu",))):
        result = unittest.TestResult()
        Case(name).run(result)
        assert result.wasSuccessful(), result.errors


def test_main_parses_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(unittest, "main", lambda argv: seen.append(list(argv)))
    values = absl_flags.FLAGS
    tf.flags.DEFINE_integer("size_of_a_test", 1, "")
    try:
        tf.test.main(["test.py", "--size_of_a_test=3", "Case.test"])
        assert (seen.pop(), values.size_of_a_test) == (["test.py", "Case.test"], 3)
        values.unparse_flags()
        tf.test.main(["test.py", "-v"])
        assert (seen, values.size_of_a_test) == ([["test.py", "-v"]], 1)
    finally:
        del values.size_of_a_test
