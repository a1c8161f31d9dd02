"""Prices of automobiles by a premade ``DNNRegressor``, in the manner of the regression samples:
numeric, vocabulary and hashed columns over the imports of 1985, 2,000 steps, an evaluation."""

import os
import tempfile

import numpy as np
import pandas as pd

import estimatorkit.compat.v1 as tf

NUMBERS = [
    "wheel-base",
    "length",
    "width",
    "curb-weight",
    "engine-size",
    "horsepower",
    "highway-mpg",
]
PATH = os.path.join(os.environ["ESTIMATORKIT_DATA_DIR"], "automobile", "imports-85.data")
NAMES = [
    *("symboling", "losses", "make", "fuel-type", "aspiration", "num-of-doors", "body-style"),
    *("drive-wheels", "engine-location", "wheel-base", "length", "width", "height"),
    *("curb-weight", "engine-type", "num-of-cylinders", "engine-size", "fuel-system", "bore"),
    *("stroke", "compression-ratio", "horsepower", "peak-rpm", "city-mpg", "highway-mpg", "price"),
]

rows = pd.read_csv(PATH, names=NAMES, na_values="?").dropna(subset=["price", *NUMBERS])
rows[NUMBERS] = rows[NUMBERS].astype(np.float32)
order = np.random.RandomState(1).permutation(len(rows))
train, test = rows.iloc[order[:140]], rows.iloc[order[140:]]


def scaled(key):
    mean, deviation = train[key].mean(), train[key].std()
    return tf.feature_column.numeric_column(key, normalizer_fn=lambda x: (x - mean) / deviation)


columns = [scaled(key) for key in NUMBERS]
styles = tf.feature_column.categorical_column_with_vocabulary_list(
    "body-style", ["hardtop", "wagon", "sedan", "hatchback", "convertible"]
)
make = tf.feature_column.categorical_column_with_hash_bucket("make", 50)
columns += [tf.feature_column.indicator_column(styles), tf.feature_column.embedding_column(make, 3)]


def input_fn(part, training):
    features = dict(part[[*NUMBERS, "body-style", "make"]])
    price = part["price"].astype(np.float32) / 1000
    dataset = tf.data.Dataset.from_tensor_slices((features, price))
    if training:
        dataset = dataset.shuffle(1000, seed=1).repeat()
    return dataset.batch(64)


with tempfile.TemporaryDirectory() as folder:
    model = tf.estimator.DNNRegressor(
        hidden_units=[20, 20],
        feature_columns=columns,
        optimizer=tf.train.AdamOptimizer(0.005),
        model_dir=folder,
        config=tf.estimator.RunConfig(tf_random_seed=1),
    )
    model.train(input_fn=lambda: input_fn(train, True), steps=2000)
    result = model.evaluate(input_fn=lambda: input_fn(test, False))
error = 1000 * result["average_loss"] ** 0.5
print(f"RMS error for the test set: ${error:.0f}")
print(f"figure loss {result['average_loss']:.4f}")
