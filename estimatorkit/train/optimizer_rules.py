"""Update rules: how one optimizer's step changes a variable and its slots, as pure functions.

A rule is one kernel in JAX, written for whole arrays, with the names of its slots. Its two rows in
the op registry are made from it: 'Apply...' takes a dense gradient, 'SparseApply...' takes rows
(`IndexedSlices`), sums those that repeat and runs the same kernel on the rows they touch, so that a
large table never becomes dense. Hyperparameters are inputs, so that a schedule is not a new
compilation. Formulas: TensorFlow's training ops, unless a rule says otherwise.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.registry import Case

Rows = tuple[float, ...]

# What the example of each rule starts from: two rows of one number, and slots of 0.5, 0.25, 0.125.
_EXAMPLE_VALUE = np.array([[1.0], [-2.0]], np.float32)
_EXAMPLE_GRADIENT = np.array([[0.3], [-0.7]], np.float32)


@dataclass(frozen=True)
class UpdateRule:
    """One optimizer's step.

    Attributes:
        name: its name; the op types are 'Apply' and 'SparseApply' with it.
        kernel: `kernel(variable, gradient, *slots, **hyperparameters)`, giving the new variable and
            the new slots. Its keyword-only parameters are the hyperparameters.
        slots: the slots' names, in the order in which the kernel takes them.
        sparse_rows: which rows a sparse gradient changes: 'touched' (those it has), or 'every'
            (the kernel changes rows whose gradient is 0, and TensorFlow does that for sparse
            gradients too).
        example: values of the hyperparameters, and what the variable and the slots of the example
            become with them.
    """

    name: str
    kernel: Callable[..., tuple[Any, ...]]
    slots: tuple[str, ...]
    example: tuple[Mapping[str, float], tuple[Rows, ...]]
    sparse_rows: Literal["touched", "every"] = "touched"

    @functools.cached_property
    def hyperparameters(self) -> tuple[str, ...]:
        """The names of the hyperparameters, in the order of the op's inputs."""
        parameters = inspect.signature(self.kernel).parameters.values()
        return tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)

    def dense(self, *inputs: Any) -> tuple[Any, ...]:
        """The kernel of the op for dense gradients.

        Args:
            inputs: the variable, its slots, the gradient, the hyperparameters.
        """
        count = 1 + len(self.slots)
        return self._step(inputs[:count], inputs[count], inputs[count + 1 :])

    def sparse(self, *inputs: Any) -> tuple[Any, ...]:
        """The kernel of the op for gradients that are rows.

        Args:
            inputs: the variable, its slots, the gradient's values `(n, ...)`, its indices `(n,)`,
                the hyperparameters. Equal indices add up; those outside the variable are left out.
        """
        count = 1 + len(self.slots)
        state, (values, indices) = inputs[:count], inputs[count : count + 2]
        hyperparameters = inputs[count + 2 :]
        rows = state[0].shape[0]
        values = jnp.asarray(values, _computed_in(state[0]))
        # Negative indices count from the end in JAX, so they are moved past the end, and dropped.
        indices = jnp.where((indices < 0) | (indices >= rows), rows, indices)
        if self.sparse_rows == "every":
            whole = jnp.zeros(state[0].shape, values.dtype).at[indices].add(values, mode="drop")
            return self._step(state, whole, hyperparameters)
        touched, position = _distinct(indices, rows)
        summed = jax.ops.segment_sum(values, position, num_segments=indices.shape[0])
        old = [each.at[touched].get(mode="clip") for each in state]
        new = self._step(old, summed, hyperparameters)
        return tuple(
            each.at[touched].set(rows, mode="drop") for each, rows in zip(state, new, strict=True)
        )

    def _step(
        self, state: Sequence[Any], gradient: Any, hyperparameters: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Runs the kernel in the variable's dtype, 16-bit ones in float32.

        TensorFlow computes in 16 bits, where Adam's epsilon of 1e-8 is 0 and the step is NaN.
        """
        dtype = _computed_in(state[0])
        variable, *slots = (jnp.asarray(each, dtype) for each in state)
        given = {
            name: jnp.asarray(value, dtype)
            for name, value in zip(self.hyperparameters, hyperparameters, strict=True)
        }
        new = self.kernel(variable, jnp.asarray(gradient, dtype), *slots, **given)
        return tuple(value.astype(each.dtype) for value, each in zip(new, state, strict=True))

    def cases(self, sparse: bool) -> list[Case]:
        """The example as a case of the op registry; sparse, with one row in two halves."""
        values, expected = self.example
        slots = [
            np.full_like(_EXAMPLE_VALUE, 0.5**power) for power, _ in enumerate(self.slots, start=1)
        ]
        gradient: list[Any] = [_EXAMPLE_GRADIENT]
        if sparse:
            halves = _EXAMPLE_GRADIENT[[1, 0, 1]] * np.array([[0.5], [1.0], [0.5]], np.float32)
            gradient = [halves, np.array([1, 0, 1], np.int64)]
        hyperparameters = [np.float32(values[name]) for name in self.hyperparameters]
        result = tuple(np.array(rows, np.float32)[:, None] for rows in expected)
        return [Case((_EXAMPLE_VALUE, *slots, *gradient, *hyperparameters), {}, result)]


def _distinct(indices: Any, rows: int) -> tuple[Any, Any]:
    """Each index once, `rows` in the other places, and where each index stands among them.

    A list of all rows notes where each index stands first; where there are very many rows, a hash
    table does.
    """
    count = indices.shape[0]
    if count == 0:
        return indices, indices
    places = jnp.arange(count, dtype=np.int32)
    if rows > _ROWS_PER_INDEX * count:
        position = _first_places(indices, places)
    else:
        first = jnp.full((rows + 1,), count, np.int32).at[indices].min(places)
        position = first[indices]
    return jnp.where(position == places, indices, rows), position


_ROWS_PER_INDEX = 100
"""1000 indices of 100,000 rows take 28 us by either; 128 of 1,000,000 take 340 us by the list and
15 by the hash table (sorting them takes 25 alone, and 65 within a step)."""


def _first_places(indices: Any, places: Any) -> Any:
    """For each index the first place where it stands, by a hash table.

    In each turn every slot of the table goes to the first place that asks for it, and with it to
    all places of its index; the rest ask again in the next turn, with another hash. Usually two or
    three turns do.
    """
    count = indices.shape[0]
    bits = (8 * count - 1).bit_length()
    words = indices.astype(np.uint32)

    def is_left(state: tuple[Any, Any]) -> Any:
        return jnp.any(state[1] == count)

    def turn(state: tuple[Any, Any]) -> tuple[Any, Any]:
        factor, position = state
        left = position == count
        slot = jnp.where(left, (words * factor) >> np.uint32(32 - bits), np.uint32(1 << bits))
        winners = jnp.full(((1 << bits) + 1,), count - 1, np.int32).at[slot].min(places)
        winner = winners[slot]
        return factor * _HASH_FACTOR, jnp.where(
            left & (indices[winner] == indices), winner, position
        )

    start = (jnp.asarray(_HASH_FACTOR), jnp.full_like(places, count))
    return jax.lax.while_loop(is_left, turn, start)[1]


_HASH_FACTOR = np.uint32(0x9E3779B1)
"""2^32 by the golden ratio, odd (Knuth, volume 3, section 6.4); its powers are the next hashes."""


def _computed_in(variable: Any) -> Any:
    return jnp.promote_types(variable.dtype, jnp.float32)


def _soft_threshold(x: Any, by: Any) -> Any:
    """x moved towards 0 by `by`, and not past it."""
    return jnp.sign(x) * jnp.maximum(jnp.abs(x) - by, 0.0)


# -- the kernels: w is the variable, g the gradient


def _gradient_descent(w: Any, g: Any, *, learning_rate: Any) -> tuple[Any, ...]:
    return (w - learning_rate * g,)


def _momentum(w: Any, g: Any, velocity: Any, *, learning_rate: Any, momentum: Any) -> Any:
    velocity = momentum * velocity + g
    return w - learning_rate * velocity, velocity


def _nesterov(w: Any, g: Any, velocity: Any, *, learning_rate: Any, momentum: Any) -> Any:
    velocity = momentum * velocity + g
    return w - learning_rate * (g + momentum * velocity), velocity


def _adagrad(w: Any, g: Any, accumulator: Any, *, learning_rate: Any, epsilon: Any) -> Any:
    accumulator = accumulator + g * g
    return w - learning_rate * g / (jnp.sqrt(accumulator) + epsilon), accumulator


def _adadelta(
    w: Any, g: Any, accum: Any, accum_update: Any, *, learning_rate: Any, rho: Any, epsilon: Any
) -> Any:
    accum = rho * accum + (1 - rho) * g * g
    update = jnp.sqrt(accum_update + epsilon) / jnp.sqrt(accum + epsilon) * g
    accum_update = rho * accum_update + (1 - rho) * update * update
    return w - learning_rate * update, accum, accum_update


def _adam(
    w: Any,
    g: Any,
    m: Any,
    v: Any,
    *,
    beta1_power: Any,
    beta2_power: Any,
    learning_rate: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
) -> Any:
    m = m + (g - m) * (1 - beta1)
    v = v + (g * g - v) * (1 - beta2)
    step = learning_rate * jnp.sqrt(1 - beta2_power) / (1 - beta1_power)
    return w - step * m / (jnp.sqrt(v) + epsilon), m, v


def _rms_prop(
    w: Any,
    g: Any,
    rms: Any,
    velocity: Any,
    *,
    learning_rate: Any,
    decay: Any,
    momentum: Any,
    epsilon: Any,
) -> Any:
    rms = rms + (g * g - rms) * (1 - decay)
    velocity = momentum * velocity + learning_rate * g / jnp.sqrt(rms + epsilon)
    return w - velocity, rms, velocity


def _centered_rms_prop(
    w: Any,
    g: Any,
    rms: Any,
    mean: Any,
    velocity: Any,
    *,
    learning_rate: Any,
    decay: Any,
    momentum: Any,
    epsilon: Any,
) -> Any:
    rms = rms + (g * g - rms) * (1 - decay)
    mean = mean + (g - mean) * (1 - decay)
    velocity = momentum * velocity + learning_rate * g / jnp.sqrt(rms - mean * mean + epsilon)
    return w - velocity, rms, mean, velocity


def _keras_rms_prop(
    w: Any, g: Any, rms: Any, *, learning_rate: Any, decay: Any, epsilon: Any
) -> Any:
    rms = decay * rms + (1 - decay) * g * g
    return w - learning_rate * g / (jnp.sqrt(rms) + epsilon), rms


def _keras_centered_rms_prop(
    w: Any, g: Any, rms: Any, mean: Any, *, learning_rate: Any, decay: Any, epsilon: Any
) -> Any:
    rms = decay * rms + (1 - decay) * g * g
    mean = decay * mean + (1 - decay) * g
    # Rounding can make a variance of 0 negative: Keras goes on with NaN there.
    variance = jnp.maximum(rms - mean * mean, 0.0)
    return w - learning_rate * g / (jnp.sqrt(variance) + epsilon), rms, mean


def _ftrl(
    w: Any,
    g: Any,
    accum: Any,
    linear: Any,
    *,
    learning_rate: Any,
    l1: Any,
    l2: Any,
    l2_shrinkage: Any,
    learning_rate_power: Any,
    beta: Any,
) -> Any:
    new_accum = accum + g * g
    old_rate, new_rate = accum**-learning_rate_power, new_accum**-learning_rate_power
    shrunk = g + 2 * l2_shrinkage * w
    linear = linear + shrunk - (new_rate - old_rate) / learning_rate * w
    quadratic = (new_rate + beta) / learning_rate + 2 * l2
    return -_soft_threshold(linear, l1) / quadratic, new_accum, linear


def _proximal_gradient_descent(
    w: Any, g: Any, *, learning_rate: Any, l1: Any, l2: Any
) -> tuple[Any, ...]:
    return (_soft_threshold(w - learning_rate * g, learning_rate * l1) / (1 + learning_rate * l2),)


def _proximal_adagrad(
    w: Any, g: Any, accumulator: Any, *, learning_rate: Any, l1: Any, l2: Any
) -> Any:
    accumulator = accumulator + g * g
    rate = learning_rate / jnp.sqrt(accumulator)
    return _soft_threshold(w - rate * g, rate * l1) / (1 + rate * l2), accumulator


# -- the rules; what the examples become is what TensorFlow 2.15.1's ops of these names give


def _no_outputs(inputs: Any, attrs: Any) -> list[Any]:
    return []


def _registered(rule: UpdateRule) -> UpdateRule:
    for prefix, kernel, sparse in (
        ("Apply", rule.dense, False),
        ("SparseApply", rule.sparse, True),
    ):
        registry.register(
            prefix + rule.name,
            kernel,
            infer=_no_outputs,
            gradient=None,
            updates=tuple(range(1 + len(rule.slots))),
            pure=False,
            cases=functools.partial(rule.cases, sparse),
        )
    return rule


_RMS_EXAMPLE = {"learning_rate": 0.1, "decay": 0.9, "momentum": 0.5, "epsilon": 0.01}
_PROXIMAL_EXAMPLE = {"learning_rate": 0.1, "l1": 0.2, "l2": 0.3}

GRADIENT_DESCENT = _registered(
    UpdateRule(
        "GradientDescent",
        _gradient_descent,
        slots=(),
        example=({"learning_rate": 0.1}, ((0.97, -1.93),)),
    )
)
MOMENTUM = _registered(
    UpdateRule(
        "Momentum",
        _momentum,
        slots=("momentum",),
        example=(
            {"learning_rate": 0.1, "momentum": 0.9},
            ((0.925, -1.975), (0.75, -0.25)),
        ),
    )
)
NESTEROV_MOMENTUM = _registered(
    UpdateRule(
        "NesterovMomentum",
        _nesterov,
        slots=("momentum",),
        example=(
            {"learning_rate": 0.1, "momentum": 0.9},
            ((0.9025, -1.9075), (0.75, -0.25)),
        ),
    )
)
ADAGRAD = _registered(
    UpdateRule(
        "Adagrad",
        _adagrad,
        slots=("accumulator",),
        example=(
            {"learning_rate": 0.1, "epsilon": 0.01},
            ((0.9614453, -1.9303474), (0.59, 0.99)),
        ),
    )
)
ADADELTA = _registered(
    UpdateRule(
        "Adadelta",
        _adadelta,
        slots=("accum", "accum_update"),
        example=(
            {"learning_rate": 0.1, "rho": 0.95, "epsilon": 0.01},
            ((0.9781359, -1.949995), (0.4795, 0.4995), (0.23989019, 0.25000244)),
        ),
    )
)
ADAM = _registered(
    UpdateRule(
        "Adam",
        _adam,
        slots=("m", "v"),
        sparse_rows="every",
        example=(
            {
                **{"beta1_power": 0.81, "beta2_power": 0.9, "learning_rate": 0.1},
                **{"beta1": 0.9, "beta2": 0.95, "epsilon": 0.01},
            },
            ((0.8408377, -2.1211927), (0.48, 0.38), (0.242, 0.262)),
        ),
    )
)
RMS_PROP = _registered(
    UpdateRule(
        "RMSProp",
        _rms_prop,
        slots=("rms", "momentum"),
        example=(
            _RMS_EXAMPLE,
            ((0.83119386, -2.026884), (0.459, 0.499), (0.16880614, 0.026884161)),
        ),
    )
)
CENTERED_RMS_PROP = _registered(
    UpdateRule(
        "CenteredRMSProp",
        _centered_rms_prop,
        slots=("rms", "mg", "momentum"),
        example=(
            _RMS_EXAMPLE,
            (
                *((0.8902998, -1.9619833), (0.459, 0.499)),
                *((0.255, 0.155), (0.10970022, -0.03801673)),
            ),
        ),
    )
)
KERAS_RMS_PROP = _registered(
    UpdateRule(
        "KerasRMSProp",
        _keras_rms_prop,
        slots=("rms",),
        sparse_rows="every",
        example=(_RMS_EXAMPLE, ((0.9563633, -1.9022892), (0.459, 0.499))),
    )
)
KERAS_CENTERED_RMS_PROP = _registered(
    UpdateRule(
        "KerasCenteredRMSProp",
        _keras_centered_rms_prop,
        slots=("rms", "mg"),
        sparse_rows="every",
        example=(
            _RMS_EXAMPLE,
            ((0.95295405, -1.8998834), (0.459, 0.499), (0.255, 0.155)),
        ),
    )
)
FTRL = _registered(
    UpdateRule(
        "Ftrl",
        _ftrl,
        slots=("accum", "linear"),
        example=(
            {
                **{"learning_rate": 0.1, "l1": 0.2, "l2": 0.3, "l2_shrinkage": 0.1},
                **{"learning_rate_power": -0.6, "beta": 0.05},
            },
            ((0.0, -0.5103933), (0.59, 0.99), (0.061169386, 5.834681)),
        ),
    )
)
PROXIMAL_GRADIENT_DESCENT = _registered(
    UpdateRule(
        "ProximalGradientDescent",
        _proximal_gradient_descent,
        slots=(),
        example=(_PROXIMAL_EXAMPLE, ((0.92233014, -1.8543689),)),
    )
)
PROXIMAL_ADAGRAD = _registered(
    UpdateRule(
        "ProximalAdagrad",
        _proximal_adagrad,
        slots=("accumulator",),
        example=(_PROXIMAL_EXAMPLE, ((0.89976376, -1.8536568), (0.59, 0.99))),
    )
)
