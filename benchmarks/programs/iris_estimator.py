"""Iris in the manner of the premade estimator tutorial: pandas reads the files, a ``DNNClassifier``
of 10 and 10 trains for 1,000 steps of 100, is evaluated, and predicts three flowers."""

import os
import tempfile

import pandas as pd

import estimatorkit.compat.v1 as tf

FOLDER = os.path.join(os.environ["ESTIMATORKIT_DATA_DIR"], "iris")
COLUMNS = ["SepalLength", "SepalWidth", "PetalLength", "PetalWidth", "Species"]
SPECIES = ["Setosa", "Versicolor", "Virginica"]


def load(name):
    rows = pd.read_csv(os.path.join(FOLDER, name), names=COLUMNS, header=0)
    return rows, rows.pop("Species")


def train_input_fn(features, labels, batch_size):
    dataset = tf.data.Dataset.from_tensor_slices((dict(features), labels))
    return dataset.shuffle(1000).repeat().batch(batch_size)


def eval_input_fn(features, labels, batch_size):
    inputs = dict(features) if labels is None else (dict(features), labels)
    return tf.data.Dataset.from_tensor_slices(inputs).batch(batch_size)


(train_x, train_y), (test_x, test_y) = load("iris_training.csv"), load("iris_test.csv")
columns = [tf.feature_column.numeric_column(key=key) for key in train_x]
with tempfile.TemporaryDirectory() as folder:
    classifier = tf.estimator.DNNClassifier(
        feature_columns=columns,
        hidden_units=[10, 10],
        n_classes=3,
        model_dir=folder,
        config=tf.estimator.RunConfig(tf_random_seed=1),
    )
    classifier.train(input_fn=lambda: train_input_fn(train_x, train_y, 100), steps=1000)
    result = classifier.evaluate(input_fn=lambda: eval_input_fn(test_x, test_y, 100))
    print("Test set accuracy: {accuracy:0.3f}".format(**result))
    flowers = {
        "SepalLength": [5.1, 5.9, 6.9],
        "SepalWidth": [3.3, 3.0, 3.1],
        "PetalLength": [1.7, 4.2, 5.4],
        "PetalWidth": [0.5, 1.5, 2.1],
    }
    for prediction in classifier.predict(lambda: eval_input_fn(flowers, None, 100)):
        number = prediction["class_ids"][0]
        print(f"{SPECIES[number]} ({100 * prediction['probabilities'][number]:.1f}%)")
print(f"figure accuracy {result['accuracy']:.4f}")
