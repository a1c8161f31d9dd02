"""Image color ops: dtypes, color spaces, brightness, contrast, hue, saturation, gamma.

Integers are colours from 0 to the dtype's maximum, floats from 0 to 1 (`convert_image_dtype`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.builtin_ops import identity
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, float16, float32
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, constant_value, output, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.image.shapes import checked_image
from estimatorkit.ops.math.checked import checked
from estimatorkit.ops.math.elementwise import (
    cast,
    floordiv,
    maximum,
    minimum,
    multiply,
    pow as power,
)

_COLORS = np.array(
    [[[0.2, 0.7, 0.4], [0.9, 0.1, 0.3]], [[0.5, 0.25, 0.75], [0.6, 0.55, 0.1]]], np.float32
)


# -- dtypes


def saturated(image: Tensor, dtype: DType, name: str | None = None) -> Tensor:
    """`cast` that clips values to the dtype's range."""
    low, high = float(dtype.min), float(dtype.max)
    if image.dtype.is_integer:
        least, most = int(image.dtype.min), int(image.dtype.max)
        image = maximum(image, max(int(dtype.min), least)) if least < low else image
        image = minimum(image, min(int(dtype.max), most)) if most > high else image
    else:
        # The largest value of the image's dtype that the other can hold.
        most = np.nextafter(
            np.asarray(high + 1, image.dtype.numpy_dtype),
            np.asarray(0, image.dtype.numpy_dtype),
        )
        image = minimum(maximum(image, low), float(min(high, float(most))))
    return cast(image, dtype, name)


