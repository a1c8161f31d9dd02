"""Fake quantization: floats rounded to the values that integers of a few bits can represent.

For training with quantization (Jacob et al. 2018): the forward pass rounds, the gradient passes
where the input is in the range. The range is moved a little so that 0 is represented exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.gradients import gradients as gradients_of
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.math.derivatives import with_partials


def _nudged(low: Any, high: Any, num_bits: int, narrow_range: bool) -> tuple[Any, Any, Any]:
    """The range that represents 0, and the distance of two neighbours."""
    least, most = float(narrow_range), float(2**num_bits - 1)
    scale = (high - low) / (most - least)
    zero = jnp.clip(least - low / scale, least, most)
    zero = jnp.floor(zero + 0.5)
    return (least - zero) * scale, (most - zero) * scale, scale


def _fake_quant(num_bits: int, narrow_range: bool) -> Callable[..., Any]:
    """`fake(x, low, high)`, whose gradient goes to x inside the range, to a bound beyond it."""

    def rounded(x: Any, low: Any, high: Any) -> Any:
        least, most, scale = _nudged(low, high, num_bits, narrow_range)
        zero = jnp.floor(-least / scale + 0.5)
        steps = jnp.floor((jnp.clip(x, least, most) - least) / scale - zero + 0.5)
        return jnp.where(_empty(low, high), jnp.zeros((), x.dtype), steps * scale)

    def where(beside: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
        def partial(t: Any, y: Any, x: Any, low: Any, high: Any) -> Any:
            least, most, _ = _nudged(low, high, num_bits, narrow_range)
            inside = beside(x, least, most)
            passed = jnp.where(_empty(low, high), beside is _between, inside)
            return jnp.where(passed, t, jnp.zeros((), t.dtype))

        return partial

    return with_partials(
        rounded,
        where(_between),
        where(lambda x, least, most: x < least),
        where(lambda x, least, most: x > most),
    )


def _between(x: Any, least: Any, most: Any) -> Any:
    return (x >= least) & (x <= most)


def _empty(low: Any, high: Any) -> Any:
    return (low == 0) & (high == 0)


def _kernel(
    inputs: Any,
    *bounds: Any,
    num_bits: int,
    narrow_range: bool,
    min: float | None = None,
    max: float | None = None,
) -> Any:
    low, high = bounds or (np.float32(min), np.float32(max))
    return _fake_quant(num_bits, narrow_range)(jnp.asarray(inputs), low, high)


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x, *bounds = inputs
    for bound in bounds:
        if bound.shape.rank not in (None, attrs["_rank"]):
            raise value_error(
                f"fake_quant: Shape must be rank {attrs['_rank']} but is rank {bound.shape.rank}",
                received=bound,
                made_at=bound.op.source,
            )
        if attrs["_rank"] and x.shape.rank and not x.shape[-1:].is_compatible_with(bound.shape):
            raise value_error(
                "fake_quant: Dimensions must be equal: the channels and their bounds",
                received=f"{x.shape} and {bound.shape}",
                made_at=bound.op.source,
            )
    return [Spec(x.dtype, x.shape)]


_X = np.array([[-7.0, -0.6], [0.2, 1.4], [5.9, 7.5]], np.float32)
_CASES = {
    "Args": Case(
        (_X,),
        {"min": -1.0, "max": 6.0, "num_bits": 3, "narrow_range": False, "_rank": 0},
        np.array([[-1, -1], [0, 1], [6, 6]], np.float32),
    ),
    "Vars": Case(
        (_X, np.float32(-1), np.float32(6)),
        {"num_bits": 3, "narrow_range": False, "_rank": 0},
        np.array([[-1, -1], [0, 1], [6, 6]], np.float32),
    ),
    "VarsPerChannel": Case(
        (_X, np.array([-1, 0], np.float32), np.array([6, 3.5], np.float32)),
        {"num_bits": 3, "narrow_range": False, "_rank": 1},
        np.array([[-1, 0], [0, 1.5], [6, 3.5]], np.float32),
    ),
}
for _kind, _case in _CASES.items():
    register(
        f"FakeQuantWithMinMax{_kind}",
        _kernel,
        infer=_infer,
        accepts=("float32",) * len(_case.inputs),
        cases=lambda case=_case: [case],
    )


def _checked(num_bits: int, narrow_range: bool) -> dict[str, Any]:
    if not 2 <= num_bits <= 16:
        raise value_error("num_bits must be between 2 and 16", received=num_bits)
    return {"num_bits": int(num_bits), "narrow_range": bool(narrow_range)}


def fake_quant_with_min_max_args(
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Rounds to the values that integers of `num_bits` bits represent between two numbers.

    Args:
        inputs: float32.
        min, max: the range, in which 0 is.
        num_bits: 2 to 16.
        narrow_range: leave out the least integer.
        name: the operation's name.

    Raises:
        ValueError: `num_bits` is not in its range, or `min` not less than `max`.
    """
    if not min < max:
        raise value_error(f"fake_quant: min has to be smaller than max, was: {min} >= {max}")
    attrs = {**_checked(num_bits, narrow_range), "min": float(min), "max": float(max), "_rank": 0}
    return make("FakeQuantWithMinMaxArgs", {"inputs": inputs}, attrs, name)


def fake_quant_with_min_max_vars(
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """`fake_quant_with_min_max_args` of a range that is learned.

    Args:
        inputs: float32.
        min, max: float32 scalars; they get the gradients of the inputs beyond them.
        num_bits, narrow_range, name: see `fake_quant_with_min_max_args`.

    Raises:
        ValueError: `num_bits` is not in its range, or a bound no scalar.
    """
    given = {"inputs": inputs, "min": min, "max": max}
    attrs = {**_checked(num_bits, narrow_range), "_rank": 0}
    return make("FakeQuantWithMinMaxVars", given, attrs, name)


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """`fake_quant_with_min_max_vars` with a range for each channel.

    Args:
        inputs: float32 `(..., channels)`.
        min, max: float32 `(channels,)`.
        num_bits, narrow_range, name: see `fake_quant_with_min_max_args`.

    Raises:
        ValueError: `num_bits` is not in its range, or the shapes do not match.
    """
    given = {"inputs": inputs, "min": min, "max": max}
    attrs = {**_checked(num_bits, narrow_range), "_rank": 1}
    return make("FakeQuantWithMinMaxVarsPerChannel", given, attrs, name)


def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """The gradient of `fake_quant_with_min_max_args`: that of the outputs, 0 beyond the range."""
    x = convert_to_tensor(inputs, float32, name="inputs")
    rounded = fake_quant_with_min_max_args(x, min, max, num_bits, narrow_range, name)
    found: Tensor = gradients_of(rounded, x, gradients)[0]
    return found


def _gradients(
    forward: Callable[..., Tensor], incoming: Any, inputs: Sequence[Any], *rest: Any
) -> list[Tensor]:
    """The gradients of `forward` by its inputs, given the gradient by its result."""
    given = [convert_to_tensor(each, float32) for each in inputs]
    return gradients_of(forward(*given, *rest), given, incoming)


def fake_quant_with_min_max_vars_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> list[Tensor]:
    """The gradients of `fake_quant_with_min_max_vars` by the inputs, `min` and `max`."""
    forward = fake_quant_with_min_max_vars
    return _gradients(forward, gradients, [inputs, min, max], num_bits, narrow_range, name)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> list[Tensor]:
    """The gradients of `fake_quant_with_min_max_vars_per_channel` by inputs, `min` and `max`."""
    forward = fake_quant_with_min_max_vars_per_channel
    return _gradients(forward, gradients, [inputs, min, max], num_bits, narrow_range, name)
