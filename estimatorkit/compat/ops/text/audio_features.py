"""Audio features for speech recognition, as in TensorFlow's speech commands example."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from estimatorkit.compat.ops.linalg.fourier import length_along
from estimatorkit.compat.ops.linalg.signal import stft
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, float64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.array import expand_dims, transpose
from estimatorkit.ops.array.indexing import where
from estimatorkit.ops.linalg.products import tensordot
from estimatorkit.ops.math.elementwise import (
    abs as magnitude,
    cast,
    floor,
    log,
    log1p,
    maximum,
    minimum,
    sqrt,
    square,
)

_LEAST = 1e-12
"""Lower bound of a band's value before the logarithm."""


def audio_spectrogram(
    input: Any,
    window_size: int,
    stride: int,
    magnitude_squared: bool = False,
    name: str | None = None,
) -> Tensor:
    """A spectrogram of audio (`AudioSpectrogram` of `tf.raw_ops`).

    Args:
        input: float32 `(samples, channels)`, as returned by `audio.decode_wav`.
        window_size: samples per frame.
        stride: samples from one frame to the next.
        magnitude_squared: whether to square the magnitudes.

    Returns:
        float32 `(channels, frames, bins)`, where `2 * (bins - 1)` is the next power of 2.
    """
    with get_default_graph().name_scope(name or "AudioSpectrogram"):
        sound = transpose(convert_to_tensor(input, float32, name="input"))
        found = magnitude(stft(sound, window_size, stride))
        return square(found) if magnitude_squared else found


def _bands(bins: int, rate: Tensor, lower: float, upper: float, count: int) -> Tensor:
    """A `(bins, count)` triangular filter bank on the mel scale."""
    width = cast(rate, float64) / (2.0 * (bins - 1))  # of a bin, in hertz
    index = np.arange(bins, dtype=np.float64)
    low, high = (1127.0 * math.log1p(each / 700.0) for each in (lower, upper))
    edges = np.linspace(low, high, count + 2)
    places = expand_dims(1127.0 * log1p(width * (index / 700.0)), 1)
    rising = (places - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - places) / (edges[2:] - edges[1:-1])
    inside = (floor(1.5 + lower / width) <= index) & (floor(upper / width) >= index)
    triangles = maximum(minimum(rising, falling), np.float64(0.0))
    return cast(where(expand_dims(inside, 1), triangles, 0.0 * triangles), float32)


def mfcc(
    spectrogram: Any,
    sample_rate: Any,
    upper_frequency_limit: float = 4000.0,
    lower_frequency_limit: float = 20.0,
    filterbank_channel_count: int = 40,
    dct_coefficient_count: int = 13,
    name: str | None = None,
) -> Tensor:
    """Mel-frequency cepstral coefficients of a spectrogram (`Mfcc` of `tf.raw_ops`).

    Args:
        spectrogram: float32 `(channels, frames, bins)`, squared magnitudes.
        sample_rate: samples per second, an int32 scalar.
        upper_frequency_limit, lower_frequency_limit: the range of the filter bank, in hertz.
        filterbank_channel_count: the number of bands.
        dct_coefficient_count: the number of coefficients.

    Returns:
        float32 `(channels, frames, dct_coefficient_count)`.

    Raises:
        ValueError: the number of bins is unknown.
    """
    with get_default_graph().name_scope(name or "Mfcc"):
        given = convert_to_tensor(spectrogram, float32, name="spectrogram")
        rate = convert_to_tensor(sample_rate, name="sample_rate")
        bins = length_along(given, -1)
        if bins is None:
            raise value_error(
                "mfcc: the number of frequencies must be known",
                received=given,
                made_at=given.op.source,
            )
        limits = (lower_frequency_limit, upper_frequency_limit)
        bands = tensordot(sqrt(given), _bands(bins, rate, *limits, filterbank_channel_count), 1)
        places = np.arange(filterbank_channel_count) + 0.5
        angles = np.outer(places, np.arange(dct_coefficient_count)) * np.pi
        cosines = math.sqrt(2.0 / filterbank_channel_count) * np.cos(angles / len(places))
        return tensordot(log(maximum(bands, _LEAST)), cosines.astype(np.float32), 1)
