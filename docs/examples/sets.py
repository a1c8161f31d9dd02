# %% difference
a, b = tf.constant([[1, 2, 3]]), tf.constant([[2, 3, 4]])
tf.sparse_tensor_to_dense(tf.sets.difference(a, b))

# %% intersection
a, b = tf.constant([[1, 2, 3]]), tf.constant([[2, 3, 4]])
tf.sparse_tensor_to_dense(tf.sets.intersection(a, b))

# %% set_size
a = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [5, 7, 5], [2, 2])
tf.sets.set_size(a)

# %% set_union
a, b = tf.constant([[1, 2, 3]]), tf.constant([[2, 3, 4]])
tf.sparse_tensor_to_dense(tf.sets.set_union(a, b))
