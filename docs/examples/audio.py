# %% decode_wav
contents = tf.audio.encode_wav([[0.0], [0.5]], sample_rate=8000)
tf.audio.decode_wav(contents)

# %% encode_wav
tf.audio.encode_wav([[0.0], [0.5]], sample_rate=8000)
