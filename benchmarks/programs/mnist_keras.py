"""MNIST by ``tf.keras``: a sequential model with dropout, compiled with Adam, fitted for four
epochs of batches of 32 and evaluated, as the beginner's tutorial has it."""

from data import mnist

import estimatorkit.compat.v1 as tf

(train_x, train_y), (test_x, test_y) = mnist()
tf.set_random_seed(1)
model = tf.keras.models.Sequential(
    [
        tf.keras.layers.Flatten(input_shape=(28, 28)),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.summary()
model.fit(train_x.reshape(-1, 28, 28), train_y, epochs=4, verbose=2)
loss, accuracy = model.evaluate(test_x.reshape(-1, 28, 28), test_y, verbose=2)
print(f"figure accuracy {accuracy:.4f}")
