"""Runtime inspection: `Print`, `print`, `Assert`, `check_numerics`, `timestamp`.

They run on the host, on values copied from the device. Pure NumPy functions make all texts:
`printed`, `formatted`, `assertion_message`, `numerics_problem`.
"""

from __future__ import annotations

import itertools
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.builtin_ops import group, identity
from estimatorkit.core.composite import is_composite
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import bool_, float64
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    apply,
    fixed,
    no_outputs,
    output,
    register,
    same_as_input,
)
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.debug.summarize import summarize_ends, summarize_first

_SHOWN = 3
"""The default number of elements to print."""

_SAMPLE = np.array([1.5, -2.0], np.float32)

_logger = logging.getLogger("estimatorkit")


# -- Print


def printed(data: Sequence[Any], message: str, summarize: int) -> str:
    """The line that `Print` writes."""
    return message + "".join(f"[{summarize_first(np.asarray(each), summarize)}]" for each in data)


def _print(
    value: Any,
    *data: Any,
    message: str,
    first_n: int,
    summarize: int,
    counter: str,
    context: Any,
) -> Any:
    times = context.resource(counter, itertools.count) if first_n >= 0 else itertools.repeat(-1)
    if next(times) < first_n or first_n < 0:
        print_line(printed(data, message, summarize))
    return value


def print_line(line: str, stream: Any = None, end: str = "\n") -> None:
    """Writes a line to `stream`, by default the current `sys.stderr`."""
    target = sys.stderr if stream is None else stream
    target.write(line + end)
    target.flush()


def _gradient_of_print(op: Any, gradient: Any) -> list[Any]:
    return [gradient, *(None for _ in op.inputs[1:])]


register(
    "Print",
    _print,
    infer=same_as_input(),
    gradient=_gradient_of_print,
    row_gradient=_gradient_of_print,
    where="host",
    context=True,
    pure=False,
)


