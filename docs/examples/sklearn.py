# %% SKBaselineClassifier
features, labels = np.zeros([4, 1]), ["no", "yes", "yes", "yes"]
model = tf.sklearn.SKBaselineClassifier(epochs=200, random_state=1)
model.fit(features, labels)
model.classes_, model.predict_proba(features[:1])

# %% SKBaselineRegressor
features, labels = np.zeros([3, 1]), [2.0, 4.0, 9.0]
model = tf.sklearn.SKBaselineRegressor(optimizer="SGD", epochs=50, random_state=1)
model.fit(features, labels).predict(features[:1])

# %% SKBoostedTreesClassifier
(features, labels), (test_features, test_labels) = tf.datasets.iris.load_data()
model = tf.sklearn.SKBoostedTreesClassifier(n_trees=20, random_state=1)
model.fit(features, labels).score(test_features, test_labels)

# %% SKBoostedTreesRegressor
features = np.linspace(-1, 1, 40)[:, None]
labels = features[:, 0] ** 2
model = tf.sklearn.SKBoostedTreesRegressor(n_trees=50, random_state=1)
model.fit(features, labels).score(features, labels)

# %% SKClassifier
(features, labels), (test_features, test_labels) = tf.datasets.iris.load_data()
model = tf.sklearn.SKClassifier("DNNClassifier", hidden_units=(16,), random_state=1)
model.fit(features, labels).score(test_features, test_labels)

# %% SKDNNClassifier
features = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
labels = ["equal", "different", "different", "equal"]
model = tf.sklearn.SKDNNClassifier(optimizer="Adam", epochs=500, random_state=1)
model.fit(features, labels).predict(features)

# %% SKDNNLinearCombinedClassifier
(features, labels), (test_features, test_labels) = tf.datasets.iris.load_data()
model = tf.sklearn.SKDNNLinearCombinedClassifier(
    linear_optimizer=lambda: tf.train.AdamOptimizer(0.05),
    dnn_optimizer=lambda: tf.train.AdamOptimizer(0.01),
    dnn_hidden_units=(16,),
    random_state=1,
)
model.fit(features, labels).score(test_features, test_labels)

# %% SKDNNLinearCombinedRegressor
features = np.linspace(-1, 1, 40)[:, None]
labels = features[:, 0] ** 2
model = tf.sklearn.SKDNNLinearCombinedRegressor(
    dnn_optimizer=lambda: tf.train.AdamOptimizer(0.01), epochs=100, random_state=1
)
model.fit(features, labels).score(features, labels)

# %% SKDNNRegressor
features = np.linspace(-1, 1, 40)[:, None]
labels = features[:, 0] ** 2
model = tf.sklearn.SKDNNRegressor(optimizer="Adam", epochs=100, random_state=1)
model.fit(features, labels).score(features, labels)

# %% SKLinearClassifier
(features, labels), (test_features, test_labels) = tf.datasets.iris.load_data()
model = tf.sklearn.SKLinearClassifier(random_state=1)
model.fit(features, labels).score(test_features, test_labels)

# %% SKLinearRegressor
features = np.array([[0.0], [1.0], [2.0]])
model = tf.sklearn.SKLinearRegressor(optimizer="SGD", epochs=200, random_state=1)
model.fit(features, [1.0, 3.0, 5.0]).predict([[3.0], [4.0]])

# %% SKRegressor
features = np.array([[0.0], [1.0], [2.0]])
arguments = {"optimizer": "SGD", "epochs": 200, "random_state": 1}
model = tf.sklearn.SKRegressor("LinearRegressor", **arguments)
model.fit(features, [1.0, 3.0, 5.0]).predict([[3.0], [4.0]])

# %% SKEnsembleClassifier
(features, labels), (test_features, test_labels) = tf.datasets.iris.load_data()
model = tf.sklearn.SKEnsembleClassifier(members=("trees",), random_state=1)
model.fit(features, labels).score(test_features, test_labels)

# %% SKEnsembleRegressor
features = np.linspace(-1, 1, 40)[:, None]
labels = features[:, 0] ** 2
model = tf.sklearn.SKEnsembleRegressor(members=("network",), random_state=1)
model.fit(features, labels).score(features, labels)

# %% SKTabularClassifier
(features, labels), (test_features, test_labels) = tf.datasets.iris.load_data()
model = tf.sklearn.SKTabularClassifier(hidden_units=(16,), epochs=40, random_state=1)
model.fit(features, labels).score(test_features, test_labels)

# %% SKTabularRegressor
features = np.linspace(-1, 1, 40)[:, None]
labels = features[:, 0] ** 2
model = tf.sklearn.SKTabularRegressor(hidden_units=(16,), epochs=40, random_state=1)
model.fit(features, labels).score(features, labels)
