# %% BaseWrapper
class Line(tf.keras.wrappers.scikit_learn.KerasRegressor):
    def __call__(self, units=1):
        model = tf.keras.Sequential([tf.keras.layers.Dense(units)])
        model.compile("sgd", "mse")
        return model


wrapper = Line(epochs=5)
wrapper.set_params(units=2)
wrapper.get_params()


# %% KerasClassifier
def build(rate=0.5):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, activation="softmax")])
    model.compile(tf.keras.optimizers.Adam(rate), "sparse_categorical_crossentropy")
    return model


x, y = np.eye(4), np.array(["no", "yes", "no", "yes"])
wrapper = tf.keras.wrappers.scikit_learn.KerasClassifier(build, epochs=10, verbose=0)
wrapper.fit(x, y)
wrapper.predict(x), wrapper.score(x, y)


# %% KerasRegressor
def build(rate=0.1):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(rate), "mse")
    return model


x = np.array([[0.0], [1.0], [2.0], [3.0]])
wrapper = tf.keras.wrappers.scikit_learn.KerasRegressor(build, epochs=200, verbose=0)
wrapper.fit(x, 2.0 * x[:, 0] + 1.0)
np.round(wrapper.predict(x), 1)
