"""Neural style transfer in the manner of the public TensorFlow scripts, with a small fixed random
network in place of VGG.

A picture variable of 160x160 is optimised by Adam for 500 steps: features of one layer near those
of a content picture, Gram matrices of four layers near those of a style picture, and a total
variation loss. The pictures are drawn by NumPy.
"""

import numpy as np

import estimatorkit.compat.v1 as tf

SIZE, STEPS, EVERY = 160, 500, 100
LAYERS = (("conv1", 3, 32), ("conv2", 32, 48), ("conv3", 48, 64), ("conv4", 64, 96))
CONTENT_LAYER = "conv3"
CONTENT_WEIGHT, STYLE_WEIGHT, VARIATION_WEIGHT = 1.0, 100.0, 0.01


def pictures():
    """Returns a content picture, discs on a slope, and a style picture, crossed stripes."""
    row, column = np.mgrid[:SIZE, :SIZE] / SIZE
    content = np.stack([row, column, 1 - row], -1)
    for y, x, radius, color in ((0.3, 0.3, 0.2, (1, 0, 0)), (0.65, 0.7, 0.25, (0, 0, 1))):
        content[(row - y) ** 2 + (column - x) ** 2 < radius**2] = color
    waves = [np.sin(40 * (row + column)), np.sin(60 * (row - column)), np.sin(50 * row)]
    style = 0.5 + 0.5 * np.stack(waves, -1)
    return [2 * each[None].astype(np.float32) - 1 for each in (content, style)]


def load_network(random):
    """Returns the kernels of the network, drawn once and never trained."""
    kernels = {}
    for name, channels, filters in LAYERS:
        drawn = random.normal(0, np.sqrt(2 / (9 * channels)), (3, 3, channels, filters))
        kernels[name] = drawn.astype(np.float32)
    return kernels


def features(image, kernels, name):
    """Returns what every layer makes of a picture."""
    found = {}
    x = image
    with tf.name_scope(name):
        for layer, _, _ in LAYERS:
            kernel = tf.constant(kernels[layer], name=f"{layer}_kernel")
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME", name=layer))
            found[layer] = x
            x = tf.nn.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    return found


def gram(feature):
    """The products of the channels with each other, through the number of positions."""
    _, height, width, channels = feature.get_shape().as_list()
    flat = tf.reshape(feature, [height * width, channels])
    return tf.matmul(flat, flat, transpose_a=True) / (height * width)


def wanted(kernels, content, style):
    """Returns the features of the content and the Gram matrices of the style, as arrays."""
    with tf.Graph().as_default(), tf.Session() as sess:
        image = tf.placeholder(tf.float32, [1, SIZE, SIZE, 3])
        net = features(image, kernels, "fixed")
        grams = {name: gram(net[name]) for name, _, _ in LAYERS}
        return sess.run(net[CONTENT_LAYER], {image: content}), sess.run(grams, {image: style})


random = np.random.RandomState(1)
content, style = pictures()
kernels = load_network(random)
content_features, style_grams = wanted(kernels, content, style)

tf.set_random_seed(1)
start = 0.6 * content + 0.4 * random.uniform(-1, 1, content.shape).astype(np.float32)
image = tf.Variable(start.astype(np.float32), name="image")
net = features(image, kernels, "optimised")
content_loss = CONTENT_WEIGHT * 2 * tf.nn.l2_loss(net[CONTENT_LAYER] - content_features)
content_loss /= content_features.size
style_losses = []
for name, _, filters in LAYERS:
    difference = gram(net[name]) - style_grams[name]
    style_losses.append(2 * tf.nn.l2_loss(difference) / filters**2)
style_loss = STYLE_WEIGHT * tf.add_n(style_losses) / len(LAYERS)
variation = tf.reduce_mean(tf.abs(image[:, 1:] - image[:, :-1]))
variation += tf.reduce_mean(tf.abs(image[:, :, 1:] - image[:, :, :-1]))
loss = content_loss + style_loss + VARIATION_WEIGHT * variation
with tf.control_dependencies([tf.train.AdamOptimizer(0.02).minimize(loss)]):
    train_op = tf.assign(image, tf.clip_by_value(image, -1.0, 1.0))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    first = sess.run(loss)
    for step in range(1, STEPS + 1):
        sess.run(train_op.op)
        if step % EVERY == 0:
            values = sess.run([loss, content_loss, style_loss])
            print(f"step {step}: loss {values[0]:.4f}, content {values[1]:.4f}", end=", ")
            print(f"style {values[2]:.4f}")
    final = sess.run(loss)
print(f"loss before {first:.4f}")
print(f"figure loss {final:.4f}")
