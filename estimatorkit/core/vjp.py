"""`VectorJacobianProduct`: the gradient of an operation whose kernel JAX differentiates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import resource
from estimatorkit.core.registry import Case, Spec
from estimatorkit.core.retraced import retraced
from estimatorkit.core.sizes import is_symbolic
from estimatorkit.core.tensor import Operation, Tensor


def vjp(
    op: Operation,
    incoming: Sequence[Any],
    wanted: tuple[int, ...],
    forward_type: str | None = None,
    inputs: Sequence[Tensor] | None = None,
) -> list[Tensor]:
    """Adds the backward operation of an operation whose kernel JAX can differentiate.

    Args:
        op: the forward operation.
        incoming: the gradient of each output, or None.
        wanted: the positions of the inputs to differentiate by.
        forward_type: the op type whose kernel is differentiated instead of the operation's.
        inputs: where it is differentiated; the operation's inputs by default.
    """
    given = tuple(
        position
        for position, gradient in enumerate(incoming)
        if gradient is not None and op.outputs[position].dtype.is_differentiable
    )
    attrs = {
        "forward_type": forward_type or op.type,
        "forward_attrs": op.kernel_attrs,
        "wanted": wanted,
        "given": given,
        "inputs": len(op.inputs),
        "outputs": len(op.outputs),
        # Only the kernel's own gradient can share the forward computation.
        "_forward": op.name if inputs is None and forward_type in (None, op.type) else "",
    }
    dense = [convert_to_tensor(incoming[position]) for position in given]
    backward = registry.apply(
        "VectorJacobianProduct", [*(inputs or op.inputs), *dense], attrs, op.type.lower()
    )
    return list(backward.outputs)


def pull_back(
    forward_type: str,
    forward_attrs: Mapping[str, Any],
    inputs: Sequence[Any],
    wanted: Sequence[int],
    context: Any = None,
) -> tuple[tuple[Any, ...], Any]:
    """`jax.vjp` of a forward kernel: its outputs, and the function from output to input cotangents.

    Complex gradients follow TensorFlow's convention, the conjugate of JAX's: dy * conj(f'(x)).

    Args:
        forward_type, forward_attrs: those of the forward operation.
        inputs: its inputs.
        wanted: the positions of those to differentiate by.
        context: what else the trace depends on, to reuse it (see `retraced`); None to trace anew.
    """
    taken = tuple(wanted)
    linearized = partial(_linearized, forward_type, forward_attrs, taken)
    if context is not None:
        key = "vjp", forward_type, forward_attrs, taken, context
        (smooth, others, pull), again = retraced(linearized, key, inputs)
    else:
        (smooth, others, pull), again = linearized(*inputs), False
    outputs = {**smooth, **others}

    def back(gradients: Sequence[Any]) -> tuple[Any, ...]:
        of_outputs = conjugated(gradients)
        chosen = {at: of_outputs[at] for at in smooth}
        return conjugated(_pulled(pull, chosen) if again else pull(chosen))

    return tuple(outputs[at] for at in range(len(outputs))), back


def _linearized(
    forward_type: str, forward_attrs: Mapping[str, Any], wanted: tuple[int, ...], *inputs: Any
) -> tuple[dict[int, Any], dict[int, Any], Any]:
    """Linearizes a kernel: its differentiable outputs, the others, and the pullback."""
    row = registry.lookup(forward_type)
    known: dict[int, Any] = {}

    def forward(*chosen: Any) -> tuple[dict[int, Any], dict[int, Any]]:
        arguments = list(inputs)
        for position, value in zip(wanted, chosen, strict=True):
            arguments[position] = value
        result = row.kernel(*arguments, **forward_attrs)
        results = dict(enumerate(result if isinstance(result, (tuple, list)) else (result,)))
        known.update((at, value) for at, value in results.items() if is_symbolic(value))
        traced = {at: jnp.asarray(value) for at, value in results.items() if at not in known}
        smooth = {at: value for at, value in traced.items() if _is_inexact(value)}
        return smooth, {at: value for at, value in traced.items() if at not in smooth}

    given = [jnp.asarray(inputs[position]) for position in wanted]
    smooth, pull, others = jax.vjp(forward, *given, has_aux=True)
    return smooth, {**others, **known}, pull


_pulled = jax.jit(lambda pull, gradients: pull(gradients), inline=True)


def _is_inexact(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def conjugated(gradients: Sequence[Any]) -> tuple[Any, ...]:
    """Conjugates complex gradients, converting between TensorFlow's and JAX's conventions."""
    return tuple(
        each if each is None or np.dtype(each.dtype).kind != "c" else jnp.conj(each)
        for each in gradients
    )


def given_positions(
    forward_type: str, forward_attrs: Mapping[str, Any], given: Sequence[int]
) -> list[int]:
    """The positions of outputs among the kernel's results, after the new values of variables."""
    updates = len(registry.lookup(forward_type).semantics.updated_positions(forward_attrs))
    return [updates + position for position in given]


def output_gradients(
    outputs: Sequence[Any], given: Sequence[int], values: Sequence[Any]
) -> tuple[Any, ...]:
    """The cotangents for `pull_back`: one for each output, zeros if not given, and None for
    integers.
    """
    by_position = dict(zip(given, values, strict=True))
    return tuple(
        None
        if not _is_inexact(output)
        else by_position[position].astype(output.dtype)
        if position in by_position
        else _zeros(output)
        for position, output in enumerate(outputs)
    )


def _zeros(like: Any) -> Any:
    is_constant = all(isinstance(dim, int) for dim in like.shape)
    return (np if is_constant else jnp).zeros(like.shape, like.dtype)


def _kernel(
    *arguments: Any,
    forward_type: str,
    forward_attrs: Mapping[str, Any],
    wanted: tuple[int, ...],
    given: tuple[int, ...],
    inputs: int,
    outputs: int,
) -> tuple[Any, ...]:
    given_outputs, pull = pull_back(forward_type, forward_attrs, arguments[:inputs], wanted)
    at = given_positions(forward_type, forward_attrs, given)
    result: tuple[Any, ...] = pull(output_gradients(given_outputs, at, arguments[inputs:]))
    return result


def _on_host(
    *arguments: Any,
    forward_type: str,
    forward_attrs: Mapping[str, Any],
    wanted: tuple[int, ...],
    given: tuple[int, ...],
    inputs: int,
    outputs: int,
    context: Any,
) -> Sequence[Any]:
    row = registry.lookup(forward_type)
    if row.host_vjp is None:
        raise ValueError(f"{forward_type} has no gradient function that runs on the host")
    by_position = dict(zip(given, arguments[inputs:], strict=True))
    incoming = [by_position.get(position) for position in range(outputs)]
    return row.host_vjp(forward_attrs, arguments[:inputs], incoming, wanted, context)


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [_value_spec(inputs[position]) for position in attrs["wanted"]]


def _value_spec(tensor: Tensor) -> Spec:
    if tensor.dtype is resource:  # of a variable that a function reads
        return Spec(tensor.op.attrs["dtype"], tensor.op.attrs["shape"])
    return Spec(tensor.dtype, tensor.shape)


VECTOR_JACOBIAN_PRODUCT = registry.register(
    "VectorJacobianProduct",
    _kernel,
    infer=_infer,
    where=lambda attrs: registry.lookup(attrs["forward_type"]).placement.place(
        attrs["forward_attrs"]
    ),
    numpy_kernel=_on_host,
    context=True,
    pure=True,
    static=lambda attrs: registry.lookup(attrs["forward_type"]).semantics.static_positions(
        attrs["forward_attrs"]
    ),
    cases=lambda: [
        Case(
            (np.array([3.0, -1.0], np.float32), np.array([0.5, 2.0], np.float32)),
            {
                "forward_type": "Square",
                "forward_attrs": {},
                "wanted": (0,),
                "given": (0,),
                "inputs": 1,
                "outputs": 1,
                "_forward": "",
            },
            np.array([3.0, -4.0], np.float32),
        )
    ],
)
