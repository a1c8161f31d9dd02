# %% SparseTensor
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
x.indices, x.values, x.dense_shape

# %% add
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.to_dense(tf.sparse.add(x, x))

# %% bincount
tf.sparse.bincount([[1, 1, 3]], axis=-1)

# %% concat
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.to_dense(tf.sparse.concat(axis=1, sp_inputs=[x, x]))

# %% cross
tf.sparse.to_dense(tf.sparse.cross([tf.constant([["a"]]), tf.constant([["b"]])]), "")

# %% cross_hashed
columns = [tf.constant([["a"]]), tf.constant([["b"]])]
tf.sparse.to_dense(tf.sparse.cross_hashed(columns, num_buckets=100))

# %% expand_dims
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.expand_dims(x, axis=0).dense_shape

# %% eye
tf.sparse.to_dense(tf.sparse.eye(2))

# %% fill_empty_rows
x = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
filled, is_empty = tf.sparse.fill_empty_rows(x, -1.0)
tf.sparse.to_dense(filled), is_empty

# %% from_dense
tf.sparse.from_dense([[0, 2], [3, 0]])

# %% map_values
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.to_dense(tf.sparse.map_values(tf.square, x))

# %% mask
slices = tf.IndexedSlices(tf.constant([[1.0], [2.0], [3.0]]), tf.constant([0, 4, 7]))
tf.sparse.mask(slices, [4]).indices

# %% matmul
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.matmul(x, [[1.0], [10.0]])

# %% maximum
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
y = tf.SparseTensor([[0, 1]], [5.0], [2, 2])
tf.sparse.to_dense(tf.sparse.maximum(x, y))

# %% merge
ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([3, 1], tf.int64), [2, 1])
weights = tf.SparseTensor([[0, 0], [1, 0]], [0.5, 2.0], [2, 1])
tf.sparse.to_dense(tf.sparse.merge(ids, weights, vocab_size=4))

# %% minimum
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
y = tf.SparseTensor([[0, 1]], [-5.0], [2, 2])
tf.sparse.to_dense(tf.sparse.minimum(x, y))

# %% placeholder
x = tf.sparse.placeholder(tf.float32, [2, 2])
total = tf.sparse.reduce_sum(x)
with tf.Session() as session:
    print(session.run(total, {x: ([[0, 0]], [5.0], [2, 2])}))

# %% reduce_max
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.reduce_max(x, axis=1)

# %% reduce_max_sparse
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.reduce_max_sparse(x, axis=1)

# %% reduce_sum
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.reduce_sum(x, axis=1)

# %% reduce_sum_sparse
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.reduce_sum_sparse(x, axis=1)

# %% reorder
x = tf.SparseTensor([[1, 0], [0, 1]], [3.0, 2.0], [2, 2])
tf.sparse.reorder(x).indices

# %% reset_shape
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.reset_shape(x, [3, 4]).dense_shape

# %% reshape
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.reshape(x, [4]).indices

# %% retain
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.to_dense(tf.sparse.retain(x, [True, False]))

# %% segment_mean
data = [[1.0], [2.0], [6.0]]
tf.sparse.segment_mean(data, indices=[0, 2, 1], segment_ids=[0, 0, 1])

# %% segment_sqrt_n
data = [[1.0], [2.0], [6.0]]
tf.sparse.segment_sqrt_n(data, indices=[0, 2, 1], segment_ids=[0, 0, 1])

# %% segment_sum
data = [[1.0], [2.0], [6.0]]
tf.sparse.segment_sum(data, indices=[0, 2, 1], segment_ids=[0, 0, 1])

# %% slice
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.to_dense(tf.sparse.slice(x, [0, 0], [1, 2]))

# %% softmax
x = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1.0, 1.0, 3.0], [2, 3])
tf.sparse.to_dense(tf.sparse.softmax(x))

# %% split
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
[part.dense_shape for part in tf.sparse.split(sp_input=x, num_split=2, axis=1)]

# %% to_dense
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.to_dense(x, default_value=-1.0)

# %% to_indicator
ids = tf.SparseTensor([[0, 0], [1, 0]], [2, 0], [2, 1])
tf.sparse.to_indicator(ids, vocab_size=3)

# %% transpose
x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
tf.sparse.to_dense(tf.sparse.transpose(x))
