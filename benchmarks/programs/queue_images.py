"""Pictures through queues into a small CNN, as classifiers of one's own photos were written before
``tf.data``: ``slice_input_producer``, ``decode_jpeg``, resizing, distortion and
``tf.train.batch``, on a thousand JPEG files of CIFAR-10, 200 batches of 32."""

import os
import tempfile
import zipfile
from collections import Counter

import numpy as np

import estimatorkit.compat.v1 as tf

STEPS, BATCH, SIZE = 200, 32, 48
ARCHIVE = os.path.join(os.environ["ESTIMATORKIT_DATA_DIR"], "cifar10", "cifar10-jpeg-subset.zip")


def get_batch(images, labels):
    """Batches of one file after the other, in the order of the queue."""
    path, label = tf.train.slice_input_producer([images, labels], shuffle=True, seed=1)
    image = tf.image.decode_jpeg(tf.read_file(path), channels=3)
    image = tf.image.resize_images(image, [SIZE, SIZE])
    image = tf.image.random_flip_left_right(image, seed=1)
    image = tf.image.per_image_standardization(image)
    image.set_shape([SIZE, SIZE, 3])
    return tf.train.batch([image, label], batch_size=BATCH, num_threads=4, capacity=256)


def inference(images):
    out = images
    for channels in (16, 32):
        out = tf.layers.conv2d(out, channels, 3, padding="same", activation=tf.nn.relu)
        out = tf.layers.max_pooling2d(out, 3, 2, padding="same")
    out = tf.layers.dense(tf.layers.flatten(out), 128, activation=tf.nn.relu)
    return tf.layers.dense(out, 2)


tf.set_random_seed(1)
with tempfile.TemporaryDirectory() as folder:
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    found = sorted(
        os.path.join(top, name)
        for top, _, names in os.walk(folder)
        for name in names
        if name.endswith((".jpg", ".jpeg"))
    )
    class_of = [os.path.basename(os.path.dirname(path)) for path in found]
    classes = [name for name, _ in sorted(Counter(class_of).items())][:2]
    chosen = [at for at, name in enumerate(class_of) if name in classes][:1000]
    paths = [found[at] for at in chosen]
    numbers = np.array([classes.index(class_of[at]) for at in chosen], np.int32)
    print(len(paths), "pictures of", classes)
    image_batch, label_batch = get_batch(paths, numbers)
    logits = inference(image_batch)
    loss = tf.losses.sparse_softmax_cross_entropy(label_batch, logits)
    train_op = tf.train.AdamOptimizer(1e-3).minimize(loss)
    right = tf.nn.in_top_k(logits, label_batch, 1)
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))

    history = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        try:
            for step in range(STEPS):
                if coord.should_stop():
                    break
                _, cost, part = sess.run([train_op, loss, accuracy])
                history.append(part)
                if step % 50 == 0:
                    print(f"Step {step}, train loss = {cost:.2f}")
        except tf.errors.OutOfRangeError:
            print("Done training: epoch limit reached")
        finally:
            coord.request_stop()
        coord.join(threads)
print(f"figure accuracy {np.mean(history[-40:]):.4f}")
