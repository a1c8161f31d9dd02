"""Learning-rate schedules: functions of the global step (`tf.compat.v1.train.*_decay`).

Each returns a scalar tensor that is computed in every step, for use as an optimizer's learning
rate. The step may be an integer tensor or variable. Operations follow TensorFlow's order and use
the learning rate's dtype, so results are identical.
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
    """Exponential decay: learning_rate * decay_rate ^ (global_step / decay_steps).

    Source: `tf.compat.v1.train.exponential_decay`.

    Args:
        learning_rate: the initial rate: a scalar tensor, or a number (float32).
        global_step: a non-negative scalar tensor, variable or number.
        decay_steps: the number of steps per factor of `decay_rate`.
        staircase: whether to round the exponent down, for a stepwise decay.
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
    """Exponential decay: learning_rate * exp(-decay_rate * global_step / decay_steps).

    Source: `tf.compat.v1.train.natural_exp_decay`. The other arguments, result and errors are those
    of `exponential_decay`.

    Args:
        decay_rate: the decrease of the rate's logarithm per `decay_steps` steps.
        name: the name scope; 'NaturalExpDecay' by default.
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
    """Inverse time decay: learning_rate / (1 + decay_rate * global_step / decay_steps).

    Source: `tf.compat.v1.train.inverse_time_decay`. The other arguments, result and errors are
    those of `exponential_decay`.

    Args:
        decay_rate: the increase of the divisor per `decay_steps` steps.
        name: the name scope; 'InverseTimeDecay' by default.
    """
    _check_step(global_step, "inverse_time_decay")
    with get_default_graph().name_scope(name or "InverseTimeDecay") as scope:
        rate, step, steps, added = _scalars(learning_rate, global_step, decay_steps, decay_rate)
        divisor = 1.0 + added * _turns(step / steps, staircase)
        return elementwise.divide(rate, divisor, name=scope)


def piecewise_constant(
    x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """A piecewise constant function of x, usually the learning rate by step.

    The result is `values[i]`, where i is the number of boundaries less than x. A boundary belongs
    to the piece before it: `values[0]` for x <= boundaries[0]. Source:
    `tf.compat.v1.train.piecewise_constant`.

    Args:
        x: a scalar tensor, variable or number, usually the global step.
        boundaries: increasing numbers or scalar tensors of the dtype of x; int32 is converted to
            int64.
        values: one more than boundaries, all of one dtype.
        name: the name scope; 'PiecewiseConstant' by default.

    Returns:
        A scalar tensor of the dtype of `values`.

    Raises:
        ValueError: dtypes or the numbers of boundaries and values do not match.
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
    """Polynomial decay: (learning_rate - end) * (1 - global_step / decay_steps) ^ power + end.

    Source: `tf.compat.v1.train.polynomial_decay`. The other arguments, result and errors are those
    of `exponential_decay`.

    Args:
        decay_steps: the number of steps until the rate is constant.
        end_learning_rate: the final rate.
        power: the exponent of the polynomial; 1 is linear.
        cycle: whether to extend `decay_steps` to its next multiple instead of staying constant.
        name: the name scope; 'PolynomialDecay' by default.
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
    """Cosine decay to `alpha` times the rate, in half a period (Loshchilov & Hutter 2016).

    Source: `tf.compat.v1.train.cosine_decay`. The other arguments, result and errors are those of
    `exponential_decay`.

    Args:
        decay_steps: the number of steps until the rate is constant.
        alpha: the final rate, as a fraction of the initial one.
        name: the name scope; 'CosineDecay' by default.
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
    """Cosine decay with warm restarts (SGDR: Loshchilov & Hutter 2016).

    Source: `tf.compat.v1.train.cosine_decay_restarts`. The other arguments, result and errors are
    those of `exponential_decay`.

    Args:
        first_decay_steps: the number of steps of the first period.
        t_mul: the ratio of the lengths of successive periods.
        m_mul: the ratio of the initial rates of successive periods.
        alpha: the minimum rate, as a fraction of the initial one.
        name: the name scope; 'SGDRDecay' by default.
    """
    _check_step(global_step, "cosine_decay_restarts")
    with get_default_graph().name_scope(name or "SGDRDecay") as scope:
        rate, step, steps, longer, higher, least = _scalars(
            learning_rate, global_step, first_decay_steps, t_mul, m_mul, alpha
        )
        turns = step / steps
        equal = elementwise.equal(longer, 1.0)
        # The geometric formulas divide by zero if t_mul is 1; `where` then ignores them.
        growing = elementwise.floor(
            elementwise.log(1.0 - turns * (1.0 - longer)) / elementwise.log(longer)
        )
        size = elementwise.pow(longer, growing)
        begun = (1.0 - size) / (1.0 - longer)
        restart = indexing.where(equal, elementwise.floor(turns), growing)
        done = indexing.where(equal, turns - elementwise.floor(turns), (turns - begun) / size)
        cosine = elementwise.pow(higher, restart) * _half_cosine(done)
        return elementwise.multiply(rate, (1.0 - least) * cosine + least, name=scope)


