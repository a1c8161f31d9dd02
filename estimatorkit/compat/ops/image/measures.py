"""Image measures: PSNR, SSIM, total variation, gradients and edges; pure JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, apply, output, register
from estimatorkit.core.shapes import SCALAR, TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.image.color import convert_image_dtype
from estimatorkit.ops.image.shapes import checked_image

_IMAGE = (np.arange(72, dtype=np.float32).reshape(1, 6, 6, 2) * np.float32(7) % 11) / np.float32(11)
_OTHER = (np.arange(72, dtype=np.float32).reshape(1, 6, 6, 2) * np.float32(5) % 13) / np.float32(13)


def _psnr(a: Any, b: Any, max_val: float) -> Any:
    error = jnp.square(a - b).mean(axis=(-3, -2, -1), dtype=a.dtype)
    scale = jnp.asarray(20 * np.log10(max_val), a.dtype)
    return scale - jnp.asarray(10 / np.log(10), a.dtype) * jnp.log(error)


def _without_image(inputs: Any, attrs: Any) -> list[Spec]:
    """Shape inference: one number per image of two broadcast batches."""
    one, two = (each.shape.dims for each in inputs[:2])
    if one is None or two is None:
        return [Spec(inputs[0].dtype, TensorShape(None))]
    longer, shorter = sorted((one[:-3], two[:-3]), key=len, reverse=True)
    shorter = (1,) * (len(longer) - len(shorter)) + tuple(shorter)
    dims = [
        b if a == 1 else a if b == 1 or a == b else None
        for a, b in zip(longer, shorter, strict=True)
    ]
    return [Spec(inputs[0].dtype, TensorShape(dims))]


_ERROR = np.square(_IMAGE - _OTHER).mean(axis=(1, 2, 3))

register(
    "PSNR",
    _psnr,
    infer=_without_image,
    accepts="f",
    cases=lambda: [
        Case((_IMAGE, _OTHER), {"max_val": 2.0}, 20 * np.log10(2) - 10 * np.log10(_ERROR))
    ],
)


def _as_two(a: Any, b: Any, max_val: Any, what: str) -> tuple[Tensor, Tensor, float]:
    """Two images of compatible shapes as floats in [0, 1], and the resulting value range."""
    one, two = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
    for image in (one, two):
        if image.shape.rank is not None and image.shape.rank < 3:
            raise ValueError(f"{what}: images need at least 3 dimensions, got {image.shape}.")
    if not one.shape[-3:].is_compatible_with(two.shape[-3:]):
        raise value_error(
            f"{what}: the images have different sizes",
            received=f"{one.shape} and {two.shape}",
            made_at=two.op.source,
        )
    span = 1.0 / one.dtype.max if one.dtype.is_integer else 1.0
    return (
        convert_image_dtype(one, float32),
        convert_image_dtype(two, float32),
        float(max_val) * span,
    )


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of images, in decibels.

    Args:
        a, b: `(..., height, width, channels)`.
        max_val: the difference between the maximum and minimum possible values (1 or 255).
        name: the operations' name.

    Returns:
        float32 `(...)`.
    """
    with get_default_graph().name_scope(name or "PSNR") as scope:
        one, two, span = _as_two(a, b, max_val, "psnr")
        return output("PSNR", [one, two], {"max_val": span}, scope)


# -- structural similarity (Wang et al. 2004)


def _gauss(size: int, sigma: float) -> Any:
    at = np.arange(size) - (size - 1) / 2
    weights = np.exp(-(at**2) / (2 * sigma**2))
    return weights / weights.sum()


def _blur(x: Any, weights: Any) -> Any:
    """Weighted window mean without padding; `(batch, height, width, channels)`."""
    window = jnp.asarray(weights, x.dtype)
    count = len(weights)
    for axis in (1, 2):
        length = x.shape[axis] - count + 1
        parts = [jax.lax.slice_in_dim(x, at, at + length, axis=axis) for at in range(count)]
        x = sum(part * window[at] for at, part in enumerate(parts))
    return x


def _similarity(
    a: Any, b: Any, max_val: float, size: int, sigma: float, k1: float, k2: float
) -> tuple[Any, Any]:
    """SSIM and its contrast-structure term per position: `(..., height, width, channels)`."""
    if min(a.shape[-3:-1]) < size:
        raise ValueError(f"images of {a.shape[-3:-1]} are smaller than the filter, {size}")
    batch = jnp.broadcast_shapes(a.shape, b.shape)
    one, two = (jnp.broadcast_to(x, batch).reshape(-1, *batch[-3:]) for x in (a, b))
    weights = _gauss(size, sigma)
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean_one, mean_two = _blur(one, weights), _blur(two, weights)
    product = mean_one * mean_two * 2
    squares = jnp.square(mean_one) + jnp.square(mean_two)
    luminance = (product + c1) / (squares + c1)
    both = _blur(one * two, weights) * 2
    each = _blur(jnp.square(one) + jnp.square(two), weights)
    structure = (both - product + c2) / (each - squares + c2)
    shape = (*batch[:-3], *luminance.shape[1:])
    return (luminance * structure).reshape(shape), structure.reshape(shape)


