"""`contrib.image`: rotations, translations and other projective transforms of images.

A transform is eight numbers `a0, a1, a2, b0, b1, b2, c0, c1`: the output's point `(x, y)` shows the
input's point `((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)`, where `k` is `c0 x + c1 y + 1`.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import output
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.math import elementwise, linalg

_DTYPES = ("uint8", "int32", "int64", "float16", "float32", "float64")


def _rows(given: Any, name: str, ranks: tuple[int, int]) -> Tensor:
    """A float32 tensor of the larger of two ranks; adds the batch dimension if missing.

    Raises TypeError if it has neither rank.
    """
    tensor = convert_to_tensor(given, float32, name=name)
    if tensor.shape.rank not in ranks:
        raise TypeError(
            f"{name.capitalize()} should have rank {ranks[0]} or {ranks[1]}. Received: {tensor}"
        )
    return tensor if tensor.shape.rank == ranks[1] else array.expand_dims(tensor, 0)


def transform(
    images: Any,
    transforms: Any,
    interpolation: str = "NEAREST",
    output_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """Applies projective transforms to images; points outside of an image are 0.

    Args:
        images: `(batch, height, width, channels)`, `(height, width, channels)` or `(height,
            width)`; uint8, int32, int64, float16, float32 or float64.
        transforms: float32 `(8,)`, or `(batch, 8)`; not differentiable.
        interpolation: 'NEAREST' or 'BILINEAR'.
        output_shape: the height and width of the result; those of the images by default.

    Returns:
        Images of the same dtype and rank.

    Raises:
        TypeError: a dtype or rank is none of these.
        ValueError: `output_shape` is not two numbers, or `interpolation` is unknown.
    """
    with get_default_graph().name_scope(name or "transform"):
        given = convert_to_tensor(images, name="images")
        if given.dtype.base_dtype.name not in _DTYPES:
            raise TypeError(f"Invalid dtype {given.dtype}.")
        rank = given.shape.rank
        if rank not in (2, 3, 4):
            raise TypeError(f"Images should have rank between 2 and 4. Received: {given}")
        batch = given
        if rank == 2:
            batch = array.expand_dims(batch, -1)
        if rank < 4:
            batch = array.expand_dims(batch, 0)
        size = array.shape(batch)[1:3] if output_shape is None else output_shape
        if output_shape is None and None not in batch.shape[1:3].as_list():
            size = batch.shape[1:3].as_list()
        wanted = convert_to_tensor(size, int32, name="output_shape")
        if not wanted.shape.is_compatible_with([2]):
            raise ValueError(
                "output_shape must be a 1-D Tensor of 2 elements: new_height, new_width. "
                f"Received: {wanted}"
            )
        kind = interpolation.upper()
        if kind not in ("NEAREST", "BILINEAR"):
            raise value_error(
                "transform: no such interpolation",
                expected="'NEAREST' or 'BILINEAR'",
                received=repr(interpolation),
            )
        inputs = [batch, _rows(transforms, "transforms", (1, 2)), wanted]
        found = output("ImageProjectiveTransformV2", inputs, {"interpolation": kind})
        if rank == 4:
            return found
        return found[0] if rank == 3 else found[0, :, :, 0]


def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> Tensor:
    """Transforms that rotate images about their center.

    Args:
        angles: radians, counterclockwise: float32, a scalar or `(batch,)`.
        image_height, image_width: float32 scalars.

    Returns:
        float32 `(batch, 8)`.
    """
    with get_default_graph().name_scope(name or "angles_to_projective_transforms"):
        by = _rows(angles, "angles", (0, 1))
        height = elementwise.cast(image_height, float32) - 1.0
        width = elementwise.cast(image_width, float32) - 1.0
        cos, sin = elementwise.cos(by), elementwise.sin(by)
        across = (width - (cos * width - sin * height)) / 2.0
        down = (height - (sin * width + cos * height)) / 2.0
        zeros = filling.zeros_like(by)
        return joining.stack([cos, -sin, across, sin, cos, down, zeros, zeros], axis=1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Tensor:
    """Transforms that translate images.

    Args:
        translations: `dx, dy` in pixels: float32 `(2,)` or `(batch, 2)`.

    Returns:
        float32 `(batch, 8)`.
    """
    with get_default_graph().name_scope(name or "translations_to_projective_transforms"):
        by = _rows(translations, "translations", (1, 2))
        across, down = by[:, 0], by[:, 1]
        one, zero = filling.ones_like(across), filling.zeros_like(across)
        return joining.stack([one, zero, -across, zero, one, -down, zero, zero], axis=1)


def rotate(
    images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Rotates images counterclockwise about their center; see `transform`.

    Args:
        angles: radians: float32, a scalar or `(batch,)`.
    """
    with get_default_graph().name_scope(name or "rotate"):
        given = convert_to_tensor(images, name="images")
        rank = given.shape.rank
        if rank not in (2, 3, 4):
            raise TypeError(f"Images should have rank between 2 and 4. Received: {given}")
        sides = array.shape(given)[1:3] if rank == 4 else array.shape(given)[:2]
        return transform(
            given, angles_to_projective_transforms(angles, sides[0], sides[1]), interpolation
        )


def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Translates images; see `transform`.

    Args:
        translations: `dx, dy` in pixels: float32 `(2,)` or `(batch, 2)`.
    """
    with get_default_graph().name_scope(name or "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def compose_transforms(*transforms: Any) -> Tensor:
    """The composition of transforms, applied in order.

    Args:
        *transforms: float32 `(8,)` or `(batch, 8)`, at least one.

    Returns:
        float32 `(batch, 8)`.
    """
    if not transforms:
        raise AssertionError("transforms cannot be empty")
    with get_default_graph().name_scope("compose_transforms"):
        composed = flat_transforms_to_matrices(transforms[0])
        for each in transforms[1:]:
            composed = linalg.matmul(composed, flat_transforms_to_matrices(each))
        return matrices_to_flat_transforms(composed)


def flat_transforms_to_matrices(transforms: Any) -> Tensor:
    """Converts transforms `(8,)` or `(batch, 8)` to matrices `(batch, 3, 3)`.

    Raises:
        ValueError: they have another rank.
    """
    given = convert_to_tensor(transforms, name="transforms")
    if given.shape.rank not in (1, 2):
        raise ValueError(f"Transforms should be 1D or 2D, got: {given}")
    rows = array.reshape(given, [-1, 8])
    return array.reshape(joining.concat([rows, filling.ones_like(rows[:, :1])], 1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Any) -> Tensor:
    """Converts matrices `(3, 3)` or `(batch, 3, 3)` to transforms `(batch, 8)`.

    Raises:
        ValueError: they have another rank.
    """
    given = convert_to_tensor(transform_matrices, name="transform_matrices")
    if given.shape.rank not in (2, 3):
        raise ValueError(f"Matrices should be 2D or 3D, got: {given}")
    rows = array.reshape(given, [-1, 9])
    return (rows / rows[:, 8:9])[:, :8]


__dir__ = listing(__name__)
