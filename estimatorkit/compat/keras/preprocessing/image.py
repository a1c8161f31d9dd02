"""Conversion of images to arrays and files with Pillow (`tf.keras.preprocessing.image`).

Arrays have shape `(height, width, channels)` and values from 0 to 255. For data augmentation, map
the functions of `tf.image` over a `Dataset`: they run in parallel, and on the device.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.lazy import listing

if TYPE_CHECKING:
    from PIL.Image import Image

_MODES = {"grayscale": "L", "rgb": "RGB", "rgba": "RGBA"}
_METHODS = ("nearest", "bilinear", "bicubic", "lanczos", "box", "hamming")


def _one_of(what: str, value: Any, known: Any) -> None:
    if value not in known:
        raise value_error(
            f"Unknown {what}",
            expected=f"one of {', '.join(known)}",
            received=repr(value),
            hint=did_you_mean(str(value), known),
        )


def _is_channels_first(data_format: str | None) -> bool:
    from estimatorkit.keras.backend import image_data_format

    chosen = data_format or image_data_format()
    _one_of("data_format", chosen, ("channels_last", "channels_first"))
    return bool(chosen == "channels_first")


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> NDArray[Any]:
    """Converts an image to an array of pixels.

    Args:
        img: a Pillow image, or an array of its pixels.
        data_format: 'channels_last' or 'channels_first'; `keras.backend.image_data_format()` by
            default.
        dtype: the dtype of the array; `keras.backend.floatx()` by default.

    Returns:
        An array `(height, width, channels)`, or `(channels, height, width)` if `data_format` is
        'channels_first'.

    Raises:
        ValueError: the rank is neither 2 nor 3, or `data_format` is unknown.
    """
    from estimatorkit.keras.backend import floatx

    first = _is_channels_first(data_format)
    pixels = np.array(img, dtype=dtype or floatx())
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    elif pixels.ndim == 3:
        pixels = np.transpose(pixels, (2, 0, 1)) if first else pixels
        return pixels
    else:
        raise ValueError(f"Unsupported image shape: {pixels.shape}")
    return pixels.transpose(2, 0, 1) if first else pixels


def array_to_img(
    x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None
) -> Image:
    """Converts an array to a Pillow image.

    Args:
        x: an array `(height, width, channels)` with 1, 3 or 4 channels, or `(channels, height,
            width)` if `data_format` is 'channels_first'.
        data_format: see `img_to_array`.
        scale: whether to rescale the values to the range 0 to 255; if False, they must be in that
            range.
        dtype: the dtype of the computation; `keras.backend.floatx()` by default.

    Raises:
        ValueError: the rank is not 3, the number of channels is not 1, 3 or 4, or `data_format` is
            unknown.
    """
    from PIL import Image

    from estimatorkit.keras.backend import floatx

    pixels = np.asarray(x, dtype=dtype or floatx())
    if pixels.ndim != 3:
        raise ValueError(
            "Expected image array to have rank 3 (single image). Got array with shape: "
            f"{pixels.shape}"
        )
    if _is_channels_first(data_format):
        pixels = pixels.transpose(1, 2, 0)
    if scale:
        pixels = pixels - np.min(pixels)
        largest = np.max(pixels)
        pixels = (pixels / largest if largest != 0 else pixels) * 255
    channels = pixels.shape[2]
    if channels not in (1, 3, 4):
        raise ValueError(f"Unsupported channel number: {channels}")
    if channels == 1:
        deep = np.max(pixels) > 255  # integers of 32 bits
        return Image.fromarray(pixels[:, :, 0].astype("int32" if deep else "uint8"))
    return Image.fromarray(pixels.astype("uint8"))


def load_img(
    path: Any,
    grayscale: bool = False,
    color_mode: str = "rgb",
    target_size: tuple[int, int] | int | None = None,
    interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
) -> Image:
    """Loads a Pillow image from a file.

    Args:
        path: the file's path, or a binary file object.
        grayscale: the older form of `color_mode='grayscale'`.
        color_mode: 'rgb', 'rgba' or 'grayscale'.
        target_size: `(height, width)` in pixels, or an int for both; by default the image keeps its
            size.
        interpolation: the resizing method: 'nearest', 'bilinear', 'bicubic', 'lanczos', 'box' or
            'hamming'.
        keep_aspect_ratio: whether to crop the image to the target's aspect ratio before resizing,
            instead of distorting it.

    Raises:
        ValueError: `color_mode` or `interpolation` is unknown.
        OSError: the file does not exist, or is not an image.
    """
    from PIL import Image

    mode = "grayscale" if grayscale else color_mode
    _one_of("color_mode", mode, _MODES)
    _one_of("interpolation", interpolation, _METHODS)
    if isinstance(path, (str, os.PathLike)):
        with open(path, "rb") as stream:
            path = io.BytesIO(stream.read())
    image: Image.Image = Image.open(path)
    deep = mode == "grayscale" and image.mode in ("I;16", "I", "L")
    if not deep and image.mode != _MODES[mode]:
        image = image.convert(_MODES[mode])
    if target_size is None:
        return image
    height, width = (target_size,) * 2 if isinstance(target_size, int) else target_size
    if image.size == (width, height):
        return image
    method = Image.Resampling[interpolation.upper()]
    if not keep_aspect_ratio:
        return image.resize((width, height), method)
    cut_width, cut_height = image.size
    cut_height, cut_width = (
        min(cut_height, cut_width * height // width) or cut_height,
        min(cut_width, cut_height * width // height) or cut_width,
    )
    left, top = (image.width - cut_width) // 2, (image.height - cut_height) // 2
    box = (left, top, left + cut_width, top + cut_height)
    return image.resize((width, height), method, box)


def save_img(
    path: Any,
    x: Any,
    data_format: str | None = None,
    file_format: str | None = None,
    scale: bool = True,
    **kwargs: Any,
) -> None:
    """Saves an array as an image file.

    Args:
        path: the file's path.
        x, data_format, scale: see `array_to_img`.
        file_format: the file format; inferred from the extension of `path` by default.
        **kwargs: passed to Pillow's `save`, for example `quality`.
    """
    image = array_to_img(x, data_format, scale)
    if image.mode == "RGBA" and file_format in ("jpg", "jpeg"):
        image = image.convert("RGB")
    image.save(path, "jpeg" if file_format == "jpg" else file_format, **kwargs)


__all__ = ["array_to_img", "img_to_array", "load_img", "save_img"]
__dir__ = listing(__name__)
