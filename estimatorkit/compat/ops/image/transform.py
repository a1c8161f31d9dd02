"""Projective transforms of images: pure JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.registry import Case, Spec, constant_value, register
from estimatorkit.core.shapes import TensorShape


def _at(picture: Any, rows: Any, columns: Any) -> Any:
    """The pixels at rows and columns; 0 outside the picture."""
    height, width = picture.shape[:2]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    found = picture[
        jnp.clip(rows, 0, height - 1).astype(np.int32),
        jnp.clip(columns, 0, width - 1).astype(np.int32),
    ]
    return jnp.where(inside[..., None], found, jnp.zeros_like(found))


def _transformed(picture: Any, row: Any, size: tuple[int, int], interpolation: str) -> Any:
    y, x = jnp.meshgrid(*(jnp.arange(side, dtype=row.dtype) for side in size), indexing="ij")
    scale = row[6] * x + row[7] * y + 1
    known = scale != 0
    divisor = jnp.where(known, scale, 1)
    # A pixel that is projected to infinity is outside.
    across = jnp.where(known, (row[0] * x + row[1] * y + row[2]) / divisor, -2)
    down = jnp.where(known, (row[3] * x + row[4] * y + row[5]) / divisor, -2)
    if interpolation == "NEAREST":
        # Halves are rounded away from 0.
        away = [jnp.sign(each) * jnp.floor(jnp.abs(each) + 0.5) for each in (down, across)]
        return _at(picture, *away)
    top, left = jnp.floor(down), jnp.floor(across)
    below, right = (down - top)[..., None], (across - left)[..., None]
    values = picture.astype(row.dtype)
    upper = (1 - right) * _at(values, top, left) + right * _at(values, top, left + 1)
    lower = (1 - right) * _at(values, top + 1, left) + right * _at(values, top + 1, left + 1)
    return ((1 - below) * upper + below * lower).astype(picture.dtype)


def _kernel(images: Any, transforms: Any, output_shape: Any, interpolation: str) -> Any:
    images, transforms = jnp.asarray(images), jax.lax.stop_gradient(jnp.asarray(transforms))
    rows = jnp.broadcast_to(transforms, (images.shape[0], 8))
    size = (int(output_shape[0]), int(output_shape[1]))
    return jax.vmap(lambda picture, row: _transformed(picture, row, size, interpolation))(
        images, rows
    )


def _infer(inputs: Any, attrs: Any) -> list[Spec]:
    images, _, size = inputs
    given = constant_value(size)
    sides = [None, None] if given is None else [int(side) for side in given]
    dims = images.shape.dims or [None] * 4
    return [Spec(images.dtype, TensorShape([dims[0], *sides, dims[-1]]))]


_IMAGE = np.arange(8, dtype=np.float32).reshape(1, 2, 4, 1)

register(
    "ImageProjectiveTransformV2",
    _kernel,
    infer=_infer,
    static=(2,),
    accepts=("uint8 x f", "d"),
    cases=lambda: [
        Case(
            (
                _IMAGE,
                np.array([[1, 0, shift, 0, 1, 0, 0, 0]], np.float32),
                np.array([2, 3], np.int32),
            ),
            {"interpolation": interpolation},
            expected,
        )
        for shift, interpolation, expected in (
            (1, "NEAREST", _IMAGE[:, :, 1:]),
            (0.5, "BILINEAR", _IMAGE[:, :, :3] + 0.5),
        )
    ],
)
