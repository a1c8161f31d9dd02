"""`RecurrentLoop`: an LSTM or GRU over all steps as one operation with its own backward loop.

For the common cells (tanh and sigmoid). All gates are one tanh over one array, a step keeps little
but its gates for the backward pass, and the weights' gradients are one product after the loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import Case, Spec, apply, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.math.linalg import transposed_product

Arrays: TypeAlias = tuple[Any, ...]
# XLA fuses the computation of a value into each of its readers and repeats it there. The barriers
# keep values that cost a tanh or are read in parts: the gates of 100 steps take 1.7 ms with them,
# and 12 ms without.
_barrier: Any = lax.optimization_barrier


class _Kind(NamedTuple):
    """A cell, for the loops below.

    Attributes:
        gates: how many columns there are to a unit.
        forward: `(projected, product with the state, states) -> (new states, what to keep)`.
        backward: `(kept, output before, gradients of the new states) -> (gradient of projected,
            that of the product where it is another, gradients of the states but for the product)`.
    """

    gates: int
    forward: Callable[[Any, Any, Arrays], tuple[Arrays, Arrays]]
    backward: Callable[[Arrays, Any, Arrays], tuple[Any, Any, Arrays]]


def _columns(array: Any, count: int) -> list[Any]:
    return jnp.split(array, count, axis=1)


def _sigmoid(array: Any) -> Any:
    return 0.5 * jnp.tanh(0.5 * array) + 0.5


def _lstm_forward(projected: Any, product: Any, states: Arrays) -> tuple[Arrays, Arrays]:
    _, memory = states
    units = memory.shape[1]
    # sigmoid(x) is tanh(x / 2) / 2 + 1 / 2: input, forget, candidate, output in one tanh.
    scale, shift = (
        jnp.asarray(np.repeat(each, units), projected.dtype)
        for each in ([0.5, 0.5, 1.0, 0.5], [0.5, 0.5, 0.0, 0.5])
    )
    gates = _barrier(jnp.tanh((projected + product) * scale) * scale + shift)
    i, f, g, o = _columns(gates, 4)
    new = _barrier(f * memory + i * g)
    return (o * jnp.tanh(new), new), (gates, memory)


def _lstm_backward(kept: Arrays, before: Any, incoming: Arrays) -> tuple[Any, Any, Arrays]:
    gates, memory = kept
    of_output, of_memory = incoming
    i, f, g, o = _columns(gates, 4)
    shown = _barrier(jnp.tanh(f * memory + i * g))
    of_memory = _barrier(of_memory + of_output * o * (1 - shown * shown))
    # The derivative of a sigmoid s is (1 - s) * s, that of a tanh t is (1 - t) * (t + 1).
    shift = jnp.asarray(np.repeat([0.0, 0.0, 1.0, 0.0], memory.shape[1]), gates.dtype)
    of_gates = jnp.concatenate(
        [of_memory * g, of_memory * memory, of_memory * i, of_output * shown], axis=1
    )
    of_gates = of_gates * ((1 - gates) * (gates + shift))
    return _barrier(of_gates), None, (jnp.zeros_like(of_output), of_memory * f)


def _gru_forward(projected: Any, product: Any, states: Arrays) -> tuple[Arrays, Arrays]:
    (state,) = states
    units = state.shape[1]
    gates = _barrier(_sigmoid(projected[:, : 2 * units] + product[:, : 2 * units]))
    z, r = _columns(gates, 2)
    reset = product[:, 2 * units :]
    candidate = _barrier(jnp.tanh(projected[:, 2 * units :] + r * reset))
    return (z * state + (1 - z) * candidate,), (gates, candidate, reset)


def _gru_backward(kept: Arrays, before: Any, incoming: Arrays) -> tuple[Any, Any, Arrays]:
    gates, candidate, reset = kept
    (of_state,) = incoming
    z, r = _columns(gates, 2)
    of_candidate = _barrier(of_state * (1 - z) * (1 - candidate * candidate))
    of_gates = [
        of_state * (before - candidate) * z * (1 - z),
        of_candidate * reset * r * (1 - r),
    ]
    of_projected = _barrier(jnp.concatenate([*of_gates, of_candidate], axis=1))
    of_product = _barrier(jnp.concatenate([*of_gates, of_candidate * r], axis=1))
    return of_projected, of_product, (of_state * z,)


_KINDS = {
    "LSTM": _Kind(4, _lstm_forward, _lstm_backward),
    "GRU": _Kind(3, _gru_forward, _gru_backward),
}


def _where(mask: Any, new: Any, old: Any) -> Any:
    return new if mask is None else jnp.where(mask[:, None], new, old)


def _run(
    kind: str,
    reverse: bool,
    keep: bool,
    columns: tuple[Any, Any],
    weights: tuple[Any, Any],
    states: Arrays,
) -> tuple[Arrays, Arrays, Arrays]:
    """The outputs of all steps, the last states, and the residuals of the steps."""
    kernel, bias = weights

    def one(states: Arrays, column: tuple[Any, Any]) -> tuple[Arrays, Any]:
        projected, mask = column
        product = states[0] @ kernel
        product = product if bias is None else product + bias
        new, kept = _KINDS[kind].forward(projected, product, states)
        new = tuple(_where(mask, one, other) for one, other in zip(new, states, strict=True))
        return new, (new[0], kept if keep else ())

    last, (outputs, kept) = lax.scan(one, states, columns, reverse=reverse)
    return outputs, last, kept


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _loop(
    kind: str, reverse: bool, columns: tuple[Any, Any], weights: tuple[Any, Any], states: Arrays
) -> tuple[Any, Arrays]:
    outputs, last, _ = _run(kind, reverse, False, columns, weights, states)
    return outputs, last


def _loop_forward(
    kind: str, reverse: bool, columns: tuple[Any, Any], weights: tuple[Any, Any], states: Arrays
) -> Any:
    outputs, last, kept = _run(kind, reverse, True, columns, weights, states)
    return (outputs, last), (columns[1], weights, states[0], outputs, kept)


def _loop_backward(kind: str, reverse: bool, residuals: Any, incoming: Any) -> Any:
    masks, (kernel, bias), first, outputs, kept = residuals
    of_outputs, of_last = incoming
    before = (
        jnp.concatenate([outputs, first[None]])[1:]
        if reverse
        else jnp.concatenate([first[None], outputs])[:-1]
    )

    def one(of_states: Arrays, column: Any) -> tuple[Arrays, Any]:
        of_output, kept, before, mask = column
        of_states = (_barrier(of_states[0] + of_output), *of_states[1:])
        zero = jnp.zeros_like(of_states[0])
        of_new = tuple(_where(mask, each, zero) for each in of_states)
        of_projected, of_product, of_before = _KINDS[kind].backward(kept, before, of_new)
        entering = of_projected if of_product is None else of_product
        of_before = (of_before[0] + entering @ kernel.T, *of_before[1:])
        if mask is not None:
            of_before = tuple(
                each + jnp.where(mask[:, None], zero, kept)
                for each, kept in zip(of_before, of_states, strict=True)
            )
        return of_before, (of_projected, of_product)

    of_states, (of_projected, of_product) = lax.scan(
        one, of_last, (of_outputs, kept, before, masks), reverse=not reverse
    )
    entering = of_projected if of_product is None else of_product
    width = entering.shape[-1]
    of_kernel = transposed_product(
        before.reshape(-1, before.shape[-1]), entering.reshape(-1, width)
    )
    of_bias = None if bias is None else entering.sum((0, 1)).astype(bias.dtype)
    return (of_projected, None), (of_kernel, of_bias), of_states


_loop.defvjp(_loop_forward, _loop_backward)


def _kernel(
    projected: Any, kernel: Any, *rest: Any, kind: str, biased: bool, masked: bool, reverse: bool
) -> Arrays:
    given = [jnp.asarray(each) for each in rest]
    bias = given.pop(0) if biased else None
    mask = given.pop(0) if masked else None
    columns, weights = (jnp.asarray(projected), mask), (jnp.asarray(kernel), bias)
    outputs, last = _loop(kind, reverse, columns, weights, tuple(given))
    return (outputs, *last)


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    gates = _KINDS[attrs["kind"]].gates
    projected, kernel, *rest = inputs
    bias = rest.pop(0) if attrs["biased"] else None
    mask = rest.pop(0) if attrs["masked"] else None
    parts = (
        (projected, ("steps", "batch", "columns")),
        (kernel, ("units", "columns")),
        (bias, ("columns",)),
        (mask, ("steps", "batch")),
        *((state, ("batch", "units")) for state in rest),
    )
    found: dict[str, int | None] = dict.fromkeys(("steps", "batch", "units"))
    for tensor, names in parts:
        dims = None if tensor is None else tensor.shape.dims
        for name, size in zip(names, dims or [None] * len(names), strict=True):
            if tensor is None or size is None:
                continue
            times = gates if name == "columns" else 1
            what = "units" if name == "columns" else name
            if size % times or found[what] not in (None, size // times):
                raise value_error(
                    f"RecurrentLoop ({attrs['kind']}) cannot take these shapes: {what} differ",
                    expected=f"({', '.join(names)}) with {found}, columns {gates} * units",
                    received=tensor,
                    made_at=tensor.op.source,
                )
            found[what] = size // times
    steps, batch, units = found["steps"], found["batch"], found["units"]
    each = Spec(projected.dtype, TensorShape([batch, units]))
    return [Spec(projected.dtype, TensorShape([steps, batch, units])), *(each for _ in rest)]


def _reference(
    projected: Any, kernel: Any, *rest: Any, kind: str, biased: bool, masked: bool, reverse: bool
) -> Arrays:
    """NumPy reference from the papers' formulas."""
    given = list(rest)
    bias = given.pop(0) if biased else 0
    mask = given.pop(0) if masked else np.ones(projected.shape[:2], bool)
    outputs = np.zeros((*projected.shape[:2], len(kernel)), projected.dtype)
    steps = range(len(projected))

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    for at in reversed(steps) if reverse else steps:
        product = given[0] @ kernel + bias
        if kind == "LSTM":
            i, f, g, o = np.split(projected[at] + product, 4, 1)
            memory = sigmoid(f) * given[1] + sigmoid(i) * np.tanh(g)
            new = [sigmoid(o) * np.tanh(memory), memory]
        else:
            (pz, pr, ph), (qz, qr, qh) = (np.split(x, 3, 1) for x in (projected[at], product))
            z, r = sigmoid(pz + qz), sigmoid(pr + qr)
            new = [z * given[0] + (1 - z) * np.tanh(ph + r * qh)]
        given = [
            np.where(mask[at][:, None], one, other).astype(projected.dtype)
            for one, other in zip(new, given, strict=True)
        ]
        outputs[at] = given[0]
    return (outputs, *given)


