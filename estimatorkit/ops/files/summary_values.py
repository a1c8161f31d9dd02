"""Serialization of values as `Summary` protos: scalars, histograms, images, audio, tensors.

Functions map arrays to bytes. TensorBoard, whose protos they use, and Pillow are imported on first
use. Bucket limits, image scaling and audio rounding equal TensorFlow's, so runs are comparable.
"""

from __future__ import annotations

import functools
import io
import wave
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.storage.tensor_proto import tensor_proto

_LARGEST = float(np.finfo(np.float64).max)

_BLOCK = 1 << 16
"""Values of a histogram are counted in blocks of this length: twice as fast as all at once."""


def scalar(values: Any, tag: str) -> bytes:
    """A number (`simple_value`, float32); raises ValueError if `values` is not a scalar."""
    shape = np.shape(values)
    if shape:
        raise ValueError(
            f"tags and values are not the same shape: [] != {list(shape)} (tag '{tag}')"
        )
    return _serialized(tag=tag, simple_value=_as_float(values))


def _as_float(value: Any) -> float:
    with np.errstate(over="ignore"):  # overflow yields infinity, as in TensorFlow
        return float(np.asarray(value).astype(np.float32))


def _serialized(**value: Any) -> bytes:
    from tensorboard.compat.proto.summary_pb2 import Summary

    data: bytes = Summary(value=[Summary.Value(**value)]).SerializeToString()
    return data


# -- histograms


@functools.cache
def bucket_limits() -> NDArray[np.float64]:
    """The upper limits of the buckets: 0, and powers of 1.1 from 1e-12 mirrored to both signs.

    776 per sign; the products are accumulated as in TensorFlow.
    """
    positive = []
    limit = 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    positive.append(_LARGEST)
    return np.array([*(-each for each in reversed(positive)), 0.0, *positive])


@functools.cache
def _first_places() -> NDArray[np.int32]:
    """The bucket of the least number with given upper 16 bits, for each of those.

    They are the sign, the exponent and 4 bits of the fraction. Such numbers differ by at most 1/16,
    limits by 1/10, so the bucket of any of them is this or the next.
    """
    least = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
    least[1 << 15 :] |= np.uint64((1 << 48) - 1)  # a negative number is less if its bits are more
    with np.errstate(invalid="ignore"):  # some are NaN
        found = np.searchsorted(bucket_limits(), least.view(np.float64), side="right")
    return np.minimum(found, len(bucket_limits()) - 1).astype(np.int32)


def _buckets(numbers: NDArray[np.float64]) -> NDArray[Any]:
    """How many limits are not above each number; the last bucket for the largest."""
    first = _first_places()[numbers.view(np.uint64) >> np.uint64(48)]
    limits = bucket_limits()
    places: NDArray[Any] = np.minimum(first + (numbers >= limits[first]), len(limits) - 1)
    return places


@functools.cache
def _places_of_halves() -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """For the upper 16 bits of a float32: the bucket of the least such number, and whether the
    greatest is in another: of one in twelve."""
    ends = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    ends = np.stack([ends, ends | np.uint32(0xFFFF)]).view(np.float32)
    with np.errstate(invalid="ignore"):  # some are NaN
        wide = np.sort(ends.astype(np.float64), axis=0)
        least, most = np.searchsorted(bucket_limits(), wide, side="right")
    return np.minimum(least, len(bucket_limits()) - 1).astype(np.int32), least != most


def _counts(numbers: NDArray[Any]) -> tuple[NDArray[np.int64], float, float]:
    """Returns the number of values in each bucket, their sum, and their sum of squares."""
    size = len(bucket_limits())
    counts = np.zeros(size, np.int64)
    places, between = _places_of_halves()
    of_halves = np.zeros(len(places), np.int64)
    by_halves = numbers.dtype == np.float32 and len(numbers) > len(places)
    total = squares = 0.0
    for at in range(0, len(numbers), _BLOCK):  # temporaries stay in the cache
        block = numbers[at : at + _BLOCK]
        wide = block.astype(np.float64)
        total += float(wide.sum())
        # Not `wide @ wide`: BLAS's threads wait for each other beside other busy processes.
        squares += float(np.einsum("i,i->", wide, wide))
        if by_halves:
            halves = (block.view(np.uint32) >> np.uint32(16)).astype(np.intp)
            of_halves += np.bincount(halves, minlength=len(places))
            wide = wide.take(np.flatnonzero(between.take(halves)))
        counts += np.bincount(_buckets(wide), minlength=size)
    if by_halves:
        of_halves[between] = 0
        counts += np.bincount(places, of_halves, size).astype(np.int64)
    return counts, total, squares


