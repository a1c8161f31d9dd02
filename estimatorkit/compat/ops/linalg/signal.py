"""Signal processing: framing, windows, short-time Fourier transforms, the mel scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from estimatorkit.compat.ops.linalg.fourier import (
    dct,
    fitted,
    irfft,
    length_along,
    rfft,
    static_ints,
)
from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, fixed_value, output, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor

Array = NDArray[Any]

# -- frames


def _count(length: int, frame: int, step: int, pad_end: bool) -> int:
    return -(-length // step) if pad_end else max(0, 1 + (length - frame) // step)


def _places(count: int, frame: int, step: int) -> Array:
    return np.arange(count)[:, None] * step + np.arange(frame)


def _frames(signal: Any, length: int, step: int, pad_end: bool, pad_value: float, axis: int) -> Any:
    signal = jnp.asarray(signal)
    at = axis % signal.ndim
    size = signal.shape[at]
    count = _count(size, length, step, pad_end)
    lacking = max((count - 1) * step + length - size, 0) if count else 0
    if lacking:
        pads = [(0, lacking if dim == at else 0) for dim in range(signal.ndim)]
        signal = jnp.pad(signal, pads, constant_values=pad_value)
    places = _places(count, length, step)
    return jnp.take(signal, places, axis=at, mode="clip")


def _infer_frames(inputs: Any, attrs: Any) -> list[Spec]:
    dims = inputs[0].shape.dims
    if dims is None:
        return [Spec(inputs[0].dtype, UNKNOWN)]
    at = attrs["axis"] % len(dims)
    size = dims[at]
    count = None
    if size is not None:
        count = _count(size, attrs["length"], attrs["step"], attrs["pad_end"])
    shape = TensorShape([*dims[:at], count, attrs["length"], *dims[at + 1 :]])
    return [Spec(inputs[0].dtype, shape)]


_SIGNAL = np.arange(14, dtype=np.float32).reshape(2, 7)

register(
    "Frame",
    _frames,
    infer=_infer_frames,
    accepts="fic",
    cases=lambda: [
        Case(
            (_SIGNAL,),
            {"length": 3, "step": 2, "pad_end": pad, "pad_value": 9.0, "axis": -1},
            np.stack([wide[:, at : at + 3] for at in starts], 1),
        )
        for pad, wide, starts in (
            (False, _SIGNAL, (0, 2, 4)),
            (True, np.pad(_SIGNAL, [(0, 0), (0, 2)], constant_values=9), (0, 2, 4, 6)),
        )
    ],
)


def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: float = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """Slices a signal into frames, which may overlap.

    Args:
        signal: `(..., samples, ...)`.
        frame_length: samples per frame.
        frame_step: samples from one frame to the next.
        pad_end: whether to pad the end, so that frames begin at every step.
        pad_value: the padding.
        axis: the axis of the samples.

    Returns:
        `(..., frames, frame_length, ...)`.
    """
    length, step = static_ints([frame_length, frame_step], "frame")
    if length <= 0 or step <= 0:
        raise value_error("frame: lengths must be > 0", received=f"length {length}, step {step}")
    attrs = {
        "length": length,
        "step": step,
        "pad_end": bool(pad_end),
        "pad_value": pad_value,
        "axis": int(axis),
    }
    return output("Frame", [convert_to_tensor(signal, name="signal")], attrs, name or "frame")


def _added(signal: Any, step: int) -> Any:
    signal = jnp.asarray(signal)
    count, length = signal.shape[-2:]
    size = (count - 1) * step + length
    whole = jnp.zeros([*signal.shape[:-2], size], signal.dtype)
    return whole.at[..., _places(count, length, step)].add(signal)


def _infer_added(inputs: Any, attrs: Any) -> list[Spec]:
    dims = inputs[0].shape.dims
    if dims is None:
        return [Spec(inputs[0].dtype, UNKNOWN)]
    count, length = dims[-2:]
    size = None if count is None or length is None else (count - 1) * attrs["step"] + length
    return [Spec(inputs[0].dtype, TensorShape([*dims[:-2], size]))]


register(
    "OverlapAndAdd",
    _added,
    infer=_infer_added,
    accepts="fic",
    cases=lambda: [
        Case(
            (np.arange(6, dtype=np.float32).reshape(2, 3),),
            {"step": 2},
            np.array([0, 1, 5, 4, 5], np.float32),
        )
    ],
)


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """Reconstructs a signal from frames by adding them where they overlap.

    Args:
        signal: `(..., frames, frame_length)`.
        frame_step: samples from one frame to the next.

    Returns:
        `(..., (frames - 1) * frame_step + frame_length)`.
    """
    given = convert_to_tensor(signal, name="signal")
    if given.shape.rank is not None and given.shape.rank < 2:
        raise value_error(
            "overlap_and_add needs frames", expected="(..., frames, length)", received=given
        )
    (step,) = static_ints([frame_step], "overlap_and_add")
    return output("OverlapAndAdd", [given], {"step": step}, name or "overlap_and_add")


# -- windows


def _window(values: Callable[[int], Array], length: Any, dtype: Any, name: str) -> Tensor:
    (count,) = static_ints([length], name)
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise value_error(
            f"{name}: the dtype must be floating", expected="a floating dtype", received=kind.name
        )
    return constant(values(count).astype(kind.numpy_dtype), name=name)


def _raised_cosine(count: int, periodic: bool, a: float, b: float) -> Array:
    if count == 1:
        return np.ones(1)
    # Odd windows are always symmetric, as in TensorFlow.
    period = count - 1 + (1 if periodic and count % 2 == 0 else 0)
    window: Array = a - b * np.cos(2 * np.pi * np.arange(count) / period)
    return window


def hann_window(
    window_length: Any, periodic: bool = True, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """The Hann window: 0.5 - 0.5 cos.

    Args:
        window_length: samples.
        periodic: whether the window is periodic (for transforms) rather than symmetric (for
            filters); windows of odd length are always symmetric.
        dtype: floating.
    """
    return _window(
        lambda count: _raised_cosine(count, periodic, 0.5, 0.5),
        window_length,
        dtype,
        name or "hann_window",
    )


def hamming_window(
    window_length: Any, periodic: bool = True, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """The Hamming window, 0.54 - 0.46 cos; see `hann_window` for the arguments."""
    return _window(
        lambda count: _raised_cosine(count, periodic, 0.54, 0.46),
        window_length,
        dtype,
        name or "hamming_window",
    )


def kaiser_window(
    window_length: Any, beta: float = 12.0, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """The Kaiser window; a larger beta widens the main lobe and lowers the side lobes."""
    return _window(
        lambda count: np.kaiser(count, float(beta)), window_length, dtype, name or "kaiser_window"
    )


def vorbis_window(window_length: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """The Vorbis window: sin(pi/2 sin^2), power-complementary at half overlap."""

    def values(count: int) -> Array:
        slow = np.sin(np.pi * (np.arange(count) + 0.5) / count)
        window: Array = np.sin(np.pi / 2 * slow**2)
        return window

    return _window(values, window_length, dtype, name or "vorbis_window")


# -- short-time transforms


def _enclosing(length: int) -> int:
    """Rounds up to a power of 2."""
    return 1 << (length - 1).bit_length()


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable[..., Any] | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The short-time Fourier transform of real signals.

    Args:
        signals: float32 or float64 `(..., samples)`.
        frame_length: samples per frame.
        frame_step: samples from one frame to the next.
        fft_length: the length of the transform; by default the next power of 2.
        window_fn: `window_fn(frame_length, dtype=dtype)`; None for no window.
        pad_end: whether to zero-pad the end, so that frames begin at every step.

    Returns:
        complex64 or complex128 `(..., frames, fft_length // 2 + 1)`.
    """
    with get_default_graph().name_scope(name or "stft"):
        given = convert_to_tensor(signals, name="signals")
        length, step = static_ints([frame_length, frame_step], "stft")
        framed = frame(given, length, step, pad_end)
        if window_fn is not None:
            framed = framed * window_fn(length, dtype=framed.dtype)
        (size,) = static_ints([_enclosing(length) if fft_length is None else fft_length], "stft")
        return rfft(framed, [size])


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable[..., Any] | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """The inverse of `stft` if `window_fn` is `inverse_stft_window_fn(frame_step, window)`.

    Args:
        stfts: complex `(..., frames, fft_length // 2 + 1)`.
        frame_length, frame_step, fft_length: as for `stft`.
        window_fn: the window to multiply each frame by before the overlap-add; None for none.

    Returns:
        float32 or float64 `(..., samples)`.
    """
    with get_default_graph().name_scope(name or "inverse_stft"):
        given = convert_to_tensor(stfts, name="stfts")
        length, step = static_ints([frame_length, frame_step], "inverse_stft")
        (size,) = static_ints(
            [_enclosing(length) if fft_length is None else fft_length], "inverse_stft"
        )
        real = irfft(given, [size])
        real = output("FitLast", [real], {"length": length})
        if window_fn is not None:
            real = real * window_fn(length, dtype=real.dtype)
        return overlap_and_add(real, step)


