# %% BaseWrapper
def build(units=8):
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(units, activation="relu"), tf.keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    return model


x, y = np.eye(4, dtype="float32"), np.array([0.0, 1.0, 2.0, 3.0])
model = tf.keras.wrappers.scikit_learn.KerasRegressor(build, units=4, epochs=1, verbose=0)
isinstance(model, tf.keras.wrappers.scikit_learn.BaseWrapper), model.get_params()["units"]


# %% KerasClassifier
def build(units=8):
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(units, activation="relu"),
            tf.keras.layers.Dense(2, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


x, y = np.eye(4, dtype="float32"), np.array([0, 1, 0, 1])
model = tf.keras.wrappers.scikit_learn.KerasClassifier(build, units=4, epochs=1, verbose=0)
model.fit(x, y)
model.predict(x).shape


# %% KerasRegressor
def build(units=8):
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(units, activation="relu"), tf.keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    return model


x, y = np.eye(4, dtype="float32"), np.array([0.0, 1.0, 2.0, 3.0])
model = tf.keras.wrappers.scikit_learn.KerasRegressor(build, units=4, epochs=1, verbose=0)
model.fit(x, y)
model.predict(x).shape
