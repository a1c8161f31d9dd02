"""`lax.scan` whose weight gradients are computed by one product after the loop.

`lax.scan` accumulates the gradient of a recurrent step's weights inside the backward loop: one
small product per step, and a sum as large as the weights. Here the backward loop returns the
gradients of the products' results, and one product over all steps computes the weights' gradient
(Appleyard et al. 2016, "Optimizing Performance of Recurrent Neural Networks on GPUs").
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from estimatorkit.ops.math.linalg import matrix_product, transposed_product

Values: TypeAlias = tuple[Any, ...]

_MOST_BYTES = 1 << 28
"""Of gradients kept for the product after the loop (256 MiB); above it they are summed inside."""


Step: TypeAlias = Callable[
    [Values, Values, Values, Callable[[int, Any], Any]], tuple[Values, Values]
]
"""`(constants, carried, element, multiply) -> (carried, results)`, where
`multiply(number, operand)` gives the step's product of that number: operand @ weights."""


def scan(
    step: Step,
    constants: Sequence[Any],
    start: Sequence[Any],
    elements: Sequence[Any],
    weights: Sequence[int],
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Values, Values]:
    """Runs a step for each element with carried values.

    Args:
        step: the step; see `Step`. It calls `multiply` once for each product.
        constants: arrays visible to all steps; the step uses no other traced values.
        start: the initial carry.
        elements: arrays whose rows are the elements.
        weights: for each product of the step, the index of the constant (a matrix) it multiplies
            by.
        length: the number of steps if there are no elements.
        reverse: start with the last element.

    Returns:
        The last carry, and the stacked results.
    """
    constants, start, elements = tuple(constants), tuple(start), tuple(elements)

    def run(constants: Values, start: Values, elements: Values) -> tuple[Values, Values]:
        @_recomputing
        def one(carried: Values, element: Values) -> tuple[Values, Values]:
            return step(
                constants,
                carried,
                element,
                lambda number, operand: matrix_product(operand, constants[weights[number]]),
            )

        found: tuple[Values, Values] = lax.scan(
            one, start, elements, length=length, reverse=reverse
        )
        return found

    count = elements[0].shape[0] if elements else int(length or 0)
    if count < 2 or not weights:
        return run(constants, start, elements)
    probes = _probes(step, constants, start, elements, weights, count)
    if sum(math.prod(shape) * dtype.itemsize for shape, dtype in probes) > _MOST_BYTES:
        return run(constants, start, elements)

    def with_probes(
        weights_of: Values, constants: Values, start: Values, elements: Values, probes: Values
    ) -> Any:
        """`run` with a probe added to each product; also returns the products' operands."""

        @_recomputing
        def one(carried: Values, element: tuple[Values, Values]) -> Any:
            row, added = element
            operands: dict[int, Any] = {}

            def multiply(number: int, operand: Any) -> Any:
                operands[number] = operand
                return matrix_product(operand, weights_of[weights[number]]) + added[number]

            after, results = step(constants, carried, row, multiply)
            return after, (results, tuple(operands[number] for number in range(len(weights))))

        end, (results, operands) = lax.scan(
            one, start, (elements, probes), length=length, reverse=reverse
        )
        return (end, results), operands

    def forward(constants: Values, start: Values, elements: Values) -> Any:
        def of_others(*others: Values) -> Any:
            return with_probes(constants, *others)

        zeros = tuple(jnp.zeros(*probe) for probe in probes)
        result, back, operands = jax.vjp(of_others, constants, start, elements, zeros, has_aux=True)
        return result, (back, operands)

    def backward(residuals: Any, incoming: Any) -> Any:
        back, operands = residuals
        of_constants, of_start, of_elements, of_products = back(incoming)
        sums = list(of_constants)
        for at, operand, gradient in zip(weights, operands, of_products, strict=True):
            sums[at] = sums[at] + transposed_product(_rows(operand), _rows(gradient))
        return tuple(sums), of_start, of_elements

    differentiable = jax.custom_vjp(run)
    differentiable.defvjp(forward, backward)
    found: tuple[Values, Values] = differentiable(constants, start, elements)
    return found


def _probes(
    step: Step,
    constants: Values,
    start: Values,
    elements: Values,
    weights: Sequence[int],
    count: int,
) -> list[tuple[tuple[int, ...], Any]]:
    """Shape and dtype of each product's results over all steps."""
    found: dict[int, Any] = {}

    def first(constants: Values, carried: Values, elements: Values) -> Any:
        def multiply(number: int, operand: Any) -> Any:
            product = matrix_product(operand, constants[weights[number]])
            found[number] = ((count, *product.shape), product.dtype)
            return product

        return step(constants, carried, tuple(each[0] for each in elements), multiply)

    jax.eval_shape(first, constants, start, elements)
    return [found[number] for number in range(len(weights))]


_CHEAP = frozenset(
    {"add", "add_any", "broadcast_in_dim", "convert_element_type", "copy", "expand_dims", "mul"}
    | {"neg", "reshape", "select_n", "slice", "split", "squeeze", "stop_gradient", "sub"}
)
"""Primitives that the backward loop recomputes, which takes no longer than reading saved results:
an LSTM cell with dropout keeps 8 arrays for each step instead of 16."""


def _is_kept(primitive: Any, *_: Any, **__: Any) -> bool:
    return primitive.name not in _CHEAP


_recomputing = functools.partial(jax.checkpoint, policy=_is_kept, prevent_cse=False)


def _rows(array: Any) -> Any:
    return array.reshape(-1, array.shape[-1])
