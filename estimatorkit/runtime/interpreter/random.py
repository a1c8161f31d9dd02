"""Rules of random bits, equal to XLA's.

Keys are their words, in trailing dimensions. They are JAX's own (`threefry2x32`) or those of
`random_bits`.
"""

from __future__ import annotations

import math
from typing import Any, cast

import jax
import numpy as np
from jax import lax

from estimatorkit.runtime.interpreter.equations import Equation, Function, NotInterpretable
from estimatorkit.runtime.interpreter.rules import compiled, rule
from estimatorkit.runtime.interpreter.threefry import bits, counted, counters_of, threefry

_HALF = np.uint64(32)


def _kind(dtype: Any) -> str:
    """Of which generator keys are: of JAX's (`fry`) or the package's (`ek`)."""
    tag, config = dtype._impl.tag, cast("Any", jax.config)
    if tag not in ("fry", "ek") or not config.jax_threefry_partitionable:
        raise NotInterpretable(f"random keys {tag}")
    return str(tag)


def _pair(words: Any, kind: str) -> tuple[Any, Any]:
    """The words from which keys are derived."""
    if kind == "fry":
        return words[..., 0], words[..., 1]
    return words[..., 0] ^ words[..., 2], words[..., 1] ^ words[..., 3]


def _key(one: Any, other: Any, kind: str) -> Any:
    """A key of two words."""
    words = np.zeros((*one.shape, 2 if kind == "fry" else 4), np.uint32)
    words[..., 0], words[..., 1] = one, other
    return words


@rule("random_clone")
def _random_clone(equation: Equation) -> Function:
    return lambda key: key


@rule("random_seed")
def _random_seed(equation: Equation) -> Function:
    kind = _kind(equation.source.outvars[0].aval.dtype)
    if kind == "fry" and equation.inputs[0].dtype.itemsize == 8:

        def wide(seed: Any) -> Any:
            both = np.asarray(seed).astype(np.uint64)
            return _key((both >> _HALF).astype(np.uint32), both.astype(np.uint32), kind)

        return wide

    def run(seed: Any) -> Any:
        word = np.asarray(seed).astype(np.uint32)
        none = np.zeros_like(word)
        return _key(none, word, kind) if kind == "fry" else _key(word, none, kind)

    return run


@rule("random_fold_in")
def _random_fold_in(equation: Equation) -> Function:
    kind = _kind(equation.source.invars[0].aval.dtype)
    shape = equation.result.shape[:-1]

    def run(words: Any, data: Any) -> Any:
        keys = _pair(words, kind)
        one, other = np.zeros(shape, np.uint32), np.empty(shape, np.uint32)
        other[...] = np.asarray(data).astype(np.uint32)
        threefry(keys, one, other)
        return _key(one, other, kind)

    return run


@rule("random_split")
def _random_split(equation: Equation) -> Function:
    kind = _kind(equation.source.invars[0].aval.dtype)
    lead, shape = equation.inputs[0].shape[:-1], equation.params["shape"]
    count, result = math.prod(shape), equation.result.shape
    # The package's keys are derived by numbers from 1, JAX's from 0.
    numbers = np.arange(count, dtype=np.uint32) + np.uint32(kind == "ek")

    def run(words: Any) -> Any:
        keys = tuple(each[..., None] for each in _pair(words, kind))
        one, other = np.zeros((*lead, count), np.uint32), np.empty((*lead, count), np.uint32)
        other[...] = numbers
        threefry((keys[0], keys[1]), one, other)
        return _key(one, other, kind).reshape(result)

    return run


@rule("random_bits")
def _random_bits(equation: Equation) -> Function:
    kind = _kind(equation.source.invars[0].aval.dtype)
    shape, width = tuple(equation.params["shape"]), equation.params["bit_width"]
    lead, result = equation.inputs[0].shape[:-1], equation.result
    if kind == "fry":
        return _of_jax(lead, shape, width)
    if result.size == 0:
        return lambda words: np.empty(result.shape, result.dtype)
    # `jax.vmap` draws for all keys of a batch with the first.
    return lambda words: _generated(words.reshape(-1, 4)[0], result.shape, result.dtype)[0]


def _of_jax(lead: tuple[int, ...], shape: tuple[int, ...], width: int) -> Function:
    """Random bits as JAX's Threefry draws them: a 64-bit counter per element, upper word first."""
    count = math.prod(shape)
    numbers = np.arange(count, dtype=np.uint64)
    upper, lower = (numbers >> _HALF).astype(np.uint32), numbers.astype(np.uint32)

    def run(words: Any) -> Any:
        high, low = np.empty((*lead, count), np.uint32), np.empty((*lead, count), np.uint32)
        high[...], low[...] = upper, lower
        threefry((words[..., 0, None], words[..., 1, None]), high, low)
        return _joined(high, low, width).reshape((*lead, *shape))

    return run


def _joined(high: Any, low: Any, width: int) -> Any:
    if width == 64:
        return (high.astype(np.uint64) << _HALF) | low
    return (high ^ low).astype(f"uint{width}", copy=False)


def _generated(words: Any, shape: tuple[int, ...], dtype: Any) -> tuple[Any, int]:
    """Bits of XLA's generator, and how many counters it used."""
    keys, start = (words[0], words[1]), int(words[2]) | int(words[3]) << 32
    if 0 in shape:
        return np.empty(shape, dtype), 0
    if dtype.itemsize == 8:
        count = math.prod(shape)
        low, high = counted(keys, start, count)
        return ((high.astype(np.uint64) << _HALF) | low).reshape(shape), count
    return bits(keys, start, shape).astype(dtype, copy=False), counters_of(shape)


@rule("rng_bit_generator")
def _rng_bit_generator(equation: Equation) -> Function:
    if equation.params["algorithm"] != lax.RandomAlgorithm.RNG_THREE_FRY:
        return compiled(equation)
    shape, dtype = equation.outputs[1]
    is_wide = equation.inputs[0].dtype == np.uint64

    def run(key: Any) -> list[Any]:
        words = np.ascontiguousarray(key).view(np.uint32)
        found, used = _generated(words, shape, dtype)
        state = np.array([0, used], np.uint64) + words.view(np.uint64)
        return [state if is_wide else state.view(np.uint32), found]

    return run


@rule("threefry2x32")
def _threefry2x32(equation: Equation) -> Function:
    shape = equation.outputs[0].shape

    def run(key: Any, other_key: Any, one: Any, other: Any) -> list[Any]:
        first, second = np.empty(shape, np.uint32), np.empty(shape, np.uint32)
        first[...], second[...] = one, other
        threefry((key, other_key), first, second)
        return [first, second]

    return run


@rule("iota_2x32_shape")
def _iota_2x32_shape(equation: Equation) -> Function:
    shape = equation.outputs[0].shape
    numbers = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    both = [(numbers >> _HALF).astype(np.uint32), numbers.astype(np.uint32)]
    return lambda: both


__all__: list[str] = []
