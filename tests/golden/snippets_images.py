"""Programs with small images (6 x 5), as functions of the module that they use as `tf`.

`IMAGES`: each gives what a session is to fetch. `FILES`: the same, of a dictionary of files.
`IMAGE_ERRORS`: each gives what fails, when it is built or when it is fetched.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def pixels(count: int = 1, height: int = 6, width: int = 5, channels: int = 3) -> Any:
    """Colours from 0 to 255 without a pattern, uint8 `(count, height, width, channels)`."""
    size = count * height * width * channels
    values = (np.arange(size, dtype=np.int64) * 7919 + 104729) % 65521 % 256
    return values.reshape(count, height, width, channels).astype(np.uint8)


def colors(tf: Any, count: int = 1, **size: int) -> Any:
    """The same as floats from 0 to 1."""
    return tf.constant(pixels(count, **size).astype(np.float32) / np.float32(255))


def gradient(tf: Any, y: Any, *xs: Any) -> Any:
    """The gradients of the sum of the squares of y."""
    return tf.gradients(tf.reduce_sum(y * y), list(xs))


def _resize(tf: Any, op: str, size: Any, **options: Any) -> Any:
    image = colors(tf, 2)
    y = getattr(tf.image, op)(image, size, **options)
    return [y, *gradient(tf, y, image)]


_RESIZES = {
    f"{op}_{size[0]}x{size[1]}{''.join(f'_{option}' for option in options)}": functools.partial(
        _resize, op=op, size=size, **options
    )
    for op in ("resize_bilinear", "resize_nearest_neighbor", "resize_bicubic")
    for size in ((9, 7), (4, 3), (12, 2))
    for options in ({}, {"align_corners": True}, {"half_pixel_centers": True})
}


def _plain(op: str, **options: Any) -> Callable[[Any], Any]:
    return lambda tf: getattr(tf.image, op)(colors(tf)[0], **options)


def _with_gradient(op: str, *given: Any, **options: Any) -> Callable[[Any], Any]:
    def run(tf: Any) -> Any:
        image = colors(tf)
        y = getattr(tf.image, op)(image, *given, **options)
        return [y, *gradient(tf, y, image)]

    return run


def _crop_and_resize(tf: Any) -> Any:
    image = colors(tf, 2)
    boxes = tf.constant(
        [[0.1, 0.2, 0.7, 0.9], [0.8, 0.1, 0.2, 0.95], [-0.2, 0.3, 0.5, 1.3]], tf.float32
    )
    y = tf.image.crop_and_resize(image, boxes, [0, 1, 1], [3, 4], extrapolation_value=0.5)
    nearest = tf.image.crop_and_resize(image, boxes, [1, 0, 1], [3, 4], method="nearest")
    one = tf.image.crop_and_resize(image, boxes, [1, 0, 1], [1, 1])
    over = tf.image.crop_and_resize(image, [[1.0, 1.0, 0.0, 0.0]], [0], [3, 4])
    return [y, nearest, one, over, *gradient(tf, y, image, boxes)]


def _glimpse(tf: Any, **options: Any) -> Any:
    image = colors(tf, 2)
    offsets = [[0.25, 0.5], [0.5, 0.3]]
    if not options["normalized"]:
        offsets = [[1.5, 3.5], [2.0, 1.0]]
    return tf.image.extract_glimpse(image, [2, 2], offsets, **options)


def _dtypes(tf: Any) -> Any:
    bytes_ = tf.constant(pixels())
    floats = tf.constant([-0.5, 0.0, 0.499, 0.5, 0.998, 1.0, 1.5])
    wide = tf.constant([0, 300, 32767, 65535], tf.uint16)
    return [
        tf.image.convert_image_dtype(bytes_, tf.float32),
        tf.image.convert_image_dtype(bytes_, tf.uint16),
        tf.image.convert_image_dtype(bytes_, tf.int32),
        tf.image.convert_image_dtype(wide, tf.uint8),
        tf.image.convert_image_dtype(floats, tf.uint8, saturate=True),
        tf.image.convert_image_dtype(floats[1:6], tf.int16),
        tf.image.convert_image_dtype(floats[1:6], tf.float64),
    ]


def _integers(tf: Any) -> Any:
    image = tf.constant(pixels()[0])
    return [
        tf.image.adjust_brightness(image, 0.2),
        tf.image.adjust_contrast(image, 1.7),
        tf.image.adjust_gamma(image, 2.2, 0.9),
        tf.image.rgb_to_grayscale(image),
    ]


def _hsv(tf: Any) -> Any:
    image = colors(tf) * 0.9 + 0.05  # at black and at full colours the gradient has a kink
    y = tf.image.rgb_to_hsv(image)
    return [y, *gradient(tf, y, image)]


def _measures(tf: Any) -> Any:
    one, two = colors(tf, 2), tf.constant(pixels(2)[:, ::-1].astype(np.float32) / np.float32(255))
    mixed = 0.9 * one + 0.1 * two
    similar = tf.image.ssim(one, mixed, 1.0, filter_size=3)
    return [
        tf.image.psnr(one, two, 1.0),
        tf.image.psnr(tf.constant(pixels(2)), tf.constant(pixels(2)[::-1]), 255),
        similar,
        tf.image.ssim(one, mixed, 1.0, filter_size=4, filter_sigma=0.8, k1=0.02, k2=0.05),
        tf.image.ssim_multiscale(one, mixed, 1.0, [0.4, 0.6], filter_size=3),
        tf.image.total_variation(one),
        *tf.image.image_gradients(one),
        tf.image.sobel_edges(one),
        *tf.gradients(similar, [one]),
    ]


def _suppressed(tf: Any) -> Any:
    boxes = [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [1, 11, 0, 10], [0, 10.1, 1, 11.1]]
    scores = [0.9, 0.75, 0.6, 0.95, 0.5]
    return [
        tf.image.non_max_suppression(boxes, scores, 3),
        tf.image.non_max_suppression(boxes, scores, 4, 0.9, 0.55),
        tf.image.non_max_suppression_padded(
            boxes[:3] + boxes[4:], scores[:3] + scores[4:], 4, pad_to_max_output_size=True
        ),
    ]


def _drawn(tf: Any) -> Any:
    boxes = [[[0.1, 0.2, 0.7, 0.9], [0.5, 0.0, 1.5, 0.4], [0.9, 0.1, 0.2, 1.0]]] * 2
    return [
        tf.image.draw_bounding_boxes(colors(tf, 2), boxes),
        tf.image.draw_bounding_boxes(colors(tf, 2), boxes, colors=[[0.1, 0.2, 0.3]]),
        tf.image.draw_bounding_boxes(colors(tf, 2, channels=1), boxes),
    ]


# Rows that need names of TensorFlow 1.
LEGACY = {
    *("brightness", "combined_classes", "combined_nothing", "contrast", "crop_and_resize"),
    *("draw_boxes_rank", "draw_two_channels", "drawn", "glimpse_centered", "glimpse_normalized"),
    *("glimpse_pixels", "hue", "measures", "no_boxes", "patches", "suppressed"),
    *("suppression_combined", "suppression_combined_padded", "suppression_combined_total"),
    *("suppression_not_square", "suppression_of_batches", "suppression_of_halves"),
    *("suppression_of_three", "suppression_overlaps", "suppression_scores", "suppression_sizes"),
    *("suppression_soft", "suppression_soft_wide", "suppression_threshold"),
    *("suppression_with_scores",),
}
IMAGES: dict[str, Callable[[Any], Any]] = {
    **_RESIZES,
    "resize_area_9x7": lambda tf: tf.image.resize_area(colors(tf, 2), [9, 7]),
    "resize_area_4x3": lambda tf: tf.image.resize_area(colors(tf, 2), [4, 3]),
    "resize_area_1x2": lambda tf: tf.image.resize_area(colors(tf, 2), [1, 2], align_corners=True),
    "resize_images": lambda tf: [
        tf.image.resize_images(colors(tf)[0], [4, 8], method)
        for method in (
            tf.image.ResizeMethod.BILINEAR,
            tf.image.ResizeMethod.NEAREST_NEIGHBOR,
            tf.image.ResizeMethod.BICUBIC,
            tf.image.ResizeMethod.AREA,
        )
    ],
    "resize_images_of_bytes": lambda tf: [
        tf.image.resize_images(pixels(), [4, 8]),
        tf.image.resize_images(pixels(), [4, 8], 1),
        tf.image.resize_images(pixels(), [6, 5]),
    ],
    "resize_images_in_their_form": lambda tf: [
        tf.image.resize_images(colors(tf), size, preserve_aspect_ratio=True)
        for size in ([4, 8], [9, 9], [20, 2])
    ],
    "resize_with_pad": lambda tf: [
        tf.image.resize_image_with_pad(colors(tf), 9, 4),
        tf.image.resize_image_with_pad(colors(tf)[0], 4, 9),
    ],
    "resize_with_crop_or_pad": lambda tf: [
        tf.image.resize_image_with_crop_or_pad(colors(tf), height, width)
        for height, width in ((3, 8), (9, 2), (4, 4), (6, 5))
    ],
    "crop": lambda tf: tf.image.crop_to_bounding_box(colors(tf), 1, 2, 4, 3),
    "pad": lambda tf: tf.image.pad_to_bounding_box(colors(tf), 1, 2, 8, 9),
    "central_crop": lambda tf: [
        tf.image.central_crop(colors(tf), fraction) for fraction in (0.3, 0.5, 0.75, 1.0)
    ],
    "flips": lambda tf: [
        tf.image.flip_left_right(colors(tf)),
        tf.image.flip_up_down(colors(tf)[0]),
        tf.image.transpose_image(colors(tf)),
        *(tf.image.rot90(colors(tf)[0], turns) for turns in (0, 1, 2, 3, -1)),
    ],
    "patches": lambda tf: [
        tf.image.extract_image_patches(
            colors(tf), [1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 2, 1], padding
        )
        for padding in ("VALID", "SAME")
    ],
    "crop_and_resize": _crop_and_resize,
    "glimpse_centered": lambda tf: _glimpse(tf, centered=True, normalized=True),
    "glimpse_normalized": lambda tf: _glimpse(tf, centered=False, normalized=True),
    "glimpse_pixels": lambda tf: _glimpse(tf, centered=False, normalized=False),
    "dtypes": _dtypes,
    "integers": _integers,
    "brightness": _plain("adjust_brightness", delta=0.3),
    "contrast": _plain("adjust_contrast", contrast_factor=1.5),
    "hue": _plain("adjust_hue", delta=0.3),
    "hue_back": _plain("adjust_hue", delta=-0.7),
    "saturation": _plain("adjust_saturation", saturation_factor=1.8),
    "gamma": _plain("adjust_gamma", gamma=1.8, gain=0.7),
    "standardization": _with_gradient("per_image_standardization"),
    "standardization_of_bytes": lambda tf: tf.image.per_image_standardization(pixels(2)),
    "grayscale": _with_gradient("rgb_to_grayscale"),
    "grayscale_to_rgb": lambda tf: tf.image.grayscale_to_rgb(colors(tf, channels=1)),
    "rgb_to_hsv": _hsv,
    "hsv_to_rgb": _plain("hsv_to_rgb"),
    "yiq": lambda tf: [tf.image.rgb_to_yiq(colors(tf)), tf.image.yiq_to_rgb(colors(tf))],
    "yuv": lambda tf: [tf.image.rgb_to_yuv(colors(tf)), tf.image.yuv_to_rgb(colors(tf))],
    "measures": _measures,
    "suppressed": _suppressed,
    "drawn": _drawn,
}


# -- files


def bmp(image: Any) -> bytes:
    """An uncompressed BMP file of gray, RGB or RGBA pixels."""
    height, width, channels = image.shape
    stored = image[::-1][..., {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[channels]]
    rows = np.pad(stored.reshape(height, -1), [(0, 0), (0, -width * channels % 4)])
    size = 54 + rows.size
    head = struct.pack("<2sIHHI", b"BM", size, 0, 0, 54)
    info = struct.pack(
        "<IiiHHIIiiII", 40, width, height, 1, 8 * channels, 0, rows.size, 2835, 2835, 0, 0
    )
    return head + info + rows.tobytes()


def gif() -> bytes:
    """Two frames of 6 x 5 pixels in two colours, as codes of 9 bits that are never compressed."""
    frames = [pixels(channels=1)[0, ..., 0] > 99, pixels(channels=1)[0, ..., 0] > 199]
    data = b"GIF89a" + struct.pack("<HHBBB", 6, 5, 0x87, 0, 0)
    data += bytes([255, 40, 0, 0, 80, 255]) + bytes(3 * 254)
    for frame in frames:
        data += b"\x21\xf9\x04\x04\x0a\x00\x00\x00"
        data += b"\x2c" + struct.pack("<HHHHB", 0, 0, 6, 5, 0) + b"\x08"
        codes = [256, *(int(pixel) for pixel in frame.flat), 257]
        bits = "".join(f"{code:09b}" for code in reversed(codes))
        packed = int(bits, 2).to_bytes(-(-len(bits) // 8), "little")
        data += bytes([len(packed)]) + packed + b"\x00"
    return data + b"\x3b"


FILES: dict[str, Callable[[Any, Mapping[str, bytes]], Any]] = {
    "jpeg": lambda tf, files: [
        tf.image.decode_jpeg(files["jpeg"]),
        tf.image.decode_jpeg(files["jpeg"], channels=1),
        tf.image.decode_jpeg(files["gray_jpeg"]),
        tf.image.decode_jpeg(files["gray_jpeg"], channels=3),
        tf.image.decode_and_crop_jpeg(files["jpeg"], [1, 2, 4, 3], channels=3),
    ],
    "jpeg_facts": lambda tf, files: [
        tf.image.extract_jpeg_shape(files["jpeg"]),
        tf.image.extract_jpeg_shape(files["gray_jpeg"], tf.int64),
        tf.image.is_jpeg(files["jpeg"]),
        tf.image.is_jpeg(files["png"]),
    ],
    "jpeg_ratio": lambda tf, files: [
        tf.shape(tf.image.decode_jpeg(files["jpeg"], ratio=ratio)) for ratio in (2, 4, 8)
    ],
    "png": lambda tf, files: [
        tf.image.decode_png(files["png"]),
        tf.image.decode_png(files["png"], channels=4),
        tf.image.decode_png(files["rgba_png"]),
        tf.image.decode_png(files["rgba_png"], channels=3),
        tf.image.decode_png(files["gray_png"]),
        tf.image.decode_png(files["gray_png"], channels=3),
        tf.image.decode_png(files["png"], dtype=tf.uint16),
        tf.image.decode_png(files["wide_png"], dtype=tf.uint16),
        tf.image.decode_png(files["wide_png"]),
        tf.image.decode_png(files["png"], channels=1),
    ],
    "bmp": lambda tf, files: [
        tf.image.decode_bmp(files["bmp"]),
        tf.image.decode_bmp(files["bmp"], channels=4),
        tf.image.decode_bmp(files["rgba_bmp"]),
        tf.image.decode_bmp(files["rgba_bmp"], channels=3),
        tf.image.decode_bmp(files["gray_bmp"]),
        tf.image.decode_image(files["gray_bmp"], channels=3, dtype=tf.uint16),
    ],
    "gif": lambda tf, files: [tf.image.decode_gif(files["gif"])],
    "image": lambda tf, files: [
        tf.image.decode_image(files["png"]),
        tf.image.decode_image(files["gif"]),
        tf.image.decode_image(files["gif"], expand_animations=False),
        tf.image.decode_image(files["gray_png"], channels=3),
        tf.image.decode_image(files["bmp"], dtype=tf.float32),
        tf.image.decode_png(files["jpeg"]),
    ],
}

IMAGE_ERRORS: dict[str, Callable[[Any, Mapping[str, bytes]], Any]] = {
    "nothing": lambda tf, files: tf.image.decode_jpeg(b""),
    "no_image": lambda tf, files: tf.image.decode_image(b"this is no image, but a text"),
    "truncated_jpeg": lambda tf, files: tf.image.decode_jpeg(files["jpeg"][:200]),
    "truncated_png": lambda tf, files: tf.image.decode_png(files["png"][:60]),
    "truncated_bmp": lambda tf, files: tf.image.decode_bmp(files["bmp"][:-1]),
    "animation": lambda tf, files: tf.image.decode_png(files["gif"]),
    "channels": lambda tf, files: tf.image.decode_jpeg(files["jpeg"], channels=5),
    "crop_outside": lambda tf, files: tf.image.crop_to_bounding_box(colors(tf), 3, 0, 4, 3),
    "crop_negative": lambda tf, files: tf.image.crop_to_bounding_box(colors(tf), -1, 0, 4, 3),
    "pad_too_small": lambda tf, files: tf.image.pad_to_bounding_box(colors(tf), 3, 0, 8, 9),
    "flip_of_a_matrix": lambda tf, files: tf.image.flip_left_right([[1.0]]),
    "central_fraction": lambda tf, files: tf.image.central_crop(colors(tf), 1.5),
    "size": lambda tf, files: tf.image.resize_images(colors(tf), [1, 2, 3]),
    "method": lambda tf, files: tf.image.resize_images(colors(tf), [4, 4], 17),
    "gray_of_four": lambda tf, files: tf.image.grayscale_to_rgb(colors(tf)),
    "brightness": lambda tf, files: tf.image.random_brightness(colors(tf), -1),
    "contrast": lambda tf, files: tf.image.random_contrast(colors(tf), 2, 1),
    "hue": lambda tf, files: tf.image.random_hue(colors(tf), 0.7),
    "no_boxes": lambda tf, files: tf.image.sample_distorted_bounding_box(
        [6, 5, 3], np.zeros([1, 0, 4], np.float32)
    ),
    "bool_image": lambda tf, files: tf.image.convert_image_dtype([True], tf.float32),
    "crop_window": lambda tf, files: tf.image.decode_and_crop_jpeg(files["jpeg"], [3, 0, 9, 2]),
}


# -- boxes that overlap


def _boxes() -> tuple[Any, Any]:
    rng = np.random.RandomState(7)
    corners = np.concatenate([rng.rand(12, 2) * 0.6, rng.rand(12, 2) * 0.6 + 0.3], 1)
    return corners.astype(np.float32), rng.rand(12).astype(np.float32)


_BOXES, _SCORES = _boxes()
_BATCH = np.stack([_BOXES, _BOXES[::-1]])[:, :, None] * 2 - 0.5
_CLASSES = np.random.RandomState(8).rand(2, 12, 3).astype(np.float32)


def _soft(sigma: float, threshold: float) -> Callable[[Any], Any]:
    return lambda tf: list(
        tf.image.non_max_suppression_with_scores(_BOXES, _SCORES, 8, 0.3, threshold, sigma)
    )


def _combined(*arguments: Any, **others: Any) -> Callable[[Any], Any]:
    return lambda tf: list(
        tf.image.combined_non_max_suppression(_BATCH, _CLASSES, *arguments, **others)
    )


IMAGES |= {
    "suppression_soft": _soft(0.5, 0.1),
    "suppression_soft_wide": _soft(10.0, 0.0),
    "suppression_with_scores": _soft(0.0, 0.2),
    "suppression_overlaps": lambda tf: tf.image.non_max_suppression_overlaps(
        np.abs(np.sin(np.add.outer(np.arange(12), np.arange(12)))).astype(np.float32),
        *(_SCORES, 8, 0.6, 0.1),
    ),
    "suppression_of_batches": lambda tf: list(
        tf.image.non_max_suppression_padded(
            _BATCH[:, :, 0], np.stack([_SCORES, _SCORES]), 9, 0.3, 0.2, True
        )
    ),
    "suppression_combined": _combined(3, 5, 0.4, 0.1),
    "suppression_combined_padded": _combined(2, 10, 0.4, 0.5, pad_per_class=True, clip_boxes=False),
    "suppression_combined_total": _combined(3, 20, 0.2, 0.8),
    "suppression_of_halves": lambda tf: tf.image.non_max_suppression(
        tf.constant(_BOXES, tf.float16),
        tf.constant(_SCORES, tf.float16),
        *(8, tf.constant(0.5, tf.float16), tf.constant(0.0, tf.float16)),
    ),
}
IMAGE_ERRORS |= {
    "suppression_of_three": lambda tf, files: tf.image.non_max_suppression(
        _BOXES[:, :3], _SCORES, 8
    ),
    "suppression_scores": lambda tf, files: tf.image.non_max_suppression(_BOXES, _SCORES[:3], 8),
    "suppression_sizes": lambda tf, files: tf.image.non_max_suppression(_BOXES, _SCORES, [8]),
    "suppression_threshold": lambda tf, files: tf.image.non_max_suppression(
        _BOXES, _SCORES, 8, 1.2
    ),
    "suppression_not_square": lambda tf, files: tf.image.non_max_suppression_overlaps(
        np.ones([12, 11], np.float32), _SCORES, 8
    ),
    "combined_classes": lambda tf, files: tf.image.combined_non_max_suppression(
        _BATCH.repeat(2, 2), _CLASSES, 2, 4
    )[0],
    "combined_nothing": lambda tf, files: tf.image.combined_non_max_suppression(
        _BATCH, _CLASSES, 2, 0
    )[0],
    "draw_boxes_rank": lambda tf, files: tf.image.draw_bounding_boxes(
        np.zeros([1, 8, 8, 3], np.float32), _BOXES
    ),
    "draw_two_channels": lambda tf, files: tf.image.draw_bounding_boxes(
        np.zeros([1, 8, 8, 2], np.float32), _BOXES[None]
    ),
}