def _cases() -> list[Case]:
    def numbers(*shape: int) -> Any:
        count = int(np.prod(shape))
        return np.sin(np.arange(count, dtype=np.float32) * 1.7 + len(shape)).reshape(shape)

    mask = np.array([[True, False], [True, True], [False, True]])
    lstm = (numbers(3, 2, 8), numbers(2, 8))
    gru = (numbers(3, 2, 6), numbers(2, 6), numbers(6))
    state, memory = numbers(2, 2), numbers(2, 2) / 2
    return [
        Case(
            (*lstm, state, memory),
            {"kind": "LSTM", "biased": False, "masked": False, "reverse": False},
        ),
        Case(
            (*gru, mask, state),
            {"kind": "GRU", "biased": True, "masked": True, "reverse": True},
        ),
    ]


register("RecurrentLoop", _kernel, accepts="f", infer=_infer, numpy_kernel=_reference, cases=_cases)


def recurrent_loop(
    kind: str,
    projected: Any,
    kernel: Any,
    bias: Any,
    states: Sequence[Any],
    mask: Any = None,
    reverse: bool = False,
    name: str | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """An LSTM or a GRU (its reset gate after the product) over all steps.

    Args:
        kind: 'LSTM' (gates input, forget, candidate, output) or 'GRU' (update, reset, candidate).
        projected: the products with the inputs, with their bias, `(steps, batch, gates * units)`.
        kernel: of the products with the output before, `(units, gates * units)`.
        bias: of these products, `(gates * units,)`; or None.
        states: before the first step, `(batch, units)` each: the output, and an LSTM's memory.
        mask: bool `(steps, batch)`: the steps that change the states; all by default.
        reverse: begin with the last step.

    Returns:
        The outputs `(steps, batch, units)`, each at its step's place, and the last states.
    """
    given = [projected, kernel, *([] if bias is None else [bias])]
    given += [*([] if mask is None else [mask]), *states]
    attrs = {"kind": kind, "biased": bias is not None, "masked": mask is not None}
    inputs = [convert_to_tensor(each) for each in given]
    op = apply("RecurrentLoop", inputs, {**attrs, "reverse": reverse}, name or kind)
    return op.outputs[0], list(op.outputs[1:])
