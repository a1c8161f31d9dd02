"""Fractional pooling (Graham 2015, arXiv:1412.6071): random windows shrink an image by a
non-integer ratio.

One operation draws the windows' bounds, another reduces between them and has the gradient. With
length / outputs between k and k + 1, each window has k or k + 1 rows; overlapping windows include
the first row of the next one.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int64
from estimatorkit.core.errors import InvalidArgumentError, UnimplementedError, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, apply, output, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.math.random import get_seed
from estimatorkit.ops.nn.pooling import first_greatest, least

_IMAGE = np.sin(np.arange(2 * 5 * 4 * 2, dtype=np.float32) * 2).reshape(2, 5, 4, 2)


class FractionalPool(NamedTuple):
    """The result of a fractional pooling.

    Attributes:
        output: `(batch, rows, columns, channels)`.
        row_pooling_sequence: int64 `(rows + 1,)` from 0 to the height: the windows' starts and the
            last one's end.
        col_pooling_sequence: the same for the columns.
    """

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


# -- where windows begin


def _count(length: int, ratio: float, axis: int) -> int:
    """The number of windows along an axis."""
    count = int(length / ratio)
    if not count:
        raise InvalidArgumentError.explained(
            f"Pooling ratio is higher than input dimension size for dimension {axis}. Input "
            f"dim size: {length} pooling ratio: {ratio}",
            expected=f"at most {length}",
            received=ratio,
        )
    return count


def _shuffled(key: Any, length: int, count: int) -> Any:
    """Bounds of windows whose two sizes are in random order."""
    sizes = np.full(count, length // count, np.int64)
    sizes[: length % count] += 1
    return jnp.concatenate([np.zeros(1, np.int64), jnp.cumsum(jax.random.permutation(key, sizes))])


def _pseudo_random(key: Any, length: int, count: int) -> Any:
    """Bounds ceil(ratio (i + u)) - 1 for one random number u, which spaces them evenly.

    u goes from 0 to the largest number with which the first window has at most k + 1 rows and the
    last one at least k.
    """
    ratio, k = length / count, length // count
    most = min((k + 2) / ratio - 1, (length + 1 - k) / ratio - (count - 1))
    u = jax.random.uniform(key, (), np.float64) * most
    inner = jnp.ceil(ratio * (np.arange(1, count) + u)).astype(np.int64) - 1
    ends = np.array([0, length], np.int64)
    return jnp.concatenate([ends[:1], inner, ends[1:]])


def _sequences(
    x: Any,
    ratios: tuple[float, float],
    pseudo_random: bool,
    fixed: tuple[int, int] | None,
    *,
    key: Any,
) -> Any:
    """The windows' bounds; the two words `fixed` replace the run's key."""
    if fixed is not None:
        key = jax.random.wrap_key_data(jnp.array(fixed, np.uint32), impl="threefry2x32")
    draw = _pseudo_random if pseudo_random else _shuffled
    return tuple(
        draw(own, x.shape[axis], _count(x.shape[axis], ratio, axis))
        for own, axis, ratio in zip(jax.random.split(key), (1, 2), ratios, strict=True)
    )


def _infer_sequences(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    (x,) = inputs
    if x.shape.rank not in (None, 4):
        raise value_error(
            f"Shape must be rank 4 but is rank {x.shape.rank}: the input of a pooling",
            received=x,
            made_at=x.op.source,
        )
    lengths = x.shape.as_list()[1:3] if x.shape.rank else [None, None]
    return [
        Spec(int64, TensorShape([None if length is None else _count(length, ratio, axis) + 1]))
        for axis, length, ratio in zip((1, 2), lengths, attrs["ratios"], strict=True)
    ]


register(
    "FractionalPoolingSequences",
    _sequences,
    infer=_infer_sequences,
    gradient=None,
    random=True,
    pure=False,
    cases=lambda: [
        Case(
            (np.zeros((1, 50, 40, 1), np.float32),),
            {"ratios": (1.7, 1.3), "pseudo_random": False, "fixed": None},
        )
    ],
)


# -- what is between them


def _parts(x: Any, bounds: Any, axis: int, overlapping: bool) -> list[tuple[Any, Any]]:
    """For each offset in a window, its rows and a mask of those inside their window."""
    length, count = x.shape[axis], len(bounds) - 1
    starts = jnp.asarray(bounds)[:-1]
    ends = jnp.minimum(jnp.asarray(bounds)[1:] + int(overlapping), length)
    shape = [-1 if at == axis else 1 for at in range(x.ndim)]
    return [
        (
            jnp.take(x, jnp.minimum(starts + place, length - 1), axis),
            (starts + place < ends).reshape(shape),
        )
        for place in range(length // count + 1 + int(overlapping))
    ]


def _greatest(x: Any, rows: Any, columns: Any, overlapping: bool) -> Any:
    x = jnp.asarray(x)
    for axis, bounds in ((2, columns), (1, rows)):
        x = functools.reduce(
            first_greatest,
            [
                jnp.where(inside, values, least(x.dtype))
                for values, inside in _parts(x, bounds, axis, overlapping)
            ],
        )
    return x


def _mean(x: Any, rows: Any, columns: Any, overlapping: bool) -> Any:
    total: Any = jnp.asarray(x)
    count: Any = 1
    for axis, bounds in ((2, columns), (1, rows)):
        parts = _parts(total, bounds, axis, overlapping)
        total = sum(jnp.where(inside, values, 0) for values, inside in parts)
        count = count * sum(inside.astype(np.int32) for _, inside in parts)
    divisor = jnp.broadcast_to(count, total.shape).astype(total.dtype)
    return jax.lax.div(total, divisor)  # of whole numbers the whole part, as in TensorFlow


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x, *bounds = inputs
    counts = [each.shape[0] if each.shape.rank == 1 else None for each in bounds]
    batch, _, _, channels = x.shape.dims or [None] * 4
    windows = [None if count is None else count - 1 for count in counts]
    return [Spec(x.dtype, TensorShape([batch, *windows, channels]))]


_BOUNDS = np.array([0, 2, 3, 5], np.int64), np.array([0, 1, 3, 4], np.int64)


def _reference(reduce: Any, overlapping: bool) -> Any:
    """Reference that reduces window by window."""
    rows, columns = _BOUNDS
    more = int(overlapping)
    return np.stack(
        [
            np.stack(
                [
                    reduce(_IMAGE[:, top : bottom + more, left : right + more], axis=(1, 2))
                    for left, right in itertools.pairwise(columns)
                ],
                1,
            )
            for top, bottom in itertools.pairwise(rows)
        ],
        1,
    )


for _type, _kernel, _reduce in (
    ("MaxPoolOfSequences", _greatest, np.max),
    ("AvgPoolOfSequences", _mean, np.mean),
):
    register(
        _type,
        _kernel,
        infer=_infer,
        accepts="fi",
        cases=lambda reduce=_reduce: [
            Case(
                (_IMAGE, *_BOUNDS),
                {"overlapping": overlapping},
                _reference(reduce, overlapping),
            )
            for overlapping in (False, True)
        ],
    )


# -- TensorFlow's functions


def _ratios(given: Any, kind: str) -> tuple[float, float]:
    """The ratios of height and width."""
    ratios = [float(each) for each in np.atleast_1d(given)]
    if len(ratios) in (1, 2):
        ratios = [1.0, *np.broadcast_to(ratios, [2]).tolist(), 1.0]
    if len(ratios) != 4:
        raise value_error(
            "pooling_ratio does not fit",
            expected="1, 2 or 4 numbers, 1.0 for batch and channels",
            received=given,
        )
    for ratio in ratios:
        if ratio < 1:
            raise value_error(
                f"pooling_ratio cannot be smaller than 1, got: {ratio}",
                received=given,
                hint="fractional pooling makes images smaller",
            )
    if ratios[0] != 1 or ratios[3] != 1:
        raise UnimplementedError.explained(
            f"Fractional {kind} pooling is not yet supported on the batch nor channel dimension",
            expected="1.0 there",
            received=given,
        )
    return ratios[1], ratios[2]


def _pool(
    kind: str,
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool,
    overlapping: bool,
    deterministic: bool,
    seeds: tuple[int | None, int | None],
    name: str | None,
) -> FractionalPool:
    first, second = (int(seed or 0) & 0xFFFFFFFF for seed in seeds)
    given = (first, second) if first or second else None
    attrs = {
        "ratios": _ratios(pooling_ratio, "max" if kind == "Max" else "average"),
        "pseudo_random": bool(pseudo_random),
        "fixed": (first, second) if deterministic else None,
        "_seed": given or get_seed(None),
    }
    with get_default_graph().name_scope(name or f"Fractional{kind}Pool") as scope:
        x = convert_to_tensor(value, name="value")
        rows, columns = apply("FractionalPoolingSequences", [x], attrs, "sequences").outputs
        inputs, shared = [x, rows, columns], {"overlapping": bool(overlapping)}
        pooled = output(f"{kind}PoolOfSequences", inputs, shared, scope)
        return FractionalPool(pooled, rows, columns)


def fractional_max_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int | None = 0,
    seed2: int | None = 0,
    name: str | None = None,
) -> FractionalPool:
    """Max pooling over windows of random sizes.

    Args:
        value: `(batch, height, width, channels)`, floats or ints.
        pooling_ratio: the input's size divided by the output's: four numbers, 1.0 for batch and
            channels and at least 1.0 for height and width; or these two, or one for both.
        pseudo_random: whether one random number spreads the windows evenly, instead of their sizes
            being in random order.
        overlapping: whether adjacent windows share the row or column between them.
        deterministic: whether the windows are the same in every run.
        seed, seed2: the seeds of the windows; 0 for none. (Equal seeds give other windows than in
            TensorFlow.)

    Returns:
        The output, and the boundaries of the windows.

    Raises:
        ValueError: shapes or ratios are invalid.
        UnimplementedError: the ratio of batch or channels is not 1.
        InvalidArgumentError: an image is smaller than a ratio.
    """
    return _pool(
        "Max",
        value,
        pooling_ratio,
        pseudo_random,
        overlapping,
        deterministic,
        (seed, seed2),
        name,
    )


def fractional_avg_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int | None = 0,
    seed2: int | None = 0,
    name: str | None = None,
) -> FractionalPool:
    """Average pooling over windows of random sizes; see `fractional_max_pool`."""
    return _pool(
        "Avg",
        value,
        pooling_ratio,
        pseudo_random,
        overlapping,
        deterministic,
        (seed, seed2),
        name,
    )
