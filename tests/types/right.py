"""Correct uses of the public API: type checkers report none of these lines."""

import numpy as np
import pandas as pd

import estimatorkit as tf
import estimatorkit.compat.v1 as tf1
from estimatorkit.compat.v1.contrib import rnn

frame = pd.DataFrame({"age": [1.0, 2.0]})
array = np.zeros([2, 3], np.float32)

# Graphs and sessions
x = tf.placeholder(tf.float32, [None, 3])
c = tf.constant([1.0, 2.0], dtype=tf.float32, name="c")
v = tf.get_variable("v", [3, 1], initializer=tf.zeros_initializer())
w = tf.Variable(0.0, trainable=False, name="w")
y = tf.matmul(x, v) + 1.0
total = tf.reduce_mean(tf.square(y), axis=0)
both = tf.concat([x, x], axis=1)
(slope,) = tf.gradients(total, v)
branch = tf.cond(tf.less(w, 1.0), lambda: w + 1.0, lambda: w - 1.0)
_, power = tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * 2.0), [0, 1.0])
with tf.Graph().as_default() as graph, tf.name_scope("part"), tf.device("/cpu:0"):
    inner = tf.nn.softmax(tf.constant([[1.0, 2.0]]))
with tf.Session(graph=graph) as session:
    value = session.run(inner, feed_dict={})
    rows = session.run([inner, inner])
print(inner.shape.as_list(), inner.dtype.name, inner.op.name, inner[0, :1])

# Training
step = tf.train.get_or_create_global_step()
train_op = tf.train.AdamOptimizer(learning_rate=0.1).minimize(total, global_step=step)
momentum = tf.train.MomentumOptimizer(0.1, momentum=0.9, use_nesterov=True)
saver = tf.train.Saver(max_to_keep=3)
hook = tf.train.LoggingTensorHook({"loss": total}, every_n_iter=10)
merged = tf.summary.merge([tf.summary.scalar("loss", w), tf.summary.histogram("v", v)])
loss = tf.losses.sparse_softmax_cross_entropy(labels=[0], logits=[[1.0, 2.0]])
accuracy, update = tf.metrics.accuracy(labels=[0], predictions=[1])
hits, update = tf.metrics.true_positives_at_thresholds([0], [0.5], thresholds=[0.2], name="hits")

# Data
dataset = tf.data.Dataset.from_tensor_slices((dict(frame), [0, 1]))
batches = dataset.shuffle(10, seed=1).repeat(2).batch(2, drop_remainder=True).prefetch(1)
mapped = tf.data.Dataset.range(3).map(lambda n: n + 1).filter(lambda n: n > 1)
element = batches.make_one_shot_iterator().get_next()
words_of_cells = tf.data.split_cells(["a|b"], length=3).astype(str)
tags, tag_weights = tf.data.split_cells(["a:0.5"], "|", ":")
earlier, latest = tf.datasets.split_last(frame, by="age")
ratings, _ = tf.datasets.movielens_100k.load_data("ml-100k.zip", split="last")
clicks = tf.datasets.criteo.read_files(["day_0"], seed=1, shards=2).batch(2)

# Estimators
age = tf.feature_column.numeric_column("age", normalizer_fn=lambda n: n / 10.0)
buckets = tf.feature_column.bucketized_column(age, boundaries=[1.5])
words = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b"])
columns = [age, tf.feature_column.embedding_column(words, dimension=4)]
config = tf.estimator.RunConfig(model_dir="model", save_checkpoints_steps=100)
classifier = tf.estimator.DNNClassifier([10], columns, n_classes=3, config=config)
classifier.train(lambda: batches, steps=1, hooks=[hook])
metrics = classifier.evaluate(input_fn=lambda: batches, steps=None)
print(metrics["loss"], next(iter(classifier.predict(lambda: batches))))
towers = tf.estimator.TwoTower([age], [buckets], item_id="id", top_k=[10])
tf.estimator.export_candidates(towers, "exports", dict, lambda: batches, k=5).decode()
regressor = tf.estimator.LinearRegressor(feature_columns=[buckets], optimizer="Ftrl")
viewed = tf.feature_column.sequence_categorical_column_with_identity("viewed", 10)
item = tf.feature_column.categorical_column_with_identity("item", 10)
shared = tf.feature_column.shared_embeddings([item, viewed], 4)
interest = tf.estimator.DIN([8], [shared[0]], sequences=[(shared[1], shared[0])], dropout=0.1)
interest.train(lambda: batches, steps=1)
tasks = [tf.estimator.BinaryClassHead(name=name) for name in ("click", "like")]
tf.estimator.MMoE(tasks, [8], columns, num_experts=4).evaluate(lambda: batches)


def model_fn(features: dict[str, tf.Tensor], labels: tf.Tensor, mode: str) -> tf.EstimatorSpec:
    """A model function."""
    logits = tf.layers.dense(features["age"], 1, activation=tf.nn.relu, name="logits")
    return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})


own = tf.estimator.Estimator(model_fn, params={"units": 3})
train_spec = tf.estimator.TrainSpec(lambda: batches, max_steps=10)
tf.estimator.train_and_evaluate(own, train_spec, tf.estimator.EvalSpec(lambda: batches, steps=1))

# Keras
model = tf.keras.Sequential(
    [tf.keras.layers.Dense(10, activation="relu"), tf.keras.layers.Dense(1)]
)
model.compile(optimizer="adam", loss="mse", metrics=["mae"])
history = model.fit(array, array, epochs=2, batch_size=1, verbose=0)
print(history.history["loss"], model.predict(array), tf.keras.losses.MeanSquaredError())

# TensorFlow 1's names
cell = rnn.BasicLSTMCell(3)
weights = tf1.contrib.layers.xavier_initializer()
old = tf1.layers.flatten(tf1.placeholder_with_default(array, [None, 3]))
tf1.logging.set_verbosity(tf1.logging.INFO)
