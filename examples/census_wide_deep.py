"""Census income: a wide and deep model of a table of words and numbers, read from CSV files.

Does a person earn more than 50,000 dollars a year? The files hold 32,561 persons to learn from and
16,281 to test with: age, education, occupation and so on. New on this page:

* files are read line by line, shuffled as lines, and parsed a whole batch at a time (`decode_csv`);
  what is odd about them (`, ` for `,`, a blank line, a dot after the labels of one file) is mended
  by operations of the graph;
* feature columns that turn words into numbers: a vocabulary, a hash into buckets where the words
  are not known, ranges of a number, and crosses of several of them;
* `DNNLinearCombinedClassifier`: a linear model of crosses learns exceptions by heart (wide), a
  network of embeddings learns what they have in common (deep); their logits are added. Each is
  trained by what suits it: Ftrl and Adagrad;
* a linear model can be looked into: `tf.inspection.linear_weights` says which words, and which
  combinations of them, speak for a high income.

    python examples/census_wide_deep.py [--epochs 4] [--model_dir runs/census]

About 85.3 % of the test persons are told right (76.4 % by always saying "no").
"""

from __future__ import annotations

import argparse

import estimatorkit as tf
from estimatorkit import feature_column as fc

census = tf.datasets.census
NUMBERS = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
EDUCATION = (
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad"),
    *("Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school"),
    "Doctorate",
)
VOCABULARIES = {
    "education": EDUCATION,
    "marital_status": (
        *("Married-civ-spouse", "Divorced", "Married-spouse-absent", "Never-married"),
        *("Separated", "Married-AF-spouse", "Widowed"),
    ),
    "relationship": (
        *("Husband", "Not-in-family", "Wife", "Own-child", "Unmarried", "Other-relative"),
    ),
    "workclass": (
        *("Self-emp-not-inc", "Private", "State-gov", "Federal-gov", "Local-gov"),
        *("Self-emp-inc", "Without-pay", "Never-worked", "?"),
    ),
}


def input_fn(file, header_lines=0, epochs=1, batch_size=1000, shuffle=False, lines=None):
    """Batches of `(features, labels)` from one of the files."""

    def parse(batch):
        batch = tf.regex_replace(tf.regex_replace(batch, ", ", ","), r"\.$", "")
        defaults = [[0.0] if name in NUMBERS else [""] for name in census.CSV_COLUMNS]
        features = dict(zip(census.CSV_COLUMNS, tf.decode_csv(batch, defaults), strict=True))
        return features, features.pop(census.LABEL)

    def batches():
        dataset = tf.data.TextLineDataset(str(census.DATA_SET.path(file))).skip(header_lines)
        dataset = dataset.filter(lambda line: tf.not_equal(line, "")).take(lines or -1)
        if shuffle:
            dataset = dataset.shuffle(40_000)  # more than there are: a perfect shuffle
        return dataset.repeat(epochs).batch(batch_size).map(parse)

    return batches


def columns():
    """The columns of the wide and of the deep part."""
    # Base columns: one weight, or one place in an indicator, for each word.
    words = {
        key: fc.categorical_column_with_vocabulary_list(key, vocabulary)
        for key, vocabulary in VOCABULARIES.items()
    }
    occupation = fc.categorical_column_with_hash_bucket("occupation", 1000)
    age = fc.numeric_column("age", normalizer_fn=lambda x: (x - 38.6) / 13.6)
    ages = fc.bucketized_column(
        fc.numeric_column("age"), boundaries=[18, 25, 30, 35, 40, 45, 50, 55, 60, 65]
    )
    # Crosses: one weight for each combination, such as (Masters, Sales).
    crosses = [
        fc.crossed_column(["education", "occupation"], 1000),
        fc.crossed_column([ages, "education", "occupation"], 10_000),
        fc.crossed_column([words["marital_status"], words["relationship"]], 100),
    ]
    wide = [*words.values(), occupation, ages, *crosses]
    # A network wants numbers of about 1: gains reach from 0 to 99,999, their logarithms to 11.
    deep = [
        age,
        fc.numeric_column("education_num", normalizer_fn=lambda x: (x - 10.1) / 2.57),
        fc.numeric_column("hours_per_week", normalizer_fn=lambda x: (x - 40.4) / 12.3),
        fc.numeric_column("capital_gain", normalizer_fn=tf.log1p),
        fc.numeric_column("capital_loss", normalizer_fn=tf.log1p),
        *(fc.indicator_column(column) for column in words.values()),
        fc.embedding_column(occupation, dimension=8),
    ]
    return wide, deep


def main(epochs=4, batch_size=128, lines=None, seed=None, model_dir=None):
    wide, deep = columns()
    classifier = tf.estimator.DNNLinearCombinedClassifier(
        model_dir=model_dir,
        linear_feature_columns=wide,
        linear_optimizer=lambda: tf.train.FtrlOptimizer(0.05, l1_regularization_strength=0.001),
        dnn_feature_columns=deep,
        dnn_optimizer=lambda: tf.train.AdagradOptimizer(0.05),
        dnn_hidden_units=[100, 50],
        label_vocabulary=["<=50K", ">50K"],  # the labels may stay words
        config=tf.estimator.RunConfig(tf_random_seed=seed),
    )
    classifier.train(input_fn("adult.data", 0, epochs, batch_size, shuffle=True, lines=lines))
    result = classifier.evaluate(input_fn("adult.test", header_lines=1, lines=lines))
    print(
        "\nafter {global_step} steps: accuracy {accuracy:.4f} (always 'no': "
        "{accuracy_baseline:.4f}), area under the curve {auc:.4f}\n".format(**result)
    )

    # What the linear part has learned. A weight is what a word adds to the logit; buckets of
    # hashes have no names.
    weights = tf.inspection.linear_weights(classifier)
    named = weights[(weights["column"] != "bias") & ~weights["value"].str.startswith("bucket ")]
    for index in named["weight"].abs().nlargest(12).index:
        column, value, weight = named.loc[index]
        print(f"    {weight:+.2f}  {column}: {value}")
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4, help="times through the file")
    parser.add_argument("--batch_size", type=int, default=128, help="persons in a batch")
    parser.add_argument("--lines", type=int, help="read only so many of each file")
    parser.add_argument("--seed", type=int, help="makes the run repeatable")
    parser.add_argument("--model_dir", help="where the model is kept; default: a temporary folder")
    main(**vars(parser.parse_args()))
