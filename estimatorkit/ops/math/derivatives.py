"""Derivatives of kernels that are not JAX's: TensorFlow's, at ties, bounds and singular points.

`with_partials` gives a kernel its partial derivatives, which are differentiated in turn; `guarded`
is for those that are infinite at a point where the incoming gradient may be 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def with_partials(
    function: Callable[..., Any], *partials: Callable[..., Any] | None
) -> Callable[..., Any]:
    """`function` with the given derivatives.

    Args:
        function: a kernel of as many arrays as there are partials, with one result.
        partials: `partial(tangent, result, *inputs)` for each input, linear in the tangent; None
            for an input without a derivative.
    """
    differentiable = jax.custom_jvp(function)

    @differentiable.defjvp
    def derivative(inputs: Any, tangents: Any) -> Any:
        inputs = [*map(jnp.asarray, inputs)]
        result = differentiable(*inputs)
        if not jnp.issubdtype(result.dtype, jnp.inexact):  # integers have no derivative
            return result, np.zeros(result.shape, jax.dtypes.float0)
        terms = [
            partial(tangent, result, *inputs)
            for partial, tangent in zip(partials, tangents, strict=True)
            if partial is not None
        ]
        total = sum(terms[1:], terms[0])
        return result, jnp.broadcast_to(total, result.shape).astype(result.dtype)

    return differentiable


def guarded(function: Callable[..., Any], slope: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with a derivative (of its value) that maps a zero gradient to 0 even if infinite.

    As in TensorFlow: so `where(x > 0, sqrt(x), 0)` has no NaN in its gradient at 0.
    """
    differentiable = jax.custom_vjp(function)
    backward = jax.custom_vjp(
        lambda y, dy: jnp.where(dy == 0, jnp.zeros((), y.dtype), dy * slope(y))
    )

    def second(saved: Any, gradient: Any) -> Any:
        y, dy = saved
        curvature = jax.jvp(slope, (y,), (jnp.ones_like(y),))[1]
        # If dy is 0, the derivative with respect to dy is still the slope.
        return gradient * dy * curvature, backward(y, gradient)

    backward.defvjp(lambda y, dy: (backward(y, dy), (y, dy)), second)
    differentiable.defvjp(lambda x: (function(x),) * 2, lambda y, dy: (backward(y, dy),))
    return differentiable


def passed(tangent: Any, result: Any, *inputs: Any) -> Any:
    """The partial derivative 1."""
    return tangent
