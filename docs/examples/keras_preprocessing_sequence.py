# %% TimeseriesGenerator
generator = tf.keras.preprocessing.sequence.TimeseriesGenerator(
    np.arange(6), np.arange(6), length=2, batch_size=2
)
generator[0]

# %% make_sampling_table
tf.keras.preprocessing.sequence.make_sampling_table(4)

# %% pad_sequences
tf.keras.preprocessing.sequence.pad_sequences([[1, 2], [3]], maxlen=3)

# %% skipgrams
pairs, labels = tf.keras.preprocessing.sequence.skipgrams(
    [1, 2], vocabulary_size=3, window_size=1, negative_samples=0.0, shuffle=False
)
pairs, labels
