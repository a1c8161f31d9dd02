"""Small functions of TensorFlow's private modules that programs and libraries import."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, int32
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import constant_value_as_shape
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers.metrics import streaming
from estimatorkit.lazy import listing
from estimatorkit.ops.array.array import reshape
from estimatorkit.ops.array.indexing import gather
from estimatorkit.ops.array.joining import concat

__dir__ = listing(__name__)

F = TypeVar("F", bound=Callable[..., Any])


GRAPH_DEF_VERSION_MIN_CONSUMER = GRAPH_DEF_VERSION_MIN_PRODUCER = 0
"""The consumer version required by exported graphs, and the oldest format that can be read."""


def enabled() -> bool:
    """False: programs are TensorFlow 1's (`tensorflow.python.tf2`)."""
    return False


def fn_args(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's positional arguments, without `self` and those bound by a partial.

    Args:
        fn: a function, a method, a partial of one, or a callable object.
    """
    if isinstance(fn, functools.partial):
        rest = fn_args(fn.func)[len(fn.args) :]
        return tuple(name for name in rest if name not in fn.keywords)
    spec = inspect.getfullargspec(fn)
    own = inspect.ismethod(fn) or not inspect.isroutine(fn)
    return tuple(spec.args[1:] if own else spec.args)


def has_kwargs(fn: Callable[..., Any]) -> bool:
    """Whether a function has a `**kwargs` parameter.

    Raises:
        TypeError: `fn` is not callable.
    """
    if isinstance(fn, functools.partial):
        return has_kwargs(fn.func)
    if not callable(fn):
        raise TypeError(f"fn should be a function-like object, but is of type {type(fn)}.")
    return inspect.getfullargspec(fn).varkw is not None


def get_func_name(func: Callable[..., Any]) -> str:
    """The name of a function, of a partial's function, or of a callable object's class.

    Raises:
        ValueError: `func` is not callable.
    """
    if not callable(func):
        raise ValueError(f"Argument must be a function. Got {func!r}")
    if isinstance(func, functools.partial):
        return get_func_name(func.func)
    return getattr(func, "__name__", type(func).__name__)


def unchanged(*args: Any, **options: Any) -> Callable[[F], F]:
    """Returns a decorator that changes nothing.

    It stands for TensorFlow's `deprecated(date, instructions)`, which warns, and
    `tf_export(name)`, which registers a public name.
    """
    return lambda decorated: decorated


def remove_undocumented(
    module_name: str,
    allowed_exception_list: Sequence[str] | None = None,
    doc_string_modules: Sequence[Any] | None = None,
) -> None:
    """Does nothing; TensorFlow removes undocumented names from a package."""


def is_resource_variable(var: Any) -> bool:
    """Whether an object is a variable; all variables here are resource variables."""
    return isinstance(var, Variable)


def metric_variable(
    shape: Any, dtype: Any, validate_shape: bool = True, name: str | None = None
) -> Variable:
    """A variable for a metric, initially 0 (`metrics_impl.metric_variable`).

    Args:
        shape: a fully known shape.
        validate_shape: accepted for compatibility only.
        name: its name, within the current name scope.

    Returns:
        A variable in the collections LOCAL_VARIABLES and METRIC_VARIABLES, which is summed over
        replicas.
    """
    return streaming.metric_variable(shape, as_dtype(dtype), name)


def select_last_activations(activations: Any, sequence_lengths: Any) -> Tensor:
    """The last activations of each sequence (`rnn_common.select_last_activations`).

    Args:
        activations: `(batch, steps, k)`.
        sequence_lengths: ints `(batch,)`; None where all sequences have all steps.

    Returns:
        `(batch, k)`.
    """
    with get_default_graph().name_scope("select_last_activations"):
        rows = convert_to_tensor(activations)
        if sequence_lengths is None:
            return rows[:, -1]
        last = convert_to_tensor(sequence_lengths) - 1
        return gather(rows, last, batch_dims=1)


def concat_shapes(prefix: Any, suffix: Any, static: bool = False) -> Any:
    """Concatenates two shapes (`rnn_cell_impl._concat`).

    Args:
        prefix, suffix: ints, int32 tensors of rank 0 or 1, or `TensorShape`s.
        static: whether to return a list, with None for unknown dimensions, instead of a tensor.

    Raises:
        ValueError: `static` is False, and a shape is not fully known.
    """
    parts = [
        reshape(part, [-1]) if isinstance(part, Tensor) else TensorShape(part)
        for part in (prefix, suffix)
    ]
    if static:
        known = [constant_value_as_shape(p) if isinstance(p, Tensor) else p for p in parts]
        return [size for shape in known for size in shape.as_list()]
    return concat(
        [p if isinstance(p, Tensor) else constant(p.as_list(), int32, [p.ndims]) for p in parts], 0
    )
