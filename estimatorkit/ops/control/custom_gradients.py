"""User-defined gradients (`custom_gradient`) and `hessians`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core import nest, registry
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import value_error
from estimatorkit.core.gradients import captured_from, gradients, own_gradient
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.array.array import reshape, shape


def _infer_identity(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(tensor.dtype, tensor.shape) for tensor in inputs]


register(
    "IdentityN",
    lambda *inputs: inputs,
    infer=_infer_identity,
    gradient="same",
    numpy_kernel=lambda *inputs: inputs,
    cases=lambda: [Case((np.array([1.0, 2.0], np.float32), np.array([3], np.int32)))],
)


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a function that returns `(result, grad_fn)`; `grad_fn` is its gradient.

    Works like `tf.custom_gradient` in a graph.

    Args:
        f: takes tensors; returns its result (a tensor or a structure of them) and a function from
            the results' gradients to the gradient of each argument. If `f` uses variables,
            `grad_fn` must take `variables` and also return a list of their gradients.

    Raises:
        TypeError: variables are used, and `grad_fn` does not take `variables`.
        ValueError: `grad_fn` returns the wrong number of gradients.
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        graph = get_default_graph()
        with graph.name_scope("CustomGradient"):
            arguments = [convert_to_tensor(each) for each in nest.flatten(args)]
            before = list(graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES))
            result, grad_fn = f(*nest.pack_sequence_as(args, arguments), **kwargs)
            results = [convert_to_tensor(each) for each in nest.flatten(result)]
            known = graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES)
            used = _handles_between(arguments, results)
            variables = [each for each in known if each.handle in used or each not in before]
            if variables and not _takes_variables(grad_fn):
                raise TypeError(
                    "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since "
                    f"function uses variables: {variables}"
                )

            def gradient(op: Operation, *incoming: Tensor) -> list[Any]:
                given = incoming[: len(results)]
                keywords = {"variables": variables} if variables else {}
                found = grad_fn(*given, **keywords)
                of_variables: Sequence[Any] = ()
                if variables:
                    found, of_variables = found
                flat = nest.flatten(found)
                if len(flat) != len(arguments):
                    raise value_error(
                        f"Num gradients {len(flat)} given by grad_fn of custom_gradient do not "
                        f"match num inputs {len(arguments)}",
                        expected="one for each argument",
                    )
                return [*[None] * len(results), *flat, *of_variables]

            # The arguments are inputs too, so that a path connects them to the results.
            inputs = [
                *results,
                *arguments,
                *(convert_to_tensor(variable) for variable in variables),
            ]
            op = registry.apply("IdentityN", inputs, own_gradient(gradient), "IdentityN")
            return nest.pack_sequence_as(result, op.outputs[: len(results)])

    return decorated


def _takes_variables(grad_fn: Callable[..., Any]) -> bool:
    parameters = inspect.signature(grad_fn).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    return "variables" in parameters or inspect.Parameter.VAR_KEYWORD in kinds


def _handles_between(arguments: Sequence[Tensor], results: Sequence[Tensor]) -> set[Tensor]:
    """Handles of variables that the results depend on other than through the arguments."""
    around = captured_from(get_default_graph())
    found: set[Tensor] = set()
    seen = set(arguments)
    pending = list(results)
    while pending:
        tensor = pending.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        if tensor in around:
            pending.append(around[tensor])
        elif tensor.dtype is resource:
            found.add(tensor)
        pending.extend(tensor.op.inputs)
    return found


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `f` with the identity's gradient (a straight-through estimator).

    Args:
        f: maps tensors to as many tensors of the same shapes.
    """

    @custom_gradient
    def function(*args: Any, **kwargs: Any) -> Any:
        def grad(*incoming: Tensor, variables: Sequence[Any] = ()) -> Any:
            return (incoming, [None] * len(variables)) if variables else incoming

        return f(*args, **kwargs), grad

    functools.update_wrapper(function, f)
    return function


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
) -> list[Tensor]:
    """The second derivatives of the sum of ys with respect to each x.

    Args:
        ys: a tensor or a list of them.
        xs: a tensor or a list of them, with static shapes.
        colocate_gradients_with_ops, gate_gradients, aggregation_method: accepted for compatibility
            only.

    Returns:
        For each x a tensor of shape `x.shape + x.shape`.
    """
    from estimatorkit.ops.array.joining import concat
    from estimatorkit.ops.control.higher_order import map_fn

    sources = list(xs) if isinstance(xs, (list, tuple)) else [xs]
    found = []
    with get_default_graph().name_scope(name):
        for x in sources:
            tensor = convert_to_tensor(x)
            count = tensor.shape.num_elements()
            if count is None:
                raise value_error(
                    "hessians: the shape of x must be known",
                    received=tensor,
                    made_at=tensor.op.source,
                )
            slope = reshape(gradients(ys, x)[0], [-1])
            rows = map_fn(
                functools.partial(_curvature, slope, x),
                np.eye(count, dtype=tensor.dtype.numpy_dtype),
            )
            dims = concat([shape(tensor), shape(tensor)], 0)
            found.append(reshape(rows, dims))
    return found


def _curvature(slope: Tensor, x: Any, row: Tensor) -> Tensor:
    return convert_to_tensor(gradients(slope, x, row)[0])


__all__ = ["custom_gradient", "grad_pass_through", "hessians"]
