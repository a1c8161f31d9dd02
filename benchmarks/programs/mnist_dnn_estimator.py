"""MNIST by the premade ``DNNClassifier``: hidden layers of 256 and 32 with dropout, batches of 50,
3,000 steps, an evaluation, and the predictions for ten pictures."""

import tempfile

from data import mnist

import estimatorkit.compat.v1 as tf

STEPS, BATCH = 3000, 50

(train_x, train_y), (test_x, test_y) = mnist()
feature_columns = [tf.feature_column.numeric_column("x", shape=[28, 28])]
with tempfile.TemporaryDirectory() as folder:
    classifier = tf.estimator.DNNClassifier(
        feature_columns=feature_columns,
        hidden_units=[256, 32],
        optimizer=tf.train.AdamOptimizer(1e-4),
        n_classes=10,
        dropout=0.1,
        model_dir=folder,
        config=tf.estimator.RunConfig(tf_random_seed=1),
    )
    shaped = train_x.reshape(-1, 28, 28), test_x.reshape(-1, 28, 28)
    train_input_fn = tf.estimator.inputs.numpy_input_fn(
        x={"x": shaped[0]}, y=train_y, num_epochs=None, batch_size=BATCH, shuffle=True
    )
    classifier.train(input_fn=train_input_fn, steps=STEPS)
    test_input_fn = tf.estimator.inputs.numpy_input_fn(
        x={"x": shaped[1]}, y=test_y, num_epochs=1, shuffle=False
    )
    accuracy = classifier.evaluate(input_fn=test_input_fn)["accuracy"]
    few = tf.estimator.inputs.numpy_input_fn({"x": shaped[1][:10]}, shuffle=False)
    print("classes", [int(each["class_ids"][0]) for each in classifier.predict(few)])
print(f"figure accuracy {accuracy:.4f}")
