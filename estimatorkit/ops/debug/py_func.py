"""`py_func`: a Python function of NumPy arrays as an operation.

The function exists only in memory: the operation refers to it by the attribute `token`, and its
note `_function` keeps it alive with the graph. Graphs read from files have no functions.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import errors
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, string
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Spec, apply, register
from estimatorkit.core.shapes import UNKNOWN


class _Function:
    """A function to which operations refer by `token`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.call = function
        self.token = f"pyfunc_{next(_numbers)}"
        _functions[self.token] = self


_numbers = itertools.count()
_functions: weakref.WeakValueDictionary[str, _Function] = weakref.WeakValueDictionary()

_ERRORS: tuple[tuple[type[Exception], type[errors.OpError]], ...] = (
    (StopIteration, errors.OutOfRangeError),
    (MemoryError, errors.ResourceExhaustedError),
    (NotImplementedError, errors.UnimplementedError),
    (TypeError, errors.InvalidArgumentError),
    (ValueError, errors.InvalidArgumentError),
    (Exception, errors.UnknownError),
)
"""The op errors of a function's exceptions, as in TensorFlow; the first match applies."""


def _call(*values: Any, token: str, dtypes: tuple[DType, ...]) -> list[NDArray[Any]]:
    held = _functions.get(token)
    if held is None:
        raise errors.InvalidArgumentError.explained(
            f"callback {token} is not found",
            hint="graph files do not contain functions: rebuild the graph with its program",
        )
    try:
        # Copies, because the function may modify its arguments in place.
        result = held.call(*(np.array(value)[()] for value in values))
    except errors.OpError:
        raise
    except Exception as error:  # becomes the op error that TensorFlow raises
        chosen = next(ours for theirs, ours in _ERRORS if isinstance(error, theirs))
        raise chosen(None, None, f"{type(error).__name__}: {error}") from error
    return _as_outputs(result, dtypes, token)


def _as_outputs(result: Any, dtypes: tuple[DType, ...], token: str) -> list[NDArray[Any]]:
    if result is None:
        results: list[Any] = []
    elif isinstance(result, (list, tuple)):
        results = list(result)
    else:
        results = [result]
    if len(results) != len(dtypes):
        raise errors.InvalidArgumentError.explained(
            f"{token} returns {len(results)} values, but expects to see {len(dtypes)} values",
            hint="a list is a list of results: return an array for one result",
        )
    return [
        _as_output(value, dtype, position, token)
        for position, (value, dtype) in enumerate(zip(results, dtypes, strict=True))
    ]


def _as_output(value: Any, dtype: DType, position: int, token: str) -> NDArray[Any]:
    array = np.asarray(value)
    if array.dtype.kind in "SU" and array is not value:
        array = np.asarray(value, object)  # NumPy's strings lose zero bytes at their end
    if array.dtype.kind in "SUO":
        texts = [each.encode() if isinstance(each, str) else each for each in array.flat]
        if not all(isinstance(each, bytes) for each in texts):
            raise errors.InternalError(
                None, None, f"{token}: Unsupported object type {type(value).__name__}"
            )
        strings = np.empty(array.shape, object)
        strings.reshape(-1)[:] = texts
        array = strings
    given = string if array.dtype.kind == "O" else as_dtype(array.dtype)
    if given is not dtype:
        raise errors.InvalidArgumentError.explained(
            f"{position}-th value returned by {token} is {given.name}, but expects {dtype.name}",
            hint=f"return np.asarray(value, np.{dtype.name}), or change Tout",
        )
    return array


def _infer(inputs: Any, attrs: Any) -> list[Spec]:
    return [Spec(dtype, UNKNOWN) for dtype in attrs["dtypes"]]


for _type, _pure in (("PyFunc", False), ("PyFuncStateless", True)):
    register(
        _type,
        _call,
        infer=_infer,
        gradient=None,
        where="host",
        pure=_pure,
        client_only=True,
        effects="python",
    )


def py_func(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Calls a Python function whenever the graph runs.

    Args:
        func: takes NumPy arrays (scalars for 0-d tensors; strings as `bytes`), one for each of
            `inp`, and returns arrays of the dtypes `Tout`.
        inp: tensors.
        Tout: the dtypes of the results, a list or a single one; [] or None if there are none.
        stateful: whether the function has side effects or depends on other state.

    Returns:
        A tensor of unknown shape; a list of them if `Tout` is a list; the operation if there are no
        results. Not differentiable.

    Raises:
        ValueError: `func` is not callable.
    """
    if not callable(func):
        raise ValueError(
            f"Expected func to be callable. Received func={func!r} of type {type(func)}."
        )
    several = isinstance(Tout, (list, tuple))
    dtypes = tuple(map(as_dtype, Tout)) if several else () if Tout is None else (as_dtype(Tout),)
    op_type = "PyFunc" if stateful else "PyFuncStateless"
    held = _Function(func)
    with get_default_graph().name_scope(name or op_type) as scope:
        tensors = [convert_to_tensor(each, name="input") for each in inp]
        attrs = {"token": held.token, "dtypes": dtypes, "_function": held}
        op = apply(op_type, tensors, attrs, scope)
    if not op.outputs:
        return op
    return list(op.outputs) if several else op.outputs[0]


def numpy_function(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Newer name of `py_func`."""
    return py_func(func, inp, Tout, stateful, name)


def py_function(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,
    name: str | None = None,
) -> NoReturn:
    """Not supported: there are no eager tensors for the function to work on.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        explain(
            "py_function is not supported: it calls the function with eager tensors",
            hint="use py_func or numpy_function, which give it NumPy arrays",
        )
    )
