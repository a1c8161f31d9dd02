"""Random bits and keys, interpreted: exactly those of XLA, for JAX's keys and the package's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from estimatorkit.runtime.xla.random_bits import random_key
from tests.runtime.interpreter.agreement import agree
from tests.sweep import sweep

PACKAGE = np.array([5, 2**32 - 2, 3], np.uint32)
JAX = np.array([5, 6, 2**32 - 1, 0], np.uint32)
SHAPES = ((), (1,), (4,), (3, 2), (2, 3), (3, 3), (3, 5, 1), (0,), (2, 0))


def _of_shapes(state: Any) -> Any:
    key = random_key(state)
    return [jax.random.bits(key, shape, jnp.uint32) for shape in SHAPES]


def _of_widths(state: Any) -> Any:
    key = random_key(state)
    shapes = ((5,), (2, 3), ())
    return [
        jax.random.bits(key, shape, dtype)
        for shape in shapes
        for dtype in (jnp.uint8, jnp.uint16, jnp.uint64)
    ]


@pytest.mark.parametrize("dtype", [jnp.uint8, jnp.uint16, jnp.uint32, jnp.uint64])
@pytest.mark.parametrize("shape", SHAPES)
def test_bits_within_functions_are_those_of_jax(shape: tuple[int, ...], dtype: Any) -> None:
    theirs = jax.random.fold_in(jax.random.wrap_key_data(JAX[:2], impl="threefry2x32"), JAX[2])
    ours = random_key(jnp.asarray(JAX))
    with jax.enable_x64():
        for one, other in (
            (theirs, ours),
            (jax.random.split(theirs, 3)[2], jax.random.split(ours, 3)[2]),
        ):
            expected = jax.random.bits(one, shape, dtype)
            np.testing.assert_array_equal(jax.random.bits(other, shape, dtype), expected)
            several = jax.vmap(lambda number, key=other: jax.random.fold_in(key, number))(
                jnp.arange(3)
            )
            drawn = jax.vmap(lambda key: jax.random.bits(key, shape, dtype))(several)
            alone = jax.random.bits(jax.random.fold_in(one, 2), shape, dtype)
            np.testing.assert_array_equal(drawn[2], alone)


def _derived(state: Any) -> Any:
    key = random_key(state)
    first, second = jax.random.split(key)
    several = jax.random.split(key, (2, 3))
    folded = jax.random.fold_in(key, jnp.int32(-3))
    keys = (first, second, several, folded, jax.random.split(key, 0), jax.random.clone(folded))
    return [jax.random.key_data(each) for each in keys]


def _rearranged(state: Any) -> Any:
    keys = jax.random.split(random_key(state), (2, 3))
    index = state[0].astype(jnp.int32)
    moved = [
        keys[1],
        keys[:, ::2],
        keys.reshape(3, 2),
        keys.T,
        jnp.broadcast_to(keys[0], (4, 3)),
        jnp.concatenate([keys, keys], 1),
        jnp.stack([keys[0], keys[1]]),
        keys[index],
        keys[jnp.array([1, 0]), index - 4],
        keys.at[1, index - 4].set(keys[0, 0]),
        lax.dynamic_slice(keys, (index, index), (1, 2)),
        lax.dynamic_update_slice(keys, keys[:1, :1], (index, index)),
        jnp.where(index > 4, keys[0], keys[1]),
        lax.rev(keys, (0,)),
        jnp.take(keys, jnp.array([0, 5]), 0, mode="fill"),
        jnp.squeeze(keys[:1], 0)[None],
    ]
    return [jax.random.key_data(each) for each in moved], keys[0] == keys[1]


def _batched(state: Any) -> Any:
    keys = jax.random.split(random_key(state), 3)
    bits = jax.vmap(lambda key: jax.random.bits(key, (2, 3), jnp.uint32))(keys)
    folded = jax.vmap(lambda key, data: jax.random.fold_in(key, data))(keys, jnp.arange(3))
    spread = jax.vmap(lambda data: jax.random.fold_in(keys[0], data))(jnp.arange(3))
    again = jax.vmap(lambda key: jax.random.split(key, 2))(keys)
    seeds = jax.vmap(jax.random.key)(jnp.arange(-1, 2))
    return bits, *(jax.random.key_data(each) for each in (folded, spread, again, seeds))


def _looped(state: Any) -> Any:
    key = random_key(state)

    def body(key: Any, x: Any) -> Any:
        key, sub = jax.random.split(key)
        return key, (sub, jax.random.bits(sub, (2,), jnp.uint32) + x)

    key, (keys, drawn) = lax.scan(body, key, jnp.arange(3, dtype=jnp.uint32))
    bits = lax.map(lambda key: jax.random.bits(key, (2,), jnp.uint16), keys)

    def further(carried: Any) -> Any:
        return carried[0] + 1, jax.random.fold_in(carried[1], carried[0])

    _, last = lax.while_loop(lambda carried: carried[0] < 4, further, (0, key))
    chosen = lax.cond(drawn[0, 0] > 2**31, lambda: key, lambda: last)
    return drawn, bits, *(jax.random.key_data(each) for each in (key, last, chosen))


PARTS = (_of_shapes, _of_widths, _derived, _rearranged, _batched, _looped)


@sweep("part", PARTS, quick=1, ids=lambda part: part.__name__)
@pytest.mark.parametrize("state", [PACKAGE, JAX], ids=["package", "jax"])
def test_bits(part: Any, state: Any) -> None:
    agree([(part, (state,))])


@pytest.mark.slow
def test_draws() -> None:
    def draws(state: Any) -> Any:
        key = random_key(state)
        return (
            jax.random.uniform(key, (5,)),
            jax.random.randint(key, (3,), 0, 7),
            jax.random.permutation(key, 9),
            jax.random.categorical(key, jnp.zeros(4), shape=(3,)),
        )

    names = ["sort", "rem", "shift_right_logical", "bitcast_convert_type", "reduce_and", "argmax"]
    for state in (PACKAGE, JAX):
        agree([(draws, (state,))], compiled=names)


@pytest.mark.slow
def test_gamma_is_compiled() -> None:
    for state in (PACKAGE, JAX):
        agree(
            [(lambda s: jax.random.gamma(random_key(s), 2.0, (3,)), (state,))],
            compiled=["random_gamma"],
            exact=True,
        )


@pytest.mark.slow
def test_generators() -> None:
    algorithm = lax.RandomAlgorithm.RNG_THREE_FRY
    state = np.array([5, 6, 2**32 - 3, 7], np.uint32)
    cases: list[Any] = []
    for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
        for shape in SHAPES:
            for key in (state, state.view(np.uint64)):

                def generate(key: Any, shape: Any = shape, dtype: Any = dtype) -> Any:
                    return lax.rng_bit_generator(key, shape, dtype=dtype, algorithm=algorithm)

                cases.append((generate, (key,)))
    agree(cases)


def test_seeds() -> None:
    def seeds(small: Any, *others: Any) -> Any:
        keys = [jax.random.key(each) for each in (small, *others)]
        return [jax.random.key_data(each) for each in keys]

    given = (np.int32(-5), np.int64(-(2**40)), np.uint64(2**63 + 1), np.uint8(7), np.int16(-1))
    agree([(seeds, given)])


def test_keys_among_constants() -> None:
    keys = jax.random.split(jax.random.key(3), 2)
    agree([(lambda i: jax.random.bits(keys[i], (2,)), (np.int32(1),))])