def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Converts an image to another dtype and rescales its values.

    Args:
        image: of any shape; integers from 0 to their maximum, floats from 0 to 1.
        dtype: a floating or integer dtype.
        saturate: whether values that the dtype cannot hold are cut to its bounds; they wrap around
            or are undefined otherwise.
        name: the operations' name.

    Raises:
        AttributeError: a dtype is neither floating nor integer.
    """
    given = convert_to_tensor(image, name="image")
    wanted = as_dtype(dtype)
    for what, kind in (("dtype", wanted), ("image dtype", given.dtype)):
        if not kind.is_floating and not kind.is_integer:
            raise AttributeError(f"{what} must be either floating point or integer")
    if wanted is given.dtype:
        return identity(given, name)
    to = saturated if saturate else cast
    with get_default_graph().name_scope(name or "convert_image") as scope:
        if given.dtype.is_floating and wanted.is_floating:
            return cast(given, wanted, scope)
        if given.dtype.is_integer and wanted.is_floating:
            return multiply(cast(given, wanted), 1.0 / given.dtype.max, name=scope)
        if given.dtype.is_floating:
            # Adds half a step so that 1.0 and values just below it map to the maximum.
            return to(given * (int(wanted.max) + 0.5), wanted, scope)
        scale_in, scale_out = int(given.dtype.max), int(wanted.max)
        if scale_in > scale_out:
            return to(floordiv(given, (scale_in + 1) // (scale_out + 1)), wanted, scope)
        return multiply(to(given, wanted), (scale_out + 1) // (scale_in + 1), name=scope)


def _in_floats(
    image: Any, change: Callable[[Tensor], Tensor], name: str, scope: str | None = None
) -> Tensor:
    """Applies a change of colors in [0, 1] to an image of any dtype."""
    with get_default_graph().name_scope(scope or name):
        given = convert_to_tensor(image, name="image")
        if given.dtype in (float16, float32):
            return change(given)
        changed = change(convert_image_dtype(given, float32))
        return convert_image_dtype(changed, given.dtype, saturate=True)


# -- colour spaces


def _with_channels(channels: int) -> Callable[..., list[Spec]]:
    def infer(inputs: Any, attrs: Any) -> list[Spec]:
        dims = inputs[0].shape.dims
        shape = inputs[0].shape if dims is None else TensorShape([*dims[:-1], channels])
        return [Spec(inputs[0].dtype, shape)]

    return infer


def _checked_channels(image: Tensor, channels: int, what: str) -> Tensor:
    dims = image.shape.dims
    if dims is not None and (not dims or dims[-1] not in (None, channels)):
        raise value_error(
            f"{what}: the last dimension must have {channels} channels",
            expected=f"(..., {channels})",
            received=image,
            made_at=image.op.source,
        )
    return image


def _hsv(image: Any) -> Any:
    red, green, blue = jnp.moveaxis(jnp.asarray(image), -1, 0)
    value = jnp.maximum(jnp.maximum(red, green), blue)
    spread = value - jnp.minimum(jnp.minimum(red, green), blue)
    gray = spread == 0
    black = value == 0
    one = jnp.ones((), image.dtype)
    saturation = jnp.where(black, 0, spread / jnp.where(black, one, value))
    sixth = one / (6 * jnp.where(gray, one, spread))
    hue = jnp.where(
        red == value,
        sixth * (green - blue),
        jnp.where(
            green == value,
            sixth * (blue - red) + jnp.asarray(2 / 6, image.dtype),
            sixth * (red - green) + jnp.asarray(4 / 6, image.dtype),
        ),
    )
    hue = jnp.where(gray, 0, jnp.where(hue < 0, hue + 1, hue))
    return jnp.stack([hue, saturation, value], -1).astype(image.dtype)


def _rgb(image: Any) -> Any:
    hue, saturation, value = jnp.moveaxis(jnp.asarray(image), -1, 0)
    sixths = hue * 6
    shares = (
        jnp.clip(jnp.abs(sixths - 3) - 1, 0, 1),
        jnp.clip(2 - jnp.abs(sixths - 2), 0, 1),
        jnp.clip(2 - jnp.abs(sixths - 4), 0, 1),
    )
    colors = [((1 - saturation) + saturation * share) * value for share in shares]
    return jnp.stack(colors, -1).astype(image.dtype)


def _hsv_of(*colors: tuple[float, float, float]) -> Any:
    import colorsys

    return np.array([colorsys.rgb_to_hsv(*color) for color in colors], np.float32)


_ROW = ((0.2, 0.7, 0.4), (0.9, 0.1, 0.3), (0.5, 0.25, 0.75))

register(
    "RGBToHSV",
    _hsv,
    infer=_with_channels(3),
    accepts="f",
    cases=lambda: [Case((np.array(_ROW, np.float32),), {}, _hsv_of(*_ROW))],
)
register(
    "HSVToRGB",
    _rgb,
    infer=_with_channels(3),
    accepts="f",
    cases=lambda: [Case((_hsv_of(*_ROW),), {}, np.array(_ROW, np.float32))],
)


def _matrix(image: Any, matrix: tuple[tuple[float, ...], ...]) -> Any:
    weights = np.array(matrix).astype(image.dtype)
    return jnp.tensordot(jnp.asarray(image), weights, 1, precision="highest")


register(
    "ColorMatrix",
    _matrix,
    infer=lambda inputs, attrs: _with_channels(len(attrs["matrix"][0]))(inputs, attrs),
    accepts="f",
    cases=lambda: [
        Case(
            (_COLORS,),
            {"matrix": ((0.5,), (0.25,), (0.25,))},
            (_COLORS @ np.array([[0.5], [0.25], [0.25]], np.float32)),
        )
    ],
)

_MATRICES = {
    "rgb_to_yiq": (
        (0.299, 0.59590059, 0.2115),
        (0.587, -0.27455667, -0.52273617),
        (0.114, -0.32134392, 0.31119955),
    ),
    "yiq_to_rgb": (
        (1.0, 1.0, 1.0),
        (0.95598634, -0.27201283, -1.10674021),
        (0.6208248, -0.64720424, 1.70423049),
    ),
    "rgb_to_yuv": (
        (0.299, -0.14714119, 0.61497538),
        (0.587, -0.28886916, -0.51496512),
        (0.114, 0.43601035, -0.10001026),
    ),
    "yuv_to_rgb": (
        (1.0, 1.0, 1.0),
        (0.0, -0.394642334, 2.03206185),
        (1.13988303, -0.58062185, 0.0),
    ),
}


def _space(key: str) -> Callable[[Any], Tensor]:
    source, _, target = key.partition("_to_")

    def function(images: Any) -> Tensor:
        given = convert_to_tensor(images, name="images")
        image = _checked_channels(given, 3, key)
        return output("ColorMatrix", [image], {"matrix": _MATRICES[key]}, key)

    function.__name__ = function.__qualname__ = key
    function.__doc__ = (
        f"{source.upper()} colours as {target.upper()}.\n\nArgs:\n"
        "    images: floating `(..., 3)`; RGB from 0 to 1."
    )
    return function


rgb_to_yiq = _space("rgb_to_yiq")
yiq_to_rgb = _space("yiq_to_rgb")
rgb_to_yuv = _space("rgb_to_yuv")
yuv_to_rgb = _space("yuv_to_rgb")


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Converts RGB to hue, saturation and value, all in [0, 1]; floating `(..., 3)`."""
    image = _checked_channels(convert_to_tensor(images, name="images"), 3, "rgb_to_hsv")
    return output("RGBToHSV", [image], name=name)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Converts hue, saturation and value, all in [0, 1], to RGB; floating `(..., 3)`."""
    image = _checked_channels(convert_to_tensor(images, name="images"), 3, "hsv_to_rgb")
    return output("HSVToRGB", [image], name=name)


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Converts RGB images to grayscale: 0.2989 red + 0.587 green + 0.114 blue.

    Args:
        images: `(..., 3)` of any dtype.
        name: the operations' name.

    Returns:
        `(..., 1)` of the same dtype.
    """
    with get_default_graph().name_scope(name or "rgb_to_grayscale") as scope:
        given = _checked_channels(convert_to_tensor(images, name="images"), 3, "rgb_to_grayscale")
        colors = convert_image_dtype(given, float32)
        weights = ((0.2989,), (0.587,), (0.114,))
        gray = output("ColorMatrix", [colors], {"matrix": weights})
        return convert_image_dtype(gray, given.dtype, name=scope)


