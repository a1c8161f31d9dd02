"""Where the bits of random operations come from: Threefry with a counter, made by XLA itself.

A key is four words: two of seed, and a 64-bit counter whose upper half is how often the operation
has run, so that runs never meet. JAX's own `threefry2x32` gives other bits of the same quality; its
code is compiled anew for each operation: 0.6 s of a processor where this takes 0.1 (28 variables of
a network: 9 s against 3), and it runs 3 times as long (128 x 784 numbers: 1.3 ms, 0.4 ms). In
bodies of functions, which may be run for many keys at once (`jax.vmap`), JAX's is used: XLA's
operation has one key.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import random as jax_random

_WORDS = {8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32, 64: jnp.uint64}


def _bits(words: Any, bit_width: int, shape: Any) -> Any:
    algorithm = lax.RandomAlgorithm.RNG_THREE_FRY
    generate: Any = lax.rng_bit_generator
    _, bits = generate(words, shape, dtype=_WORDS[bit_width], algorithm=algorithm)
    return bits


def _derived(words: Any, data: Any) -> Any:
    """Another key that follows from a key and a number."""
    pair = jnp.stack([words[0] ^ words[2], words[1] ^ words[3]])
    return jnp.concatenate([split_key(pair, data), jnp.zeros(2, jnp.uint32)])


def _split(words: Any, shape: Any) -> Any:
    count = int(np.prod(shape, dtype=np.int64))
    numbers = jnp.arange(1, count + 1, dtype=jnp.uint32)
    keys = jax.vmap(_derived, (None, 0))(words, numbers)
    return keys.reshape(*shape, 4)


def _seed(seed: Any) -> Any:
    return jnp.concatenate([jnp.stack([jnp.uint32(seed), jnp.uint32(0)]), jnp.zeros(2, jnp.uint32)])


_XLA_THREEFRY = jax_random.define_prng_impl(
    key_shape=(4,),
    seed=_seed,
    split=_split,
    random_bits=_bits,
    fold_in=_derived,
    name="estimatorkit",
    tag="ek",
)


def random_key(state: Any) -> Any:
    """The JAX key of an operation's run.

    Args:
        state: uint32 words (seed, seed, counter), in the body of a function one more.
    """
    if state.shape[0] > 3:
        key = jax.random.wrap_key_data(state[:2], impl="threefry2x32")
        return jax.random.fold_in(key, state[2])
    words = jnp.stack([state[0], state[1], jnp.zeros_like(state[2]), state[2]])
    return jax.random.wrap_key_data(words, impl=_XLA_THREEFRY)


def threefry_key(key: Any) -> Any:
    """A key of JAX's own generator that follows from a key: some of its functions take no other."""
    return jax.random.wrap_key_data(jax.random.bits(key, (2,), jnp.uint32), impl="threefry2x32")


def state_in_body(words: Any, counter: Any = 0) -> Any:
    """The state of a random operation in a function's body.

    Args:
        words: two words, from which it draws.
        counter: how often it has drawn from these: the number of an element.
    """
    rest = jnp.stack([jnp.asarray(counter, jnp.uint32), jnp.zeros((), jnp.uint32)])
    return jnp.concatenate([jnp.asarray(words, jnp.uint32), rest])


def split_key(words: Any, number: Any) -> Any:
    """Two random words that follow from two others and a number."""
    key = jax.random.wrap_key_data(words, impl="threefry2x32")
    return jax.random.key_data(jax.random.fold_in(key, number))


__all__ = ["random_key", "split_key", "state_in_body", "threefry_key"]
