"""A recurrent network that reads MNIST row by row, as the introductory scripts do.

28 steps of ``tf.nn.static_rnn`` with a ``BasicLSTMCell`` of 128 units, a linear layer on the last
output, Adam at 0.001, 200 batches of 128; the accuracy on the batch now and then and on 2,000 test
images at the end.
"""

import numpy as np
from data import mnist

import estimatorkit.compat.v1 as tf

learning_rate = 0.001
training_steps = 200
batch_size = 128
display_step = 50
num_input = 28
timesteps = 28
num_hidden = 128
num_classes = 10

(train_x, train_y), (test_x, test_y) = mnist()
train_y, test_y = np.eye(10)[train_y], np.eye(10)[test_y]
np.random.seed(1)
tf.set_random_seed(1)

X = tf.placeholder("float", [None, timesteps, num_input])
Y = tf.placeholder("float", [None, num_classes])
weights = {"out": tf.Variable(tf.random_normal([num_hidden, num_classes]))}
biases = {"out": tf.Variable(tf.random_normal([num_classes]))}


def RNN(x, weights, biases):
    x = tf.unstack(x, timesteps, 1)
    lstm_cell = tf.nn.rnn_cell.BasicLSTMCell(num_hidden, forget_bias=1.0)
    outputs, _ = tf.nn.static_rnn(lstm_cell, x, dtype=tf.float32)
    return tf.matmul(outputs[-1], weights["out"]) + biases["out"]


logits = RNN(X, weights, biases)
prediction = tf.nn.softmax(logits)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=Y))
optimizer = tf.train.AdamOptimizer(learning_rate=learning_rate)
train_op = optimizer.minimize(loss_op)
correct_pred = tf.equal(tf.argmax(prediction, 1), tf.argmax(Y, 1))
accuracy = tf.reduce_mean(tf.cast(correct_pred, tf.float32))
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    order = np.random.permutation(len(train_x))
    for step in range(1, training_steps + 1):
        rows = order[(step - 1) * batch_size : step * batch_size]
        batch_x = train_x[rows].reshape((batch_size, timesteps, num_input))
        batch_y = train_y[rows]
        sess.run(train_op, feed_dict={X: batch_x, Y: batch_y})
        if step % display_step == 0 or step == 1:
            loss, acc = sess.run([loss_op, accuracy], feed_dict={X: batch_x, Y: batch_y})
            print(f"Step {step}, minibatch loss {loss:.4f}, training accuracy {acc:.3f}")
    print("Optimization finished")
    test_data = test_x[:2000].reshape((-1, timesteps, num_input))
    value = sess.run(accuracy, feed_dict={X: test_data, Y: test_y[:2000]})
print(f"figure accuracy {value:.4f}")
