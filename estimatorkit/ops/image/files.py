"""JPEG, PNG and GIF decoding by Pillow, and BMP decoding, on the host.

Input is untrusted: only these formats are tried, the pixel count is checked before decoding, and
every defect of a file raises InvalidArgumentError.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, bool_, int32, string, uint8
from estimatorkit.core.errors import InvalidArgumentError, type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, constant_value, output, register
from estimatorkit.core.shapes import SCALAR, UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.image.color import convert_image_dtype
from estimatorkit.ops.image.encoding import gray_file
from estimatorkit.ops.image.shapes import checked_image

Array = NDArray[Any]

MOST_PIXELS = 1 << 27
"""Of one image, and of all frames of an animation together: 134 million, 0.4 GB as RGB."""

_MOST_A_BYTE = 9000
"""Pixels that a byte may hold: deflate's ratio is 1032 at most, and a byte 8 pixels of PNG."""

_ALWAYS = 1 << 20
"""Pixels that an image of any size may have."""

_FORMATS = ("JPEG", "PNG", "GIF")


def _refused(problem: str, data: bytes, hint: str | None = None) -> InvalidArgumentError:
    return InvalidArgumentError.explained(
        problem,
        expected="a whole JPEG, PNG, GIF or BMP file",
        received=f"{len(data)} bytes that begin with {data[:8]!r}",
        hint=hint,
    )


def _damages() -> tuple[type[Exception], ...]:
    """The exceptions that Pillow raises for corrupt files."""
    from PIL import Image

    return (
        OSError,
        SyntaxError,
        ValueError,
        TypeError,
        EOFError,
        IndexError,
        KeyError,
        OverflowError,
        struct.error,
        zlib.error,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,  # if warnings are errors
    )


def _bytes(contents: Any) -> bytes:
    """The bytes of a scalar string tensor."""
    data: bytes = np.asarray(contents, object).item()
    return data


def _opened(data: bytes) -> Any:
    """A Pillow image with its pixels not yet decoded."""
    from PIL import Image

    if not data:
        raise _refused("Input is empty", data)
    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
        frames = getattr(image, "n_frames", 1)
    except _damages() as error:
        raise _refused(
            f"Unknown image file format or damaged file ({type(error).__name__}: {error}). One of "
            "JPEG, PNG, GIF, BMP required",
            data,
        ) from error
    _check_size(data, frames, image.height, image.width)
    return image


def _check_size(data: bytes, frames: int, height: int, width: int) -> None:
    most = min(MOST_PIXELS, max(_MOST_A_BYTE * len(data), _ALWAYS) * frames)
    if width * height * frames > most:
        raise _refused(
            f"the image is too large: {frames} x {height} x {width} pixels, more than {most}",
            data,
            "if you trust the file, make it smaller with an image program first",
        )


_BMP_HEADER = 32


