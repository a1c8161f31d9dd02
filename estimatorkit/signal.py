"""`tf.signal`: Fourier and cosine transforms, frames, windows, the mel scale."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.ops.linalg.fourier",
        "dct fft fft2d fft3d fftshift idct ifft ifft2d ifft3d ifftshift irfft irfft2d irfft3d rfft",
        "rfft2d rfft3d",
    ),
    **names(
        "estimatorkit.ops.linalg.signal",
        "frame hamming_window hann_window inverse_stft inverse_stft_window_fn kaiser_window",
        "linear_to_mel_weight_matrix mfccs_from_log_mel_spectrograms overlap_and_add stft",
        "vorbis_window",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
