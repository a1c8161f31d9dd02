# %% BinaryCrossentropy
labels, probabilities = [[1.0], [0.0]], [[0.9], [0.2]]
tf.keras.losses.BinaryCrossentropy()(labels, probabilities)

# %% BinaryFocalCrossentropy
labels, probabilities = [[1.0], [0.0]], [[0.9], [0.2]]
tf.keras.losses.BinaryFocalCrossentropy(gamma=2.0)(labels, probabilities)

# %% CategoricalCrossentropy
labels, logits = [[0.0, 1.0, 0.0]], [[1.0, 3.0, 0.5]]
tf.keras.losses.CategoricalCrossentropy(from_logits=True)(labels, logits)

# %% CategoricalFocalCrossentropy
labels, probabilities = [[0.0, 1.0, 0.0]], [[0.1, 0.8, 0.1]]
tf.keras.losses.CategoricalFocalCrossentropy(gamma=2.0)(labels, probabilities)

# %% CategoricalHinge
labels, scores = [[0.0, 1.0, 0.0]], [[0.5, 1.0, -1.0]]
tf.keras.losses.CategoricalHinge()(labels, scores)

# %% CosineSimilarity
tf.keras.losses.CosineSimilarity()([[1.0, 0.0]], [[3.0, 4.0]])

# %% Hinge
tf.keras.losses.Hinge()([[1.0], [-1.0]], [[0.5], [0.5]])

# %% Huber
tf.keras.losses.Huber(delta=1.0)([[0.0], [0.0]], [[0.5], [3.0]])

# %% KLD
tf.keras.losses.KLD([[0.5, 0.5]], [[0.9, 0.1]])

# %% KLDivergence
tf.keras.losses.KLDivergence()([[0.5, 0.5]], [[0.9, 0.1]])

# %% LogCosh
tf.keras.losses.LogCosh()([[0.0], [0.0]], [[0.1], [10.0]])


# %% Loss
class Quantile(tf.keras.losses.Loss):
    def call(self, y_true, y_pred):
        error = y_true - y_pred
        return tf.reduce_mean(tf.maximum(0.9 * error, -0.1 * error), -1)


Quantile()(tf.constant([[1.0], [2.0]]), tf.constant([[0.0], [3.0]]))

# %% LossFunctionWrapper
loss = tf.keras.losses.LossFunctionWrapper(tf.keras.losses.huber, delta=2.0)
loss([[0.0], [0.0]], [[1.0], [3.0]])

# %% MAE
tf.keras.losses.MAE([[1.0, 2.0], [3.0, 4.0]], [[1.0, 4.0], [3.0, 1.0]])

# %% MAPE
tf.keras.losses.MAPE([[100.0, 200.0]], [[110.0, 150.0]])

# %% MSE
tf.keras.losses.MSE([[1.0, 2.0], [3.0, 4.0]], [[1.0, 4.0], [3.0, 1.0]])

# %% MSLE
tf.keras.losses.MSLE([[1.0, 100.0]], [[3.0, 100.0]])

# %% MeanAbsoluteError
tf.keras.losses.MeanAbsoluteError()([[1.0], [2.0]], [[1.5], [4.0]])

# %% MeanAbsolutePercentageError
tf.keras.losses.MeanAbsolutePercentageError()([[100.0], [200.0]], [[110.0], [150.0]])

# %% MeanSquaredError
loss = tf.keras.losses.MeanSquaredError()
loss([[1.0], [2.0]], [[1.0], [4.0]], sample_weight=[1.0, 0.5])

# %% MeanSquaredLogarithmicError
tf.keras.losses.MeanSquaredLogarithmicError()([[1.0], [100.0]], [[3.0], [100.0]])

# %% Poisson
tf.keras.losses.Poisson()([[2.0], [0.0]], [[1.5], [0.5]])

# %% Reduction
labels, predictions = [[1.0], [2.0]], [[1.0], [4.0]]
for reduction in tf.keras.losses.Reduction.all():
    loss = tf.keras.losses.MeanSquaredError(reduction=reduction)
    print(reduction, loss(labels, predictions).shape)

# %% SparseCategoricalCrossentropy
labels, logits = [1, 0], [[1.0, 3.0, 0.5], [2.0, 0.0, 0.0]]
tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits)

# %% SquaredHinge
tf.keras.losses.SquaredHinge()([[1.0], [-1.0]], [[0.5], [0.5]])

# %% binary_crossentropy
labels, probabilities = [[1.0], [0.0]], [[0.9], [0.2]]
tf.keras.losses.binary_crossentropy(labels, probabilities)

# %% binary_focal_crossentropy
labels, probabilities = [[1.0], [0.0]], [[0.9], [0.2]]
tf.keras.losses.binary_focal_crossentropy(labels, probabilities, gamma=2.0)

# %% categorical_crossentropy
labels, probabilities = [[0.0, 1.0, 0.0]], [[0.1, 0.8, 0.1]]
tf.keras.losses.categorical_crossentropy(labels, probabilities)

# %% categorical_focal_crossentropy
labels, probabilities = [[0.0, 1.0, 0.0]], [[0.1, 0.8, 0.1]]
tf.keras.losses.categorical_focal_crossentropy(labels, probabilities, gamma=2.0)

# %% categorical_hinge
labels, scores = [[0.0, 1.0, 0.0]], [[0.5, 1.0, -1.0]]
tf.keras.losses.categorical_hinge(labels, scores)

# %% cosine
labels, predictions = [[1.0, 0.0], [1.0, 0.0]], [[2.0, 0.0], [3.0, 4.0]]
tf.keras.losses.cosine(labels, predictions)

# %% deserialize
config = tf.keras.losses.serialize(tf.keras.losses.Huber(delta=2.0))
loss = tf.keras.losses.deserialize(config)
loss([[0.0]], [[3.0]])

# %% get
loss = tf.keras.losses.get("mean_absolute_error")
loss([[1.0, 2.0]], [[1.0, 4.0]])

# %% hinge
tf.keras.losses.hinge([[1.0], [-1.0]], [[0.5], [0.5]])

# %% huber
tf.keras.losses.huber([[0.0], [0.0]], [[0.5], [3.0]], delta=1.0)

# %% log_cosh
tf.keras.losses.log_cosh([[0.0], [0.0]], [[0.1], [10.0]])

# %% poisson
tf.keras.losses.poisson([[2.0], [0.0]], [[1.5], [0.5]])

# %% serialize
tf.keras.losses.serialize(tf.keras.losses.Huber(delta=2.0))

# %% sparse_categorical_crossentropy
labels, probabilities = [1, 0], [[0.1, 0.8, 0.1], [0.5, 0.25, 0.25]]
tf.keras.losses.sparse_categorical_crossentropy(labels, probabilities)

# %% squared_hinge
tf.keras.losses.squared_hinge([[1.0], [-1.0]], [[0.5], [0.5]])