register(
    "FitLast",
    fitted,
    infer=lambda inputs, attrs: [
        Spec(
            inputs[0].dtype,
            UNKNOWN
            if inputs[0].shape.dims is None
            else TensorShape([*inputs[0].shape.dims[:-1], attrs["length"]]),
        )
    ],
    accepts="fic",
    cases=lambda: [
        Case((_SIGNAL,), {"length": 3}, _SIGNAL[:, :3]),
        Case((_SIGNAL,), {"length": 8}, np.pad(_SIGNAL, [(0, 0), (0, 1)])),
    ],
)


def inverse_stft_window_fn(
    frame_step: Any,
    forward_window_fn: Callable[..., Any] = hann_window,
    name: str | None = None,
) -> Callable[..., Tensor]:
    """A window for `inverse_stft` that inverts the one of `stft` (Griffin and Lim 1984, eq. 8).

    Args:
        frame_step: samples from one frame to the next, of both.
        forward_window_fn: the window of `stft`.

    Returns:
        `window_fn(frame_length, dtype)`.
    """

    def window(frame_length: Any, dtype: Any = float32) -> Tensor:
        with get_default_graph().name_scope(name or "inverse_stft_window_fn"):
            forward = forward_window_fn(frame_length, dtype=dtype)
            (step,) = static_ints([frame_step], "inverse_stft_window_fn")
            return output("InverseWindow", [forward], {"step": step})

    return window


