"""A convolutional network on MNIST as a custom estimator, in the manner of the layers tutorial:
a ``model_fn`` of ``tf.layers``, a logging hook, 150 steps of 100, and an evaluation of 2,000."""

import tempfile

from data import mnist

import estimatorkit.compat.v1 as tf

STEPS, BATCH = 150, 100


def cnn_model_fn(features, labels, mode):
    input_layer = tf.reshape(features["x"], [-1, 28, 28, 1])
    conv1 = tf.layers.conv2d(input_layer, 32, [5, 5], padding="same", activation=tf.nn.relu)
    pool1 = tf.layers.max_pooling2d(conv1, pool_size=[2, 2], strides=2)
    conv2 = tf.layers.conv2d(pool1, 64, [5, 5], padding="same", activation=tf.nn.relu)
    pool2 = tf.layers.max_pooling2d(conv2, pool_size=[2, 2], strides=2)
    flat = tf.reshape(pool2, [-1, 7 * 7 * 64])
    dense = tf.layers.dense(flat, 1024, activation=tf.nn.relu)
    training = mode == tf.estimator.ModeKeys.TRAIN
    dropout = tf.layers.dropout(dense, rate=0.4, training=training)
    logits = tf.layers.dense(dropout, 10)
    predictions = {
        "classes": tf.argmax(input=logits, axis=1),
        "probabilities": tf.nn.softmax(logits, name="softmax_tensor"),
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode=mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    if training:
        optimizer = tf.train.GradientDescentOptimizer(learning_rate=0.1)
        train_op = optimizer.minimize(loss=loss, global_step=tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode=mode, loss=loss, train_op=train_op)
    metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["classes"])}
    return tf.estimator.EstimatorSpec(mode=mode, loss=loss, eval_metric_ops=metrics)


tf.logging.set_verbosity(tf.logging.INFO)
(train_x, train_y), (test_x, test_y) = mnist()
with tempfile.TemporaryDirectory() as folder:
    config = tf.estimator.RunConfig(tf_random_seed=1)
    classifier = tf.estimator.Estimator(cnn_model_fn, folder, config)
    hook = tf.train.LoggingTensorHook({"probabilities": "softmax_tensor"}, every_n_iter=50)
    train_input_fn = tf.estimator.inputs.numpy_input_fn(
        x={"x": train_x}, y=train_y, batch_size=BATCH, num_epochs=None, shuffle=True
    )
    classifier.train(input_fn=train_input_fn, steps=STEPS, hooks=[hook])
    eval_input_fn = tf.estimator.inputs.numpy_input_fn(
        x={"x": test_x[:2000]}, y=test_y[:2000], num_epochs=1, shuffle=False
    )
    result = classifier.evaluate(input_fn=eval_input_fn)
print(f"figure accuracy {result['accuracy']:.4f}")
