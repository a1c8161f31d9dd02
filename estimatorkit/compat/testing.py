"""`tf.test`: test cases with a session and comparisons of arrays."""

from __future__ import annotations

import tempfile
import unittest
import unittest.mock
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from estimatorkit.core.graph import Graph, reset_default_graph
from estimatorkit.core.placement import available
from estimatorkit.core.session import Session
from estimatorkit.core.tensor import Tensor

main = unittest.main
mock = unittest.mock


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether JAX has a GPU."""
    return any(":GPU:" in name for name in available())


def is_built_with_cuda() -> bool:
    """Whether JAX has a GPU: support is in its plugins."""
    return is_gpu_available()


def gpu_device_name() -> str:
    """The first GPU's name, or ''."""
    return next((name for name in available() if ":GPU:" in name), "")


def get_temp_dir() -> str:
    """A new folder for temporary files."""
    return tempfile.mkdtemp(prefix="estimatorkit-test-")


class TestCase(unittest.TestCase):
    """A test case with an empty default graph, a session, and comparisons of arrays."""

    def setUp(self) -> None:
        """Begins with an empty graph."""
        super().setUp()
        reset_default_graph()
        self._temporary = tempfile.TemporaryDirectory(prefix="estimatorkit-test-")
        self.addCleanup(self._temporary.cleanup)

    def get_temp_dir(self) -> str:
        """A folder that is gone after the test."""
        return self._temporary.name

    @contextmanager
    def session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, **_: Any
    ) -> Iterator[Session]:
        """A session that is the default one inside."""
        with Session(graph=graph, config=config) as opened:
            yield opened

    test_session = session
    cached_session = session

    def evaluate(self, tensors: Any) -> Any:
        """The value in the default session."""
        from estimatorkit.core.default_session import get_default_session

        session = get_default_session()
        if session is None:
            with Session() as opened:
                return opened.run(tensors)
        return session.run(tensors)

    def _value(self, value: Any) -> Any:
        return np.asarray(self.evaluate(value) if isinstance(value, Tensor) else value)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """All elements are equal."""
        np.testing.assert_array_equal(self._value(a), self._value(b), err_msg=msg or "")

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """All elements are nearly equal; dicts and lists are compared part by part."""
        if isinstance(a, dict):
            self.assertEqual(sorted(a), sorted(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, f"{msg or ''} [{key}]")
            return
        np.testing.assert_allclose(self._value(a), self._value(b), rtol, atol, err_msg=msg or "")

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str = "") -> None:
        """All elements differ by at most `err`."""
        np.testing.assert_allclose(farray1, farray2, rtol=0, atol=err, err_msg=msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """The two differ by at most `err`."""
        self.assertAlmostEqual(f1, f2, delta=err, msg=msg)

    def assertShapeEqual(self, np_array: Any, tf_tensor: Tensor, msg: str | None = None) -> None:
        """The array has the tensor's static shape."""
        self.assertEqual(list(np.shape(np_array)), tf_tensor.shape.as_list(), msg)

    def assertRaisesOpError(self, expected: str) -> Any:
        """An operation fails with a message that the pattern is found in."""
        from estimatorkit.core.errors import OpError

        return self.assertRaisesRegex(OpError, expected)