def coslog_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    cycles: Any = 4,
    name: str | None = None,
) -> Tensor:
    """Cycles of a rate that rises from 0 and falls to 0, each twice as long as the one before.

    The rate is learning_rate * (1 - cos(2 pi log2(1 + (2^cycles - 1) t))) / 2, where t =
    global_step / decay_steps, at most 1. Not in TensorFlow; RealMLP's (Holzmueller et al. 2024,
    arXiv:2407.04491). The other arguments, result and errors are those of `exponential_decay`.

    Args:
        learning_rate: the greatest rate.
        decay_steps: the number of steps of all cycles.
        cycles: their number.
        name: the name scope; 'CoslogDecay' by default.
    """
    _check_step(global_step, "coslog_decay")
    with get_default_graph().name_scope(name or "CoslogDecay"):
        rate, step, steps, number = _scalars(learning_rate, global_step, decay_steps, cycles)
        done = elementwise.minimum(step, steps) / steps
        longer = elementwise.pow(elementwise.cast(2.0, rate.dtype), number) - 1.0
        begun = elementwise.log(1.0 + longer * done) / math.log(2.0)
        return rate * (1.0 - _half_cosine(2.0 * begun))


def flat_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    flat: Any = 0.5,
    name: str | None = None,
) -> Tensor:
    """A constant rate, then cosine decay to 0 in half a period.

    Not in TensorFlow; RealMLP's for weight decay and dropout (Holzmueller et al. 2024,
    arXiv:2407.04491). The other arguments, result and errors are those of `exponential_decay`.

    Args:
        learning_rate: the first rate, or another number that decays so.
        decay_steps: the number of steps until the rate is 0.
        flat: the share of these before the decay, less than 1.
        name: the name scope; 'FlatCosineDecay' by default.
    """
    _check_step(global_step, "flat_cosine_decay")
    with get_default_graph().name_scope(name or "FlatCosineDecay"):
        rate, step, steps, start = _scalars(learning_rate, global_step, decay_steps, flat)
        done = elementwise.minimum(step, steps) / steps
        return rate * _half_cosine(elementwise.maximum(done - start, 0.0) / (1.0 - start))


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """Linear cosine decay (Bello et al. 2017).

    The rate is learning_rate * ((alpha + linear) * cosine + beta). Within `decay_steps` steps,
    linear falls from 1 to 0, and cosine goes through `num_periods` periods between 1 and 0. Source:
    `tf.compat.v1.train.linear_cosine_decay`. The other arguments, result and errors are those of
    `exponential_decay`.

    Args:
        decay_steps: the number of steps until the rate is constant.
        name: the name scope; 'LinearCosineDecay' by default.
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
    """`linear_cosine_decay` with Gaussian noise in its linear part (Neelakantan et al. 2015).

    The noise has the variance initial_variance / (1 + global_step) ^ variance_decay, and depends on
    the graph's seed. Source: `tf.compat.v1.train.noisy_linear_cosine_decay`. The other arguments,
    result and errors are those of `linear_cosine_decay`.

    Args:
        name: the name scope; 'NoisyLinearCosineDecay' by default.
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
    """Converts the learning rate to a tensor, and the others to its dtype."""
    rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
    return [rate, *(elementwise.cast(each, rate.dtype) for each in others)]


def _turns(turns: Tensor, staircase: bool) -> Tensor:
    return elementwise.floor(turns) if staircase else turns


def _half_cosine(turns: Tensor) -> Tensor:
    """The half cosine: 1 at 0, 0 at 1, and 1 at 2."""
    return 0.5 * (1.0 + elementwise.cos(convert_to_tensor(math.pi, turns.dtype) * turns))


def _boundary(boundary: Any, position: Tensor) -> Tensor:
    limit = convert_to_tensor(boundary)
    if limit.dtype == int32 and position.dtype == int64:
        return elementwise.cast(limit, int64)
    if limit.dtype != position.dtype:
        raise value_error(
            f"Boundaries ({limit.dtype}) must have the same dtype as x ({position.dtype})",
            hint="use integer boundaries with a global step: 1000, not 1e3",
        )
    return limit
