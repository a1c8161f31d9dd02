# %% TimeseriesGenerator
series = np.arange(10, 16)
generator = tf.keras.preprocessing.sequence.TimeseriesGenerator(
    series, series, length=3, batch_size=2
)
windows, targets = generator[0]
windows, targets

# %% make_sampling_table
tf.keras.preprocessing.sequence.make_sampling_table(4)

# %% pad_sequences
tf.keras.preprocessing.sequence.pad_sequences([[1, 2], [3], [4, 5, 6, 7]], maxlen=3)

# %% skipgrams
pairs, labels = tf.keras.preprocessing.sequence.skipgrams(
    [1, 2, 3], vocabulary_size=4, window_size=1, negative_samples=0.0, shuffle=False
)
pairs, labels