def _repeated(image: Any) -> Any:
    if image.shape[-1] != 1:
        raise ValueError("Last dimension of a grayscale image should be size 1.")
    return jnp.concatenate([image] * 3, axis=-1)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Converts grayscale images `(..., 1)` to RGB `(..., 3)` of the same dtype."""
    given = _checked_channels(convert_to_tensor(images, name="images"), 1, "grayscale_to_rgb")
    return output("GrayscaleToRGB", [given], name=name or "grayscale_to_rgb")


register(
    "GrayscaleToRGB",
    _repeated,
    infer=_with_channels(3),
    accepts="fic",
    cases=lambda: [Case((_COLORS[..., :1],), {}, np.repeat(_COLORS[..., :1], 3, -1))],
)


# -- adjustments


def _contrast(image: Any, factor: Any) -> Any:
    if image.size == 0:
        return image
    mean = image.mean(axis=(-3, -2), keepdims=True, dtype=image.dtype)
    return (image - mean) * jnp.asarray(factor).astype(image.dtype) + mean


def _hue(image: Any, delta: Any) -> Any:
    hue, saturation, value = jnp.moveaxis(_hsv(image), -1, 0)
    turned = jnp.mod(hue + jnp.asarray(delta).astype(image.dtype), 1)
    return _rgb(jnp.stack([turned, saturation, value], -1))


def _saturation(image: Any, factor: Any) -> Any:
    hue, saturation, value = jnp.moveaxis(_hsv(image), -1, 0)
    scaled = jnp.clip(saturation * jnp.asarray(factor).astype(image.dtype), 0, 1)
    return _rgb(jnp.stack([hue, scaled, value], -1))


def _same(inputs: Any, attrs: Any) -> list[Spec]:
    return [Spec(inputs[0].dtype, inputs[0].shape)]


_MEAN = _COLORS.mean(axis=(0, 1))
for _type, _kernel, _argument, _expected in (
    ("AdjustContrastv2", _contrast, 2.0, (_COLORS - _MEAN) * 2 + _MEAN),
    ("AdjustHue", _hue, 1 / 3, np.roll(_COLORS, 1, -1)),
    ("AdjustSaturation", _saturation, 1.0, _COLORS),
):
    register(
        _type,
        _kernel,
        infer=_same,
        accepts="f",
        cases=lambda argument=_argument, expected=_expected: [
            Case((_COLORS, np.float32(argument)), {}, expected)
        ],
    )


def _adjusted(op_type: str, image: Any, amount: Any, name: str) -> Tensor:
    factor = convert_to_tensor(amount, float32, name="factor")
    return _in_floats(image, lambda colors: output(op_type, [colors, factor]), name)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Adds `delta` (in [-1, 1]) to the colors; integers are clipped to their range."""
    return _in_floats(
        image,
        lambda colors: colors + cast(convert_to_tensor(delta, name="delta"), colors.dtype),
        "adjust_brightness",
    )


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Scales the distance of each channel from its mean by a factor.

    Args:
        images: `(..., height, width, channels)`.
        contrast_factor: a float, or a scalar tensor.
    """
    return _adjusted("AdjustContrastv2", images, contrast_factor, "adjust_contrast")


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Adds `delta` (in [-1, 1]) to the hue of RGB images.

    Raises:
        InvalidArgumentError: the delta is known and outside of [-1, 1].
    """
    given = convert_to_tensor(image, name="image")
    _checked_channels(checked_image(given, range(3, 99)), 3, "adjust_hue")
    amount = convert_to_tensor(delta, float32, name="delta")
    known = constant_value(amount)
    if known is not None and not -1 <= known <= 1:
        raise InvalidArgumentError(
            None, None, f"delta must be in the interval [-1, 1], got {known}"
        )
    return _adjusted("AdjustHue", given, amount, name or "adjust_hue")


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Multiplies the saturation of RGB images by a factor, clipped at 1."""
    given = convert_to_tensor(image, name="image")
    _checked_channels(checked_image(given, range(3, 99)), 3, "adjust_saturation")
    return _adjusted("AdjustSaturation", given, saturation_factor, name or "adjust_saturation")


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """Gamma correction: `gain` times the colors to the power `gamma`.

    Args:
        image: of any shape and dtype.
        gamma: >= 0; a number or a scalar tensor.
        gain: a number or a scalar tensor.

    Raises:
        ValueError: gamma is known and negative.
        InvalidArgumentError: (when run) it is negative.
    """
    known = constant_value(gamma) if isinstance(gamma, Tensor) else gamma
    if known is not None and known < 0:
        raise ValueError("Gamma should be a non-negative real number.")

    def change(colors: Tensor) -> Tensor:
        exponent = cast(convert_to_tensor(gamma, name="gamma"), colors.dtype)
        if known is None:
            exponent = checked(exponent, "gamma")
        return power(colors, exponent) * cast(convert_to_tensor(gain, name="gain"), colors.dtype)

    return _in_floats(image, change, "adjust_gamma")


def _standardized(image: Any) -> Any:
    image = jnp.asarray(image)
    axes = (-3, -2, -1)
    mean = image.mean(axis=axes, keepdims=True)
    variance = jnp.square(image - mean).mean(axis=axes, keepdims=True)
    count = image.shape[-3] * image.shape[-2] * image.shape[-1]
    # Avoids division by zero for images of a single color.
    least = 1.0 / count
    return (image - mean) / jnp.sqrt(jnp.maximum(variance, jnp.asarray(least, image.dtype)))


register(
    "PerImageStandardization",
    _standardized,
    infer=_same,
    accepts="f",
    cases=lambda: [
        Case((_COLORS * 4,), {}, (_COLORS - _COLORS.mean()) / _COLORS.std()),
        Case((np.full([2, 2, 1], 0.5, np.float32),), {}, np.zeros([2, 2, 1], np.float32)),
    ],
)


def per_image_standardization(image: Any) -> Tensor:
    """Normalizes each image to mean 0 and variance 1; float32.

    The deviation counts as at least 1 / sqrt(number of elements).

    Args:
        image: `(..., height, width, channels)`.
    """
    with get_default_graph().name_scope("per_image_standardization") as scope:
        given = checked_image(convert_to_tensor(image, name="image"), range(3, 99))
        return output("PerImageStandardization", [cast(given, float32)], name=scope)