def histogram(values: Any, tag: str) -> bytes:
    """A histogram; raises ValueError if a value is NaN or infinite."""
    from tensorboard.compat.proto.histogram_pb2 import HistogramProto

    numbers = np.ascontiguousarray(values).reshape(-1)
    least, most = (
        (float(numbers.min()), float(numbers.max())) if numbers.size else (_LARGEST, -_LARGEST)
    )
    if np.isnan(least):
        raise ValueError(f"Nan in summary histogram for: {tag}")
    if np.isinf(least) or np.isinf(most):
        raise ValueError(f"Infinity in Histogram for: {tag}")
    limits = bucket_limits()
    counts, total, squares = _counts(numbers)
    filled = np.flatnonzero(counts)
    # A run of empty buckets is merged into one: only its last limit is kept.
    before = filled[(filled > 0) & ~np.isin(filled - 1, filled)] - 1
    trailing = [len(limits) - 1] if not len(filled) or filled[-1] < len(limits) - 1 else []
    kept = np.unique(np.concatenate([filled, before, np.array(trailing, filled.dtype)]))
    proto = HistogramProto(
        min=least,
        max=most,
        num=numbers.size,
        sum=total,
        sum_squares=squares,
        bucket_limit=limits[kept],
        bucket=counts[kept],
    )
    return _serialized(tag=tag, histo=proto)


# -- images


def image(tensor: Any, tag: str, max_outputs: int, bad_color: tuple[int, ...]) -> bytes:
    """Images as PNG (see `summary.image`).

    Raises InvalidArgumentError unless the shape is (batch, height, width, 1, 3 or 4), ValueError
    unless the values are uint8 or floating.
    """
    from tensorboard.compat.proto.summary_pb2 import Summary

    pictures = np.asarray(tensor)
    if pictures.ndim != 4 or pictures.shape[-1] not in (1, 3, 4):
        raise InvalidArgumentError(
            None,
            None,
            f"Tensor must be 4-D with last dim 1, 3, or 4, not {list(pictures.shape)} "
            f"(image {tag!r})",
        )
    if pictures.dtype != np.uint8:
        if pictures.dtype.kind in "iub":
            raise ValueError(
                f"the images of {tag!r} are {pictures.dtype}; use uint8, or cast to float32"
            )
        pictures = (
            np.stack(
                [_as_bytes(each, bad_color) for each in pictures[:max_outputs].astype(np.float32)]
            )
            if len(pictures)
            else pictures
        )
    height, width, channels = pictures.shape[1:]
    values = [
        Summary.Value(
            tag=each_tag,
            image=Summary.Image(
                height=height,
                width=width,
                colorspace=channels,
                encoded_image_string=png(picture),
            ),
        )
        for each_tag, picture in zip(
            _tags(tag, "image", max_outputs, len(pictures)), pictures, strict=False
        )
    ]
    data: bytes = Summary(value=values).SerializeToString()
    return data


def _tags(tag: str, kind: str, max_outputs: int, batch: int) -> list[str]:
    if max_outputs == 1:
        return [f"{tag}/{kind}"][:batch]
    return [f"{tag}/{kind}/{number}" for number in range(min(max_outputs, batch))]


def _as_bytes(picture: NDArray[np.float32], bad_color: tuple[int, ...]) -> NDArray[np.uint8]:
    """Scales a floating image (height, width, channels) to bytes."""
    finite = np.isfinite(picture).all(-1)
    good = picture[finite]
    low, high = good.min(initial=0.0), good.max(initial=0.0)
    if low < 0:
        largest, room, offset = max(-low, high), 127.0, 128.0
    else:
        largest, room, offset = high, 255.0, 0.0
    scale = np.float32(0.0 if largest < 1e-6 else room / np.float32(largest))
    result = np.empty(picture.shape, np.uint8)
    result[:] = np.array(bad_color[: picture.shape[-1]], np.uint8)
    result[finite] = (good * scale + np.float32(offset)).astype(np.uint8)
    return result


