"""Programs with signals and sound, as functions of the module that they use as `tf`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np


def wave(*shape: int) -> Any:
    """A float32 signal without a pattern, between -1 and 1."""
    count = int(np.prod(shape))
    values = (np.arange(count, dtype=np.int64) * 7919 + 104729) % 65521 / 32760.5 - 1
    return values.reshape(shape).astype(np.float32)


def _of(tf: Any, *shape: int) -> Any:
    return tf.constant(wave(*shape))


def gradient(tf: Any, y: Any, *xs: Any) -> Any:
    """The gradients of the sum of the squares of y."""
    return tf.gradients(tf.reduce_sum(y * y), list(xs))


def _there_and_back(tf: Any) -> Any:
    x = _of(tf, 2, 9)
    filtered = tf.signal.irfft(tf.signal.rfft(x, [12]) * tf.signal.rfft(_of(tf, 12)), [12])
    return [filtered, *gradient(tf, filtered, x)]


def _speech(tf: Any) -> Any:
    package = "tensorflow" if tf.__name__.startswith("tensorflow") else "estimatorkit.compat.v1"
    audio = importlib.import_module(f"{package}.python.ops.gen_audio_ops")
    decoded = tf.audio.decode_wav(tf.audio.encode_wav(wave(700, 2), 16000), 2, 640)
    spectrum = audio.audio_spectrogram(
        decoded.audio, window_size=120, stride=60, magnitude_squared=True
    )
    return [
        spectrum,
        audio.mfcc(spectrum, decoded.sample_rate, dct_coefficient_count=10),
        audio.mfcc(
            spectrum,
            8000,
            upper_frequency_limit=3000.0,
            lower_frequency_limit=100.0,
            filterbank_channel_count=9,
            dct_coefficient_count=9,
        ),
        audio.audio_spectrogram(wave(100, 1), 32, 32),
    ]


def _stft(tf: Any) -> Any:
    x = _of(tf, 2, 50)
    spectrum = tf.signal.stft(x, 12, 4)
    again = tf.signal.inverse_stft(spectrum, 12, 4, window_fn=tf.signal.inverse_stft_window_fn(4))
    return [
        spectrum,
        tf.signal.stft(x, 12, 5, fft_length=20, window_fn=None, pad_end=True),
        again,
        tf.signal.inverse_stft(spectrum, 12, 4),
        *gradient(tf, again, x),
    ]


def _dcts(tf: Any) -> Any:
    x = _of(tf, 2, 6)
    found = [tf.signal.dct(x, kind) for kind in (1, 2, 3, 4)]
    found += [tf.signal.dct(x, kind, norm="ortho") for kind in (2, 3, 4)]
    found += [tf.signal.idct(x, kind, norm="ortho") for kind in (2, 3, 4)]
    found += [tf.signal.dct(x, 2, n=4), tf.signal.dct(x, 2, n=9)]
    return [*found, *gradient(tf, found[1], x)]


SIGNALS: dict[str, Callable[[Any], Any]] = {
    "fft": lambda tf: [
        tf.signal.fft(wave(2, 5).astype(np.complex64)),
        tf.signal.ifft(wave(2, 5).astype(np.complex128)),
        tf.signal.fft2d(wave(2, 3, 4).astype(np.complex64)),
        tf.signal.ifft2d(wave(2, 3, 4).astype(np.complex64)),
        tf.signal.fft3d(wave(2, 3, 4).astype(np.complex64)),
        tf.signal.ifft3d(wave(2, 3, 4).astype(np.complex64)),
    ],
    "rfft": lambda tf: [
        tf.signal.rfft(_of(tf, 2, 7)),
        tf.signal.rfft(_of(tf, 2, 7), [4]),
        tf.signal.rfft(wave(2, 7).astype(np.float64), [10]),
        tf.signal.rfft2d(_of(tf, 3, 4)),
        tf.signal.rfft3d(_of(tf, 2, 3, 4)),
    ],
    "irfft": lambda tf: [
        tf.signal.irfft(tf.signal.rfft(_of(tf, 2, 8))),
        tf.signal.irfft(tf.signal.rfft(_of(tf, 2, 7)), [7]),
        tf.signal.irfft2d(tf.signal.rfft2d(_of(tf, 3, 4))),
        tf.signal.irfft3d(tf.signal.rfft3d(_of(tf, 2, 3, 4))),
    ],
    "there_and_back": _there_and_back,
    "shifts": lambda tf: [
        tf.signal.fftshift(_of(tf, 3, 5)),
        tf.signal.ifftshift(_of(tf, 3, 5), axes=[1]),
    ],
    "frame": lambda tf: [
        tf.signal.frame(_of(tf, 2, 9), 4, 2),
        tf.signal.frame(_of(tf, 2, 9), 4, 2, pad_end=True, pad_value=0.5),
        tf.signal.frame(_of(tf, 9, 2), 3, 4, axis=0),
    ],
    "overlap_and_add": lambda tf: tf.signal.overlap_and_add(_of(tf, 2, 4, 5), 3),
    "windows": lambda tf: (
        [
            window(length, **options)
            for window in (tf.signal.hann_window, tf.signal.hamming_window)
            for length in (1, 6, 7)
            for options in ({}, {"periodic": False})
        ]
        + [tf.signal.kaiser_window(7, beta=5.0), tf.signal.vorbis_window(6)]
    ),
    "stft": _stft,
    "mel": lambda tf: [
        tf.signal.linear_to_mel_weight_matrix(5, 17, 8000),
        tf.signal.linear_to_mel_weight_matrix(
            num_mel_bins=4,
            num_spectrogram_bins=9,
            sample_rate=16000,
            lower_edge_hertz=60.0,
            upper_edge_hertz=7600.0,
        ),
        tf.signal.mfccs_from_log_mel_spectrograms(_of(tf, 3, 6)),
    ],
    "dct": _dcts,
    "wav": lambda tf: [
        tf.audio.encode_wav(wave(6, 2) * np.float32(1.2), 8000),
        *tf.audio.decode_wav(tf.audio.encode_wav(wave(6, 2), 16000)),
        *tf.audio.decode_wav(tf.audio.encode_wav(wave(6, 2), 16000), 1, 4),
        *tf.audio.decode_wav(tf.audio.encode_wav(wave(6, 1), 16000), 2, 8),
    ],
}

SIGNALS["speech"] = _speech

SIGNAL_ERRORS: dict[str, Callable[[Any], Any]] = {
    "no_wav": lambda tf: tf.audio.decode_wav(b"RIFF but no more than these words").audio,
    "empty_wav": lambda tf: tf.audio.decode_wav(b"").audio,
    "mel_beyond_nyquist": lambda tf: tf.signal.linear_to_mel_weight_matrix(
        sample_rate=4000, upper_edge_hertz=3800.0
    ),
    "dct_of_no_kind": lambda tf: tf.signal.dct([1.0, 2.0], 5),
    "dct_with_another_norm": lambda tf: tf.signal.dct([1.0, 2.0], 2, norm="max"),
}
