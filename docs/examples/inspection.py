# %% explain
table = {"size": np.float32([1.0, 2.0, 4.0]), "age": np.float32([3.0, 3.0, 9.0])}
dataset = tf.data.Dataset.from_tensors((table, [1.0, 2.0, 4.0]))
columns = [tf.feature_column.numeric_column(key) for key in table]
model = tf.estimator.LinearRegressor(columns).train(lambda: dataset.repeat(200))
found = tf.inspection.explain(model, table, background=table)
found.sum(axis=1) - tf.inspection.predict_table(model, table)["predictions"][:, 0]

# %% label_ids
predictions = {"all_classes": np.array([[b"cat", b"dog"]] * 3)}
tf.inspection.label_ids(np.array(["dog", "cat", "dog"]), predictions)

# %% linear_weights
features = {"size": [0.0, 0.0, 1.0, 1.0], "colour": ["red", "blue", "red", "blue"]}
dataset = tf.data.Dataset.from_tensor_slices((features, [1.0, 2.0, 4.0, 5.0])).batch(4)
colours = ["red", "blue"]
colour = tf.feature_column.categorical_column_with_vocabulary_list("colour", colours)
model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("size"), colour])
model.train(lambda: dataset.repeat(500))
tf.inspection.linear_weights(model)

# %% permutation_importance
random = np.random.default_rng(1)
table = {key: np.float32(random.random(100)) for key in ("size", "noise")}
labels = 3 * table["size"] + 1
columns = [tf.feature_column.numeric_column(key) for key in table]
dataset = tf.data.Dataset.from_tensors((table, labels))
model = tf.estimator.LinearRegressor(columns).train(lambda: dataset.repeat(500))
tf.inspection.permutation_importance(model, table, labels)[["importance", "deviation"]]

# %% predict_table
table = {"x": np.float32([0.0, 1.0, 2.0])}
dataset = tf.data.Dataset.from_tensors((table, [1.0, 3.0, 5.0]))
model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
model.train(lambda: dataset.repeat(1000))
tf.inspection.predict_table(model, {"x": np.float32([3.0, 4.0])})
