"""A residual network of 20 layers on CIFAR-10 in the manner of the well-known TensorFlow scripts.

A subset of 2,000 training and 1,000 test JPEG pictures is decoded once by ``tf.image.decode_jpeg``
in a session. Three stages of three blocks with 16, 32 and 64 channels, batch normalization with
its updates under ``UPDATE_OPS``, weight decay, momentum with a piecewise constant rate; 100
batches of 64, flipped and shifted by NumPy.
"""

import os
import zipfile

import numpy as np

import estimatorkit.compat.v1 as tf

BLOCKS, BATCH, STEPS, EVERY, DECAY = 3, 64, 100, 20, 2e-4


def pictures(split):
    """Returns the decoded pictures of a split, without their mean, and their class numbers."""
    path = os.path.join(os.environ["ESTIMATORKIT_DATA_DIR"], "cifar10", "cifar10-jpeg-subset.zip")
    images, labels = [], []
    with tf.Graph().as_default(), tf.Session() as sess, zipfile.ZipFile(path) as archive:
        content = tf.placeholder(tf.string, [])
        decoded = tf.image.decode_jpeg(content, channels=3)
        members = [name for name in archive.namelist() if name.endswith(".jpg")]
        members = sorted(name for name in members if f"{split}/" in name)
        classes = sorted({name.split("/")[-2] for name in members})
        for name in members:
            images.append(sess.run(decoded, {content: archive.read(name)}))
            labels.append(classes.index(name.split("/")[-2]))
    images = np.stack(images).astype(np.float32) / 255
    return (images - images.mean((0, 1, 2))) / images.std((0, 1, 2)), np.array(labels, np.int32)


def augment(images, random):
    """Returns pictures flipped at random and cut at random from a border of zeros."""
    padded = np.pad(images, ((0, 0), (4, 4), (4, 4), (0, 0)))
    result = np.empty_like(images)
    for i, picture in enumerate(padded):
        top, left = random.randint(0, 9, 2)
        cut = picture[top : top + 32, left : left + 32]
        result[i] = cut[:, ::-1] if random.rand() < 0.5 else cut
    return result


def normalize(x, training):
    return tf.layers.batch_normalization(x, momentum=0.9, epsilon=1e-5, training=training)


def convolve(x, filters, stride):
    return tf.layers.conv2d(
        x,
        filters,
        3,
        stride,
        padding="same",
        use_bias=False,
        kernel_initializer=tf.variance_scaling_initializer(),
    )


def block(x, filters, stride, training):
    shortcut = x
    if stride != 1:
        shortcut = tf.layers.average_pooling2d(x, 2, 2)
        grown = filters - x.get_shape().as_list()[-1]
        shortcut = tf.pad(shortcut, [[0, 0], [0, 0], [0, 0], [grown // 2, grown // 2]])
    y = tf.nn.relu(normalize(convolve(x, filters, stride), training))
    y = normalize(convolve(y, filters, 1), training)
    return tf.nn.relu(y + shortcut)


def network(images, training):
    x = tf.nn.relu(normalize(convolve(images, 16, 1), training))
    for stage, filters in enumerate((16, 32, 64)):
        for number in range(BLOCKS):
            with tf.variable_scope(f"stage{stage}_block{number}"):
                x = block(x, filters, 2 if stage and not number else 1, training)
    return tf.layers.dense(tf.reduce_mean(x, [1, 2]), 10)


train_x, train_y = pictures("train")
test_x, test_y = pictures("test")
tf.set_random_seed(1)
images = tf.placeholder(tf.float32, [None, 32, 32, 3])
labels = tf.placeholder(tf.int32, [None])
training = tf.placeholder(tf.bool, [])
logits = network(images, training)
cross_entropy = tf.losses.sparse_softmax_cross_entropy(labels, logits)
kernels = [v for v in tf.trainable_variables() if "kernel" in v.name]
loss = cross_entropy + DECAY * tf.add_n([tf.nn.l2_loss(v) for v in kernels])
global_step = tf.train.get_or_create_global_step()
rate = tf.train.piecewise_constant(global_step, [60, 85], [0.05, 0.01, 0.002])
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train_op = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step)
right = tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels), tf.float32)

random = np.random.RandomState(1)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    losses = []
    for step in range(1, STEPS + 1):
        chosen = random.randint(0, len(train_x), BATCH)
        feed = {images: augment(train_x[chosen], random), labels: train_y[chosen], training: True}
        _, value, now = sess.run([train_op, cross_entropy, rate], feed)
        losses.append(value)
        if step % EVERY == 0 or step == 1:
            print(f"step {step}: loss {value:.3f}, rate {now:g}")
    rights = []
    for start in range(0, len(test_x), 100):
        part = slice(start, start + 100)
        feed = {images: test_x[part], labels: test_y[part], training: False}
        rights.append(sess.run(right, feed))
    print(f"test accuracy {np.mean(rights):.4f}")
print(f"figure loss {np.mean(losses[-20:]):.3f}")  # steadier than the accuracy
