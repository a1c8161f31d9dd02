"""A DCGAN on MNIST in the manner of the popular implementations: transposed convolutions against
convolutions, batch normalization, two Adam optimizers that share no variables, 60 steps of 64."""

import numpy as np
from data import mnist

import estimatorkit.compat.v1 as tf

STEPS, BATCH, NOISE = 60, 64, 100


def generator(z, training):
    with tf.variable_scope("generator", reuse=tf.AUTO_REUSE):
        h = tf.layers.dense(z, 7 * 7 * 128)
        h = tf.reshape(h, [-1, 7, 7, 128])
        h = tf.nn.relu(tf.layers.batch_normalization(h, training=training))
        h = tf.layers.conv2d_transpose(h, 64, 5, strides=2, padding="same")
        h = tf.nn.relu(tf.layers.batch_normalization(h, training=training))
        return tf.tanh(tf.layers.conv2d_transpose(h, 1, 5, strides=2, padding="same"))


def discriminator(x, training):
    with tf.variable_scope("discriminator", reuse=tf.AUTO_REUSE):
        h = tf.nn.leaky_relu(tf.layers.conv2d(x, 64, 5, strides=2, padding="same", name="c1"))
        h = tf.layers.conv2d(h, 128, 5, strides=2, padding="same", name="c2")
        h = tf.layers.batch_normalization(h, training=training, name="n2")
        h = tf.reshape(tf.nn.leaky_relu(h), [-1, 7 * 7 * 128])
        return tf.layers.dense(h, 1, name="out")


def loss_for(logits, value):
    labels = tf.fill(tf.shape(logits), value)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


(train_x, _), _ = mnist()
tf.set_random_seed(1)
noise = tf.placeholder(tf.float32, [None, NOISE])
real = tf.placeholder(tf.float32, [None, 28, 28, 1])
is_training = tf.placeholder(tf.bool, [])
fake = generator(noise, is_training)
real_logits, fake_logits = discriminator(real, is_training), discriminator(fake, is_training)
d_loss = loss_for(real_logits, 0.9) + loss_for(fake_logits, 0.0)
g_loss = loss_for(fake_logits, 1.0)
train = []
for name, loss in (("discriminator", d_loss), ("generator", g_loss)):
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS, name)):
        optimizer = tf.train.AdamOptimizer(2e-4, beta1=0.5, name=f"{name}_adam")
        train.append(optimizer.minimize(loss, var_list=tf.trainable_variables(name)))

random = np.random.RandomState(1)
images = train_x.reshape(-1, 28, 28, 1) * 2 - 1
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(STEPS):
        feed = {
            real: images[random.randint(0, len(images), BATCH)],
            noise: random.uniform(-1, 1, [BATCH, NOISE]),
            is_training: True,
        }
        _, d_value = sess.run([train[0], d_loss], feed)
        _, g_value = sess.run([train[1], g_loss], feed)
        if step % 20 == 0:
            print(f"step {step}: discriminator {d_value:.4f}, generator {g_value:.4f}")
    pictures = sess.run(fake, {noise: random.uniform(-1, 1, [25, NOISE]), is_training: False})
print("pictures", pictures.shape, float(pictures.min()), float(pictures.max()))
print(f"figure discriminator_loss {d_value:.4f}")