def Print(
    input_: Any,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns `input_`, and prints a line to stderr when it is computed: `message[1 2 3...][...]`.

    Args:
        input_: a tensor; gradients flow through it.
        data: the tensors to print.
        message: the beginning of the line.
        first_n: the maximum number of lines per session; unlimited by default.
        summarize: the number of elements to print of each tensor; 3 by default, all if negative.
    """
    graph = get_default_graph()
    with graph.name_scope(name or "Print") as scope:
        tensors = [convert_to_tensor(each, name="data") for each in data]
        attrs = {
            "message": message or "",
            "first_n": -1 if first_n is None else int(first_n),
            "summarize": _SHOWN if summarize is None else int(summarize),
            "counter": f"{scope}count",
        }
        return output("Print", [convert_to_tensor(input_, name="input"), *tensors], attrs, scope)


# -- print


def formatted(data: Sequence[Any], parts: Sequence[str], summarize: int) -> str:
    """The text that `print` writes: `parts` with the tensors inserted between them."""
    if parts == ("", "") and isinstance(data[0][()], bytes):  # a lone string is not quoted
        return data[0][()].decode("utf-8", "backslashreplace")
    shown = [summarize_ends(np.asarray(each), summarize) for each in data]
    return "".join(part + text for part, text in itertools.zip_longest(parts, shown, fillvalue=""))


def _print_v2(
    *data: Any, parts: tuple[str, ...], summarize: int, stream: str, end: str
) -> list[Any]:
    text = formatted([np.asarray(each) for each in data], parts, summarize)
    if stream.startswith("file://"):
        with open(stream.removeprefix("file://"), "a", encoding="utf-8") as file:
            print_line(text, file, end)
    elif stream in _LEVELS:
        _logger.log(_LEVELS[stream], text)
    else:
        print_line(text, sys.stdout if stream == "stdout" else None, end)
    return []


_LEVELS = {
    "log(info)": logging.INFO,
    "log(warning)": logging.WARNING,
    "log(error)": logging.ERROR,
}

register(
    "PrintV2",
    _print_v2,
    infer=no_outputs,
    gradient=None,
    where="host",
    pure=False,
    effects=lambda attrs: "files" if attrs["stream"].startswith("file://") else "",
)


def print_(
    *inputs: Any,
    output_stream: Any = None,
    end: str = "\n",
    sep: str = " ",
    summarize: int | None = None,
    name: str | None = None,
) -> Operation:
    """An operation that prints its inputs, like Python's `print`.

    Args:
        *inputs: tensors, other values, and lists, tuples and dicts of these.
        output_stream: `sys.stderr` (the default), `sys.stdout`, 'file://path' (appended to), or a
            level of `logging` (INFO, WARNING, ERROR).
        end: the text after the last input.
        sep: the text between inputs.
        summarize: the number of elements to print at each end of a dimension; 3 by default, all if
            negative.

    Raises:
        ValueError: `output_stream` is invalid.
    """
    tensors: list[Tensor] = []
    text = sep.join(_template(each, tensors, top=True) for each in inputs)
    attrs = {
        "parts": tuple(text.split(_PLACE)),
        "summarize": _SHOWN if summarize is None else int(summarize),
        "stream": _stream_name(output_stream),
        "end": end,
    }
    return apply("PrintV2", tensors, attrs, name or "PrintV2")


_PLACE = "\0"
"""Placeholder of a tensor during formatting."""


def _template(value: Any, tensors: list[Tensor], *, top: bool = False) -> str:
    if isinstance(value, Tensor) or hasattr(value, "_as_tensor"):
        tensors.append(convert_to_tensor(value))
        return _PLACE
    if isinstance(value, SparseTensor):
        names = ("indices", "values", "shape")  # TensorFlow prints it as a string in quotes
        parts = zip(names, value._components(), strict=True)
        inner = ", ".join(f"{name}={_template(part, tensors)}" for name, part in parts)
        return f"'SparseTensor({inner})'"
    if isinstance(value, Mapping):
        items = [f"{key!r}: {_template(value[key], tensors)}" for key in sorted(value)]
        return f"{{{', '.join(items)}}}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_template(each, tensors) for each in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return value if top and isinstance(value, str) else repr(value)


def _stream_name(stream: Any) -> str:
    if stream is None or stream is sys.stderr:
        return "stderr"
    if stream is sys.stdout:
        return "stdout"
    if isinstance(stream, str) and stream.startswith("file://"):
        return stream
    for name, level in _LEVELS.items():
        if stream in (level, getattr(logging, logging.getLevelName(level).lower())):
            return name
    raise value_error(
        "Unsupported output stream, logging level, or file",
        expected="sys.stderr, sys.stdout, 'file://<filepath>', or logging.INFO, WARNING, ERROR",
        received=repr(stream),
    )


# -- Assert


def assertion_message(data: Sequence[Any], summarize: int) -> str:
    """The error text of a failed `Assert`."""
    shown = (f"[{summarize_first(np.asarray(each), summarize)}]" for each in data)
    return f"assertion failed: {' '.join(shown)}"


def _assert(condition: Any, *data: Any, summarize: int) -> list[Any]:
    if not condition:
        raise InvalidArgumentError(None, None, assertion_message(data, summarize))
    return []


register(
    "Assert",
    _assert,
    infer=no_outputs,
    gradient=None,
    where="host",
    pure=False,
    cases=lambda: [Case((np.asarray(True), np.asarray([1, 2])), {"summarize": 3}, ())],
)


def Assert(
    condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """Returns an operation that raises `InvalidArgumentError` unless `condition` holds.

    Run it, or build dependent operations under `control_dependencies([assertion])`.

    Args:
        condition: a bool scalar.
        data: tensors and values to print in the error.
        summarize: the number of elements to print of each; 3 by default, all if negative.

    Raises:
        TypeError: `data` is not a list or tuple.
    """
    if not isinstance(data, Sequence) or isinstance(data, (str, bytes)):
        raise TypeError(f"Expected list for 'data' argument to 'Assert' Op, not {data!r}.")
    with get_default_graph().name_scope(name or "Assert"):
        tensors = [convert_to_tensor(each, name="data") for each in data]
        checked = convert_to_tensor(condition, bool_, "condition")
        attrs = {"summarize": _SHOWN if summarize is None else int(summarize)}
        return apply("Assert", [checked, *tensors], attrs, "Assert")


# -- infinities and NaN


def numerics_problem(value: Any) -> str | None:
    """The non-finite values of an array: 'Inf', 'NaN', 'Inf and NaN', or None."""
    if np.isfinite(value).all():
        return None
    found = [("Inf", np.isinf(value).any()), ("NaN", np.isnan(value).any())]
    return " and ".join(name for name, there in found if there)


def _check_numerics(value: Any, message: str) -> Any:
    problem = numerics_problem(value)
    if problem is not None:
        raise InvalidArgumentError(None, None, f"{message} : Tensor had {problem} values")
    return value


def _check_numerics_gradient(op: Operation, gradient: Tensor) -> list[Tensor]:
    found = "Not a number (NaN) or infinity (Inf) values detected in gradient. "
    return [check_numerics(gradient, found + str(op.attrs["message"]))]


register(
    "CheckNumerics",
    _check_numerics,
    infer=same_as_input(),
    gradient=_check_numerics_gradient,
    where="host",
    accepts="f",
    pure=False,
    cases=lambda: [Case((_SAMPLE,), {"message": "x"}, _SAMPLE)],
)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """Returns `tensor`; at run time, raises `InvalidArgumentError` if it has Inf or NaN.

    Args:
        tensor: a floating or complex tensor.
        message: the beginning of the error text.
    """
    value = convert_to_tensor(tensor, name="tensor")
    return output("CheckNumerics", [value], {"message": message}, name)


def verify_tensor_all_finite(
    t: Any = None,
    msg: str | None = None,
    name: str | None = None,
    x: Any = None,
    message: Any = None,
) -> Tensor:
    """Returns `t`, after a check for infinities and NaN (see `check_numerics`).

    Args:
        t: a floating tensor (`x` is its newer name).
        msg: the beginning of the error text (`message` is its newer name).
    """
    with get_default_graph().name_scope(name or "VerifyFinite"):
        tensor = convert_to_tensor(x if t is None else t, name="t")
        checked = check_numerics(tensor, message if msg is None else msg)
        result: Tensor = with_dependencies([checked], tensor, name="control_dependency")
        return result


def add_check_numerics_ops() -> Operation:
    """An operation that checks every floating tensor of the graph, in creation order.

    The error names the operation that produced the invalid value.
    """
    checks: list[Operation] = []
    for op in get_default_graph().get_operations():
        for position, tensor in enumerate(op.outputs):
            if tensor.dtype.is_floating:
                with get_default_graph().control_dependencies(checks[-1:]):
                    checks.append(check_numerics(tensor, f"{op.name}:{position}").op)
    done: Operation = group(*checks)
    return done


# -- others


def with_dependencies(
    dependencies: Sequence[Any], output_tensor: Any, name: str | None = None
) -> Any:
    """`output_tensor` (a tensor, sparse tensor or `IndexedSlices`), available only after
    `dependencies`.
    """
    graph = get_default_graph()
    with graph.name_scope(name or "control_dependency") as scope:
        if is_composite(output_tensor):
            with graph.control_dependencies(dependencies):
                return identity(output_tensor)
        tensor = convert_to_tensor(output_tensor)
        with graph.control_dependencies(dependencies):
            return identity(tensor, name=scope)


register(
    "Timestamp",
    lambda: np.asarray(time.time()),
    infer=fixed(float64),
    gradient=None,
    where="host",
    pure=False,
)


def timestamp(name: str | None = None) -> Tensor:
    """The time of execution, in seconds since 1970, as float64."""
    return output("Timestamp", (), {}, name)
