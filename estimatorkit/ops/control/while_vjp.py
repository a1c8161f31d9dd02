"""`while_loop` on JAX values, reverse-differentiable to any order, with unbounded steps.

Reverse mode needs the values of each step, but XLA needs a static bound on how many are kept. So a
fixed number of equally spaced checkpoints is kept: when they are full, every second one is dropped
and the distance doubles. The backward pass reruns the steps between two checkpoints, with
separate checkpoints. A loop of up to `slots` steps keeps every value; up to `slots` squared it
runs forward once more; longer ones run more often. (Checkpointing as in Griewank 1992, for an
unknown number of steps; two levels suffice for hundreds of thousands.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from estimatorkit.runtime.xla.cancellation import iterations_until_next

Values: TypeAlias = tuple[Any, ...]

_BYTES = 1 << 26
"""Of checkpoints a level: 64 MiB, but for `_FEWEST` of them."""
_MOST, _FEWEST = 1024, 16


def while_loop(
    condition: Callable[[Values, Values], Any],
    body: Callable[[Values, Values], Values],
    constants: Sequence[Any],
    start: Sequence[Any],
    recomputed: Sequence[bool] | None = None,
    first: int = 0,
) -> Values:
    """Applies `body` while `condition` holds; returns the values after the last step.

    Args:
        condition: maps the constants and the current values to a bool.
        body: maps the constants and the current values to the next ones, of equal shapes and
            dtypes.
        constants: arrays visible to all steps.
        start: the initial values.
        recomputed: for each value, whether the derivative of `body` does not depend on it (a
            write-only array): it is not checkpointed.
        first: the iteration of the first cancellation check (see `cancellation`) of the call whose
            number is the first constant; 0: never.
    """
    start = tuple(map(jnp.asarray, start))
    kept = [value for value, skip in zip(start, recomputed or (), strict=False) if not skip]
    size = sum(value.nbytes for value in (kept if recomputed else start))
    slots = max(_FEWEST, min(_MOST, _BYTES // max(size, 1)))
    skipped = tuple(recomputed) if recomputed else (False,) * len(start)
    return _while(condition, body, slots, skipped, first, tuple(map(jnp.asarray, constants)), start)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _while(
    condition: Any,
    body: Any,
    slots: int,
    skipped: tuple[bool, ...],
    first: int,
    constants: Values,
    start: Values,
) -> Values:
    if not first:
        return lax.while_loop(
            lambda values: condition(constants, values),
            lambda values: body(constants, values),
            start,
        )

    def go_on(state: Values) -> Any:
        return jnp.logical_and(state[0] > 0, condition(constants, state[1:]))

    def stretch(state: Values) -> Values:
        left, *values = lax.while_loop(
            go_on, lambda state: (state[0] - 1, *body(constants, state[1:])), state
        )
        return (iterations_until_next(constants[0], state[0], left > 0), *values)

    return lax.while_loop(lambda state: state[0] > 0, stretch, (jnp.int32(first), *start))[1:]


def _forward(
    condition: Any,
    body: Any,
    slots: int,
    skipped: tuple[bool, ...],
    first: int,
    constants: Values,
    start: Values,
) -> Any:
    end, count, stride, checkpoints = _with_checkpoints(
        condition, body, slots, skipped, first, constants, start
    )
    return end, (constants, start, count, stride, checkpoints)


def _with_checkpoints(
    condition: Any,
    body: Any,
    slots: int,
    skipped: tuple[bool, ...],
    first: int,
    constants: Values,
    start: Values,
) -> tuple[Values, Any, Any, Values]:
    """The loop's result, its step count, and the values before steps 0, stride, 2 stride, ..."""
    kept = [position for position, skip in enumerate(skipped) if not skip]
    empty = tuple(jnp.zeros((slots, *start[at].shape), start[at].dtype) for at in kept)
    split = len(empty)

    def go_on(constants: Values, state: Values) -> Any:
        return condition(constants, state[2 + split :])

    def step(constants: Values, state: Values) -> Values:
        count, stride = state[:2]
        checkpoints, values = state[2 : 2 + split], state[2 + split :]
        full = count == slots * stride
        checkpoints = lax.cond(full, _every_second, lambda arrays: arrays, checkpoints)
        stride = jnp.where(full, 2 * stride, stride)
        due = count % stride == 0
        checkpoints = tuple(
            _put(array, count // stride, values[at], due)
            for array, at in zip(checkpoints, kept, strict=True)
        )
        return (count + 1, stride, *checkpoints, *body(constants, values))

    zero, one = jnp.asarray(0, jnp.int32), jnp.asarray(1, jnp.int32)
    written_only = (False, False, *(True for _ in empty), *skipped)
    # Itself differentiated for second derivatives.
    state = _while(
        go_on,
        step,
        max(_FEWEST, slots // 16),
        written_only,
        first,
        constants,
        (zero, one, *empty, *start),
    )
    return state[2 + split :], state[0], state[1], state[2 : 2 + split]


def _every_second(arrays: Values) -> Values:
    return tuple(
        jnp.concatenate([array[::2], jnp.zeros_like(array[: array.shape[0] // 2])])[
            : array.shape[0]
        ]
        for array in arrays
    )


def _put(array: Any, index: Any, value: Any, due: Any) -> Any:
    old = lax.dynamic_index_in_dim(array, index, 0, keepdims=False)
    return lax.dynamic_update_index_in_dim(array, jnp.where(due, value, old), index, 0)


def _backward(
    condition: Any,
    body: Any,
    slots: int,
    skipped: tuple[bool, ...],
    first: int,
    residuals: Any,
    incoming: Values,
) -> tuple[Values, Values]:
    constants, start, count, stride, checkpoints = residuals
    moving = [at for at, value in enumerate(start) if _is_float(value)]
    fixed = [at for at, value in enumerate(constants) if _is_float(value)]
    kept = [position for position, skip in enumerate(skipped) if not skip]

    shapes = [(value.shape, value.dtype) for value in start]
    size = len(constants)
    checkpointed = len(kept)

    def values_at(arrays: Values, index: Any) -> Values:
        """The values of a checkpoint; zeros for values that are not checkpointed."""
        found = [jnp.zeros(*each) for each in shapes]
        for array, at in zip(arrays, kept, strict=True):
            found[at] = lax.dynamic_index_in_dim(array, index, 0, keepdims=False)
        return tuple(found)

    def pull(given: Values, values: Values, gradients: Values) -> tuple[Values, Values]:
        """The gradients of one step with respect to its values and the constants."""

        def floats(chosen: Values, constants_chosen: Values) -> Values:
            result = body(_with(given, fixed, constants_chosen), _with(values, moving, chosen))
            return tuple(result[at] for at in moving)

        _, back = jax.vjp(floats, _at(values, moving), _at(given, fixed))
        found: tuple[Values, Values] = back(gradients)
        return found

    # Everything the loops below use is passed to them: values they closed over could not be
    # differentiated. The first `size` constants are always the loop's own.

    def save_and_step(given: Values, state: Values) -> Values:
        """One forward step within a stretch, saving the values before it if due."""
        steps, saved, values = state[0], state[1 : 1 + checkpointed], state[1 + checkpointed :]
        distance = given[size + 1]
        saved = tuple(
            _put(array, steps // distance, values[at], steps % distance == 0)
            for array, at in zip(saved, kept, strict=True)
        )
        return (steps + 1, *saved, *body(given[:size], values))

    def step_back(given: Values, state: Values) -> Values:
        """The gradients of the step at `position` of a stretch."""
        position, gradients = state[0], state[1 : 1 + len(moving)]
        distance, saved = given[size + 1], given[size + 2 :]
        nearest = position // distance
        values = _while(
            lambda _, state: state[0] > 0,
            lambda given, state: (state[0] - 1, *body(given, state[1:])),
            slots,
            (False, *skipped),
            0,
            given[:size],
            (position - nearest * distance, *values_at(saved, nearest)),
        )[1:]
        found, of_constants = pull(given[:size], values, gradients)
        sums = state[1 + len(moving) :]
        return (position - 1, *found, *(a + b for a, b in zip(sums, of_constants, strict=True)))

    def stretch_back(given: Values, state: Values) -> Values:
        """The gradients of the steps after the last remaining checkpoint."""
        number, arrays = state[0], given[size + 2 :]
        total, between = given[size : size + 2]
        length = jnp.minimum(between, total - number * between)
        distance = (between + slots - 1) // slots
        own = (*given[:size], length, distance)
        empty = tuple(jnp.zeros((slots, *shapes[at][0]), shapes[at][1]) for at in kept)
        saved = _while(
            lambda given, state: state[0] < given[size],
            save_and_step,
            slots,
            (False, *(True for _ in kept), *skipped),
            0,
            own,
            (jnp.zeros((), jnp.int32), *empty, *values_at(arrays, number)),
        )[1 : 1 + checkpointed]
        back = _while(
            lambda _, state: state[0] >= 0,
            step_back,
            slots,
            (False,) * len(state),
            0,
            (*own, *saved),
            (length - 1, *state[1:]),
        )
        return (number - 1, *back[1:])

    stretches = (count + stride - 1) // stride
    sums = tuple(jnp.zeros_like(constants[at]) for at in fixed)
    state = _while(
        lambda _, state: state[0] >= 0,
        stretch_back,
        slots,
        (False,) * (1 + len(moving) + len(fixed)),
        0,
        (*constants, count, stride, *checkpoints),
        (stretches - 1, *_at(incoming, moving), *sums),
    )
    return (
        _spread(constants, fixed, state[1 + len(moving) :]),
        _spread(start, moving, state[1 : 1 + len(moving)]),
    )


_while.defvjp(_forward, _backward)


def _is_float(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def _at(values: Values, positions: Sequence[int]) -> Values:
    return tuple(values[at] for at in positions)


def _with(values: Values, positions: Sequence[int], new: Values) -> Values:
    result = list(values)
    for at, value in zip(positions, new, strict=True):
        result[at] = value
    return tuple(result)


def _spread(like: Values, positions: Sequence[int], found: Values) -> Values:
    """Gradients at their positions, and none for integers elsewhere."""
    result: list[Any] = [None] * len(like)
    for at, value in zip(positions, found, strict=True):
        result[at] = value
    return tuple(result)
