"""Counter-based random ops, determined by (graph seed, op seed, number of previous runs).

The three words are the op's state in a session. Seeds are fixed when the op is created, or drawn by
the session from the operating system if neither the graph nor the op has one; the counter is saved
in every checkpoint. So equal seeds give equal numbers on any number of devices, and a resumed run
continues the same sequence. (TensorFlow's generators give other numbers for the same seeds.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor, make
from estimatorkit.core.dtypes import as_dtype, float32, int32, int64, members, uint32
from estimatorkit.core.errors import InvalidArgumentError, type_error, value_error
from estimatorkit.core.faults import Fault
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, constant_value_as_shape, fixed, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sizes import dims_of
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.math import random_numpy


def _rising(position: int, low: Any, high: Any) -> list[Fault]:
    """The test that the range of random integers is not empty."""

    def text(_: tuple[int, ...], values: tuple[int, ...]) -> str:
        return f"Need minval < maxval, got {values[0]} >= {values[1]}"

    return [Fault(position, low >= high, (low, high), text)]


DEFAULT_GRAPH_SEED = 87654321
"""The graph seed where only the op has one, as in TensorFlow."""


def get_seed(op_seed: int | None) -> tuple[int, int] | None:
    """The (graph seed, op seed) of an op created now; None if neither is set.

    As `tf.compat.v1.get_seed`: with a graph seed alone, the op seed is the op's place in the graph.
    """
    graph = get_default_graph()
    if graph.seed is None and op_seed is None:
        return None
    first = DEFAULT_GRAPH_SEED if graph.seed is None else graph.seed
    second = graph.version if op_seed is None else int(op_seed)
    return first & 0xFFFFFFFF, second & 0xFFFFFFFF


def _infer(inputs: Any, attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(attrs["dtype"], constant_value_as_shape(inputs[0]))]


def _dims(shape: Any) -> tuple[int, ...]:
    dims = dims_of(shape)
    for dim in dims:
        if dim < 0:
            raise InvalidArgumentError(None, None, f"Dimension {dim} must be >= 0")
    return dims


_SHAPE = np.array([2, 3], np.int32)


def _draw(
    op_type: str, kernel: Callable[..., Any], numpy_draw: Callable[..., Any], attrs: dict[str, Any]
) -> None:
    def numpy_kernel(shape: Any, dtype: Any, *, key: Any) -> Any:
        return numpy_draw(key, _dims(shape))

    register(
        op_type,
        kernel,
        numpy_kernel=numpy_kernel,
        infer=_infer,
        gradient=None,
        static=(0,),
        random=True,
        pure=False,
        accepts="x",
        cases=lambda: [Case((_SHAPE,), {"dtype": float32, **attrs})],
    )


_draw(
    "RandomUniform",
    lambda shape, dtype, *, key: jax.random.uniform(key, _dims(shape), dtype.numpy_dtype),
    random_numpy.uniform,
    {},
)
_draw(
    "RandomStandardNormal",
    lambda shape, dtype, *, key: jax.random.normal(key, _dims(shape), dtype.numpy_dtype),
    random_numpy.normal,
    {},
)
_draw(
    "TruncatedNormal",
    lambda shape, dtype, *, key: jax.random.truncated_normal(
        key, -2.0, 2.0, _dims(shape), dtype.numpy_dtype
    ),
    random_numpy.truncated_normal,
    {},
)
_draw(
    "RandomBits",
    lambda shape, dtype, *, key: jax.random.bits(key, _dims(shape), dtype.numpy_dtype),
    random_numpy.bits,
    {"dtype": uint32},
)
register(
    "RandomUniformInt",
    lambda shape, low, high, *, key: jax.random.randint(key, _dims(shape), low, high, low.dtype),
    infer=lambda inputs, attrs: [Spec(inputs[1].dtype, constant_value_as_shape(inputs[0]))],
    fault=lambda inputs, attrs: _rising(2, inputs[1], inputs[2]),
    gradient=None,
    static=(0,),
    random=True,
    pure=False,
    accepts=("x", "x", "x"),
    cases=lambda: [Case((_SHAPE, np.int32(-2), np.int32(5)))],
)
register(
    "RandomShuffle",
    lambda value, *, key: jax.random.permutation(key, value, axis=0) if value.ndim else value,
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[0].shape)],
    gradient=None,
    random=True,
    pure=False,
    cases=lambda: [Case((np.arange(6, dtype=np.float32).reshape(3, 2),))],
)


def _multinomial(logits: Any, num_samples: Any, dtype: Any, *, key: Any) -> Any:
    shape = (logits.shape[0], int(num_samples))
    drawn = jax.random.categorical(key, logits[:, None, :], shape=shape)
    return drawn.astype(dtype.numpy_dtype)


def _infer_multinomial(inputs: Any, attrs: Mapping[str, Any]) -> list[Spec]:
    rank = inputs[0].shape.rank
    if rank not in (None, 2):
        raise value_error(f"multinomial: Shape must be rank 2 but is rank {rank}: the logits")
    rows = inputs[0].shape[0] if rank else None
    count = registry.constant_value(inputs[1])
    return [Spec(attrs["dtype"], TensorShape([rows, None if count is None else int(count)]))]


register(
    "Multinomial",
    _multinomial,
    infer=_infer_multinomial,
    gradient=None,
    static=(1,),
    random=True,
    pure=False,
    cases=lambda: [Case((np.zeros((2, 3), np.float32), np.int32(4)), {"dtype": int64})],
    accepts="fi",
)


def _random(
    op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], seed: int | None, name: str | None
) -> Tensor:
    return make(op_type, inputs, {**attrs, "_seed": get_seed(seed)}, name)


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws from the uniform distribution on [minval, maxval).

    Args:
        shape: the shape, ints or a tensor.
        minval, maxval: the bounds; 0 and 1 by default (integers require maxval).
        dtype: floating, int32 or int64.
        seed: see `set_random_seed`.

    Raises:
        ValueError: the dtype is an integer one and maxval is None, or it is not supported.
    """
    wanted = as_dtype(dtype)
    accepted = members("fx")
    if wanted not in accepted:
        raise value_error(
            f"Argument `dtype` got invalid value {wanted}",
            expected=", ".join(each.name for each in accepted),
        )
    with get_default_graph().name_scope(name or "random_uniform") as scope:
        dims = as_index_tensor(shape, "shape")
        if wanted.is_integer:
            if maxval is None:
                raise ValueError(f"Must specify maxval for integer dtype {wanted.name}.")
            low = convert_to_tensor(minval, wanted, "min")
            high = convert_to_tensor(maxval, wanted, "max")
            return _random(
                "RandomUniformInt", {"shape": dims, "min": low, "max": high}, {}, seed, scope
            )
        if (minval, maxval) in ((0, None), (0, 1)) and not isinstance(minval, Tensor):
            return _random(
                "RandomUniform", {"shape": dims}, {"dtype": wanted}, seed, "RandomUniform"
            )
        low = convert_to_tensor(minval, wanted, "min")
        high = convert_to_tensor(1 if maxval is None else maxval, wanted, "max")
        unit = _random("RandomUniform", {"shape": dims}, {"dtype": wanted}, seed, "RandomUniform")
        from estimatorkit.ops.math import elementwise

        return elementwise.add(unit * (high - low), low, name=scope)


