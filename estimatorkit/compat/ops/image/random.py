"""Random flips and color changes of images, for data augmentation.

Built on `random_uniform`: draws are determined by the seeds and differ from TensorFlow's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from estimatorkit.compat.ops.array.stateless_random import stateless_uniform
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.array import shape
from estimatorkit.ops.array.indexing import slice_
from estimatorkit.ops.image import color as image_color, files as image_files
from estimatorkit.ops.image.shapes import checked_image, flipped
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.math.random import random_uniform

_Draw = Callable[..., Tensor]
"""Uniform draws by shape, bounds and dtype."""


def _counted(seed: int | None) -> _Draw:
    """Draws that also depend on how often they have run."""
    return functools.partial(random_uniform, seed=seed)


def _stateless(seed: Any) -> _Draw:
    """Draws determined only by a seed of two ints."""
    return functools.partial(_draw_of_seed, seed)


def _draw_of_seed(
    seed: Any, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32
) -> Tensor:
    return stateless_uniform(shape, seed, minval, maxval, dtype)


def _random_flip(image: Any, axis: int, draw: _Draw, name: str) -> Tensor:
    with get_default_graph().name_scope(name):
        given = checked_image(convert_to_tensor(image, name="image"), (3, 4))
        return flipped(given, axis, "flip", draw(shape(given)[:-3]) < 0.5)


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Randomly mirrors an image, or each image of a batch, horizontally.

    Args:
        image: `(batch, height, width, channels)` or `(height, width, channels)`.
        seed: see `set_random_seed`.
    """
    return _random_flip(image, -2, _counted(seed), "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Randomly flips an image or each of a batch vertically; see `random_flip_left_right`."""
    return _random_flip(image, -3, _counted(seed), "random_flip_up_down")


def random_brightness(image: Any, max_delta: Any, seed: int | None = None) -> Tensor:
    """Adds a random number from [-max_delta, max_delta) to the colors.

    Raises:
        ValueError: max_delta is negative.
    """
    return _brightness(image, max_delta, _counted(seed))


def _brightness(image: Any, max_delta: Any, draw: _Draw) -> Tensor:
    if max_delta < 0:
        raise ValueError(_NEGATIVE)
    return image_color.adjust_brightness(image, draw([], -max_delta, max_delta))


def random_hue(image: Any, max_delta: Any, seed: int | None = None) -> Tensor:
    """Adds a random number from [-max_delta, max_delta) to the hue of RGB images.

    Raises:
        ValueError: max_delta is not in [0, 0.5].
    """
    return _hue(image, max_delta, _counted(seed))


def _hue(image: Any, max_delta: Any, draw: _Draw) -> Tensor:
    if not 0 <= max_delta <= 0.5:
        raise ValueError("max_delta must be <= 0.5." if max_delta > 0 else _NEGATIVE)
    return image_color.adjust_hue(image, draw([], -max_delta, max_delta))


_NEGATIVE = "max_delta must be non-negative."


def _between(
    adjust: Callable[..., Tensor], image: Any, lower: Any, upper: Any, draw: _Draw
) -> Tensor:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return adjust(image, draw([], lower, upper))


def random_contrast(image: Any, lower: Any, upper: Any, seed: int | None = None) -> Tensor:
    """Adjusts the contrast by a random factor from [lower, upper); see `adjust_contrast`.

    Raises:
        ValueError: the bounds are negative or in the wrong order.
    """
    return _between(image_color.adjust_contrast, image, lower, upper, _counted(seed))


def random_saturation(image: Any, lower: Any, upper: Any, seed: int | None = None) -> Tensor:
    """Adjusts the saturation by a random factor from [lower, upper); see `adjust_saturation`.

    Raises:
        ValueError: the bounds are negative or in the wrong order.
    """
    return _between(image_color.adjust_saturation, image, lower, upper, _counted(seed))


def random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """`adjust_jpeg_quality` with a random quality in [min_jpeg_quality, max_jpeg_quality).

    Raises:
        ValueError: the bounds are not within 0 to 100, or in the wrong order.
    """
    return _jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, _counted(seed))


def _jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, draw: _Draw) -> Tensor:
    if not 0 <= min_jpeg_quality < max_jpeg_quality <= 100:
        raise value_error(
            "min_jpeg_quality and max_jpeg_quality must be between 0 and 100, the first less",
            received=f"{min_jpeg_quality} and {max_jpeg_quality}",
        )
    quality = draw([], min_jpeg_quality, max_jpeg_quality, int32)
    return image_files.adjust_jpeg_quality(image, quality)


# -- by a seed alone


def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """`random_flip_left_right`, determined only by a seed of two ints."""
    return _random_flip(image, -2, _stateless(seed), "stateless_random_flip_left_right")


def stateless_random_flip_up_down(image: Any, seed: Any) -> Tensor:
    """`random_flip_up_down`, determined only by a seed of two ints."""
    return _random_flip(image, -3, _stateless(seed), "stateless_random_flip_up_down")


def stateless_random_brightness(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """`random_brightness`, determined only by a seed of two ints."""
    return _brightness(image, max_delta, _stateless(seed))


def stateless_random_hue(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """`random_hue`, determined only by a seed of two ints."""
    return _hue(image, max_delta, _stateless(seed))


def stateless_random_contrast(image: Any, lower: Any, upper: Any, seed: Any) -> Tensor:
    """`random_contrast`, determined only by a seed of two ints."""
    return _between(image_color.adjust_contrast, image, lower, upper, _stateless(seed))


def stateless_random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Tensor:
    """`random_saturation`, determined only by a seed of two ints."""
    return _between(image_color.adjust_saturation, image, lower, upper, _stateless(seed))


def stateless_random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any
) -> Tensor:
    """`random_jpeg_quality`, determined only by a seed of two ints."""
    return _jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, _stateless(seed))


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """`random_crop`, determined only by a seed of two ints."""
    with get_default_graph().name_scope(name or "stateless_random_crop") as scope:
        given = convert_to_tensor(value, name="value")
        wanted = as_index_tensor(size, "size")
        room = shape(given) - wanted + 1
        places = stateless_uniform(shape(wanted), seed, None, None, room.dtype)
        offset = elementwise.floormod(places, room)
        return slice_(given, offset, wanted, scope)
