"""A graph convolutional network in the manner of Kipf and Welling's: sparse features with dropout,
a sparse adjacency matrix, two layers, Adam, 200 epochs of one full batch with early validation, on
a generated citation graph of 2,400 pages in six communities."""

import numpy as np

import estimatorkit.compat.v1 as tf

NODES, CLASSES, WORDS, HIDDEN, EPOCHS, DROPOUT = 2400, 6, 1200, 16, 200, 0.5

random = np.random.RandomState(1)
tf.set_random_seed(1)
classes = random.randint(0, CLASSES, NODES)
edges = set()
while len(edges) < 3 * NODES:
    a, b = random.randint(0, NODES, 2)
    if a != b and random.rand() < (0.9 if classes[a] == classes[b] else 0.06):
        edges.add((min(a, b), max(a, b)))
pairs = np.array(sorted(edges))
rows = np.concatenate([pairs[:, 0], pairs[:, 1], np.arange(NODES)])
columns = np.concatenate([pairs[:, 1], pairs[:, 0], np.arange(NODES)])
degrees = np.bincount(rows, minlength=NODES)
support = (1 / np.sqrt(degrees[rows] * degrees[columns])).astype(np.float32)
order = np.lexsort((columns, rows))
adjacency = np.stack([rows, columns], 1)[order], support[order], (NODES, NODES)
words = [
    np.unique(
        np.where(
            random.rand(18) < 0.35,
            random.randint(0, 200, 18) + 200 * c,
            random.randint(0, WORDS, 18),
        )
    )
    for c in classes
]
places = np.array([(page, word) for page, own in enumerate(words) for word in own])
values = np.array([1 / len(own) for own in words for _ in own], np.float32)
one_hot = np.eye(CLASSES, dtype=np.float32)[classes]
kind = random.permutation(NODES)
masks = [np.isin(np.arange(NODES), part) for part in (kind[:120], kind[120:620], kind[620:])]

features = tf.sparse_placeholder(tf.float32, shape=[NODES, WORDS])
graph = tf.sparse_placeholder(tf.float32, shape=[NODES, NODES])
labels = tf.placeholder(tf.float32, [None, CLASSES])
labels_mask = tf.placeholder(tf.int32)
dropout = tf.placeholder_with_default(0.0, [])
nonzero = tf.placeholder(tf.int32)


def glorot(shape, name):
    limit = np.sqrt(6.0 / sum(shape))
    return tf.Variable(tf.random_uniform(shape, -limit, limit), name=name)


def sparse_dropout(x):
    kept = tf.cast(tf.floor(1 - dropout + tf.random_uniform([nonzero])), tf.bool)
    return tf.sparse_retain(x, kept) * (1.0 / (1 - dropout))


def masked(values):
    mask = tf.cast(labels_mask, tf.float32)
    return tf.reduce_mean(values * mask / tf.reduce_mean(mask))


weights = glorot([WORDS, HIDDEN], "w1"), glorot([HIDDEN, CLASSES], "w2")
hidden = tf.sparse_tensor_dense_matmul(sparse_dropout(features), weights[0])
hidden = tf.nn.relu(tf.sparse_tensor_dense_matmul(graph, hidden))
hidden = tf.nn.dropout(hidden, 1 - dropout)
outputs = tf.sparse_tensor_dense_matmul(graph, tf.matmul(hidden, weights[1]))
loss = 5e-4 * tf.nn.l2_loss(weights[0])
loss += masked(tf.nn.softmax_cross_entropy_with_logits(logits=outputs, labels=labels))
right = tf.equal(tf.argmax(outputs, 1), tf.argmax(labels, 1))
accuracy = masked(tf.cast(right, tf.float32))
train_op = tf.train.AdamOptimizer(0.01).minimize(loss)


def feed_for(mask, rate=0.0):
    return {
        features: tf.SparseTensorValue(places, values, (NODES, WORDS)),
        graph: tf.SparseTensorValue(*adjacency),
        labels: one_hot * mask[:, None],
        labels_mask: mask.astype(np.int32),
        dropout: rate,
        nonzero: len(values),
    }


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        fetched = sess.run([train_op, loss, accuracy], feed_for(masks[0], DROPOUT))
        cost, found = sess.run([loss, accuracy], feed_for(masks[1]))
        if epoch % 50 == 0:
            print(f"Epoch {epoch}: train_loss={fetched[1]:.5f} val_loss={cost:.5f} {found:.4f}")
    value = sess.run(accuracy, feed_for(masks[2]))
print(f"figure accuracy {value:.4f}")
