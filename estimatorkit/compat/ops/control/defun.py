"""`Defun`: a Python function as one operation, traced and compiled once per signature."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from estimatorkit.core import nest
from estimatorkit.core.builtin_ops import group
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.function_graph import GraphFunction, acts, trace
from estimatorkit.core.gradients import own_gradient
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.nest import expand
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.control.function_ops import make_function_op


class Defun:
    """A decorator that turns each call of a function into one operation (`tf.function.Defun`).

    The function is traced once per combination of its arguments' dtypes and static shapes, and
    differentiated as a whole unless a gradient is given.

    Args:
        *input_types: the arguments' dtypes; those of the first call by default.
        func_name: the operations' name; the function's own by default.
        grad_func: a `Defun` from the arguments and the results' gradients to the arguments'
            gradients.
        python_grad_func: a function from the operation and its outputs' gradients to its inputs'
            gradients.
        out_names, shape_func, noinline: accepted for compatibility only (shapes are inferred).
    """

    def __init__(self, *input_types: Any, **keywords: Any) -> None:
        known = {
            "func_name",
            "grad_func",
            "python_grad_func",
            "out_names",
            "shape_func",
            "noinline",
            "separate_compiled_gradients",
        }
        unknown = sorted(set(keywords) - known)
        if unknown:
            raise ValueError(f"Unknown keyword arguments: {unknown}.")
        self._input_types = [as_dtype(each) for each in input_types]
        self._keywords = keywords

    def __call__(self, function: Callable[..., Any]) -> DefinedFunction:
        """Wraps the function so that each call creates one operation.

        Raises:
            ValueError: it is not callable, takes keyword arguments or has defaults, or its number
                of arguments differs from that of the input types.
        """
        if not callable(function):
            raise ValueError(f"Function {function} must be a callable.")
        parameters = inspect.signature(function).parameters.values()
        kinds = {parameter.kind for parameter in parameters}
        with_default = any(each.default is not each.empty for each in parameters)
        if inspect.Parameter.VAR_KEYWORD in kinds or with_default:
            raise ValueError(
                "Functions with argument defaults or keywords arguments are not supported. "
                f"{function!r} has some."
            )
        fixed = inspect.Parameter.VAR_POSITIONAL not in kinds
        if self._input_types and fixed and len(parameters) != len(self._input_types):
            raise value_error(
                "The number of tf.function input types is not compatible with the allowed "
                f"arguments of {function!r}",
                expected=f"{len(self._input_types)}, one for each input type",
                received=len(parameters),
            )
        return DefinedFunction(function, self._input_types, self._keywords)


class DefinedFunction:
    """A function whose calls are operations; made by `Defun`."""

    def __init__(
        self,
        function: Callable[..., Any],
        input_types: Sequence[DType],
        keywords: dict[str, Any],
    ) -> None:
        self._function = function
        self._types = list(input_types)
        self.name: str = keywords.get("func_name") or function.__name__
        self._keywords = keywords
        self._gradient = _gradient_of(keywords)
        self._traced: dict[Any, GraphFunction] = {}
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    @property
    def declared_input_types(self) -> list[DType]:
        """The dtypes of the arguments, as declared."""
        return list(self._types)

    @property
    def captured_inputs(self) -> list[Tensor]:
        """The captured tensors, known after the first call."""
        return [each for function in self._traced.values() for each in function.captured]

    @property
    def functions(self) -> list[GraphFunction]:
        """The traced functions, one per combination of dtypes and shapes."""
        return list(self._traced.values())

    def __call__(self, *arguments: Any, name: str | None = None) -> Any:
        """Adds a call to the default graph.

        Raises:
            ValueError: the number of arguments differs from that of the input types.
            TypeError: an argument has another dtype.
        """
        types: Sequence[Any] = self._types or [None] * len(arguments)
        if len(types) != len(arguments):
            raise value_error(
                f"Expected {len(types)} arguments, got {len(arguments)}",
                hint=f"the signature is {self.name}"
                f"({', '.join(each.name for each in self._types)})",
            )
        tensors = [
            convert_to_tensor(value, dtype) for value, dtype in zip(arguments, types, strict=True)
        ]
        function = self._trace(tensors)
        attrs = {} if self._gradient is None else own_gradient(self._gradient)
        op = make_function_op(
            "Call", tensors, [function], [range(len(tensors))], attrs, name or self.name
        )
        _, rebuild = expand(function.structure)
        if isinstance(function.structure, Operation):
            return op
        return rebuild(op.outputs)

    def _trace(self, tensors: Sequence[Tensor]) -> GraphFunction:
        graph = get_default_graph()
        shapes = tuple(tensor.shape.dims for tensor in tensors)
        key = (graph, tuple(tensor.dtype for tensor in tensors), shapes)
        found = self._traced.get(key)
        if found is None:
            found = self._traced[key] = trace(
                self._function, tensors, convert=lambda returned: _results(returned)
            )
            names = self._keywords.get("out_names")
            if names is not None and len(names) != len(found.outputs):
                raise InvalidArgumentError(
                    None,
                    None,
                    "output names must be either empty or equal in size to outputs. output names "
                    f"size = {len(names)} outputs size = {len(found.outputs)}",
                )
        return found


def _results(returned: Any) -> Any:
    if returned is None:  # a function called for its side effects
        done = [op for op in get_default_graph().get_operations() if acts(op)]
        return group(*done)
    return nest.map_structure(
        lambda leaf: leaf if isinstance(leaf, Operation) else convert_to_tensor(leaf), returned
    )


def _gradient_of(keywords: dict[str, Any]) -> Callable[..., Any] | None:
    python, defined = keywords.get("python_grad_func"), keywords.get("grad_func")
    if python is not None and defined is not None:
        raise ValueError("Gradient defined twice: give grad_func or python_grad_func.")
    if python is not None:
        chosen: Callable[..., Any] = python
        return chosen
    if defined is None:
        return None

    def gradient(op: Operation, *incoming: Tensor) -> list[Any]:
        count = op.attrs["leading"]
        results = defined(*op.inputs[:count], *incoming)
        found = list(results) if isinstance(results, (list, tuple)) else [results]
        return [*found, *[None] * (len(op.inputs) - count)]

    return gradient


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Gradient checkpointing: recomputes the values within `f` for its gradients instead of keeping
    them (`tf.recompute_grad`).

    Args:
        f: takes tensors (and other values, by keyword or position) and returns tensors; it may
            create and use variables.
    """

    @functools.wraps(f)
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        leaves = nest.flatten(args)
        at = [number for number, leaf in enumerate(leaves) if _is_value(leaf)]
        tensors = [convert_to_tensor(leaves[number]) for number in at]

        def body(*inputs: Tensor) -> Any:
            own = list(leaves)
            for number, value in zip(at, inputs, strict=True):
                own[number] = value
            return f(*nest.pack_sequence_as(args, own), **kwargs)

        function = trace(body, tensors, lambda inputs: inputs, _results)
        name = getattr(f, "__name__", "").strip("<>_") or "recomputed"
        op = make_function_op(
            "Call", tensors, [function], [range(len(tensors))], {"recomputed": True}, name
        )
        return expand(function.structure)[1](op.outputs)

    return recomputed


def _is_value(leaf: Any) -> bool:
    return isinstance(leaf, (Tensor, np.ndarray, float)) or hasattr(leaf, "_as_tensor")


__all__ = ["DefinedFunction", "Defun", "recompute_grad"]