def random_bits(shape: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Draws uint32 words; see `uniform` for `shape` and `seed`. Not in TensorFlow."""
    inputs = {"shape": as_index_tensor(shape, "shape")}
    return _random("RandomBits", inputs, {"dtype": uint32}, seed, name or "random_bits")


def _scaled(
    op_type: str,
    shape: Any,
    mean: Any,
    stddev: Any,
    dtype: Any,
    seed: int | None,
    scope_name: str,
) -> Tensor:
    from estimatorkit.ops.math import elementwise

    wanted = as_dtype(dtype)
    if not wanted.is_floating:
        raise type_error(
            f"Value passed to parameter 'dtype' has DataType {wanted.name} not in list of "
            "allowed values: float16, bfloat16, float32, float64"
        )
    with get_default_graph().name_scope(scope_name) as scope:
        dims = as_index_tensor(shape, "shape")
        scale = convert_to_tensor(stddev, wanted, "stddev")
        unit = _random(op_type, {"shape": dims}, {"dtype": wanted}, seed, op_type)
        return elementwise.add(unit * scale, convert_to_tensor(mean, wanted, "mean"), name=scope)


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws from a normal distribution; see `uniform` for `shape` and `seed`."""
    return _scaled(
        "RandomStandardNormal", shape, mean, stddev, dtype, seed, name or "random_normal"
    )


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws from a normal distribution truncated at two standard deviations from the mean."""
    return _scaled("TruncatedNormal", shape, mean, stddev, dtype, seed, name or "truncated_normal")


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Shuffles `value` randomly along its first dimension."""
    return _random("RandomShuffle", {"value": value}, {}, seed, name)


def multinomial(
    logits: Any,
    num_samples: Any,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: Any = None,
) -> Tensor:
    """Draws class indices with the probabilities softmax(logits).

    Args:
        logits: `(batch, classes)`.
        num_samples: the number of draws for each row, an int or an int tensor.
        seed: see `set_random_seed`.
        output_dtype: int64 (default) or int32.

    Returns:
        `(batch, num_samples)`.
    """
    inputs = {"logits": logits, "num_samples": as_index_tensor(num_samples, "num_samples")}
    attrs = {"dtype": as_dtype(output_dtype or int64)}
    if attrs["dtype"] not in (int32, int64):
        raise ValueError(
            f"Argument `dtype` got invalid value {attrs['dtype']!r}. Accepted dtypes are "
            "(tf.int32, tf.int64)."
        )
    return _random("Multinomial", inputs, attrs, seed, name)


register(
    "RandomWords",
    lambda *, key: jax.random.bits(key, (2,), np.uint32),
    infer=fixed(uint32, TensorShape([2])),
    gradient=None,
    random=True,
    pure=False,
    cases=lambda: [Case(())],
)


def random_words(seed: tuple[int, int] | None = None, name: str | None = None) -> Tensor:
    """Two random uint32 words per run, which seed the draws inside a function.

    Args:
        seed: the graph's and the op's seed; by default those of an op without one of its own.
    """
    chosen = get_seed(None) if seed is None else seed
    return registry.output("RandomWords", (), {"_seed": chosen}, name)
