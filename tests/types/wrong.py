"""Wrong uses of the public API: type checkers report each line that ends in `# wrong`."""

import numpy as np

import estimatorkit as tf
import estimatorkit.compat.v1 as tf1

array = np.zeros([2, 3], np.float32)
x = tf.constant([[1.0, 2.0]])
age = tf.feature_column.numeric_column("age")
words = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b"])
dataset = tf.data.Dataset.range(3)
session = tf.Session()
model = tf.keras.Sequential()
classifier = tf.estimator.DNNClassifier([10], [age])

# Names that do not exist
tf.nosuchthing  # wrong
tf.nn.rellu(x)  # wrong
tf.summary.scaler("loss", x)  # wrong
tf.train.AdamOptimiser(0.1)  # wrong
tf.estimator.DNNClasifier([10], [age])  # wrong
tf.keras.Sequental()  # wrong
tf.keras.layers.Dence(10)  # wrong
tf.losses.mean_square_error(x, x)  # wrong
tf.data.Datasets.range(3)  # wrong
tf1.placeholder_with_defualt(array, [None, 3])  # wrong
tf1.contrib.layers.xavier_initialiser()  # wrong
classifier.trian(lambda: dataset)  # wrong
dataset.shufle(10)  # wrong
session.runn(x)  # wrong
model.fitt(array, array)  # wrong
x.shapes  # wrong

# Arguments that do not exist
tf.estimator.DNNClassifier([10], [age], n_clases=2)  # wrong
tf.estimator.RunConfig(save_checkpoint_steps=10)  # wrong
classifier.train(input_fun=lambda: dataset)  # wrong
classifier.evaluate(lambda: dataset, step=10)  # wrong
tf.constant(1.0, dtyp=tf.float32)  # wrong
tf.Variable(0.0, trainabel=False)  # wrong
tf.layers.dense(x, untis=3)  # wrong
tf.reduce_mean(x, axes=0)  # wrong
tf.train.AdamOptimizer(learningrate=0.1)  # wrong
tf.train.Saver(max_keep=3)  # wrong
tf.Session(grap=None)  # wrong
tf.feature_column.bucketized_column(age, boundary=[1.0])  # wrong
tf.nn.softmax_cross_entropy_with_logits(label=x, logits=x)  # wrong
dataset.batch(2, drop_remaindr=True)  # wrong
model.fit(array, array, epoch=3)  # wrong
model.compile(optimiser="adam")  # wrong

# Arguments that are missing
tf.matmul(x)  # wrong
tf.concat(axis=0)  # wrong
tf.placeholder()  # wrong
tf.get_variable(shape=[1])  # wrong
tf.layers.conv2d(x, 3)  # wrong
tf.train.MomentumOptimizer(0.1)  # wrong
tf.estimator.TrainSpec(max_steps=3)  # wrong
tf.feature_column.embedding_column(words)  # wrong
tf.metrics.recall([0])  # wrong
tf.metrics.true_positives_at_thresholds([0], [0.5])  # wrong
dataset.batch()  # wrong
session.run()  # wrong

# Arguments of other types
tf.get_variable(3, [1])  # wrong
tf.name_scope(3)  # wrong
tf.feature_column.numeric_column(3)  # wrong
tf.keras.layers.Dense("ten")  # wrong
tf.estimator.DNNClassifier(10, [age])  # wrong
tf.train.Saver(max_to_keep="three")  # wrong
