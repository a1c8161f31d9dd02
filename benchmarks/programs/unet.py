"""A U-Net in the manner of the public TensorFlow scripts: ellipses are cut out of noisy pictures.

Pictures of 64x64 made by NumPy; three levels of 16, 32 and 64 channels and a bottom of 128,
``tf.layers`` convolutions with batch normalization, up by ``conv2d_transpose`` and ``tf.concat``;
loss one minus the dice coefficient; Adam, 60 batches of 8.
"""

import numpy as np

import estimatorkit.compat.v1 as tf

SIZE, CHANNELS, BATCH, STEPS, EVERY = 64, (16, 32, 64), 8, 60, 10


def ellipses(count, random):
    """Returns pictures with one to three ellipses under noise, and the masks of the ellipses."""
    row, column = np.mgrid[:SIZE, :SIZE]
    images = random.normal(0.3, 0.2, (count, SIZE, SIZE, 1))
    masks = np.zeros((count, SIZE, SIZE, 1))
    for i in range(count):
        for _ in range(random.randint(1, 4)):
            y, x = random.uniform(12, SIZE - 12, 2)
            height, width = random.uniform(5, 14, 2)
            inside = ((row - y) / height) ** 2 + ((column - x) / width) ** 2 < 1
            masks[i, inside] = 1
        images[i] += masks[i] * random.uniform(0.3, 0.6)
    return images.astype(np.float32), masks.astype(np.float32)


def twice(x, filters, training, name):
    """Two convolutions, each with batch normalization and a rectifier."""
    with tf.variable_scope(name):
        for number in (1, 2):
            x = tf.layers.conv2d(x, filters, 3, padding="same", name=f"conv{number}")
            x = tf.layers.batch_normalization(
                x, momentum=0.9, training=training, name=f"bn{number}"
            )
            x = tf.nn.relu(x, name=f"relu{number}")
        return x


def network(x, training):
    skips = []
    for level, filters in enumerate(CHANNELS):
        x = twice(x, filters, training, f"down{level}")
        skips.append(x)
        x = tf.layers.max_pooling2d(x, 2, 2)
    x = twice(x, CHANNELS[-1] * 2, training, "bottom")
    for level, filters in reversed(list(enumerate(CHANNELS))):
        x = tf.layers.conv2d_transpose(x, filters, 2, strides=2, name=f"upsample{level}")
        x = tf.concat([x, skips[level]], axis=-1)
        x = twice(x, filters, training, f"up{level}")
    return tf.layers.conv2d(x, 1, 1, activation=tf.nn.sigmoid, name="output")


def dice(predicted, target, smooth=1.0):
    """The dice coefficient: twice the overlap through the sum of the areas."""
    overlap = tf.reduce_sum(predicted * target, axis=[1, 2, 3])
    areas = tf.reduce_sum(predicted, axis=[1, 2, 3]) + tf.reduce_sum(target, axis=[1, 2, 3])
    return tf.reduce_mean((2.0 * overlap + smooth) / (areas + smooth))


tf.set_random_seed(1)
random = np.random.RandomState(1)
images, masks = ellipses(BATCH * STEPS, random)
test_images, test_masks = ellipses(40, random)

image = tf.placeholder(tf.float32, [None, SIZE, SIZE, 1], name="image")
mask = tf.placeholder(tf.float32, [None, SIZE, SIZE, 1], name="mask")
training = tf.placeholder(tf.bool, [], name="training")
predicted = network(image, training)
loss = 1.0 - dice(predicted, mask)
hard_dice = dice(tf.cast(predicted > 0.5, tf.float32), mask)
global_step = tf.Variable(0, trainable=False, name="global_step")
update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
with tf.control_dependencies(update_ops):
    train_op = tf.train.AdamOptimizer(2e-3).minimize(loss, global_step=global_step)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(STEPS):
        part = slice(i * BATCH, (i + 1) * BATCH)
        feed = {image: images[part], mask: masks[part], training: True}
        _, value, step = sess.run([train_op, loss, global_step], feed)
        if (i + 1) % EVERY == 0 or i == 0:
            print(f"step {step}: dice loss {value:.4f}")
    scores = []
    for start in range(0, len(test_images), BATCH):
        part = slice(start, start + BATCH)
        feed = {image: test_images[part], mask: test_masks[part], training: False}
        scores.append(sess.run(hard_dice, feed))
print(f"figure dice {np.mean(scores):.4f}")
