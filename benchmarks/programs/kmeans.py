"""Lloyd's k-means by raw operations in the manner of the early blog posts: a variable of centers,
distances by broadcasting, means by ``unsorted_segment_sum``, 40 iterations over 20,000 pictures of
MNIST into 25 clusters, whose labels are the most frequent ones of their members."""

import numpy as np
from data import mnist

import estimatorkit.compat.v1 as tf

CLUSTERS, ROWS, ITERATIONS = 25, 20_000, 40

(train_x, train_y), _ = mnist()
random = np.random.RandomState(1)
points = tf.constant(train_x[:ROWS])
start = train_x[random.choice(ROWS, CLUSTERS, replace=False)]
centers = tf.Variable(start)
assignments = tf.Variable(tf.zeros([ROWS], tf.int32))
squares = tf.reduce_sum(tf.square(points), 1, keepdims=True)
distances = squares - 2 * tf.matmul(points, centers, transpose_b=True)
distances += tf.reduce_sum(tf.square(centers), 1)
nearest = tf.cast(tf.argmin(distances, 1), tf.int32)
changed = tf.reduce_any(tf.not_equal(nearest, assignments))
sums = tf.unsorted_segment_sum(points, nearest, CLUSTERS)
counts = tf.unsorted_segment_sum(tf.ones([ROWS, 1]), nearest, CLUSTERS)
means = tf.where(tf.tile(counts, [1, 784]) > 0, sums / tf.maximum(counts, 1.0), centers)
with tf.control_dependencies([changed]):
    update = tf.group(centers.assign(means), assignments.assign(nearest))
inertia = tf.reduce_mean(tf.reduce_min(distances, 1))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for iteration in range(ITERATIONS):
        moved, _ = sess.run([changed, update])
        if iteration % 10 == 0:
            print(f"iteration {iteration}: inertia {sess.run(inertia):.4f}")
        if not moved:
            break
    value, found = sess.run([inertia, assignments])
labels = [
    np.bincount(train_y[:ROWS][found == each], minlength=10).argmax() for each in range(CLUSTERS)
]
print("accuracy", np.mean(np.array(labels)[found] == train_y[:ROWS]))
print(f"figure inertia {value:.4f}")
