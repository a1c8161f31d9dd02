"""Iris: which of three species is this flower?

The six steps of the slides, in ten lines that matter: load the data, describe the features, choose
a model, train it, evaluate it, let it predict. Run it with

    python examples/iris.py [--batch_size 100] [--train_steps 1000] [--seed 1]

It prints the accuracy on 30 flowers that the training never saw (about 0.97), and three
predictions.
"""

from __future__ import annotations

import argparse

import estimatorkit as tf

iris = tf.datasets.iris


def train_input_fn(features, labels, batch_size):
    """Batches for training: shuffled, and again and again."""
    dataset = tf.data.Dataset.from_tensor_slices((dict(features), labels))
    return dataset.shuffle(1000).repeat().batch(batch_size)


def eval_input_fn(features, labels, batch_size):
    """Batches for evaluation (with labels) and prediction (without): each example once."""
    inputs = dict(features) if labels is None else (dict(features), labels)
    return tf.data.Dataset.from_tensor_slices(inputs).batch(batch_size)


def main(batch_size=100, train_steps=1000, seed=None, model_dir=None):
    # 1. Import and parse the data sets: 120 flowers to learn from, 30 to test with.
    (train_x, train_y), (test_x, test_y) = iris.load_data()

    # 2. Create feature columns to describe the data: each measurement is a number.
    my_feature_columns = [tf.feature_column.numeric_column(key=key) for key in train_x]

    # 3. Select the type of model: a neural network with two hidden layers of 10 units each.
    classifier = tf.estimator.DNNClassifier(
        feature_columns=my_feature_columns,
        hidden_units=[10, 10],
        n_classes=3,
        model_dir=model_dir,
        config=tf.estimator.RunConfig(tf_random_seed=seed),
    )

    # 4. Train the model.
    classifier.train(
        input_fn=lambda: train_input_fn(train_x, train_y, batch_size), steps=train_steps
    )

    # 5. Evaluate the model's effectiveness.
    eval_result = classifier.evaluate(input_fn=lambda: eval_input_fn(test_x, test_y, batch_size))
    print("\nTest set accuracy: {accuracy:0.3f}\n".format(**eval_result))

    # 6. Let the trained model make its own predictions.
    expected = ["Setosa", "Versicolor", "Virginica"]
    predict_x = {
        "SepalLength": [5.1, 5.9, 6.9],
        "SepalWidth": [3.3, 3.0, 3.1],
        "PetalLength": [1.7, 4.2, 5.4],
        "PetalWidth": [0.5, 1.5, 2.1],
    }
    predictions = classifier.predict(input_fn=lambda: eval_input_fn(predict_x, None, batch_size))
    for prediction, species in zip(predictions, expected, strict=True):
        class_id = prediction["class_ids"][0]
        probability = prediction["probabilities"][class_id]
        print(f'Prediction is "{iris.SPECIES[class_id]}" ({probability:.1%}), expected "{species}"')
    return eval_result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch_size", type=int, default=100, help="examples in a batch")
    parser.add_argument("--train_steps", type=int, default=1000, help="training steps")
    parser.add_argument("--seed", type=int, help="makes the run repeatable")
    parser.add_argument("--model_dir", help="where the model is kept; default: a temporary folder")
    main(**vars(parser.parse_args()))
