"""`tf.test`: test cases with a session, and assertions on arrays."""

from __future__ import annotations

import atexit
import functools
import os
import random
import re
import shutil
import sys
import tempfile
import unittest
import unittest.mock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags
from absl.testing import absltest
from google.protobuf import text_format
from google.protobuf.message import Message
from numpy.typing import NDArray

from estimatorkit.compat.app import parse_known_flags
from estimatorkit.compat.testing.benchmark import Benchmark, benchmark_config
from estimatorkit.compat.testing.gradient_checker import compute_gradient, compute_gradient_error
from estimatorkit.compat.testing.test_helpers import (
    CapturedWrites,
    CheckedThread,
    StubOutForTesting,
)
from estimatorkit.core import nest
from estimatorkit.core.composite import is_composite
from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.devices import DeviceSpec
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import OpError
from estimatorkit.core.graph import Graph, get_default_graph, reset_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.distribute.tasks.server import create_local_cluster
from estimatorkit.runtime.session import Session
from estimatorkit.runtime.xla.placement import available

mock = unittest.mock

# As in TensorFlow's tests.
_SEED = 87654321


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the program's test cases after parsing command-line flags, then exits.

    Args:
        argv: the command line; the process's by default. With one-letter options, which are
            unittest's, no flags are parsed.
    """
    given = list(sys.argv if argv is None else argv)
    if any(re.fullmatch("-[a-z]", each) for each in given[1:]):  # absl has -v as well
        flags.FLAGS.mark_as_parsed()
    else:
        given = parse_known_flags(given)
    unittest.main(argv=given)


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether JAX has a GPU."""
    return any(":GPU:" in name for name in available())


def is_built_with_cuda() -> bool:
    """Whether JAX has a GPU, as its GPU support is in plugins."""
    return is_gpu_available()


def gpu_device_name() -> str:
    """The first GPU's name, or ''."""
    return next((name for name in available() if ":GPU:" in name), "")


@functools.cache
def get_temp_dir() -> str:
    """The process's temporary directory, which is removed when it ends."""
    folder = tempfile.mkdtemp(prefix="estimatorkit-test-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def test_src_dir_path(relative_path: str) -> str:
    """A path relative to the program's directory."""
    return str(Path(sys.argv[0]).resolve().parent / relative_path)


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]  # pytest would run it


def assert_equal_graph_def(actual: Any, expected: Any, checkpoint_v2: bool = False) -> None:
    """Asserts that two `GraphDef`s have the same nodes, in any order.

    Args:
        checkpoint_v2: accepted for compatibility only.

    Raises:
        AssertionError: they differ; names the first difference.
        TypeError: one is not a `GraphDef`.
    """
    for name, graph_def in (("actual", actual), ("expected", expected)):
        if not isinstance(graph_def, Message):
            raise TypeError(f"Expected tf.GraphDef for {name}, got {type(graph_def).__name__}")
    one, other = ({node.name: node for node in each.node} for each in (actual, expected))
    for name in sorted({*one, *other}):
        if name not in one or name not in other:
            raise AssertionError(
                f"node {name!r} is only in {'actual' if name in one else 'expected'}"
            )
        if one[name] != other[name]:
            raise AssertionError(f"node {name!r} differs:\n{one[name]}\n{other[name]}")


