"""Random flips and colours of images, for training on more than there is.

Built on `random_uniform`: numbers follow from the seeds, and differ from TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.dtypes import int32
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.ops import image_color, image_files
from estimatorkit.core.ops.array import shape
from estimatorkit.core.ops.image_shapes import checked_image, flipped
from estimatorkit.core.ops.random import get_seed, random_uniform
from estimatorkit.core.registry import (
    Case,
    Spec,
    constant_value,
    constant_value_as_shape,
    output,
    register,
)
from estimatorkit.core.tensor import Tensor


def _random_flip(image: Any, axis: int, seed: int | None, name: str) -> Tensor:
    with get_default_graph().name_scope(name):
        given = checked_image(convert_to_tensor(image, name="image"), (3, 4))
        chosen = random_uniform(shape(given)[:-3], seed=seed) < 0.5
        return flipped(given, axis, "flip", chosen)


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """An image (each of a batch) mirrored, or not, by chance.

    Args:
        image: `(batch, height, width, channels)` or `(height, width, channels)`.
        seed: see `set_random_seed`.
    """
    return _random_flip(image, -2, seed, "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """An image (each of a batch) upside down, or not, by chance; see `random_flip_left_right`."""
    return _random_flip(image, -3, seed, "random_flip_up_down")


def random_brightness(image: Any, max_delta: Any, seed: int | None = None) -> Tensor:
    """Colours with a number from [-max_delta, max_delta) added.

    Raises:
        ValueError: max_delta is negative.
    """
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    delta = random_uniform([], -max_delta, max_delta, seed=seed)
    return image_color.adjust_brightness(image, delta)


def random_hue(image: Any, max_delta: Any, seed: int | None = None) -> Tensor:
    """RGB images with a number from [-max_delta, max_delta) added to the hue.

    Raises:
        ValueError: max_delta is not in [0, 0.5].
    """
    if not 0 <= max_delta <= 0.5:
        raise ValueError("max_delta must be <= 0.5." if max_delta > 0 else _NEGATIVE)
    delta = random_uniform([], -max_delta, max_delta, seed=seed)
    return image_color.adjust_hue(image, delta)


_NEGATIVE = "max_delta must be non-negative."


def _between(
    adjust: Callable[..., Tensor], image: Any, lower: Any, upper: Any, seed: int | None
) -> Tensor:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return adjust(image, random_uniform([], lower, upper, seed=seed))


def random_contrast(image: Any, lower: Any, upper: Any, seed: int | None = None) -> Tensor:
    """`adjust_contrast` by a factor from [lower, upper).

    Raises:
        ValueError: the bounds are negative or in the wrong order.
    """
    return _between(image_color.adjust_contrast, image, lower, upper, seed)


def random_saturation(image: Any, lower: Any, upper: Any, seed: int | None = None) -> Tensor:
    """`adjust_saturation` by a factor from [lower, upper).

    Raises:
        ValueError: the bounds are negative or in the wrong order.
    """
    return _between(image_color.adjust_saturation, image, lower, upper, seed)


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A box of this size from anywhere in a tensor.

    Args:
        value: a tensor.
        size: `(rank,)`, ints or a tensor, at most the shape of the value.
        seed: see `set_random_seed`.
        name: the operations' name.

    Raises:
        ValueError: the size does not fit, as far as is known.
        InvalidArgumentError: (when compiled) it does not fit.
    """
    with get_default_graph().name_scope(name or "random_crop") as scope:
        given = convert_to_tensor(value, name="value")
        wanted = as_index_tensor(size, "size")
        return output("RandomCrop", [given, wanted], {"_seed": get_seed(seed)}, scope)


def _crop(value: Any, size: Any, *, key: Any) -> Any:
    value = jnp.asarray(value)
    sizes = [int(side) for side in size]
    if len(sizes) != value.ndim or any(
        side > whole for side, whole in zip(sizes, value.shape, strict=True)
    ):
        raise ValueError(f"Need value.shape >= size, got {list(value.shape)} and {sizes}")
    room = np.array([whole - side + 1 for side, whole in zip(sizes, value.shape, strict=True)])
    return jax.lax.dynamic_slice(value, jax.random.randint(key, room.shape, 0, room), sizes)


def _infer_crop(inputs: Any, attrs: Any) -> list[Spec]:
    value, size = inputs
    given, dims = constant_value(size), value.shape.dims
    if given is not None and dims is not None:
        small = [dim is not None and dim < side for dim, side in zip(dims, given, strict=False)]
        if any(small) or len(given) != len(dims):
            raise ValueError(
                explain(
                    "Need value.shape >= size",
                    expected=f"at most {value.shape} in each dimension",
                    received=given.tolist(),
                    made_at=value.op.source,
                )
            )
    return [Spec(value.dtype, constant_value_as_shape(size))]


register(
    "RandomCrop",
    _crop,
    infer=_infer_crop,
    gradient=None,
    static=(1,),
    random=True,
    pure=False,
    accepts="ficb",
    cases=lambda: [
        Case((np.arange(400, dtype=np.float32).reshape(20, 10, 2), np.array([2, 3, 2], np.int32)))
    ],
)


def random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """`adjust_jpeg_quality` by a quality from [min_jpeg_quality, max_jpeg_quality).

    Raises:
        ValueError: the bounds are not within 0 to 100, or in the wrong order.
    """
    if not 0 <= min_jpeg_quality < max_jpeg_quality <= 100:
        raise ValueError(
            explain(
                "min_jpeg_quality and max_jpeg_quality must be between 0 and 100, the first less",
                received=f"{min_jpeg_quality} and {max_jpeg_quality}",
            )
        )
    quality = random_uniform([], min_jpeg_quality, max_jpeg_quality, int32, seed=seed)
    return image_files.adjust_jpeg_quality(image, quality)
