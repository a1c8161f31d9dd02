"""Random flips and colours of images, for training on more than there is.

Built on `random_uniform`: numbers follow from the seeds, and differ from TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int32
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.ops import image_color, image_files
from estimatorkit.core.ops.array import shape
from estimatorkit.core.ops.image_shapes import checked_image, flipped
from estimatorkit.core.ops.random import random_uniform
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
