# %% dct
tf.signal.dct([1.0, 2.0, 3.0, 4.0])

# %% fft
tf.signal.fft([1 + 0j, 0, 0, 0])

# %% fft2d
tf.signal.fft2d([[1 + 0j, 0], [0, 0]])

# %% fft3d
tf.signal.fft3d(np.ones([1, 2, 2], np.complex64))

# %% fftshift
tf.signal.fftshift([0.0, 1.0, 2.0, -2.0, -1.0])

# %% frame
tf.signal.frame([1.0, 2.0, 3.0, 4.0], frame_length=2, frame_step=1)

# %% hamming_window
tf.signal.hamming_window(4)

# %% hann_window
tf.signal.hann_window(4)

# %% idct
x = tf.signal.dct([1.0, 2.0], norm="ortho")
tf.signal.idct(x, norm="ortho")

# %% ifft
tf.signal.ifft(tf.signal.fft([1 + 0j, 2, 3]))

# %% ifft2d
tf.signal.ifft2d(tf.signal.fft2d([[1 + 0j, 2], [3, 4]]))

# %% ifft3d
tf.signal.ifft3d(np.ones([1, 2, 2], np.complex64))

# %% ifftshift
tf.signal.ifftshift([-2.0, -1.0, 0.0, 1.0, 2.0])

# %% inverse_stft
signal = tf.sin(tf.range(64, dtype=tf.float32))
spectra = tf.signal.stft(signal, frame_length=16, frame_step=8)
window = tf.signal.inverse_stft_window_fn(8)
back = tf.signal.inverse_stft(spectra, 16, 8, window_fn=window)
tf.reduce_max(tf.abs(back - signal)[8:-8]) < 1e-5

# %% inverse_stft_window_fn
window = tf.signal.inverse_stft_window_fn(frame_step=2)
window(4, dtype=tf.float32)

# %% irfft
tf.signal.irfft(tf.signal.rfft([1.0, 2.0, 3.0, 4.0]))

# %% irfft2d
tf.signal.irfft2d(tf.signal.rfft2d([[1.0, 2.0], [3.0, 4.0]]))

# %% irfft3d
tf.signal.irfft3d(tf.signal.rfft3d(np.ones([2, 2, 2], np.float32)))

# %% kaiser_window
tf.signal.kaiser_window(4, beta=4.0)

# %% linear_to_mel_weight_matrix
tf.signal.linear_to_mel_weight_matrix(num_mel_bins=3, num_spectrogram_bins=5)

# %% mfccs_from_log_mel_spectrograms
tf.signal.mfccs_from_log_mel_spectrograms([[0.0, 1.0, 2.0, 3.0]])

# %% overlap_and_add
tf.signal.overlap_and_add([[1.0, 1.0], [1.0, 1.0]], frame_step=1)

# %% rfft
tf.signal.rfft([1.0, 0.0, 0.0, 0.0])

# %% rfft2d
tf.signal.rfft2d([[1.0, 2.0], [3.0, 4.0]])

# %% rfft3d
tf.signal.rfft3d(np.ones([1, 2, 2], np.float32))

# %% stft
signal = tf.sin(tf.range(64, dtype=tf.float32))
tf.signal.stft(signal, frame_length=16, frame_step=8).shape

# %% vorbis_window
tf.signal.vorbis_window(4)
