"""JPEG and PNG encoding by Pillow, on the host."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import string
from estimatorkit.core.errors import InvalidArgumentError, UnimplementedError, explain, value_error
from estimatorkit.core.registry import Case, Spec, output, register
from estimatorkit.core.shapes import UNKNOWN
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.image.shapes import checked_image

Array = NDArray[Any]


def _encode(image: Array, kind: str, options: tuple[tuple[str, Any], ...]) -> bytes:
    from PIL import Image

    channels = image.shape[-1]
    gray = image[..., 0] if channels == 1 else image
    if image.dtype == np.uint16 and channels != 1:
        raise UnimplementedError.explained(
            "encode_png: colours of 16 bits",
            expected="uint8, or uint16 with one channel",
            received=f"uint16 with {channels} channels",
            hint="use convert_image_dtype(image, uint8)",
        )
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(gray)).save(buffer, kind, **dict(options))
    return buffer.getvalue()


def _encode_all(
    images: Array, *quality: Array, kind: str, options: tuple[tuple[str, Any], ...]
) -> Any:
    chosen = (*options, ("quality", int(quality[0]))) if quality else options
    result = np.empty(images.shape[:-3], object)
    for place in np.ndindex(result.shape):
        result[place] = _encode(images[place], kind, chosen)
    return result


_GRAY = np.full([2, 3, 3], 200, np.uint8)


def gray_file(format_: str, **options: Any) -> Array:
    """An encoded 2 x 3 image of a single gray, in RGB."""
    return np.array(_encode(_GRAY, format_, tuple(options.items())), object)


register(
    "EncodeImage",
    _encode_all,
    where="host",
    infer=lambda inputs, attrs: [
        Spec(string, UNKNOWN if inputs[0].shape.rank is None else inputs[0].shape[:-3])
    ],
    gradient=None,
    accepts="i",
    cases=lambda: [
        Case((_GRAY,), {"kind": "PNG", "options": ()}, gray_file("PNG")),
        Case(
            (_GRAY, np.int32(90)),
            {"kind": "JPEG", "options": ()},
            gray_file("JPEG", quality=90),
        ),
    ],
)


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """Encodes an image as PNG.

    Args:
        image: uint8 `(..., height, width, channels)` with 1 to 4 channels, or uint16 with 1.
        compression: 0 (fast) to 9 (small); -1 for the usual.

    Returns:
        A string for each image.
    """
    given = _encodable(image, (1, 2, 3, 4), ("uint8", "uint16"), "encode_png")
    options = () if compression < 0 else (("compress_level", int(compression)),)
    return output("EncodeImage", [given], {"kind": "PNG", "options": options}, name or "EncodePng")


def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """Encodes an image as JPEG.

    Args:
        image: uint8 `(height, width, channels)` with 1 or 3 channels.
        format: 'grayscale', 'rgb', or '' for what the image is.
        quality: 0 to 100.
        progressive: whether the file shows coarse first.
        optimize_size: whether to take longer to make it smaller.
        chroma_downsampling: whether colours have half the resolution.
        density_unit: 'in' or 'cm'.
        x_density, y_density: pixels per unit.
        xmp_metadata: XMP metadata to put into the file.
    """
    allowed = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}
    if format not in allowed:
        raise value_error("encode_jpeg: no such format", expected=sorted(allowed), received=format)
    if not 0 <= quality <= 100:
        raise InvalidArgumentError(None, None, f"quality must be in [0,100], got {quality}")
    given = _encodable(image, allowed[format], ("uint8",), "encode_jpeg")
    given.shape.assert_has_rank(3)
    inch = 1.0 if density_unit == "in" else 2.54
    options: list[tuple[str, Any]] = [
        ("progressive", bool(progressive)),
        ("optimize", bool(optimize_size)),
        ("subsampling", 2 if chroma_downsampling else 0),
        ("dpi", (round(x_density * inch), round(y_density * inch))),
        ("quality", int(quality)),
    ]
    if xmp_metadata:
        options.append(("xmp", xmp_metadata.encode()))
    attrs = {"kind": "JPEG", "options": tuple(options)}
    return output("EncodeImage", [given], attrs, name or "EncodeJpeg")


def _encodable(image: Any, channels: tuple[int, ...], dtypes: tuple[str, ...], what: str) -> Tensor:
    given = checked_image(convert_to_tensor(image, name="image"), range(3, 9))
    last = given.shape[-1] if given.shape.rank is not None else None
    if given.dtype.name not in dtypes or (last is not None and last not in channels):
        raise (TypeError if given.dtype.name not in dtypes else ValueError)(
            explain(
                f"{what} cannot take this image",
                expected=f"{' or '.join(dtypes)} with {' or '.join(map(str, channels))} channels",
                received=given,
                made_at=given.op.source,
                hint="use convert_image_dtype(image, uint8)",
            )
        )
    return given
