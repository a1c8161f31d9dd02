"""Space-to-batch and space-to-depth rearrangements, and their inverses."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import int32
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, register
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import joining
from estimatorkit.ops.math import elementwise

# -- blocks of space


def _space_to_batch(x: Any, block: Any, paddings: Any) -> Any:
    x = jnp.asarray(x)
    block = [int(each) for each in block]
    count = len(block)
    pads = [(0, 0), *((int(a), int(b)) for a, b in paddings)]
    x = jnp.pad(x, pads + [(0, 0)] * (x.ndim - count - 1))
    batch, space, rest = x.shape[0], x.shape[1 : count + 1], x.shape[count + 1 :]
    split: list[int] = []
    for length, size in zip(space, block, strict=True):
        split += [length // size, size]
    x = x.reshape(batch, *split, *rest)
    order = [
        *(2 * at + 2 for at in range(count)),
        0,
        *(2 * at + 1 for at in range(count)),
        *range(2 * count + 1, 2 * count + 1 + len(rest)),
    ]
    outer = [length // size for length, size in zip(space, block, strict=True)]
    return x.transpose(order).reshape(batch * int(np.prod(block)), *outer, *rest)


def _batch_to_space(x: Any, block: Any, crops: Any) -> Any:
    x = jnp.asarray(x)
    block = [int(each) for each in block]
    count, total = len(block), int(np.prod(block))
    space, rest = x.shape[1 : count + 1], x.shape[count + 1 :]
    x = x.reshape(*block, x.shape[0] // total, *space, *rest)
    order = [count]
    for at in range(count):
        order += [count + 1 + at, at]
    order += list(range(2 * count + 1, 2 * count + 1 + len(rest)))
    wide = [length * size for length, size in zip(space, block, strict=True)]
    x = x.transpose(order).reshape(-1, *wide, *rest)
    for number, ((a, b), length) in enumerate(zip(crops, wide, strict=True)):
        if min(a, b) < 0:
            raise InvalidArgumentError(None, None, "Crops must be non-negative")
        if a + b > length:
            left = f"cropped_shape[{number}]={length - a - b}"
            raise InvalidArgumentError(None, None, f"{left} must be non-negative")
    cut = [slice(int(a), length - int(b)) for (a, b), length in zip(crops, wide, strict=True)]
    return x[(slice(None), *cut)]


_BLOCKS = np.arange(2 * 4 * 2 * 1, dtype=np.float32).reshape(2, 4, 2, 1)

register(
    "SpaceToBatchND",
    _space_to_batch,
    static=(1, 2),
    cases=lambda: [
        Case(
            (_BLOCKS[:1], np.array([2, 2], np.int32), np.zeros((2, 2), np.int32)),
            {},
            np.array([[[[0]], [[4]]], [[[1]], [[5]]], [[[2]], [[6]]], [[[3]], [[7]]]], np.float32),
        )
    ],
    accepts=("", "x", "x"),
)
register(
    "BatchToSpaceND",
    _batch_to_space,
    static=(1, 2),
    cases=lambda: [
        Case(
            (
                np.array([[[[0]], [[4]]], [[[1]], [[5]]], [[[2]], [[6]]], [[[3]], [[7]]]], "f"),
                np.array([2, 2], np.int32),
                np.zeros((2, 2), np.int32),
            ),
            {},
            _BLOCKS[:1],
        )
    ],
    accepts=("", "x", "x"),
)


def space_to_batch_nd(
    input: Any, block_shape: Any, paddings: Any, name: str | None = None
) -> Tensor:
    """Moves spatial blocks into the batch dimension.

    Args:
        input: `(batch, spatial..., rest)`.
        block_shape: the size of a block in each spatial dimension.
        paddings: for each spatial dimension, the numbers of zeros to add before and after it.
    """
    inputs = {"input": input, "block_shape": block_shape, "paddings": paddings}
    return make("SpaceToBatchND", inputs, name=name, dtypes={"paddings": int32})


def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The inverse of `space_to_batch_nd`; `crops` removes what `paddings` added."""
    inputs = {"input": input, "block_shape": block_shape, "crops": crops}
    return make("BatchToSpaceND", inputs, name=name, dtypes={"crops": int32})


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The paddings that make spatial sizes multiples of the block, and the crops that remove them.

    Args:
        input_shape: int32 `(n,)`: the sizes of the spatial dimensions.
        block_shape: int32 `(n,)`, with a static `n`.
        base_paddings: int32 `(n, 2)`: the minimum paddings before and after, 0 by default.

    Returns:
        Paddings for `space_to_batch_nd`, crops for `batch_to_space_nd`: int32 `(n, 2)`.

    Raises:
        ValueError: the shapes are incompatible.
    """
    with get_default_graph().name_scope(name or "required_space_to_batch_paddings"):
        size = convert_to_tensor(input_shape, int32, name="input_shape")
        block = convert_to_tensor(block_shape, int32, name="block_shape")
        block.shape.assert_has_rank(1)
        block.shape.assert_is_fully_defined()
        count = int(block.shape.num_elements() or 0)
        size.shape.assert_is_compatible_with([count])
        least = np.zeros((count, 2), np.int32) if base_paddings is None else base_paddings
        base = convert_to_tensor(least, int32, name="base_paddings")
        base.shape.assert_is_compatible_with([count, 2])
        before, after = base[:, 0], base[:, 1]
        more = elementwise.floormod(-(size + before + after), block)
        paddings = joining.stack([before, after + more], axis=1, name="paddings")
        crops = joining.stack([elementwise.multiply(more, 0), more], axis=1, name="crops")
        for each in (paddings, crops):
            each.set_shape([count, 2])
        return paddings, crops


def space_to_batch(
    input: Any,
    paddings: Any,
    block_size: Any = None,
    name: str | None = None,
    block_shape: Any = None,
) -> Tensor:
    """Moves square blocks of images into the batch dimension.

    It is `space_to_batch_nd` for height and width.
    """
    size = block_shape if block_size is None else block_size
    return space_to_batch_nd(input, np.broadcast_to(size, [2]).astype(np.int32), paddings, name)


def batch_to_space(
    input: Any, crops: Any, block_size: Any = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """`batch_to_space_nd` for the height and width of images, with square blocks."""
    size = block_shape if block_size is None else block_size
    return batch_to_space_nd(input, np.broadcast_to(size, [2]).astype(np.int32), crops, name)


def _space_to_depth(x: Any, size: int, module: Any = jnp) -> Any:
    batch, height, width, depth = x.shape
    x = x.reshape(batch, height // size, size, width // size, size, depth)
    return module.transpose(x, (0, 1, 3, 2, 4, 5)).reshape(
        batch, height // size, width // size, size * size * depth
    )


def _depth_to_space(x: Any, size: int, module: Any = jnp) -> Any:
    batch, height, width, depth = x.shape
    x = x.reshape(batch, height, width, size, size, depth // size**2)
    return module.transpose(x, (0, 1, 3, 2, 4, 5)).reshape(
        batch, height * size, width * size, depth // size**2
    )


register(
    "SpaceToDepth",
    lambda x, size: _space_to_depth(jnp.asarray(x), size),
    numpy_kernel=lambda x, size: _space_to_depth(x, size, np),
    cases=lambda: [Case((_BLOCKS,), {"size": 2})],
)
register(
    "DepthToSpace",
    lambda x, size: _depth_to_space(jnp.asarray(x), size),
    numpy_kernel=lambda x, size: _depth_to_space(x, size, np),
    cases=lambda: [Case((_BLOCKS.reshape(2, 1, 2, 4),), {"size": 2})],
)


def _check(block_size: int, data_format: str, what: str) -> None:
    if block_size < 2:
        raise ValueError(
            f"Attr 'block_size' of '{what}' Op passed {block_size} less than minimum 2."
        )
    if data_format != "NHWC":
        raise value_error(f"{what}: data_format", expected="'NHWC'", received=repr(data_format))


def space_to_depth(
    input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Moves square blocks of an image into its channels."""
    _check(block_size, data_format, "space_to_depth")
    return make("SpaceToDepth", {"input": input}, {"size": int(block_size)}, name)


def depth_to_space(
    input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Moves channels of an image into square blocks: the inverse of `space_to_depth`."""
    _check(block_size, data_format, "depth_to_space")
    return make("DepthToSpace", {"input": input}, {"size": int(block_size)}, name)
