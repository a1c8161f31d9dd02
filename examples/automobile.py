"""Car prices: regression on a DataFrame, with columns by hand and columns that are proposed.

205 cars of 1985, 25 columns each, some values unknown; 70 % of them to learn from. What would a car
cost? New on this page:

* regressors: the label is a number, the loss the mean of squared differences, so that its root is
  the typical error, here in thousands of dollars;
* what to compare with: `BaselineRegressor` always says the mean price. A model that is not far
  below it has learned nothing;
* columns by hand: six of the 25, chosen by somebody who knows what makes a car dear, scaled to
  numbers of about 1. Without that a network of such data does not learn;
* `tf.feature_columns.infer`: looks at the whole table, and proposes columns for all of it. It tells
  why, fills in what is missing (`prepare`), and prints as Python to be pasted and changed;
* a linear model beside a network, on the same columns: few rows are where simple models do well.

    python examples/automobile.py [--steps 1000] [--code]

The typical error of a test car is about 2,200 to 2,900 dollars, that of the mean price 8,600. Which
model does best changes with the seed: 60 cars are few to measure with.
"""

from __future__ import annotations

import argparse
import math

import estimatorkit as tf

MEANS = {"curb-weight": 2556, "engine-size": 127, "horsepower": 104, "highway-mpg": 30.8}
DEVIATIONS = {"curb-weight": 521, "engine-size": 41.6, "horsepower": 39.7, "highway-mpg": 6.9}
BODIES = ["convertible", "hardtop", "hatchback", "sedan", "wagon"]


def load():
    """Tables of features and prices in thousands of dollars, to train and to test with."""
    table = tf.datasets.automobile.load_data()
    parts = tf.datasets.split_rows(table, "price", train_fraction=0.7, seed=0)
    return [(features, prices / 1000) for features, prices in parts]


def chosen(table):
    """The columns of the table that the columns by hand read; unknown powers are the mean's."""
    return table[[*MEANS, "body-style", "make"]].fillna(MEANS)


def columns_by_hand():
    """Dense columns, which linear models and networks can both take."""
    numbers = [
        tf.feature_column.numeric_column(
            key, normalizer_fn=lambda x, key=key: (x - MEANS[key]) / DEVIATIONS[key]
        )
        for key in MEANS
    ]
    body = tf.feature_column.categorical_column_with_vocabulary_list("body-style", BODIES)
    make = tf.feature_column.categorical_column_with_hash_bucket("make", 50)
    return [
        *numbers,
        tf.feature_column.indicator_column(body),
        tf.feature_column.indicator_column(make),
    ]


def input_fn(features, prices, batch_size=32, shuffle=True, epochs=None):
    """Batches of a DataFrame."""

    def batches():
        # Numbers as float32: what the columns compute with.
        numbers = {key: "float32" for key in features.select_dtypes("number")}
        values = {key: column.to_numpy() for key, column in features.astype(numbers).items()}
        dataset = tf.data.Dataset.from_tensor_slices((values, prices.to_numpy("float32")))
        if shuffle:
            dataset = dataset.shuffle(len(prices))
        return dataset.repeat(epochs).batch(batch_size)

    return batches


def models(columns, seed):
    """A network and a linear model of the same columns."""
    config = tf.estimator.RunConfig(tf_random_seed=seed)
    return {
        "network": tf.estimator.DNNRegressor([64, 64], columns, optimizer="Adam", config=config),
        "linear model": tf.estimator.LinearRegressor(columns, config=config),
    }


def main(steps=1000, seed=None, code=False):
    (train_x, train_y), (test_x, test_y) = load()

    inferred = tf.feature_columns.infer(train_x.assign(price=train_y), label="price")
    if code:
        print(inferred)  # as Python
    else:
        for name, reason in list(inferred.notes.items())[:5]:
            print(f"{name}: {reason}")
        print(f"... ({len(inferred.notes)} columns; --code shows what is made of them)\n")
    # Each choice of columns with what makes their features of a table.
    choices = {
        "by hand": (columns_by_hand(), chosen),
        "inferred": (list(inferred.columns), inferred.prepare),
    }

    losses = {}
    for choice, (columns, features_of) in choices.items():
        train, test = features_of(train_x), features_of(test_x)
        trained = models(columns, seed)
        if not losses:
            trained = {"mean price": tf.estimator.BaselineRegressor(), **trained}
        for kind, model in trained.items():
            model.train(input_fn(train, train_y), steps=steps)
            result = model.evaluate(input_fn(test, test_y, shuffle=False, epochs=1))
            losses["mean price" if kind == "mean price" else f"{kind}, {choice}"] = result["loss"]

    print("\ntypical error of a test car")
    for name, loss in losses.items():
        print(f"    {name:24} {1000 * math.sqrt(loss):6,.0f} dollars")
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000, help="training steps of each model")
    parser.add_argument("--seed", type=int, help="makes the run repeatable")
    parser.add_argument("--code", action="store_true", help="show the inferred columns as Python")
    main(**vars(parser.parse_args()))
