"""MNIST with a premade estimator: from pictures to a model that another program can load.

`iris.py` trained, evaluated and predicted in three calls. This page lets one call do the work of a
longer project, and takes the result out of the program:

* `numeric_column("image", [28, 28])`: a feature may be a whole array; a column flattens it;
* `RunConfig` says when checkpoints are written; each of them is evaluated in passing;
* `train_and_evaluate` trains up to a number of steps. Stopped and started again with the same
  `--model_dir`, it goes on where it was; after the last step it has nothing more to do;
* exporters decide which of the evaluated models are kept to be used: here the best so far, and the
  last one;
* `load_predictor` reads such an export: a function of arrays, without this file's code.

    python examples/mnist_dnn.py [--steps 3000] [--model_dir runs/mnist_dnn]

After 3000 steps (a little more than six epochs) about 98 % of the test pictures are told right.
`tensorboard --logdir MODEL_DIR` shows the way there.
"""

from __future__ import annotations

import argparse
import os

import numpy as np

import estimatorkit as tf


def input_fn(images, labels, batch_size, epochs=1, shuffle=False):
    """A function without arguments: the estimator calls it inside the graph that it builds."""

    def batches():
        dataset = tf.data.Dataset.from_tensor_slices(({"image": images}, labels))
        if shuffle:
            dataset = dataset.shuffle(len(images))
        return dataset.repeat(epochs).batch(batch_size)

    return batches


def main(steps=3000, batch_size=128, evaluations=3, seed=None, model_dir=None):
    (train_images, train_labels), (test_images, test_labels) = tf.datasets.mnist.load_data()
    # Pictures stay bytes, 1/4 of the memory of floats; the column's normalizer makes numbers of 0
    # to 1 of each batch, in training and in the exported model alike.
    columns = [
        tf.feature_column.numeric_column(
            "image", [28, 28], dtype=tf.uint8, normalizer_fn=lambda x: tf.cast(x, "float32") / 255
        )
    ]
    classifier = tf.estimator.DNNClassifier(
        feature_columns=columns,
        hidden_units=[256, 128],
        n_classes=10,
        optimizer=lambda: tf.train.AdamOptimizer(0.001),
        dropout=0.1,
        model_dir=model_dir,
        config=tf.estimator.RunConfig(
            tf_random_seed=seed, save_checkpoints_steps=max(steps // evaluations, 1)
        ),
    )

    # What a request to the exported model holds is what the columns read.
    receiver = tf.estimator.export.serving_input_receiver_fn_from_columns(columns)
    metrics, _ = tf.estimator.train_and_evaluate(
        classifier,
        tf.estimator.TrainSpec(
            input_fn(train_images, train_labels, batch_size, epochs=None, shuffle=True),
            max_steps=steps,
        ),
        tf.estimator.EvalSpec(
            input_fn(test_images, test_labels, 1000),
            steps=None,  # all of the test pictures; by default it would be 100 batches
            exporters=[
                tf.estimator.BestExporter("best", receiver, metric="accuracy", exports_to_keep=1),
                tf.estimator.FinalExporter("final", receiver),
            ],
            throttle_secs=0,  # each checkpoint is evaluated, however soon after the last
        ),
    )
    print("\nafter {global_step} steps: accuracy {accuracy:.4f}, loss {loss:.4f}".format(**metrics))

    # Another program would begin here, with nothing but the folder.
    exported = os.path.join(classifier.model_dir, "export", "best")
    with tf.load_predictor(exported) as predict:
        print(f"\n{exported} takes and gives:\n{predict.signature('predict')}")
        answers = predict({"image": test_images}, signature="predict")
    found = answers["class_ids"][:, 0]
    print(f"\nThe best export tells {np.mean(found == test_labels):.4f} of them right. Not these:")
    for index in np.flatnonzero(found != test_labels)[:3]:
        certainty = answers["probabilities"][index, found[index]]
        print(f"a {test_labels[index]} taken for a {found[index]} ({certainty:.0%} sure)")
        for row in test_images[index, 4:24:2, 4:24]:  # every other row: letters are tall
            print("    " + "".join(" .:*#"[level] for level in row // 52))
    return {**metrics, "exported_accuracy": float(np.mean(found == test_labels))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3000, help="training steps in all")
    parser.add_argument("--batch_size", type=int, default=128, help="pictures in a batch")
    parser.add_argument("--evaluations", type=int, default=3, help="checkpoints on the way")
    parser.add_argument("--seed", type=int, help="makes the run repeatable")
    parser.add_argument("--model_dir", help="where the model is kept; default: a temporary folder")
    main(**vars(parser.parse_args()))
