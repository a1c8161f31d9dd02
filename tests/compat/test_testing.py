"""`tf.test.TestCase`: comparisons that pass and fail as they should, sessions, folders, errors."""

# ruff: noqa: PT009, PT027 - the asserts of unittest are what is tested
from __future__ import annotations

import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf


class Example(tf.test.TestCase):  # type: ignore[misc]
    """Tests of programs; run by `test_a_program_s_test_case`."""

    __test__ = False

    def test_variables_stay_in_the_test_s_session(self) -> None:
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

    def test_every_test_begins_anew(self) -> None:
        self.assertEmpty(tf.global_variables())
        self.assertLen(tf.get_default_graph().get_operations(), 0)
        path = Path(self.get_temp_dir())
        self.assertEqual(str(path), self.get_temp_dir())
        (path / "file").write_text("x")
        folders.append(path)

    def test_tensors_are_evaluated(self) -> None:
        with self.session():
            x = tf.constant([1.0, 2.0])
            self.assertAllEqual(x, [1, 2])
            self.assertAllClose([x, (3.0, [x])], [[1, 2], (3.0, [np.array([1, 2])])])
            self.assertAllInRange(x, 1, 2)
            with self.assertRaises(AssertionError):
                self.assertAllClose(x, [1.0, 2.1])

    def test_errors_of_operations(self) -> None:
        with self.session() as session:
            x = tf.placeholder(tf.float32, [], name="missing")
            with self.assertRaisesOpError("must feed a value"):
                session.run(x)
            with self.assertRaisesOpError(lambda error: error.error_code == 3):
                session.run(x)
            with self.assertRaisesWithPredicateMatch(ValueError, "not broadcast|Dimensions"):
                tf.constant([1, 2]) + tf.constant([1, 2, 3])


folders: list[Path] = []


def test_a_program_s_test_case() -> None:
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


def test_more_of_comparisons() -> None:
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
