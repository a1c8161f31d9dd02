"""Learning-rate schedules: tensors that follow from the global step (`tf.compat.v1.train.*_decay`).

Each function gives a scalar tensor, computed at every step inside the graph, to be given to an
optimizer as its learning rate. The step may be an integer tensor or variable; all is computed in
the learning rate's dtype, in the order of TensorFlow's operations, so the digits are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int32, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import indexing, joining
from estimatorkit.ops.math import elementwise, random, reduce


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """learning_rate * decay_rate ^ (global_step / decay_steps).

    Source: `tf.compat.v1.train.exponential_decay`.

    Args:
        learning_rate: the first one: a scalar tensor or a number (float32 then).
        global_step: a scalar tensor, variable or number, not negative.
        decay_steps: steps in which the rate is multiplied by `decay_rate` once.
        decay_rate: the factor.
        staircase: whether the exponent is rounded down, so that the rate falls in stairs.
        name: the name scope; 'ExponentialDecay' by default.

    Returns:
        A scalar tensor of the dtype of `learning_rate`.

    Raises:
        ValueError: `global_step` is None.
    """
    _check_step(global_step, "exponential_decay")
    with get_default_graph().name_scope(name or "ExponentialDecay") as scope:
        rate, step, steps, factor = _scalars(learning_rate, global_step, decay_steps, decay_rate)
        exponent = elementwise.pow(factor, _turns(step / steps, staircase))
        return elementwise.multiply(rate, exponent, name=scope)


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """learning_rate * exp(-decay_rate * global_step / decay_steps).

    Source: `tf.compat.v1.train.natural_exp_decay`.

    Args:
        learning_rate, global_step, decay_steps, staircase, name: see `exponential_decay`.
        decay_rate: how much the logarithm of the rate falls in `decay_steps` steps.

    Returns:
        A scalar tensor of the dtype of `learning_rate`.

    Raises:
        ValueError: `global_step` is None.
    """
    _check_step(global_step, "natural_exp_decay")
    factor = elementwise.exp(elementwise.negative(convert_to_tensor(decay_rate)))
    return exponential_decay(learning_rate, global_step, decay_steps, factor, staircase, name)


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """learning_rate / (1 + decay_rate * global_step / decay_steps).

    Source: `tf.compat.v1.train.inverse_time_decay`.

    Args:
        learning_rate, global_step, decay_steps, staircase: see `exponential_decay`.
        decay_rate: how much is added to the divisor in `decay_steps` steps.
        name: the name scope; 'InverseTimeDecay' by default.

    Returns:
        A scalar tensor of the dtype of `learning_rate`.

    Raises:
        ValueError: `global_step` is None.
    """
    _check_step(global_step, "inverse_time_decay")
    with get_default_graph().name_scope(name or "InverseTimeDecay") as scope:
        rate, step, steps, added = _scalars(learning_rate, global_step, decay_steps, decay_rate)
        divisor = 1.0 + added * _turns(step / steps, staircase)
        return elementwise.divide(rate, divisor, name=scope)


def piecewise_constant(
    x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """`values[i]`, where i is the number of boundaries that x has passed.

    A boundary itself belongs to the piece before it: `values[0]` for x <= boundaries[0]. Source:
    `tf.compat.v1.train.piecewise_constant`.

    Args:
        x: a scalar tensor, variable or number, usually the global step.
        boundaries: numbers or scalar tensors of the dtype of x, increasing; int32 may stand for
            int64.
        values: one more than boundaries, of one dtype.
        name: the name scope; 'PiecewiseConstant' by default.

    Returns:
        A scalar tensor of the dtype of `values`.

    Raises:
        ValueError: dtypes or the numbers of boundaries and values do not fit.
    """
    with get_default_graph().name_scope(name or "PiecewiseConstant"):
        position = convert_to_tensor(x)
        limits = [_boundary(each, position) for each in boundaries]
        chosen = [convert_to_tensor(each) for each in values]
        for each in chosen[1:]:
            if each.dtype != chosen[0].dtype:
                raise ValueError(
                    "Values must have elements all with the same dtype "
                    f"({chosen[0].dtype} vs {each.dtype})."
                )
        if len(limits) != len(chosen) - 1:
            raise value_error(
                "The length of boundaries should be 1 less than the length of values",
                expected=f"{len(limits) + 1} values for {len(limits)} boundaries",
                received=f"boundaries={list(boundaries)} of length {len(limits)}, and "
                f"values={list(values)} of length {len(chosen)}",
            )
        if not limits:
            return builtin_ops.identity(chosen[0])
        passed = elementwise.greater(position, joining.stack(limits))
        piece = reduce.reduce_sum(elementwise.cast(passed, int32))
        return indexing.gather(joining.stack(chosen), piece)


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """From one rate to another: (rate - end) * (1 - global_step / decay_steps) ^ power + end.

    Source: `tf.compat.v1.train.polynomial_decay`.

    Args:
        learning_rate, global_step: see `exponential_decay`.
        decay_steps: steps to the end; the rate stays there afterwards.
        end_learning_rate: the last rate.
        power: of the polynomial: 1 for a straight line.
        cycle: instead of staying at the end, go on with the first multiple of `decay_steps` that
            the step has not passed.
        name: the name scope; 'PolynomialDecay' by default.

    Returns:
        A scalar tensor of the dtype of `learning_rate`.

    Raises:
        ValueError: `global_step` is None.
    """
    _check_step(global_step, "polynomial_decay")
    with get_default_graph().name_scope(name or "PolynomialDecay") as scope:
        rate, step, steps, end, exponent = _scalars(
            learning_rate, global_step, decay_steps, end_learning_rate, power
        )
        if cycle:
            cycles = elementwise.maximum(elementwise.ceil(step / steps), 1.0)
            steps = steps * cycles
        else:
            step = elementwise.minimum(step, steps)
        left = elementwise.pow(1.0 - step / steps, exponent)
        return elementwise.add((rate - end) * left, end, name=scope)


def cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Half a cosine, from the rate down to `alpha` times the rate (Loshchilov & Hutter 2016).

    Source: `tf.compat.v1.train.cosine_decay`.

    Args:
        learning_rate, global_step: see `exponential_decay`.
        decay_steps: steps to the end; the rate stays there afterwards.
        alpha: the last rate, as a fraction of the first.
        name: the name scope; 'CosineDecay' by default.

    Returns:
        A scalar tensor of the dtype of `learning_rate`.

    Raises:
        ValueError: `global_step` is None.
    """
    _check_step(global_step, "cosine_decay")
    with get_default_graph().name_scope(name or "CosineDecay"):
        rate, step, steps, least = _scalars(learning_rate, global_step, decay_steps, alpha)
        done = elementwise.minimum(step, steps) / steps
        return rate * ((1.0 - least) * _half_cosine(done) + least)


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: Any = 2.0,
    m_mul: Any = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Half cosines in sequence, each beginning anew (SGDR: Loshchilov & Hutter 2016).

    Source: `tf.compat.v1.train.cosine_decay_restarts`.

    Args:
        learning_rate, global_step: see `exponential_decay`.
        first_decay_steps: steps of the first one.
        t_mul: how many times longer each is than the one before.
        m_mul: how many times higher each begins than the one before.
        alpha: the lowest rate, as a fraction of the first.
        name: the name scope; 'SGDRDecay' by default.

    Returns:
        A scalar tensor of the dtype of `learning_rate`.

    Raises:
        ValueError: `global_step` is None.
    """
    _check_step(global_step, "cosine_decay_restarts")
    with get_default_graph().name_scope(name or "SGDRDecay") as scope:
        rate, step, steps, longer, higher, least = _scalars(
            learning_rate, global_step, first_decay_steps, t_mul, m_mul, alpha
        )
        turns = step / steps
        equal = elementwise.equal(longer, 1.0)
        # The geometric formulas divide by zero where all are of one length; they are not chosen.
        growing = elementwise.floor(
            elementwise.log(1.0 - turns * (1.0 - longer)) / elementwise.log(longer)
        )
        size = elementwise.pow(longer, growing)
        begun = (1.0 - size) / (1.0 - longer)
        restart = indexing.where(equal, elementwise.floor(turns), growing)
        done = indexing.where(equal, turns - elementwise.floor(turns), (turns - begun) / size)
        cosine = elementwise.pow(higher, restart) * _half_cosine(done)
        return elementwise.multiply(rate, (1.0 - least) * cosine + least, name=scope)


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """learning_rate * ((alpha + linear) * cosine + beta) (Bello et al. 2017).

    linear falls from 1 to 0 in `decay_steps` steps, while cosine goes through `num_periods`
    periods between 1 and 0. Source: `tf.compat.v1.train.linear_cosine_decay`.

    Args:
        learning_rate, global_step: see `exponential_decay`.
        decay_steps: steps to the end; the rate stays there afterwards.
        num_periods: periods of the cosine.
        alpha, beta: see the formula.
        name: the name scope; 'LinearCosineDecay' by default.

    Returns:
        A scalar tensor of the dtype of `learning_rate`.

    Raises:
        ValueError: `global_step` is None.
    """
    _check_step(global_step, "linear_cosine_decay")
    with get_default_graph().name_scope(name or "LinearCosineDecay") as scope:
        rate, step, steps, periods, more, least = _scalars(
            learning_rate, global_step, decay_steps, num_periods, alpha, beta
        )
        step = elementwise.minimum(step, steps)
        cosine = _half_cosine(2.0 * periods * (step / steps))
        linear = (steps - step) / steps
        return elementwise.multiply(rate, (more + linear) * cosine + least, name=scope)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """`linear_cosine_decay` with normal noise added to its linear part (Neelakantan et al. 2015).

    The noise has the variance initial_variance / (1 + global_step) ^ variance_decay, and follows
    the graph's seed. Source: `tf.compat.v1.train.noisy_linear_cosine_decay`.

    Args:
        learning_rate, global_step, decay_steps, num_periods, alpha, beta: see
            `linear_cosine_decay`.
        initial_variance, variance_decay: see the formula.
        name: the name scope; 'NoisyLinearCosineDecay' by default.

    Returns:
        A scalar tensor of the dtype of `learning_rate`.

    Raises:
        ValueError: `global_step` is None.
    """
    _check_step(global_step, "noisy_linear_cosine_decay")
    with get_default_graph().name_scope(name or "NoisyLinearCosineDecay") as scope:
        rate, step, steps, periods, more, least = _scalars(
            learning_rate, global_step, decay_steps, num_periods, alpha, beta
        )
        first = elementwise.cast(initial_variance, rate.dtype)
        power = elementwise.cast(variance_decay, rate.dtype)
        step = elementwise.minimum(step, steps)
        cosine = _half_cosine(2.0 * periods * (step / steps))
        deviation = elementwise.sqrt(first / elementwise.pow(1.0 + step, power))
        noise = random.random_normal([], dtype=rate.dtype) * deviation
        linear = (steps - step) / steps + noise
        return elementwise.multiply(rate, (more + linear) * cosine + least, name=scope)


def _check_step(global_step: Any, function: str) -> None:
    if global_step is None:
        raise value_error(
            f"None values not supported: {function} needs a global_step",
            expected="the variable that counts the steps",
            received="None",
            hint="global_step=tf.train.get_or_create_global_step()",
        )


def _scalars(learning_rate: Any, *others: Any) -> list[Tensor]:
    """The learning rate as a tensor, and the others in its dtype."""
    rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
    return [rate, *(elementwise.cast(each, rate.dtype) for each in others)]


def _turns(turns: Tensor, staircase: bool) -> Tensor:
    return elementwise.floor(turns) if staircase else turns


def _half_cosine(turns: Tensor) -> Tensor:
    """From 1 at 0 down to 0 at 1, and back at 2."""
    return 0.5 * (1.0 + elementwise.cos(convert_to_tensor(math.pi, turns.dtype) * turns))


def _boundary(boundary: Any, position: Tensor) -> Tensor:
    limit = convert_to_tensor(boundary)
    if limit.dtype == int32 and position.dtype == int64:
        return elementwise.cast(limit, int64)
    if limit.dtype != position.dtype:
        raise value_error(
            f"Boundaries ({limit.dtype}) must have the same dtype as x ({position.dtype})",
            hint="give whole numbers as boundaries of a global step: 1000, not 1e3",
        )
    return limit