def _ssim(a: Any, b: Any, index_map: bool, **how: Any) -> Any:
    similarity, _ = _similarity(a, b, **how)
    return similarity.mean(-1) if index_map else similarity.mean(axis=(-3, -2)).mean(-1)


def _infer_ssim(inputs: Any, attrs: Any) -> list[Spec]:
    whole = _without_image(inputs, attrs)[0]
    dims, sides = whole.shape.dims, inputs[0].shape.dims
    if not attrs["index_map"] or dims is None or sides is None:
        return [whole]
    less = [None if dim is None else dim - attrs["size"] + 1 for dim in sides[-3:-1]]
    return [Spec(whole.dtype, TensorShape([*dims, *less]))]


_HOW = {"max_val": 1.0, "size": 3, "sigma": 1.5, "k1": 0.01, "k2": 0.03}

register(
    "SSIM",
    _ssim,
    infer=_infer_ssim,
    accepts="f",
    cases=lambda: [
        Case((_IMAGE, _IMAGE), {**_HOW, "index_map": False}, np.ones([1], np.float32)),
        Case((_IMAGE, _IMAGE), {**_HOW, "index_map": True}, np.ones([1, 4, 4], np.float32)),
    ],
)


def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """The structural similarity of images (Wang et al. 2004), at most 1.

    Args:
        img1, img2: `(..., height, width, channels)`.
        max_val: the difference between the maximum and minimum possible values (1 or 255).
        filter_size, filter_sigma: the Gaussian window, in pixels.
        k1, k2: constants of the formula.
        return_index_map: whether to return the similarity of each window instead of the mean.

    Returns:
        float32 `(...)`, or `(..., window rows, window columns)`.
    """
    with get_default_graph().name_scope("SSIM") as scope:
        one, two, span = _as_two(img1, img2, max_val, "ssim")
        attrs = {
            "max_val": span,
            "size": int(filter_size),
            "sigma": float(filter_sigma),
            "k1": float(k1),
            "k2": float(k2),
            "index_map": bool(return_index_map),
        }
        return output("SSIM", [one, two], attrs, scope)


