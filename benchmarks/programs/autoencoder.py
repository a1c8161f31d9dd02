"""A denoising autoencoder in the manner of the well-known TensorFlow scripts: raw operations on
MNIST.

Layers 784-256-128-256-784 of sigmoids; Gaussian noise is added to what is fed, the clean picture
is the target. RMSProp at 0.01, 1,200 batches of 256; a checkpoint is saved at the end and
restored for the error on test pictures.
"""

import os
import tempfile

import numpy as np
from data import mnist

import estimatorkit.compat.v1 as tf

INPUTS, HIDDEN_1, HIDDEN_2 = 784, 256, 128
BATCH, STEPS, EVERY, NOISE, RATE = 256, 1200, 200, 0.3, 0.01

clean = tf.placeholder(tf.float32, [None, INPUTS], name="clean")
noise_level = tf.placeholder(tf.float32, [], name="noise_level")


def xavier(fan_in, fan_out):
    limit = np.sqrt(6.0 / (fan_in + fan_out))
    return tf.random_uniform([fan_in, fan_out], -limit, limit, seed=fan_in)


def encoder(x, weights, biases):
    layer_1 = tf.nn.sigmoid(tf.add(tf.matmul(x, weights["encoder_h1"]), biases["encoder_b1"]))
    return tf.nn.sigmoid(tf.add(tf.matmul(layer_1, weights["encoder_h2"]), biases["encoder_b2"]))


def decoder(x, weights, biases):
    layer_1 = tf.nn.sigmoid(tf.add(tf.matmul(x, weights["decoder_h1"]), biases["decoder_b1"]))
    return tf.nn.sigmoid(tf.add(tf.matmul(layer_1, weights["decoder_h2"]), biases["decoder_b2"]))


tf.set_random_seed(1)
weights = {
    "encoder_h1": tf.Variable(xavier(INPUTS, HIDDEN_1)),
    "encoder_h2": tf.Variable(xavier(HIDDEN_1, HIDDEN_2)),
    "decoder_h1": tf.Variable(xavier(HIDDEN_2, HIDDEN_1)),
    "decoder_h2": tf.Variable(xavier(HIDDEN_1, INPUTS)),
}
biases = {
    "encoder_b1": tf.Variable(tf.zeros([HIDDEN_1])),
    "encoder_b2": tf.Variable(tf.zeros([HIDDEN_2])),
    "decoder_b1": tf.Variable(tf.zeros([HIDDEN_1])),
    "decoder_b2": tf.Variable(tf.zeros([INPUTS])),
}
noisy = clean + noise_level * tf.random_normal(tf.shape(clean))
code = encoder(noisy, weights, biases)
decoded = decoder(code, weights, biases)
loss = tf.reduce_mean(tf.pow(clean - decoded, 2))
train_op = tf.train.RMSPropOptimizer(RATE).minimize(loss)
initialize = tf.global_variables_initializer()
saver = tf.train.Saver()

(images, _), (test_images, _) = mnist()
random = np.random.RandomState(1)
with tempfile.TemporaryDirectory() as out:
    with tf.Session() as sess:
        sess.run(initialize)
        for step in range(1, STEPS + 1):
            batch = images[random.randint(0, len(images), BATCH)]
            _, error = sess.run([train_op, loss], {clean: batch, noise_level: NOISE})
            if step % EVERY == 0 or step == 1:
                print(f"step {step}: minibatch loss {error:.4f}")
        path = saver.save(sess, os.path.join(out, "autoencoder.ckpt"))
        print("saved", os.path.basename(path))
    with tf.Session() as sess:
        saver.restore(sess, path)
        errors = []
        for start in range(0, 5000, 500):
            feed = {clean: test_images[start : start + 500], noise_level: NOISE}
            errors.append(sess.run(loss, feed))
        codes = sess.run(code, {clean: test_images[:4], noise_level: 0.0})
        print("code of a picture, first eight:", np.round(codes[0, :8], 2))
print(f"figure loss {np.mean(errors):.4f}")