class TestCase(absltest.TestCase):
    """A test case with an empty default graph, a session, and assertions on arrays.

    Assertions accept tensors, which they evaluate in the default session.
    """

    # On the class: a test case's own `setUp` may not call this one.
    _temporary: str | None = None
    _cached: Session | None = None

    assertItemsEqual = absltest.TestCase.assertCountEqual

    def setUp(self) -> None:
        """Resets the default graph and sets the seeds of TensorFlow's tests."""
        super().setUp()
        random.seed(_SEED)
        np.random.seed(_SEED)
        reset_default_graph()
        get_default_graph().seed = _SEED

    # -- folders and sessions

    def get_temp_dir(self) -> str:
        """A directory that is removed after the test."""
        if self._temporary is None:
            folder = tempfile.TemporaryDirectory(dir=get_temp_dir())
            self.addCleanup(folder.cleanup)
            self._temporary = folder.name
        return self._temporary

    @contextmanager
    def session(
        self,
        graph: Graph | None = None,
        config: Any = None,
        use_gpu: bool = True,
        force_gpu: bool = False,
    ) -> Iterator[Session]:
        """Opens a new session, the default one within the `with` block.

        Args:
            graph, config: see `Session`.
            use_gpu: without effect, as a process has one backend.
            force_gpu: place operations on the first GPU.
        """
        with Session(graph=graph, config=config) as opened, _on(force_gpu):
            yield opened

    @contextmanager
    def cached_session(
        self,
        graph: Graph | None = None,
        config: Any = None,
        use_gpu: bool = True,
        force_gpu: bool = False,
    ) -> Iterator[Session]:
        """The test's own session, shared by all calls.

        Args:
            graph, config: only those of the first call count.
            use_gpu, force_gpu: see `session`.
        """
        if self._cached is None:
            self.addCleanup(self._ClearCachedSession)
            self._cached = Session(graph=graph, config=config)
        with self._cached.graph.as_default(), self._cached.as_default(), _on(force_gpu):
            yield self._cached

    def _ClearCachedSession(self) -> None:
        """Closes the test's own session; `cached_session` opens another."""
        if self._cached is not None:
            self._cached.close()
            self._cached = None

    def test_session(self, *args: Any, **kwargs: Any) -> AbstractContextManager[Session]:
        """`cached_session`, or `session` if a graph is given."""
        if self.id().endswith(".test_session"):  # collected as a test because of its name
            self.skipTest("test_session gives tests a session")
        graph = args[0] if args else kwargs.get("graph")
        make = self.cached_session if graph is None else self.session
        return make(*args, **kwargs)

    def evaluate(self, tensors: Any) -> Any:
        """Evaluates tensors in the default session or, if there is none, the test's own."""
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.cached_session() as own:
            return own.run(tensors)

    def _value(self, value: Any) -> NDArray[Any]:
        symbolic = isinstance(value, Tensor) or hasattr(value, "initializer")
        return np.asarray(self.evaluate(value) if symbolic else value)

    # -- comparisons

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """All elements are equal; NaNs equal each other."""
        np.testing.assert_array_equal(self._value(a), self._value(b), err_msg=msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Not all elements are equal."""
        self._assert_fails(lambda: self.assertAllEqual(a, b), "the two are equal", msg)

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """All elements are nearly equal; compares dicts, lists and tuples recursively."""
        if is_composite(a):
            a = self.evaluate(a)
        if is_composite(b):
            b = self.evaluate(b)
        if isinstance(a, Mapping):
            self.assertEqual(sorted(a), sorted(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, f"{msg or ''} [{key}]")
        elif isinstance(a, (list, tuple)) and any(map(_is_part, a)):
            self.assertEqual(len(a), len(b), msg)
            for place, (one, other) in enumerate(zip(a, b, strict=True)):
                self.assertAllClose(one, other, rtol, atol, f"{msg or ''} [{place}]")
        else:
            one, other = (_numbers(self._value(each)) for each in (a, b))
            self.assertEqual(one.shape, other.shape, msg)
            np.testing.assert_allclose(one, other, rtol, atol, err_msg=msg or "")

    def assertNotAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """At least one element differs by more than the tolerance."""
        close = "the two are close at all elements"
        self._assert_fails(lambda: self.assertAllClose(a, b, rtol, atol), close, msg)

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """`assertAllClose` with the largest tolerance among the two dtypes."""
        one, other = self._value(a), self._value(b)
        tolerances = {
            **dict.fromkeys(("float32", "complex64"), (float_rtol, float_atol)),
            "float16": (half_rtol, half_atol),
            "bfloat16": (bfloat16_rtol, bfloat16_atol),
        }
        for name in (one.dtype.name, other.dtype.name):
            relative, absolute = tolerances.get(name, (rtol, atol))
            rtol, atol = max(rtol, relative), max(atol, absolute)
        self.assertAllClose(one, other, rtol, atol, msg)

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str = "") -> None:
        """All elements differ by at most `err`."""
        self.assertEqual(len(farray1), len(farray2), msg)
        np.testing.assert_allclose(farray1, farray2, rtol=0, atol=err, err_msg=msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str = "") -> None:
        """The norm of the difference is below `err`."""
        self.assertLess(np.linalg.norm(np.subtract(ndarray1, ndarray2)), err, msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Two numbers differ by at most `err`."""
        self.assertAlmostEqual(f1, f2, delta=err, msg=msg)

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """All elements are greater than `comparison_target`."""
        self._assert_all(np.greater, a, comparison_target, "greater than")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """All elements are greater than or equal to `comparison_target`."""
        self._assert_all(np.greater_equal, a, comparison_target, "at least")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """All elements are less than `comparison_target`."""
        self._assert_all(np.less, a, comparison_target, "less than")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """All elements are less than or equal to `comparison_target`."""
        self._assert_all(np.less_equal, a, comparison_target, "at most")

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """All elements are within two bounds, which are included unless open."""
        value = self._value(target)
        self.assertTrue(np.issubdtype(value.dtype, np.number), f"{value.dtype} has no order")
        low = (np.greater, "above") if open_lower_bound else (np.greater_equal, "at least")
        high = (np.less, "below") if open_upper_bound else (np.less_equal, "at most")
        self._assert_all(low[0], value, lower_bound, low[1])
        self._assert_all(high[0], value, upper_bound, high[1])

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """All elements are in a set."""
        found = set(self._value(target).ravel().tolist())
        self.assertLessEqual(found, set(expected_set), "there are others")

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """Two arrays or tensors have the same shape, for tensors the same static shape."""
        one, other = (
            each.shape.as_list() if isinstance(each, Tensor) else list(np.shape(each))
            for each in (input_a, input_b)
        )
        self.assertEqual(one, other, msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """An array or a tensor has a dtype."""
        dtype = target.dtype if hasattr(target, "dtype") else np.asarray(target).dtype
        self.assertEqual(as_dtype(dtype), as_dtype(expected_dtype))

    def assertProtoEquals(
        self, expected_message_maybe_ascii: Any, message: Any, msg: str | None = None, **_: Any
    ) -> None:
        """Two protocol buffers are equal; the first may be given as text."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, (str, bytes)):
            expected = text_format.Parse(expected, type(message)())
        self.assertIs(type(expected), type(message), msg)
        one, other = map(text_format.MessageToString, (expected, message))
        self.assertEqual(one, other, msg)

    def assertProtoEqualsVersion(
        self, expected: Any, actual: Any, producer: Any = None, min_consumer: Any = 0, **_: Any
    ) -> None:
        """`assertProtoEquals` of two graphs, ignoring their versions."""
        unversioned = type(actual).FromString(actual.SerializeToString())
        unversioned.ClearField("versions")
        self.assertProtoEquals(expected, unversioned)

    def assertStartsWith(self, actual: Any, expected_start: Any, msg: str | None = None) -> None:
        """A string starts with another."""
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} {expected_start!r}")

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:
        """Two devices, as names or as `DeviceSpec`s, are the same."""
        one, other = (
            each.to_string()
            if hasattr(each, "to_string")
            else DeviceSpec.from_string(each or "").to_string()
            for each in (device1, device2)
        )
        self.assertEqual(one, other, msg)

    def _assert_all(self, compare: Callable[..., Any], a: Any, b: Any, words: str) -> None:
        value = self._value(a)
        wrong = ~compare(value, self._value(b))
        if np.any(wrong):
            places = np.argwhere(wrong)[:5].tolist()
            self.fail(f"not all elements are {words} {b}: {value[wrong][:5]} at {places}")

    def _assert_fails(self, check: Callable[[], None], problem: str, msg: str | None) -> None:
        try:
            check()
        except AssertionError:
            return
        self.fail(msg or problem)

    # -- threads and streams

    def checkedThread(self, target: Any, args: Any = (), kwargs: Any = None) -> CheckedThread:
        """Returns a thread whose `join` fails the test if it raised an exception."""
        thread = CheckedThread(self, target, args, kwargs or {})
        self.addCleanup(thread.check_termination)
        return thread

    @contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[CapturedWrites]:
        """Captures writes to a stream within a `with` block, including those of native code.

        Args:
            stream: an open file of the process, such as `sys.stderr`.
        """
        stream.flush()
        number = stream.fileno()
        kept = os.dup(number)
        with tempfile.NamedTemporaryFile("w+", dir=self.get_temp_dir()) as file:
            os.dup2(file.fileno(), number)
            try:
                yield CapturedWrites(Path(file.name), stream)
            finally:
                stream.flush()
                os.dup2(kept, number)
                os.close(kept)

    # -- errors

    @contextmanager
    def assertRaisesWithPredicateMatch(  # type: ignore[override]  # TensorFlow's, not absl's
        self, exception_type: Any, expected_err_re_or_predicate: str | Callable[[Any], Any]
    ) -> Iterator[None]:
        """Asserts that a matching exception is raised.

        Args:
            expected_err_re_or_predicate: a regular expression to find in the message or in the name
                of the operation; or a predicate of the exception.
        """
        wanted = expected_err_re_or_predicate
        with self.assertRaises(exception_type) as caught:
            yield
        error = caught.exception
        if callable(wanted):
            self.assertTrue(wanted(error), f"not the exception that is expected: {error!r}")
            return
        op = getattr(error, "op", None)
        text = f"{error}" if op is None else f"{error}\nCaused by: {op.name}"
        self.assertIsNotNone(re.search(wanted, text), f"{wanted!r} is not in {text!r}")

    def assertRaisesOpError(
        self, expected_err_re_or_predicate: str | Callable[[Any], Any]
    ) -> AbstractContextManager[None]:
        """Asserts that an operation fails; see `assertRaisesWithPredicateMatch`."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)


def _on(force_gpu: bool) -> AbstractContextManager[Any]:
    return get_default_graph().device("/device:GPU:0") if force_gpu else nullcontext()


def _is_part(value: Any) -> bool:
    """Whether an element of a list is compared recursively."""
    return nest.is_nested(value) or isinstance(value, (np.ndarray, Tensor)) or is_composite(value)


def _numbers(value: NDArray[Any]) -> NDArray[Any]:
    """Converts bfloat16 to float32, which NumPy can compare."""
    return value.astype(np.float32) if value.dtype.name == "bfloat16" else value


__all__ = [
    "Benchmark",
    "StubOutForTesting",
    "TestCase",
    "assert_equal_graph_def",
    "benchmark_config",
    "compute_gradient",
    "compute_gradient_error",
    "create_local_cluster",
    "get_temp_dir",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_gpu_available",
    "main",
    "mock",
    "test_src_dir_path",
]