def _inverse_window(window: Any, step: int) -> Any:
    window = jnp.asarray(window)
    length = window.shape[0]
    overlaps = -(-length // step)
    squares = jnp.pad(jnp.square(window), [(0, overlaps * step - length)])
    total = squares.reshape(overlaps, step).sum(0, dtype=window.dtype)
    return window / jnp.tile(total, overlaps)[:length]


register(
    "InverseWindow",
    _inverse_window,
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[0].shape)],
    accepts="f",
    cases=lambda: [
        Case(
            (np.array([1, 2, 3], np.float32),),
            {"step": 2},
            np.array([0.1, 0.5, 0.3], np.float32),
        )
    ],
)


# -- the mel scale


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


def linear_to_mel_weight_matrix(
    num_mel_bins: Any = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: Any = 125.0,
    upper_edge_hertz: Any = 3800.0,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """The matrix that converts a linear spectrogram to a mel spectrogram.

    Args:
        num_mel_bins: the number of bands.
        num_spectrogram_bins: frequencies of the spectrogram, `fft_length // 2 + 1`.
        sample_rate: samples per second.
        lower_edge_hertz, upper_edge_hertz: the range of the bands.
        dtype: floating.

    Returns:
        `(num_spectrogram_bins, num_mel_bins)`.

    Raises:
        ValueError: a number is out of range.
    """
    bands, count = static_ints([num_mel_bins, num_spectrogram_bins], "linear_to_mel_weight_matrix")
    rate = fixed_value(sample_rate) if isinstance(sample_rate, Tensor) else sample_rate
    kind = as_dtype(dtype)
    if rate is None:
        raise ValueError("linear_to_mel_weight_matrix: sample_rate must be known.")
    problems = {
        "num_mel_bins must be positive": bands <= 0,
        "lower_edge_hertz must be non-negative": lower_edge_hertz < 0,
        "lower_edge_hertz must be < upper_edge_hertz": lower_edge_hertz >= upper_edge_hertz,
        "sample_rate must be positive": rate <= 0,
        "upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2)": (
            upper_edge_hertz > rate / 2
        ),
        "dtype must be a floating point type": not kind.is_floating,
    }
    for problem, found in problems.items():
        if found:
            raise value_error(
                f"linear_to_mel_weight_matrix: {problem}",
                received=f"{bands} bands from {lower_edge_hertz} to {upper_edge_hertz} Hz, "
                f"{rate} samples a second, {kind.name}",
            )
    # The zero frequency belongs to no band.
    places = _mel(np.linspace(0.0, float(rate) / 2, count)[1:])[:, None]
    edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), bands + 2)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising = (places - low) / (middle - low)
    falling = (high - places) / (high - middle)
    weights = np.pad(np.maximum(0.0, np.minimum(rising, falling)), [(1, 0), (0, 0)])
    return constant(weights.astype(kind.numpy_dtype), name=name or "linear_to_mel_weight_matrix")


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Mel-frequency cepstral coefficients of log mel spectrograms.

    Args:
        log_mel_spectrograms: float32 or float64 `(..., frames, bands)`.

    Returns:
        The same shape (usually, the first 13 coefficients are used).
    """
    with get_default_graph().name_scope(name or "mfccs_from_log_mel_spectrograms"):
        given = convert_to_tensor(log_mel_spectrograms, name="log_mel_spectrograms")
        bands = length_along(given, -1)
        if not bands:
            raise value_error(
                "mfccs_from_log_mel_spectrograms: the number of bands must be known and > 0",
                received=given,
                made_at=given.op.source,
            )
        return dct(given, 2) * float((2.0 * bands) ** -0.5)
