"""Patches, resized crops, and glimpses of images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.dtypes import float32, float64, int32
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.faults import in_range
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, constant_value, output, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.array import shape
from estimatorkit.ops.array.filling import zeros
from estimatorkit.ops.array.joining import concat
from estimatorkit.ops.image.shapes import checked_image
from estimatorkit.ops.math.elementwise import cast, sqrt, square
from estimatorkit.ops.math.random import random_normal, random_uniform
from estimatorkit.ops.math.reduce import reduce_max, reduce_mean, reduce_min

_IMAGE = np.arange(24, dtype=np.float32).reshape(4, 3, 2)


# -- patches


def _patches(
    images: Any,
    sizes: tuple[int, int],
    strides: tuple[int, int],
    rates: tuple[int, int],
    padding: str,
) -> Any:
    images = jnp.asarray(images)
    counts, before = [], []
    for length, size, stride, rate in zip(images.shape[1:3], sizes, strides, rates, strict=True):
        extent = (size - 1) * rate + 1
        if padding == "SAME":
            count = -(-length // stride)
            lacking = max((count - 1) * stride + extent - length, 0)
        else:
            count, lacking = max((length - extent) // stride + 1, 0), 0
        counts.append(count)
        before.append((lacking // 2, lacking - lacking // 2))
    padded = jnp.pad(images, [(0, 0), *before, (0, 0)])
    parts = [
        padded[:, row : row + _span(counts[0], strides[0]) : strides[0]][
            :, :, column : column + _span(counts[1], strides[1]) : strides[1]
        ]
        for row in range(0, sizes[0] * rates[0], rates[0])
        for column in range(0, sizes[1] * rates[1], rates[1])
    ]
    return jnp.concatenate(parts, axis=-1)


def _span(count: int, stride: int) -> int:
    return max((count - 1) * stride + 1, 0)


_PATCHES = {"sizes": (2, 2), "strides": (2, 1), "rates": (1, 1)}

register(
    "ExtractImagePatches",
    _patches,
    accepts="ficb",
    cases=lambda: [
        Case(
            (_IMAGE[None, ..., :1],),
            {**_PATCHES, "padding": "VALID"},
            np.array(
                [[[[0, 2, 6, 8], [2, 4, 8, 10]], [[12, 14, 18, 20], [14, 16, 20, 22]]]], np.float32
            ),
        ),
        Case(
            (_IMAGE[None, :2, :, :1],),
            {**_PATCHES, "padding": "SAME"},
            np.array([[[[0, 2, 6, 8], [2, 4, 8, 10], [4, 0, 10, 0]]]], np.float32),
        ),
    ],
)


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """Extracts patches of images, flattened into the last dimension.

    Args:
        images: `(batch, height, width, channels)`.
        ksizes: `[1, rows, columns, 1]`, the size of a patch (`sizes` is its newer name).
        strides: `[1, rows, columns, 1]`, how far the next patch is.
        rates: `[1, rows, columns, 1]`: 1 takes neighbouring pixels, 2 every other one.
        padding: 'VALID' or 'SAME'.

    Returns:
        `(batch, rows, columns, rows of a patch * columns of a patch * channels)`.

    Raises:
        ValueError: an argument is missing or has another form.
    """
    given: Mapping[str, Any] = {
        "sizes": ksizes if sizes is None else sizes,
        "strides": strides,
        "rates": rates,
    }
    attrs: dict[str, Any] = {}
    for key, value in given.items():
        if value is None or len(value) != 4 or value[0] != 1 or value[3] != 1:
            raise value_error(
                f"extract_image_patches: {key} is not right",
                expected="[1, rows, columns, 1]",
                received=value,
            )
        attrs[key] = (int(value[1]), int(value[2]))
    if padding not in ("SAME", "VALID"):
        raise value_error(
            "extract_image_patches: padding is not right",
            expected="'SAME' or 'VALID'",
            received=padding,
        )
    image = checked_image(convert_to_tensor(images, name="images"), (4,))
    attrs["padding"] = padding
    return output("ExtractImagePatches", [image], attrs, name)


def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """Extracts patches of images; see `extract_image_patches`."""
    return extract_image_patches(images, sizes, strides, rates, padding, name)


# -- boxes of one size


def _crop_and_resize(
    image: Any, boxes: Any, numbers: Any, size: Any, method: str, extrapolation_value: float
) -> Any:
    dtype = np.float64 if boxes.dtype == np.float64 else np.float32
    image = jnp.asarray(image).astype(dtype)
    boxes = jnp.asarray(boxes)
    if isinstance(numbers, np.ndarray):
        _check_numbers(numbers, image.shape[0])
    rows = _sample_positions(boxes[:, 0], boxes[:, 2], image.shape[1], int(size[0]))
    columns = _sample_positions(boxes[:, 1], boxes[:, 3], image.shape[2], int(size[1]))

    def crop(number: Any, at_rows: Any, at_columns: Any) -> Any:
        return _sample(image, number, at_rows, at_columns, method, extrapolation_value)

    return jax.vmap(crop)(jnp.asarray(numbers), rows, columns)


def _check_numbers(numbers: Any, batch: int) -> None:
    wrong = (numbers < 0) | (numbers >= batch)
    if wrong.any():
        raise ValueError(
            f"box_index has values outside [0, batch_size): {numbers[wrong].tolist()} for {batch}"
        )


def _sample_positions(start: Any, end: Any, length: int, count: int) -> Any:
    """Sampling coordinates of each box along one axis: `(boxes, count)`."""
    if count == 1:
        return (0.5 * (start + end) * (length - 1))[:, None]
    step = (end - start) * (length - 1) / (count - 1)
    # Clipped, that is rounded: XLA would fuse the product with the sum, whose last position could
    # be -1e-8 for 0, outside the image.
    most = np.finfo(start.dtype).max
    way = jnp.clip(jnp.arange(count, dtype=start.dtype) * step[:, None], -most, most)
    return jnp.clip(start[:, None] * (length - 1), -most, most) + way


def _sample(images: Any, number: Any, rows: Any, columns: Any, method: str, outside: float) -> Any:
    height, width = images.shape[1:3]
    inside = ((rows >= 0) & (rows <= height - 1))[:, None] & (
        (columns >= 0) & (columns <= width - 1)
    )
    if method == "nearest":
        found = images[number, _index(rows + 0.5, height)[:, None], _index(columns + 0.5, width)]
    else:
        below, right = jnp.floor(rows), jnp.floor(columns)
        down = (rows - below)[:, None, None].astype(images.dtype)
        along = (columns - right)[None, :, None].astype(images.dtype)
        corners = [
            [
                images[number, _index(row, height)[:, None], _index(column, width)]
                for column in (right, jnp.ceil(columns))
            ]
            for row in (below, jnp.ceil(rows))
        ]
        top, bottom = (one + (two - one) * along for one, two in corners)
        found = top + (bottom - top) * down
    return jnp.where(inside[..., None], found, jnp.asarray(outside, images.dtype))


def _index(position: Any, length: int) -> Any:
    return jnp.clip(jnp.floor(position), 0, length - 1).astype(np.int32)


def _infer_crops(inputs: Any, attrs: Any) -> list[Spec]:
    image, boxes, _, size = inputs
    for each, wanted in ((boxes, [None, 4]), (inputs[2], [None]), (size, [2])):
        if not each.shape.is_compatible_with(wanted):
            raise value_error(
                "Dimensions must be equal: an input of crop_and_resize has another shape",
                expected=TensorShape(wanted),
                received=each,
                made_at=each.op.source,
            )
    boxes.shape[:1].assert_is_compatible_with(inputs[2].shape)
    given = constant_value(size)
    sides = [None, None] if given is None else [int(side) for side in given]
    if given is not None and min(given) <= 0:
        raise InvalidArgumentError.explained(
            "crop dimensions must be positive", received=sides, op=size.op
        )
    count = boxes.shape[0] if boxes.shape.rank is not None else None
    channels = image.shape[-1] if image.shape.rank is not None else None
    dtype = float64 if boxes.dtype is float64 else float32
    return [Spec(dtype, TensorShape([count, *sides, channels]))]


register(
    "CropAndResize",
    _crop_and_resize,
    fault=lambda inputs, attrs: in_range(
        2,
        inputs[2],
        int(inputs[0].shape[0]),
        "box_index has values outside [0, batch_size): box_index{at} = {value}, batch_size = "
        "{bound}",
    ),
    infer=_infer_crops,
    static=(3,),
    accepts=("dn float16 uint8 uint16", "d", "int32", "int32"),
    cases=lambda: [
        Case(
            (
                _IMAGE[None],
                np.array([[1 / 3, 0, 2 / 3, 0.5], [0, 0.5, 1, 1]], np.float32),
                np.array([0, 0], np.int32),
                np.array([2, 2], np.int32),
            ),
            {"method": "bilinear", "extrapolation_value": 0.0},
            np.stack([_IMAGE[1:3, :2], _IMAGE[::3, 1:]]),
        )
    ],
)


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """Crops boxes from images and resizes them to one size, aligning corner centers.

    Args:
        image: `(batch, height, width, channels)`.
        boxes: float32 `(boxes, 4)`: y1, x1, y2, x2 as fractions of height - 1 and width - 1; may
            reach outside; y1 > y2 turns the box over.
        box_ind: int32 `(boxes,)`, the image of each (`box_indices` is its newer name).
        crop_size: `(2,)`, the height and width of the results.
        method: 'bilinear' or 'nearest'.
        extrapolation_value: the value outside the image.

    Returns:
        float32 `(boxes, crop height, crop width, channels)`.

    Raises:
        ValueError: the method is none of these.
        InvalidArgumentError: (when run) an image's number is out of range.
    """
    if method not in ("bilinear", "nearest"):
        raise value_error(
            "crop_and_resize: no such method",
            expected="'bilinear' or 'nearest'",
            received=repr(method),
        )
    with get_default_graph().name_scope(name or "CropAndResize") as scope:
        inputs = [
            checked_image(convert_to_tensor(image, name="image"), (4,)),
            convert_to_tensor(boxes, float32, name="boxes"),
            as_index_tensor(box_ind if box_indices is None else box_indices, "box_ind"),
            as_index_tensor(crop_size, "crop_size"),
        ]
        attrs = {"method": method, "extrapolation_value": float(extrapolation_value)}
        return output("CropAndResize", inputs, attrs, scope)


# -- glimpses


def _glimpses(
    image: Any, noise: Any, offsets: Any, size: Any, centered: bool, normalized: bool
) -> Any:
    """Windows of images; positions outside are filled with noise."""
    image, noise, offsets = map(jnp.asarray, (image, noise, offsets))
    lengths = np.array(image.shape[1:3], offsets.dtype)
    window = np.array([int(side) for side in size], offsets.dtype)
    at = offsets * lengths if normalized else offsets
    if centered:
        at = at / 2 + lengths / 2
    start = jnp.trunc(at - window / 2).astype(np.int32)

    def cut(picture: Any, other: Any, corner: Any) -> Any:
        rows = corner[0] + jnp.arange(int(size[0]))
        columns = corner[1] + jnp.arange(int(size[1]))
        inside = ((rows >= 0) & (rows < lengths[0]))[:, None] & (
            (columns >= 0) & (columns < lengths[1])
        )
        found = picture[_index(rows, picture.shape[0])[:, None], _index(columns, picture.shape[1])]
        return jnp.where(inside[..., None], found, other)

    return jax.vmap(cut)(image, noise, start)


def _infer_glimpses(inputs: Any, attrs: Any) -> list[Spec]:
    image, _, _, size = inputs
    given = constant_value(size)
    sides = [None, None] if given is None else [int(side) for side in given]
    dims = image.shape.dims or [None] * 4
    return [Spec(image.dtype, TensorShape([dims[0], *sides, dims[-1]]))]


register(
    "ExtractGlimpse",
    _glimpses,
    infer=_infer_glimpses,
    static=(3,),
    gradient=None,
    accepts="f",
    cases=lambda: [
        Case(
            (
                _IMAGE[None],
                np.full([1, 2, 2, 2], -1, np.float32),
                np.array([[3, 2]], np.float32),
                np.array([2, 2], np.int32),
            ),
            {"centered": False, "normalized": False},
            _IMAGE[None, 2:, 1:],
        )
    ],
)


def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
    noise: str | None = None,
) -> Tensor:
    """Extracts a window of each image; positions outside the image are filled with noise.

    Args:
        input: float32 `(batch, height, width, channels)`.
        size: int32 `(2,)`, the height and width of the window.
        offsets: float32 `(batch, 2)`: y, x of the window's middle.
        centered: whether (0, 0) is the middle of the image rather than the upper left corner.
        normalized: whether offsets are fractions (of -1 to 1 where centered) rather than pixels.
        uniform_noise: noise evenly between the least and the greatest value of the images, rather
            than with their mean and deviation.
        noise: 'uniform', 'gaussian' or 'zero', in place of `uniform_noise`.

    Returns:
        `(batch, size[0], size[1], channels)`. There is no gradient, as in TensorFlow.
    """
    kind = noise or ("uniform" if uniform_noise else "gaussian")
    if kind not in ("uniform", "gaussian", "zero"):
        raise value_error(
            "extract_glimpse: no such noise",
            expected="'uniform', 'gaussian' or 'zero'",
            received=repr(noise),
        )
    with get_default_graph().name_scope(name or "ExtractGlimpse") as scope:
        images = checked_image(convert_to_tensor(input, float32, name="input"), (4,))
        window = as_index_tensor(size, "size")
        outside = _noise(images, window, kind)
        inputs = [images, outside, convert_to_tensor(offsets, float32, name="offsets"), window]
        attrs = {"centered": bool(centered), "normalized": bool(normalized)}
        return output("ExtractGlimpse", inputs, attrs, scope)


def _noise(images: Tensor, window: Tensor, kind: str) -> Tensor:
    dims = shape(images)
    wanted = concat([dims[:1], cast(window, int32), dims[3:]], 0)
    if kind == "zero":
        return zeros(wanted)
    if kind == "gaussian":
        mean, deviation = reduce_mean(images), sqrt(_variance(images))
        return random_normal(wanted) * deviation + mean
    least = reduce_min(images)
    return random_uniform(wanted) * (reduce_max(images) - least) + least


def _variance(x: Tensor) -> Tensor:
    return reduce_mean(square(x - reduce_mean(x)))
