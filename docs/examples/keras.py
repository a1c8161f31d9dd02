# %% Input
inputs = tf.keras.Input(shape=[3], name="point")
outputs = tf.keras.layers.Dense(2)(inputs)
inputs.shape, tf.keras.Model(inputs, outputs).input_names

# %% Model
tf.set_random_seed(1)
inputs = tf.keras.Input(shape=[1])
hidden = tf.keras.layers.Dense(16, activation="relu")(inputs)
outputs = tf.keras.layers.Dense(1)(hidden)
model = tf.keras.Model(inputs, outputs)
model.compile(tf.keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
x = np.linspace(-1, 1, 64)[:, None]
model.fit(x, x**2, epochs=30, verbose=0)
model.evaluate(x, x**2, verbose=0, return_dict=True)

# %% Sequential
tf.set_random_seed(1)
(images, labels), (test_images, test_labels) = tf.datasets.digits.load_data()
model = tf.keras.Sequential(
    [
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images, labels, epochs=10, verbose=0)
model.evaluate(test_images, test_labels, verbose=0, return_dict=True)