def _halved(x: Any) -> Any:
    """2 x 2 average pooling; an odd last row or column is duplicated."""
    pads = [(0, 0)] * (x.ndim - 3) + [(0, x.shape[-3] % 2), (0, x.shape[-2] % 2), (0, 0)]
    x = jnp.pad(x, pads, mode="symmetric")
    shape = (*x.shape[:-3], x.shape[-3] // 2, 2, x.shape[-2] // 2, 2, x.shape[-1])
    return x.reshape(shape).mean(axis=(-4, -2))


def _multiscale(a: Any, b: Any, factors: tuple[float, ...], **how: Any) -> Any:
    a, b = jnp.asarray(a), jnp.asarray(b)
    result: Any = 1
    for level, factor in enumerate(factors):
        if level:
            a, b = _halved(a), _halved(b)
        parts = _similarity(a, b, **how)
        part = parts[0 if level == len(factors) - 1 else 1].mean(axis=(-3, -2))
        result = result * jnp.maximum(part, 0) ** jnp.asarray(factor, a.dtype)
    return result.mean(-1)


register(
    "SSIMMultiscale",
    _multiscale,
    infer=_without_image,
    accepts="f",
    cases=lambda: [
        Case((_IMAGE, _IMAGE), {**_HOW, "factors": (0.5, 0.5)}, np.ones([1], np.float32))
    ],
)


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Multi-scale structural similarity (Wang et al. 2003), at most 1.

    Args:
        img1, img2: `(..., height, width, channels)`, large enough for the filter at each scale.
        max_val: the difference between the maximum and minimum possible values (1 or 255).
        power_factors: the weight of each scale; each scale halves the image size.
        filter_size, filter_sigma, k1, k2: as for `ssim`.

    Returns:
        float32 `(...)`.
    """
    with get_default_graph().name_scope("MS-SSIM") as scope:
        one, two, span = _as_two(img1, img2, max_val, "ssim_multiscale")
        attrs = {
            "max_val": span,
            "size": int(filter_size),
            "sigma": float(filter_sigma),
            "k1": float(k1),
            "k2": float(k2),
            "factors": tuple(float(factor) for factor in power_factors),
        }
        return output("SSIMMultiscale", [one, two], attrs, scope)


# -- differences


def _variation(images: Any) -> Any:
    down = jnp.abs(images[..., 1:, :, :] - images[..., :-1, :, :])
    along = jnp.abs(images[..., :, 1:, :] - images[..., :, :-1, :])
    axes = (-3, -2, -1)
    total = down.sum(axis=axes, dtype=down.dtype) + along.sum(axis=axes, dtype=along.dtype)
    return total


register(
    "TotalVariation",
    _variation,
    infer=lambda inputs, attrs: [
        Spec(
            inputs[0].dtype.real_dtype,
            {3: SCALAR, 4: inputs[0].shape[:1]}.get(inputs[0].shape.rank or 0, TensorShape(None)),
        )
    ],
    accepts="fnc",
    cases=lambda: [
        Case(
            (_IMAGE,),
            {},
            np.abs(np.diff(_IMAGE, axis=1)).sum((1, 2, 3))
            + np.abs(np.diff(_IMAGE, axis=2)).sum((1, 2, 3)),
        )
    ],
)


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of absolute differences between neighboring pixels, per image.

    Args:
        images: floating `(batch, height, width, channels)` or `(height, width, channels)`.

    Returns:
        `(batch,)`, or a scalar.
    """
    image = checked_image(convert_to_tensor(images, name="images"), (3, 4))
    return output("TotalVariation", [image], name=name or "total_variation")


def _gradients(image: Any) -> Any:
    down = jnp.pad(image[:, 1:] - image[:, :-1], [(0, 0), (0, 1), (0, 0), (0, 0)])
    along = jnp.pad(image[:, :, 1:] - image[:, :, :-1], [(0, 0), (0, 0), (0, 1), (0, 0)])
    return down, along


register(
    "ImageGradients",
    _gradients,
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[0].shape)] * 2,
    accepts="fic",
    cases=lambda: [
        Case(
            (_IMAGE,),
            {},
            (
                np.pad(np.diff(_IMAGE, axis=1), [(0, 0), (0, 1), (0, 0), (0, 0)]),
                np.pad(np.diff(_IMAGE, axis=2), [(0, 0), (0, 0), (0, 1), (0, 0)]),
            ),
        )
    ],
)


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """Differences between each pixel and the next row and column; the last ones are 0.

    Args:
        image: `(batch, height, width, channels)`.

    Returns:
        `dy` and `dx`, each of the image's shape.

    Raises:
        ValueError: the image does not have rank 4.
    """
    given = convert_to_tensor(image, name="image")
    if given.shape.rank not in (None, 4):
        raise ValueError(
            f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {given.shape}."
        )
    dy, dx = apply("ImageGradients", [given], name="image_gradients").outputs
    return dy, dx


def _sobel(image: Any) -> Any:
    """The two Sobel filters, with reflect padding."""
    padded = jnp.pad(image, [(0, 0), (1, 1), (1, 1), (0, 0)], mode="reflect")

    def smoothed(x: Any, axis: int) -> Any:
        length = x.shape[axis] - 2
        parts = [jax.lax.slice_in_dim(x, at, at + length, axis=axis) for at in range(3)]
        return parts[0] + 2 * parts[1] + parts[2]

    def sloped(x: Any, axis: int) -> Any:
        length = x.shape[axis] - 2
        last = jax.lax.slice_in_dim(x, 2, 2 + length, axis=axis)
        return last - jax.lax.slice_in_dim(x, 0, length, axis=axis)

    padded = jnp.asarray(padded)
    down = smoothed(sloped(padded, 1), 2)
    along = smoothed(sloped(padded, 2), 1)
    return jnp.stack([down, along], -1)


_SLOPE = np.broadcast_to(np.arange(4, dtype=np.float32)[None, :, None, None], (1, 4, 3, 1))

register(
    "SobelEdges",
    _sobel,
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[0].shape.concatenate([2]))],
    accepts="f",
    cases=lambda: [
        Case(
            (_SLOPE,),
            {},
            np.stack([np.where((_SLOPE > 0) & (_SLOPE < 3), 8, 0), 0 * _SLOPE], -1).astype(
                np.float32
            ),
        )
    ],
)


def sobel_edges(image: Any) -> Tensor:
    """Vertical and horizontal image derivatives, computed with Sobel filters.

    Args:
        image: floating `(batch, height, width, channels)`.

    Returns:
        `(batch, height, width, channels, 2)`.
    """
    given = checked_image(convert_to_tensor(image, name="image"), (4,))
    return output("SobelEdges", [given], name="sobel_edges")
