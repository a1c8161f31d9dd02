"""A graph convolutional network (Kipf and Welling 2017) over many graphs: 24 of them, of 12 to 104
nodes and as many numbers of edges, each a sparse adjacency matrix, one a step; two layers, the
classes of the nodes, Adam."""

import numpy as np
from epochs import two_epochs, weights

import estimatorkit.compat.v1 as tf

FEATURES, HIDDEN, CLASSES, SIZES = 16, 32, 4, range(12, 108, 4)


def example(nodes, random):
    """A normalized adjacency matrix, the nodes' features and their classes."""
    classes = random.randint(0, CLASSES, nodes)
    likely = np.where(classes[:, None] == classes, 6 / nodes, 1 / nodes)
    edges = np.triu(random.rand(nodes, nodes) < likely, 1)
    matrix = edges + edges.T + np.eye(nodes)
    degrees = matrix.sum(1)
    matrix /= np.sqrt(degrees[:, None] * degrees)
    places = np.argwhere(matrix)
    values = matrix[matrix > 0].astype(np.float32)
    features = random.randn(nodes, FEATURES).astype(np.float32)
    features[np.arange(nodes), classes] += 1
    return tf.SparseTensorValue(places, values, (nodes, nodes)), features, classes


adjacency = tf.sparse_placeholder(tf.float32, [None, None])
features = tf.placeholder(tf.float32, [None, FEATURES])
labels = tf.placeholder(tf.int32, [None])


def convolution(values, units, name):
    kernel = tf.get_variable(name, [values.get_shape()[1], units])
    return tf.sparse_tensor_dense_matmul(adjacency, tf.matmul(values, kernel))


with tf.variable_scope("model", initializer=weights):
    hidden = tf.nn.relu(convolution(features, HIDDEN, "first"))
    logits = convolution(hidden, CLASSES, "second")
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
loss = tf.reduce_mean(losses)
train_op = tf.train.AdamOptimizer(0.01).minimize(loss)

random = np.random.RandomState(1)
graphs = [example(size, random) for size in SIZES]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())

    def epoch():
        for each in graphs:
            feed = dict(zip((adjacency, features, labels), each, strict=True))
            _, value = sess.run([train_op, loss], feed)
        return value

    two_epochs(epoch)