def _decode_bmp(data: bytes, channels: int, dtype: DType) -> Array:
    """An uncompressed BMP file of 1, 3 or 4 bytes a pixel; palettes are ignored, as in TensorFlow.

    Pillow drops the fourth byte, alpha.
    """
    if len(data) < _BMP_HEADER:
        raise _refused(
            f"Incomplete bmp content, requires at least {_BMP_HEADER} bytes to find the header "
            f"size, width, height, and bpp, got {len(data)} bytes",
            data,
        )
    start, width, height = (struct.unpack_from("<i", data, at)[0] for at in (10, 18, 22))
    found = struct.unpack_from("<H", data, 28)[0] // 8
    row = -(-width * found // 4) * 4
    excess = len(data) - start - row * abs(height)
    for is_right, words in (
        (width > 0, "Width must be positive"),
        (height != 0, "Height must be nonzero"),
        (start >= 0, "header size must be nonnegative"),
        (channels != 1, "`channels` must be 0, 3 or 4 for BMP, but got 1"),
        (
            found in (1, 3, 4),
            f"Number of channels inherent in the image must be 1, 3 or 4, was {found}",
        ),
        (
            excess == 0,
            f"Input size should match (header_size + row_size * abs_height) but they differ by "
            f"{excess}",
        ),
    ):
        if not is_right:
            raise _refused(words, data)
    _check_size(data, 1, abs(height), width)
    lines = np.frombuffer(data, np.uint8, row * abs(height), start).reshape(abs(height), row)
    pixels = lines[:, : width * found].reshape(abs(height), width, found)
    if height > 0:
        pixels = pixels[::-1]
    order = ([0, 0, 0] if channels else [0]) if found == 1 else [2, 1, 0]
    colors = pixels[..., order]
    if (channels or found) == 4:
        opaque = np.full((*pixels.shape[:-1], 1), 255, np.uint8)
        colors = np.concatenate([colors, pixels[..., 3:] if found == 4 else opaque], -1)
    return _in_dtype(colors, dtype)


_BY_CHANNELS = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _mode(image: Any, channels: int) -> str:
    """The Pillow mode with this many channels; 0 keeps the file's."""
    if channels:
        return _BY_CHANNELS[channels]
    if image.mode in ("L", "LA", "RGB", "RGBA"):
        return str(image.mode)
    if image.mode in ("1", "I", "I;16", "I;16B", "F"):
        return "L"
    transparent = "transparency" in image.info or image.mode in ("PA", "RGBa", "La")
    return "RGBA" if transparent else "RGB"


def _pixels(image: Any, channels: int, dtype: DType) -> Array:
    """One frame as `(height, width, channels)`."""
    mode = _mode(image, channels)
    if image.mode.startswith("I") and mode == "L":  # 16-bit gray
        wide = np.asarray(image)[..., None].astype(np.uint16)
        return wide if dtype.name == "uint16" else (wide >> 8).astype(np.uint8)
    array = np.asarray(image if image.mode == mode else image.convert(mode))
    if array.ndim == 2:
        array = array[..., None]
    if mode in ("L", "LA") and image.mode not in ("L", "LA", "1"):
        gray = _gray(np.asarray(image.convert("RGB")))
        array = np.concatenate([gray, array[..., 1:]], -1)
    return _in_dtype(array, dtype, image.format == "PNG")


def _in_dtype(array: Array, dtype: DType, is_png: bool = False) -> Array:
    # libpng maps 8-bit 255 to 16-bit 65535; TensorFlow multiplies those of other formats.
    return (
        array.astype(np.uint16) * np.uint16(257 if is_png else 256)
        if dtype.name == "uint16"
        else array
    )


def _gray(colors: Array) -> Array:
    """The luminance as libpng computes it, without rounding; Pillow rounds."""
    red, green = 9798, 19235  # 0.299 and 0.587 of 2 ** 15
    weights = np.array([red, green, (1 << 15) - red - green], np.uint32)
    return (colors.astype(np.uint32) @ weights >> 15).astype(np.uint8)[..., None]


def _decode(
    contents: Any,
    channels: int,
    dtype: DType,
    frames: str,
    ratio: int = 1,
    recover: bool = False,
) -> Array:
    data = _bytes(contents)
    if recover and data[:2] == b"\xff\xd8":
        data += b"\xff\xd9"  # an end marker, so that missing data are gray
    if data[:2] == b"BM" and frames != "all":
        return _decode_bmp(data, channels, dtype)
    image = _opened(data)
    animated = getattr(image, "n_frames", 1) > 1
    if frames == "one" and animated:
        raise _refused(
            f"Got {image.n_frames} frames, but animated gifs can only be decoded by decode_gif or "
            "decode_image",
            data,
        )
    try:
        if image.format == "JPEG" and channels == 1:
            image.draft("L", None)  # its luminance, which the file stores
        if ratio > 1:
            image = _reduced(image, ratio)
        if frames in ("one", "first") or (frames == "any" and image.format != "GIF"):
            return _pixels(image, channels, dtype)
        return _frames(image, (frames == "any" and channels) or 3, dtype)
    except _damages() as error:
        raise _refused(
            f"Invalid {image.format or 'image'} data ({type(error).__name__}: {error})",
            data,
            "the file is truncated or damaged",
        ) from error


def _reduced(image: Any, ratio: int) -> Any:
    """Downscales a JPEG by 2, 4 or 8 in its decoder."""
    width, height = image.size
    image.draft(None, (max(width // ratio, 1), max(height // ratio, 1)))
    wanted = (-(-width // ratio), -(-height // ratio))
    return image if image.size == wanted else image.resize(wanted)


def _frames(image: Any, channels: int, dtype: DType) -> Array:
    first = _pixels(image, channels, dtype)
    found = np.empty((getattr(image, "n_frames", 1), *first.shape), first.dtype)
    found[0] = first
    for number in range(1, len(found)):
        image.seek(number)
        if (image.height, image.width) != found.shape[1:3]:
            raise ValueError(f"frame {number} has another size, {image.height} x {image.width}")
        found[number] = _pixels(image, channels, dtype)
    return found


def _crop_jpeg(contents: Any, window: Array, channels: int, ratio: int, recover: bool) -> Array:
    top, left, height, width = (int(each) for each in window)
    image = _decode(contents, channels, uint8, "one", ratio, recover)
    if (
        min(top, left) < 0
        or min(height, width) <= 0
        or top + height > image.shape[0]
        or left + width > image.shape[1]
    ):
        raise ValueError(
            f"Invalid JPEG data or crop window: [{top}, {left}, {height}, {width}] of an image of "
            f"{image.shape[0]} x {image.shape[1]}"
        )
    return image[top : top + height, left : left + width]


_GRAY = np.full([2, 3, 3], 200, np.uint8)


def _decoded_shape(attrs: Any) -> TensorShape:
    channels = attrs["channels"] or None
    if attrs["frames"] == "any":
        return UNKNOWN
    if attrs["frames"] == "all":
        return TensorShape([None, None, None, channels or 3])
    return TensorShape([None, None, channels])


register(
    "DecodeImage",
    _decode,
    where="host",
    infer=lambda inputs, attrs: [Spec(attrs["dtype"], _decoded_shape(attrs))],
    gradient=None,
    accepts="s",
    cases=lambda: (
        [
            Case(
                (gray_file(kind),),
                {"channels": channels, "dtype": uint8, "frames": "one"},
                _GRAY[..., :channels],
            )
            for kind, channels in (("PNG", 3), ("JPEG", 1), ("BMP", 3))
        ]
        + [
            Case(
                (gray_file("GIF"),), {"channels": 3, "dtype": uint8, "frames": "all"}, _GRAY[None]
            ),
        ]
    ),
)


def _infer_window(inputs: Any, attrs: Any) -> list[Spec]:
    window = constant_value(inputs[1])
    sides = [None, None] if window is None else [int(side) for side in window[2:]]
    return [Spec(uint8, TensorShape([*sides, attrs["channels"] or None]))]


register(
    "DecodeAndCropJpeg",
    _crop_jpeg,
    where="host",
    infer=_infer_window,
    gradient=None,
    accepts="s",
    cases=lambda: [
        Case(
            (gray_file("JPEG"), np.array([0, 1, 2, 2], np.int32)),
            {"channels": 3, "ratio": 1, "recover": False},
            _GRAY[:, 1:],
        )
    ],
)


def _jpeg_shape(contents: Any, dtype: DType) -> Array:
    image = _opened(_bytes(contents))
    if image.format != "JPEG":
        raise _refused(f"extract_jpeg_shape: this is {image.format}", _bytes(contents))
    return np.array([image.height, image.width, len(image.getbands())], dtype.numpy_dtype)


register(
    "ExtractJpegShape",
    _jpeg_shape,
    where="host",
    infer=lambda inputs, attrs: [Spec(attrs["dtype"], TensorShape([3]))],
    gradient=None,
    accepts="s",
    cases=lambda: [Case((gray_file("JPEG"),), {"dtype": int32}, np.array([2, 3, 3], np.int32))],
)
register(
    "IsJpeg",
    lambda contents: np.asarray(_bytes(contents)[:3] == b"\xff\xd8\xff"),
    where="host",
    infer=lambda inputs, attrs: [Spec(bool_, SCALAR)],
    gradient=None,
    accepts="s",
    cases=lambda: [
        Case((gray_file("JPEG"),), {}, np.array(True)),
        Case((gray_file("PNG"),), {}, np.array(False)),
    ],
)


def _contents(contents: Any) -> Tensor:
    tensor = convert_to_tensor(contents, string, name="contents")
    if tensor.shape.rank not in (None, 0):
        raise value_error(
            f"Shape must be rank 0 but is rank {tensor.shape.rank}",
            expected="one file, a scalar string",
            received=tensor,
            made_at=tensor.op.source,
            hint="use map_fn for several",
        )
    return tensor


def _checked_channels(channels: Any, allowed: tuple[int, ...]) -> int:
    number = int(channels or 0)
    if number not in allowed:
        names = f"{', '.join(map(str, allowed[:-1]))} or {allowed[-1]}"
        raise InvalidArgumentError(None, None, f"`channels` must be {names} but got {channels}")
    return number


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decodes a JPEG file: uint8 `(height, width, channels)`.

    Args:
        contents: a scalar string, the file.
        channels: 1 gray, 3 RGB, 0 what the file has.
        ratio: 1, 2, 4 or 8: the image in that fraction of its size.
        try_recover_truncated: whether missing data become gray.
        fancy_upscaling, acceptable_fraction, dct_method: accepted; the decoder has one way, the
            precise one.

    Raises:
        InvalidArgumentError: (when run) the file is damaged, too large, or no image.
    """
    if ratio not in (1, 2, 4, 8):
        raise value_error("decode_jpeg: no such ratio", expected="1, 2, 4, 8", received=ratio)
    attrs = {
        "channels": _checked_channels(channels, (0, 1, 3)),
        "dtype": uint8,
        "frames": "one",
        "ratio": int(ratio),
        "recover": bool(try_recover_truncated),
    }
    return output("DecodeImage", [_contents(contents)], attrs, name or "DecodeJpeg")


def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decodes a window of a JPEG file; see `decode_jpeg`.

    Args:
        contents: a scalar string, the file.
        crop_window: int32 `(4,)`: top, left, height and width.
        channels, ratio, try_recover_truncated, name: as for `decode_jpeg`.
    """
    attrs = {
        "channels": _checked_channels(channels, (0, 1, 3)),
        "ratio": int(ratio),
        "recover": bool(try_recover_truncated),
    }
    inputs = [_contents(contents), convert_to_tensor(crop_window, int32, name="crop_window")]
    return output("DecodeAndCropJpeg", inputs, attrs, name)


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = uint8, name: str | None = None
) -> Tensor:
    """Decodes a PNG file: `(height, width, channels)`.

    Args:
        contents: a scalar string, the file.
        channels: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA, 0 what the file has.
        dtype: uint8 or uint16.

    Raises:
        InvalidArgumentError: (when run) the file is damaged, too large, or no image.
    """
    kind = as_dtype(dtype)
    if kind.name not in ("uint8", "uint16"):
        raise type_error(
            "decode_png: no such dtype", expected="uint8 or uint16", received=kind.name
        )
    attrs = {
        "channels": _checked_channels(channels, (0, 1, 2, 3, 4)),
        "dtype": kind,
        "frames": "one",
    }
    return output("DecodeImage", [_contents(contents)], attrs, name or "DecodePng")


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """Decodes a BMP file: uint8 `(height, width, channels)`; channels 0, 3 or 4."""
    attrs = {
        "channels": _checked_channels(channels, (0, 3, 4)),
        "dtype": uint8,
        "frames": "one",
    }
    return output("DecodeImage", [_contents(contents)], attrs, name or "DecodeBmp")


def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """Decodes all frames of a GIF file: uint8 `(frames, height, width, 3)`."""
    attrs = {"channels": 3, "dtype": uint8, "frames": "all"}
    return output("DecodeImage", [_contents(contents)], attrs, name or "DecodeGif")


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """Decodes a JPEG, PNG, GIF or BMP file.

    Args:
        contents: a scalar string, the file.
        channels: 1 gray, 3 RGB, 4 RGBA, 0 or None what the file has.
        dtype: uint8 or uint16, or a floating dtype: colours from 0 to 1.
        name: the operations' name.
        expand_animations: whether a GIF gives all its frames, `(frames, height, width, 3)`; else
            the result always is `(height, width, channels)`, of the first.

    Returns:
        An image, whose rank is not known before it is run where animations are expanded.
    """
    with get_default_graph().name_scope(name or "decode_image") as scope:
        kind = as_dtype(dtype)
        attrs = {
            "channels": _checked_channels(channels, (0, 1, 3, 4)),
            "dtype": kind if kind.name == "uint16" else uint8,
            "frames": "any" if expand_animations else "first",
        }
        given = _contents(contents)
        if kind.name in ("uint8", "uint16"):
            return output("DecodeImage", [given], attrs, scope)
        return convert_image_dtype(output("DecodeImage", [given], attrs), kind, name=scope)


def extract_jpeg_shape(contents: Any, output_type: Any = int32, name: str | None = None) -> Tensor:
    """The height, width and channels of a JPEG file, `(3,)`, without decoding it."""
    return output("ExtractJpegShape", [_contents(contents)], {"dtype": as_dtype(output_type)}, name)


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether a file starts with the JPEG signature."""
    return output("IsJpeg", [_contents(contents)], name=name or "is_jpeg")


def adjust_jpeg_quality(image: Any, jpeg_quality: Any, name: str | None = None) -> Tensor:
    """Re-encodes an image as JPEG of this quality (0 to 100) and decodes it.

    Args:
        image: `(height, width, channels)` with 1 or 3 channels, of any dtype.
        jpeg_quality: an int, or a scalar int32 tensor.
        name: the operations' name.
    """
    with get_default_graph().name_scope(name or "adjust_jpeg_quality"):
        given = checked_image(convert_to_tensor(image, name="image"), (3,))
        channels = given.shape[-1] if given.shape.rank is not None else None
        colors = convert_image_dtype(given, uint8, saturate=True)
        quality = convert_to_tensor(jpeg_quality, int32, name="jpeg_quality")
        file = output("EncodeImage", [colors, quality], {"kind": "JPEG", "options": ()})
        again = decode_jpeg(file, channels=channels or 0)
        again.set_shape(given.shape)
        return convert_image_dtype(again, given.dtype, saturate=True)
