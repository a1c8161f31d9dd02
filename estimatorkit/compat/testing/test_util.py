"""`tensorflow.python.framework.test_util`: the decorators of TensorFlow's own test cases.

Tests here always build graphs and run them in sessions. Decorators that select another mode,
compiler or control flow version return their argument unchanged.
"""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.compat.testing.test_case import (
    TestCase,
    assert_equal_graph_def,
    gpu_device_name,
    is_gpu_available,
)
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor

TensorFlowTestCase = TestCase
assert_equal_graph_def_v1 = assert_equal_graph_def_v2 = assert_equal_graph_def


def _unchanged(decorated: Any = None, **settings: Any) -> Any:
    """Returns the decorated object; usable with or without arguments in parentheses."""
    return decorated if callable(decorated) else lambda each: each


run_deprecated_v1 = run_v1_only = deprecated_graph_mode_only = _unchanged
run_all_in_deprecated_graph_mode_only = run_all_in_graph_and_eager_modes = _unchanged
run_in_graph_and_eager_modes = build_as_function_and_v1_graph = also_run_as_tf_function = _unchanged
enable_control_flow_v2 = disable_control_flow_v2 = with_control_flow_v2 = _unchanged
enable_all_control_flow_v2 = disable_xla = disable_all_xla = disable_tfrt = _unchanged
run_all_without_tensor_float_32 = run_without_tensor_float_32 = disable_mlir_bridge = _unchanged
assert_no_new_pyobjects_executing_eagerly = assert_no_new_tensors = _unchanged
assert_no_garbage_created = enable_tf_xla_constant_folding = run_with_flag = _unchanged


def _only_if(condition: Callable[[], bool], reason: str) -> Callable[[Any], Any]:
    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        def run(self: unittest.TestCase, *args: Any, **kwargs: Any) -> Any:
            if not condition():
                self.skipTest(reason)
            return test(self, *args, **kwargs)

        return run

    return decorate


run_gpu_only = run_cuda_only = _only_if(is_gpu_available, "needs a GPU")
run_v2_only = _only_if(lambda: False, "tests TensorFlow 2")


def skip_if(condition: bool | Callable[[], bool]) -> Callable[[Any], Any]:
    """Skips a test if a condition holds."""

    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            if not (condition() if callable(condition) else condition):
                return test(*args, **kwargs)
            return None

        return run

    return decorate


@contextmanager
def device(use_gpu: bool) -> Iterator[None]:
    """Uses the first GPU if requested and available, otherwise the CPU."""
    name = gpu_device_name() if use_gpu else ""
    with get_default_graph().device(name or "/device:CPU:0"):
        yield


def use_gpu() -> AbstractContextManager[None]:
    """`device(True)`."""
    return device(True)


force_gpu = use_gpu


def force_cpu() -> AbstractContextManager[None]:
    """`device(False)`."""
    return device(False)


def assert_ops_in_graph(expected_ops: dict[str, str], graph: Any) -> dict[str, Any]:
    """The expected operations of a graph by name.

    Args:
        expected_ops: operation types by name.
        graph: a `Graph`.

    Raises:
        ValueError: one is missing, or has another type.
    """
    found = {op.name: op for op in graph.get_operations() if op.name in expected_ops}
    for name, kind in expected_ops.items():
        if name not in found:
            raise ValueError(f"Expected to find op {name} in the graph, not found")
        if found[name].type != kind:
            raise ValueError(f"Expected op {name} to be {kind}, found {found[name].type}")
    return found


def IsMklEnabled() -> bool:
    """False: XLA uses its own kernels."""
    return False


is_xla_enabled = is_mlir_bridge_enabled = IsBuiltWithROCm = IsMklEnabled


def _permuted(value: Any, order: Sequence[int]) -> Any:
    if isinstance(value, Tensor):
        from estimatorkit.ops.array.array import transpose

        return transpose(value, list(order))
    if isinstance(value, np.ndarray):
        array: NDArray[Any] = value.transpose(order)
        return array
    return [value[place] for place in order]


def NHWCToNCHW(input_tensor: Any) -> Any:
    """A tensor, an array or a list of sizes, with the channels moved after the batch."""
    rank = _rank(input_tensor)
    return _permuted(input_tensor, (0, rank - 1, *range(1, rank - 1)))


def NCHWToNHWC(input_tensor: Any) -> Any:
    """A tensor, an array or a list of sizes, with the channels moved to the end."""
    rank = _rank(input_tensor)
    return _permuted(input_tensor, (0, *range(2, rank), 1))


def _rank(value: Any) -> int:
    return len(value) if isinstance(value, (list, tuple)) else len(value.shape)
