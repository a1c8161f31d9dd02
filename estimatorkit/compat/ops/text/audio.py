"""Decoding and encoding of 16-bit WAV files, on the host."""

from __future__ import annotations

import io
import wave
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int32, string
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, apply, output, register
from estimatorkit.core.shapes import SCALAR, TensorShape
from estimatorkit.core.tensor import Tensor

Array = NDArray[Any]

_STEPS = float(1 << 15)
"""Full scale in 16-bit steps."""


class DecodedWav(NamedTuple):
    """Result of `decode_wav`."""

    audio: Tensor
    sample_rate: Tensor


def _decode(contents: Any, channels: int, samples: int) -> tuple[Array, Array]:
    data: bytes = np.asarray(contents, object).item()
    try:
        with wave.open(io.BytesIO(data)) as file:
            width, count, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError, OverflowError, MemoryError, RuntimeError) as error:
        raise InvalidArgumentError.explained(
            f"Header mismatch or corrupt file: {error}",
            expected="a WAV file (RIFF, WAVE, PCM)",
            received=f"{len(data)} bytes that begin with {data[:12]!r}",
        ) from error
    if width != 2:
        raise InvalidArgumentError.explained(
            f"Can only read 16-bit WAV files, but received {8 * width}",
            hint="convert the file to 16 bits per sample first",
        )
    whole = len(frames) // (2 * count) * (2 * count)
    audio = np.frombuffer(frames[:whole], "<i2").reshape(-1, count).astype(np.float32) / _STEPS
    if channels > 0:
        audio = audio[:, np.minimum(np.arange(channels), count - 1)]
    if samples > 0:
        audio = np.pad(audio[:samples], [(0, max(samples - len(audio), 0)), (0, 0)])
    return audio.astype(np.float32), np.array(rate, np.int32)


def _encode(audio: Array, sample_rate: Array) -> Array:
    if audio.ndim != 2:
        raise ValueError(f"audio must be (samples, channels), got shape {audio.shape}")
    scaled = audio.astype(np.float64) * _STEPS
    rounded = np.trunc(scaled + np.copysign(0.5, scaled))
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(audio.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(sample_rate))
        with np.errstate(invalid="ignore"):  # NaN
            samples = np.clip(rounded, -(1 << 15), (1 << 15) - 1).astype("<i2")
        file.writeframes(samples.tobytes())
    return np.array(buffer.getvalue(), object)


_SOUND = np.array([[0.5, -0.25], [0.0, 0.125]], np.float32)
_FILE = np.array(  # of TensorFlow
    b"RIFF,\0\0\0WAVEfmt \x10\0\0\0\1\0\2\0@\x1f\0\0\0}\0\0\4\0\x10\0data\x08\0\0\0"
    b"\0@\0\xe0\0\0\0\x10",
    object,
)

register(
    "DecodeWav",
    _decode,
    where="host",
    infer=lambda inputs, attrs: [
        Spec(
            float32,
            TensorShape(
                [size if size > 0 else None for size in (attrs["samples"], attrs["channels"])]
            ),
        ),
        Spec(int32, SCALAR),
    ],
    gradient=None,
    accepts="s",
    cases=lambda: [
        Case(
            (_FILE,),
            {"channels": 2, "samples": 3},
            (np.pad(_SOUND, [(0, 1), (0, 0)]), np.int32(8000)),
        )
    ],
)
register(
    "EncodeWav",
    _encode,
    where="host",
    infer=lambda inputs, attrs: [Spec(string, SCALAR)],
    gradient=None,
    accepts="f",
    cases=lambda: [Case((_SOUND, np.int32(8000)), {}, _FILE)],
)


def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodedWav:
    """Decodes a 16-bit WAV file to samples from -1 to 1.

    Args:
        contents: a scalar string, the file.
        desired_channels: the number of channels: extra ones are dropped, missing ones repeat the
            last; -1 for those of the file.
        desired_samples: the number of samples: truncated or zero-padded; -1 for all.

    Returns:
        `audio` float32 `(samples, channels)` and `sample_rate`, an int32 scalar.

    Raises:
        InvalidArgumentError: at run time, the file is corrupt or has another format.
    """
    given = convert_to_tensor(contents, string, name="contents")
    attrs = {"channels": int(desired_channels), "samples": int(desired_samples)}
    return DecodedWav(*apply("DecodeWav", [given], attrs, name).outputs)


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """Encodes samples from -1 to 1 as a 16-bit WAV file; values beyond are clipped.

    Args:
        audio: float32 `(samples, channels)`.
        sample_rate: samples per second, an int or a scalar int32 tensor.
    """
    with get_default_graph().name_scope(name or "EncodeWav") as scope:
        inputs = [
            convert_to_tensor(audio, float32, name="audio"),
            convert_to_tensor(sample_rate, int32, name="sample_rate"),
        ]
        return output("EncodeWav", inputs, name=scope)
