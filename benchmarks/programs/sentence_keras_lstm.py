"""Movie reviews classified by an LSTM in Keras, after the IMDB example that everybody starts with.

``tf.keras`` Embedding of 128, LSTM of 64 with dropout, one sigmoid; ``fit`` for two epochs on
3,000 sentences in batches of 32 with a validation split, ``evaluate`` and ``predict`` on 1,000
others, weights saved and loaded again.
"""

import os
import tempfile

import numpy as np
from texts import sentences

import estimatorkit.compat.v1 as tf

max_features = 10000
maxlen = 40
batch_size = 32

np.random.seed(1)
tf.set_random_seed(1)
print("Loading data...")
x, _, y, _ = sentences(length=maxlen)
x = tf.keras.preprocessing.sequence.pad_sequences([row[row > 0] for row in x], maxlen=maxlen)
x = np.where(x < max_features, x, 1)
x_train, y_train = x[:3000], y[:3000]
x_test, y_test = x[-1000:], y[-1000:]
print("x_train shape:", x_train.shape)
print("x_test shape:", x_test.shape)

print("Build model...")


def build():
    model = tf.keras.models.Sequential()
    model.add(tf.keras.layers.Embedding(max_features, 128, input_length=maxlen))
    model.add(tf.keras.layers.LSTM(64, dropout=0.2))
    model.add(tf.keras.layers.Dense(1, activation="sigmoid"))
    model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
    return model


model = build()
model.summary()

print("Train...")
model.fit(x_train, y_train, batch_size=batch_size, epochs=2, validation_split=0.1, verbose=2)
score, accuracy = model.evaluate(x_test, y_test, batch_size=batch_size, verbose=0)
print(f"Test score: {score:.4f}, test accuracy: {accuracy:.4f}")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "weights.h5")
    model.save_weights(path)
    again = build()
    again.load_weights(path)
    guesses = again.predict(x_test, batch_size=batch_size)[:, 0]
print("the loaded weights give", np.mean((guesses > 0.5) == y_test))
print(f"figure accuracy {accuracy:.4f}")
