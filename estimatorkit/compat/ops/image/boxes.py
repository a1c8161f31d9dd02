"""Bounding boxes: drawing and random sampling.

A box is y1, x1, y2, x2 (or y_min, x_min, y_max, x_max), as fractions of height and width unless a
function says otherwise. What is chosen has a place that depends on values: a host op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, apply, output, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.debug.shape_matching import check_dims
from estimatorkit.ops.image.shapes import checked_image
from estimatorkit.ops.math.random import get_seed, random_words

Array = NDArray[Any]

# -- drawing

_COLORS = np.array(
    [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1],
        [0, 0, 0.5, 1],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ],
    np.float32,
)
"""Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia."""


def _draw(images: Any, boxes: Any, colors: Any, white: bool = True) -> Any:
    images = jnp.asarray(images)
    height, width, channels = images.shape[1:]
    palette = jnp.asarray(colors)[:, :channels].astype(images.dtype)
    if palette.shape[1] < channels:
        raise ValueError(f"colors have {palette.shape[1]} channels, the images {channels}")
    if channels == 1 and white:
        palette = jnp.ones_like(palette)
    rows = jnp.arange(height)[:, None]
    columns = jnp.arange(width)[None, :]
    places = jnp.asarray(boxes).astype(np.float32) * np.array(
        [height - 1, width - 1, height - 1, width - 1], np.float32
    )
    places = jnp.trunc(places).astype(np.int32)

    def drawn(image: Any, image_boxes: Any) -> Any:
        def one(number: Any, canvas: Any) -> Any:
            top, left, bottom, right = image_boxes[number]
            seen = (top < height) & (bottom >= 0) & (left < width) & (right >= 0)
            seen &= (top <= bottom) & (left <= right)
            down = (rows >= top) & (rows <= bottom)
            along = (columns >= left) & (columns <= right)
            edge = ((rows == top) | (rows == bottom)) & along
            edge |= ((columns == left) | (columns == right)) & down
            color = palette[number % len(palette)]
            return jnp.where((edge & seen)[..., None], color, canvas)

        return jax.lax.fori_loop(0, image_boxes.shape[0], one, image)

    return jax.vmap(drawn)(images, places)


_CANVAS = np.zeros([1, 4, 4, 1], np.float32)


def _infer_draw(inputs: Sequence[Tensor], attrs: Any) -> list[Spec]:
    images, boxes = inputs[:2]
    check_dims(boxes, (None, None, 4), "boxes")
    channels = images.shape[-1] if images.shape.rank else None
    if channels not in (None, 1, 3, 4):
        raise value_error(
            "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)",
            received=images,
            made_at=images.op.source,
        )
    return [Spec(images.dtype, images.shape)]


register(
    "DrawBoundingBoxesV2",
    _draw,
    infer=_infer_draw,
    gradient="undefined",
    accepts="f",
    cases=lambda: [
        Case(
            (_CANVAS, np.array([[[0, 0, 0.67, 1]]], np.float32), _COLORS),
            {},
            np.array([[1, 1, 1, 1], [1, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]], np.float32)[
                None, ..., None
            ],
        )
    ],
)


def draw_bounding_boxes(
    images: Any, boxes: Any, name: str | None = None, colors: Any = None
) -> Tensor:
    """Draws outlines of boxes, one pixel wide, on images.

    Args:
        images: floating `(batch, height, width, channels)`.
        boxes: float32 `(batch, boxes, 4)`: y_min, x_min, y_max, x_max.
        colors: `(colors, channels)`, used in turn; ten colours by default (1 for gray images).
    """
    with get_default_graph().name_scope(name or "DrawBoundingBoxesV2") as scope:
        inputs = [
            checked_image(convert_to_tensor(images, name="images"), (4,)),
            convert_to_tensor(boxes, float32, name="boxes"),
            convert_to_tensor(_COLORS if colors is None else colors, float32, name="colors"),
        ]
        return output("DrawBoundingBoxesV2", inputs, {"white": colors is None}, scope)


# -- boxes by chance


def _random_box(
    rng: np.random.Generator,
    height: int,
    width: int,
    aspect: float,
    areas: tuple[float, float],
) -> tuple[int, int, int, int] | None:
    """A random box of this aspect ratio and an area within bounds: y, x, height, width; None if
    none fits.
    """
    least, most = (share * height * width for share in areas)
    low = round((least / aspect) ** 0.5)
    high = round((most / aspect) ** 0.5)
    if round(high * aspect) > width:
        high = int((width + 0.5 - 1e-7) / aspect)
        if round(high * aspect) > width:
            high -= 1
    high = min(high, height)
    tall = min(low, high)
    if tall < high:
        tall += int(rng.integers(high - tall + 1))
    wide = round(tall * aspect)
    # Rounding may have moved the area slightly out of its bounds.
    if tall * wide < least:
        tall += 1
    elif tall * wide > most:
        tall -= 1
    wide = round(tall * aspect)
    if not least <= tall * wide <= most or not 0 < wide <= width or not 0 < tall <= height:
        return None
    return (
        int(rng.integers(height - tall)) if tall < height else 0,
        int(rng.integers(width - wide)) if wide < width else 0,
        tall,
        wide,
    )


def _covers(box: tuple[int, int, int, int], objects: Array, least: float) -> bool:
    """Whether the box contains at least this fraction of some object's area."""
    y, x, tall, wide = box
    down = np.minimum(objects[:, 2], y + tall) - np.maximum(objects[:, 0], y)
    along = np.minimum(objects[:, 3], x + wide) - np.maximum(objects[:, 1], x)
    areas = (objects[:, 2] - objects[:, 0]) * (objects[:, 3] - objects[:, 1])
    shared = np.maximum(down, 0) * np.maximum(along, 0)
    return bool((shared >= least * areas)[areas > 0].any())