def png(picture: NDArray[np.uint8]) -> bytes:
    """Encodes an image (height, width, 1, 3 or 4 channels) as PNG."""
    from PIL import Image

    file = io.BytesIO()
    pixels = picture[..., 0] if picture.shape[-1] == 1 else picture
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "PNG")
    return file.getvalue()


# -- audio


def audio(tensor: Any, sample_rate: Any, tag: str, max_outputs: int) -> bytes:
    """Audio clips as WAV (see `summary.audio`).

    Raises ValueError unless the shape is (batch, frames) or (batch, frames, channels) and the rate
    is positive.
    """
    from tensorboard.compat.proto.summary_pb2 import Summary

    sounds, rate = np.asarray(tensor, np.float32), float(sample_rate)
    if sounds.ndim not in (2, 3):
        raise ValueError(f"Tensor must be 3-D or 2-D, got: {list(sounds.shape)} (audio {tag!r})")
    if not rate > 0:
        raise ValueError(f"sample_rate must be > 0, got {rate} (audio {tag!r})")
    sounds = sounds.reshape(*sounds.shape[:2], -1)
    values = [
        Summary.Value(
            tag=each_tag,
            audio=Summary.Audio(
                sample_rate=rate,
                num_channels=sound.shape[1],
                length_frames=len(sound),
                encoded_audio_string=wav(sound, int(rate)),
                content_type="audio/wav",
            ),
        )
        for each_tag, sound in zip(
            _tags(tag, "audio", max_outputs, len(sounds)), sounds, strict=False
        )
    ]
    data: bytes = Summary(value=values).SerializeToString()
    return data


def wav(sound: NDArray[np.float32], rate: int) -> bytes:
    """Encodes audio (frames, channels) in [-1, 1] as 16-bit WAV."""
    scaled = np.nan_to_num(sound) * np.float32(1 << 15)
    # Rounds halves away from zero, as C does.
    rounded = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled)
    samples = np.clip(rounded, -(1 << 15), (1 << 15) - 1).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(sound.shape[1])
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(samples.tobytes())
    return file.getvalue()


# -- tensors


def tensor(value: Any, tag: str, metadata: bytes) -> bytes:
    """A tensor with a serialized `SummaryMetadata`."""
    from tensorboard.compat.proto.summary_pb2 import SummaryMetadata

    return _serialized(
        tag=tag,
        tensor=tensor_proto(np.asarray(value)),
        metadata=SummaryMetadata.FromString(metadata),
    )


def metadata(given: Any, display_name: str | None, description: str | None) -> bytes:
    """The serialized `SummaryMetadata` given, with a display name and a description added."""
    from tensorboard.compat.proto.summary_pb2 import SummaryMetadata

    result = SummaryMetadata()
    if given is not None:
        result.CopyFrom(given)
    if display_name is not None:
        result.display_name = display_name
    if description is not None:
        result.summary_description = description
    data: bytes = result.SerializeToString()
    return data


def plugin_metadata(plugin_name: str) -> bytes:
    """A serialized `SummaryMetadata` that names a TensorBoard plugin."""
    from tensorboard.compat.proto.summary_pb2 import SummaryMetadata

    plugin = SummaryMetadata.PluginData(plugin_name=plugin_name)
    data: bytes = SummaryMetadata(plugin_data=plugin).SerializeToString()
    return data


def description(node_def: Any) -> Any:
    """Parses the `SummaryDescription` of a TensorSummary node from JSON."""
    from google.protobuf import json_format
    from tensorboard.compat.proto.summary_pb2 import SummaryDescription

    return json_format.Parse(node_def.attr["description"].s, SummaryDescription())


# -- merging


def merge(*inputs: Any) -> bytes:
    """Merges serialized summaries; raises ValueError if two values have the same tag."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    result = Summary()
    seen: set[str] = set()
    for each in inputs:
        for data in np.asarray(each, object).flat:
            for value in Summary.FromString(data).value:
                if value.tag in seen:
                    raise ValueError(f"Duplicate tag {value.tag} found in summary inputs")
                seen.add(value.tag)
                result.value.append(value)
    merged: bytes = result.SerializeToString()
    return merged