def _distorted(
    image_size: Array,
    boxes: Array,
    least_covered: Array,
    words: Array,
    aspects: tuple[float, float],
    areas: tuple[float, float],
    attempts: int,
    use_image: bool,
) -> Any:
    height, width = int(image_size[0]), int(image_size[1])
    objects = boxes.reshape(-1, 4)
    if not len(objects):
        if not use_image:
            raise ValueError(
                "No bounding boxes provided as input. One must enable "
                "use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes"
            )
        objects = np.array([[0, 0, 1, 1]], np.float32)
    if objects.min() < 0 or objects.max() > 1:
        raise ValueError("All bounding box coordinates must be in [0.0, 1.0]")
    pixels = np.trunc(objects * np.array([height, width, height, width])).astype(np.int64)
    rng = np.random.default_rng([int(word) for word in words])
    chosen = (0, 0, height, width)
    for _ in range(attempts):
        box = _random_box(rng, height, width, rng.uniform(*aspects), areas)
        if box is not None and _covers(box, pixels, float(least_covered)):
            chosen = box
            break
    y, x, tall, wide = chosen
    dtype = image_size.dtype
    shares = [y / height, x / width, (y + tall) / height, (x + wide) / width]
    return (
        np.array([y, x, 0], dtype),
        np.array([tall, wide, -1], dtype),
        np.array([[shares]], np.float32),
    )


register(
    "SampleDistortedBoundingBoxV2",
    _distorted,
    where="host",
    infer=lambda inputs, attrs: [
        Spec(inputs[0].dtype, TensorShape([3])),
        Spec(inputs[0].dtype, TensorShape([3])),
        Spec(float32, TensorShape([1, 1, 4])),
    ],
    gradient=None,
    cases=lambda: [
        Case(
            (
                np.array([8, 8, 3], np.int32),
                np.array([[[0, 0, 1, 1]]], np.float32),
                np.float32(1.0),
                np.array([3, 4], np.uint32),
            ),
            {"aspects": (1.0, 1.0), "areas": (1.0, 1.0), "attempts": 3, "use_image": False},
            (
                np.array([0, 0, 0], np.int32),
                np.array([8, 8, -1], np.int32),
                np.array([[[0, 0, 1, 1]]], np.float32),
            ),
        )
    ],
)


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Samples a random box that covers enough of one of an image's objects.

    Args:
        image_size: int32 or int64 `(3,)`: height, width and channels.
        bounding_boxes: float32 `(batch, boxes, 4)`, the objects: y_min, x_min, y_max, x_max.
        seed, seed2: see `set_random_seed`; the second is added to the first.
        min_object_covered: the share of an object's area that must be in the box.
        aspect_ratio_range: bounds of width / height; (0.75, 1.33) by default.
        area_range: bounds of the share of the image; (0.05, 1) by default.
        max_attempts: after so many (100 by default) the whole image is taken.
        use_image_if_no_bounding_boxes: whether to continue if there are no objects.

    Returns:
        `begin` `(3,)` and `size` `(3,)` for `slice`, and the box, float32 `(1, 1, 4)`. Equal
        seeds give equal boxes, other than TensorFlow's.

    Raises:
        ValueError: a range is none.
        InvalidArgumentError: (when run) there are no objects.
    """
    ranges = {
        "aspect_ratio_range": tuple(aspect_ratio_range or (0.75, 1.33)),
        "area_range": tuple(area_range or (0.05, 1.0)),
    }
    for what, bounds in ranges.items():
        if len(bounds) != 2 or not 0 < bounds[0] <= bounds[1]:
            raise value_error(
                f"{what} is not right",
                expected="two numbers > 0, the first not the greater",
                received=bounds,
            )
    with get_default_graph().name_scope(name or "sample_distorted_bounding_box") as scope:
        own = None if seed is None and seed2 is None else (seed or 0) + (seed2 or 0)
        sizes = convert_to_tensor(image_size, name="image_size")
        sizes.shape.assert_is_compatible_with([3])
        inputs = [
            sizes,
            convert_to_tensor(bounding_boxes, float32, name="bounding_boxes"),
            convert_to_tensor(min_object_covered, float32, name="min_object_covered"),
            random_words(get_seed(own)),
        ]
        attrs = {
            "aspects": tuple(map(float, ranges["aspect_ratio_range"])),
            "areas": tuple(map(float, ranges["area_range"])),
            "attempts": 100 if max_attempts is None else int(max_attempts),
            "use_image": bool(use_image_if_no_bounding_boxes),
        }
        begin, size, box = apply("SampleDistortedBoundingBoxV2", inputs, attrs, scope).outputs
        return begin, size, box
