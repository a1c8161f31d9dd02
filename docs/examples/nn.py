# %% all_candidate_sampler
candidates = tf.nn.all_candidate_sampler([[2]], num_true=1, num_sampled=4, unique=True)
candidates.sampled_candidates, candidates.sampled_expected_count

# %% atrous_conv2d
image = np.arange(16.0).reshape(1, 4, 4, 1)
corners = np.ones([2, 2, 1, 1])
tf.nn.atrous_conv2d(image, corners, rate=2, padding="VALID")[0, :, :, 0]

# %% atrous_conv2d_transpose
image = np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 2, 1)
filters = np.ones([2, 2, 1, 1])
spread = tf.nn.atrous_conv2d_transpose(image, filters, [1, 4, 4, 1], 2, "VALID")
spread[0, :, :, 0]

# %% avg_pool
image = np.arange(16.0).reshape(1, 4, 4, 1)
tf.nn.avg_pool(image, ksize=2, strides=2, padding="VALID")[0, :, :, 0]

# %% avg_pool1d
series = np.array([1.0, 3.0, 5.0, 9.0]).reshape(1, 4, 1)
tf.nn.avg_pool1d(series, ksize=2, strides=2, padding="VALID")[0, :, 0]

# %% avg_pool2d
image = np.arange(16.0).reshape(1, 4, 4, 1)
tf.nn.avg_pool2d(image, ksize=2, strides=1, padding="VALID")[0, :, :, 0]

# %% avg_pool3d
volume = np.arange(16.0).reshape(1, 4, 2, 2, 1)
tf.nn.avg_pool3d(volume, ksize=2, strides=2, padding="VALID")[0, :, 0, 0, 0]

# %% avg_pool_v2
series = np.array([1.0, 3.0, 5.0, 9.0]).reshape(1, 4, 1)
tf.nn.avg_pool_v2(series, ksize=3, strides=1, padding="SAME")[0, :, 0]

# %% batch_norm_with_global_normalization
image = np.array([1.0, 3.0, 5.0, 7.0], "float32").reshape(1, 2, 2, 1)
mean, variance = tf.nn.moments(image, axes=[0, 1, 2])
tf.nn.batch_norm_with_global_normalization(
    image, mean, variance, [0.0], [1.0], 1e-3, scale_after_normalization=True
)[0, :, :, 0]

# %% batch_normalization
inputs = tf.constant([[1.0, 10.0], [3.0, 30.0]])
mean, variance = tf.nn.moments(inputs, axes=[0])
tf.nn.batch_normalization(inputs, mean, variance, [0.0, 5.0], [1.0, 2.0], 1e-6)

# %% bias_add
tf.nn.bias_add([[1.0, 2.0], [3.0, 4.0]], [10.0, 20.0])

# %% bidirectional_dynamic_rnn
cells = [tf.nn.rnn_cell.BasicRNNCell(1, activation=tf.identity) for _ in range(2)]
steps = tf.constant([[[1.0], [2.0], [3.0]]])
with tf.variable_scope("sums", initializer=tf.ones_initializer()):
    outputs, last = tf.nn.bidirectional_dynamic_rnn(*cells, steps, dtype=tf.float32)
outputs, last

# %% collapse_repeated
tf.nn.collapse_repeated([[1, 1, 2, 2, 1], [3, 3, 3, 0, 0]], seq_length=[5, 3])

# %% compute_accidental_hits
true_classes, sampled = [[0], [5]], [5, 3, 0]
indices, ids, weights = tf.nn.compute_accidental_hits(true_classes, sampled, num_true=1)
indices, ids, weights

# %% compute_average_loss
mean_squared_error = tf.keras.losses.MeanSquaredError(reduction="none")
losses = mean_squared_error([[1.0], [2.0]], [[3.0], [2.0]])
tf.nn.compute_average_loss(losses, global_batch_size=8)

# %% conv1d
series = np.array([1.0, 2.0, 4.0, 8.0]).reshape(1, 4, 1)
difference = np.array([-1.0, 1.0]).reshape(2, 1, 1)
tf.nn.conv1d(series, difference, stride=1, padding="VALID")[0, :, 0]

# %% conv1d_transpose
series = np.array([1.0, 2.0]).reshape(1, 2, 1)
filters = np.array([1.0, 10.0]).reshape(2, 1, 1)
tf.nn.conv1d_transpose(series, filters, [1, 4, 1], strides=2)[0, :, 0]

# %% conv2d
image = np.array([[0.0, 0.0, 1.0, 1.0]] * 3).reshape(1, 3, 4, 1)
edges = np.array([[-1.0, 1.0]]).reshape(1, 2, 1, 1)
tf.nn.conv2d(image, edges, strides=1, padding="VALID")[0, :, :, 0]

# %% conv2d_backprop_filter
image = np.arange(9.0).reshape(1, 3, 3, 1)
gradient = np.ones([1, 2, 2, 1])
tf.nn.conv2d_backprop_filter(image, [2, 2, 1, 1], gradient, 1, "VALID")[:, :, 0, 0]

# %% conv2d_backprop_input
filters = np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(2, 2, 1, 1)
gradient = np.ones([1, 2, 2, 1])
tf.nn.conv2d_backprop_input([1, 3, 3, 1], filters, gradient, 1, "VALID")[0, :, :, 0]

# %% conv2d_transpose
image = np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 2, 1)
filters = np.ones([2, 2, 1, 1])
tf.nn.conv2d_transpose(image, filters, [1, 4, 4, 1], strides=2)[0, :, :, 0]

# %% conv3d
volume = np.arange(27.0).reshape(1, 3, 3, 3, 1)
tf.nn.conv3d(volume, np.ones([2, 2, 2, 1, 1]), 1, "VALID")[0, :, :, :, 0]

# %% conv3d_backprop_filter
volume = np.arange(8.0).reshape(1, 2, 2, 2, 1)
gradient = np.ones([1, 1, 2, 2, 1])
shape = [2, 1, 1, 1, 1]
tf.nn.conv3d_backprop_filter(volume, shape, gradient, [1] * 5, "VALID")[:, 0, 0, 0, 0]

# %% conv3d_transpose
volume = np.array([1.0, 2.0]).reshape(1, 2, 1, 1, 1)
filters = np.ones([2, 2, 2, 1, 1])
larger = tf.nn.conv3d_transpose(volume, filters, [1, 4, 2, 2, 1], strides=2)
larger[0, :, :, :, 0]

# %% conv_transpose
series = np.array([1.0, 2.0]).reshape(1, 2, 1)
filters = np.array([1.0, 10.0]).reshape(2, 1, 1)
tf.nn.conv_transpose(series, filters, [1, 4, 1], strides=2)[0, :, 0]

# %% convolution
series = np.array([1.0, 2.0, 4.0, 8.0, 16.0]).reshape(1, 5, 1)
difference = np.array([-1.0, 1.0]).reshape(2, 1, 1)
tf.nn.convolution(series, difference, "VALID", dilation_rate=[2])[0, :, 0]

# %% crelu
tf.nn.crelu([-1.0, 2.0])

# %% ctc_beam_search_decoder
steps = tf.math.log([[[0.2, 0.0, 0.8]], [[0.4, 0.0, 0.6]]])
paths, log_probabilities = tf.nn.ctc_beam_search_decoder(steps, [2], top_paths=2)
[path.values for path in paths], tf.exp(log_probabilities)

# %% ctc_beam_search_decoder_v2
steps = tf.math.log([[[0.2, 0.0, 0.8]], [[0.4, 0.0, 0.6]]])
paths, log_probabilities = tf.nn.ctc_beam_search_decoder_v2(steps, [2])
paths[0].values, tf.exp(log_probabilities)

# %% ctc_greedy_decoder
classes = [0, 0, 2, 0, 1]
logits = tf.one_hot(classes, depth=3)[:, None, :]
paths, score = tf.nn.ctc_greedy_decoder(logits, sequence_length=[5])
paths[0].values, score

# %% ctc_loss
labels = tf.SparseTensor([[0, 0], [0, 1]], [0, 1], [1, 2])
right = tf.one_hot([0, 2, 1], depth=3)[:, None, :] * 5.0
wrong = tf.one_hot([1, 2, 0], depth=3)[:, None, :] * 5.0
[tf.nn.ctc_loss(labels, logits, sequence_length=[3]) for logits in (right, wrong)]

# %% ctc_loss_v2
logits = tf.one_hot([1, 0, 2], depth=3)[:, None, :] * 5.0
tf.nn.ctc_loss_v2([[1, 2]], logits, label_length=[2], logit_length=[3])

# %% ctc_unique_labels
tf.nn.ctc_unique_labels([[3, 4, 4, 3]])

# %% depth_to_space
image = np.arange(8).reshape(1, 1, 2, 4)
tf.nn.depth_to_space(image, block_size=2)[0, :, :, 0]

# %% depthwise_conv2d
image = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]]).reshape(1, 1, 3, 2)
filters = np.array([[1.0, 1.0], [-1.0, 1.0]]).reshape(1, 2, 2, 1)
tf.nn.depthwise_conv2d(image, filters, [1, 1, 1, 1], "VALID")

# %% depthwise_conv2d_backprop_filter
image = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]]).reshape(1, 1, 3, 2)
gradient = np.ones([1, 1, 2, 2])
shape, strides = [1, 2, 2, 1], [1, 1, 1, 1]
tf.nn.depthwise_conv2d_backprop_filter(image, shape, gradient, strides, "VALID")

# %% depthwise_conv2d_backprop_input
filters = np.array([[1.0, 1.0], [-1.0, 1.0]]).reshape(1, 2, 2, 1)
gradient = np.ones([1, 1, 2, 2])
shape, strides = [1, 1, 3, 2], [1, 1, 1, 1]
tf.nn.depthwise_conv2d_backprop_input(shape, filters, gradient, strides, "VALID")

# %% depthwise_conv2d_native
image = np.array([[1.0, 10.0], [2.0, 20.0]]).reshape(1, 1, 2, 2)
filters = np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 1, 2, 2)
tf.nn.depthwise_conv2d_native(image, filters, [1, 1, 1, 1], "VALID")

# %% dropout
tf.nn.dropout(tf.ones([2, 8]), rate=0.5, seed=1)

# %% dynamic_rnn
cell = tf.nn.rnn_cell.BasicRNNCell(1, activation=tf.identity)
steps, lengths = tf.constant([[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]]), [3, 2]
with tf.variable_scope("sums", initializer=tf.ones_initializer()):
    outputs, last = tf.nn.dynamic_rnn(cell, steps, lengths, dtype=tf.float32)
outputs[:, :, 0], last[:, 0]

# %% elu
tf.nn.elu([-2.0, -1.0, 0.0, 1.0])

# %% embedding_lookup
table = tf.get_variable("table", initializer=[[0.0, 0.1], [1.0, 1.1], [2.0, 2.1]])
tf.nn.embedding_lookup(table, [2, 0, 2])

# %% embedding_lookup_sparse
table = tf.constant([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
words = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0, 1, 2], [2, 2])
tf.nn.embedding_lookup_sparse(table, words, None, combiner="mean")

# %% fixed_unigram_candidate_sampler
candidates = tf.nn.fixed_unigram_candidate_sampler(
    [[0]], 1, num_sampled=8, unique=False, range_max=3, unigrams=[6, 1, 1], seed=1
)
candidates.sampled_candidates, candidates.true_expected_count

# %% fused_batch_norm
image = np.array([1.0, 3.0, 5.0, 7.0], "float32").reshape(1, 2, 2, 1)
normalized, mean, variance = tf.nn.fused_batch_norm(image, scale=[1.0], offset=[0.0])
normalized[0, :, :, 0], mean, variance

# %% in_top_k
predictions = [[0.1, 0.7, 0.2], [0.1, 0.7, 0.2]]
tf.nn.in_top_k(predictions, targets=[2, 0], k=2)

# %% l2_loss
tf.nn.l2_loss([3.0, 4.0])

# %% l2_normalize
tf.nn.l2_normalize([[3.0, 4.0], [0.0, 2.0]], axis=1)

# %% leaky_relu
tf.nn.leaky_relu([-10.0, 0.0, 10.0], alpha=0.1)

# %% local_response_normalization
channels = np.array([1.0, 2.0, 3.0], "float32").reshape(1, 1, 1, 3)
tf.nn.local_response_normalization(channels, depth_radius=1, beta=1.0)

# %% log_poisson_loss
counts, rates = [2.0, 2.0], tf.constant([2.0, 4.0])
tf.nn.log_poisson_loss(counts, tf.math.log(rates))

# %% log_softmax
log_probabilities = tf.nn.log_softmax([1.0, 2.0, 3.0])
log_probabilities, tf.exp(log_probabilities)

# %% log_uniform_candidate_sampler
candidates = tf.nn.log_uniform_candidate_sampler(
    [[0]], 1, num_sampled=10, unique=False, range_max=100, seed=1
)
candidates.sampled_candidates, candidates.true_expected_count

# %% max_pool
image = np.arange(16.0).reshape(1, 4, 4, 1)
tf.nn.max_pool(image, ksize=2, strides=2, padding="VALID")[0, :, :, 0]

# %% max_pool1d
series = np.array([1.0, 3.0, 5.0, 2.0]).reshape(1, 4, 1)
tf.nn.max_pool1d(series, ksize=2, strides=2, padding="VALID")[0, :, 0]

# %% max_pool2d
image = np.arange(16.0).reshape(1, 4, 4, 1)
tf.nn.max_pool2d(image, ksize=2, strides=1, padding="VALID")[0, :, :, 0]

# %% max_pool3d
volume = np.arange(16.0).reshape(1, 4, 2, 2, 1)
tf.nn.max_pool3d(volume, ksize=2, strides=2, padding="VALID")[0, :, 0, 0, 0]

# %% max_pool_v2
series = np.array([1.0, 3.0, 5.0, 2.0]).reshape(1, 4, 1)
tf.nn.max_pool_v2(series, ksize=3, strides=1, padding="SAME")[0, :, 0]

# %% max_pool_with_argmax
image = np.array([[1.0, 9.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]).reshape(1, 2, 4, 1)
maxima, indices = tf.nn.max_pool_with_argmax(image, 2, 2, "VALID")
maxima[0, :, :, 0], indices[0, :, :, 0]

# %% moments
mean, variance = tf.nn.moments(tf.constant([[1.0, 10.0], [3.0, 30.0]]), axes=[0])
mean, variance

# %% nce_loss
tf.set_random_seed(1)
embeddings = tf.get_variable("embeddings", [100, 4])
biases = tf.get_variable("biases", initializer=tf.zeros([100]))
words, neighbours = [3, 14, 15], [[14], [15], [3]]
inputs = tf.nn.embedding_lookup(embeddings, words)
tf.nn.nce_loss(embeddings, biases, neighbours, inputs, 10, num_classes=100)

# %% normalize_moments
count, total, squares, shift = tf.nn.sufficient_statistics([1.0, 2.0, 6.0], axes=[0])
tf.nn.normalize_moments(count, total, squares, shift)

# %% nth_element
tf.nn.nth_element([[5, 1, 4], [9, 8, 7]], n=1)

# %% pool
series = np.array([1.0, 3.0, 5.0, 2.0]).reshape(1, 4, 1)
tf.nn.pool(series, [2], "MAX", "VALID")[0, :, 0]

# %% raw_rnn
cell = tf.nn.rnn_cell.BasicRNNCell(1, activation=tf.identity)


def double_until_20(time, output, state, loop_state):
    if output is None:
        return [False], tf.ones([1, 1]), tf.zeros([1, 1]), None, None
    finished = tf.reduce_any(output >= 20.0, axis=1)
    return finished, output, state, output, None


with tf.variable_scope("sums", initializer=tf.ones_initializer()):
    outputs, last, _ = tf.nn.raw_rnn(cell, double_until_20)
outputs.stack()[:, 0, 0], last

# %% relu
tf.nn.relu([-1.0, 2.0])

# %% relu6
tf.nn.relu6([-1.0, 2.0, 8.0])

# %% relu_layer
tf.nn.relu_layer([[1.0, 2.0]], [[1.0, -1.0], [1.0, -1.0]], [0.5, 0.5])

# %% safe_embedding_lookup_sparse
table = [tf.constant([[1.0, 10.0], [2.0, 20.0]])]
words = tf.SparseTensor([[0, 0], [2, 0]], [1, -1], [3, 1])
tf.nn.safe_embedding_lookup_sparse(table, words, default_id=0)

# %% sampled_softmax_loss
tf.set_random_seed(1)
embeddings = tf.get_variable("embeddings", [100, 4])
biases = tf.get_variable("biases", initializer=tf.zeros([100]))
inputs, labels = tf.ones([3, 4]), [[14], [15], [3]]
tf.nn.sampled_softmax_loss(embeddings, biases, labels, inputs, 10, 100, seed=1)

# %% scale_regularization_loss
kernel = tf.constant([1.0, 2.0])
losses = [tf.nn.l2_loss(kernel) * 0.1, tf.reduce_sum(tf.abs(kernel)) * 0.1]
tf.nn.scale_regularization_loss(losses)

# %% selu
tf.nn.selu([-1.0, 0.0, 1.0])

# %% separable_conv2d
image = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]]).reshape(1, 1, 3, 2)
depthwise = np.ones([1, 2, 2, 1])
pointwise = np.array([1.0, 1.0]).reshape(1, 1, 2, 1)
tf.nn.separable_conv2d(image, depthwise, pointwise, [1, 1, 1, 1], "VALID")

# %% sigmoid
tf.nn.sigmoid([-1.0, 0.0, 1.0])

# %% sigmoid_cross_entropy_with_logits
labels, logits = [1.0, 1.0, 0.0], [3.0, -3.0, 0.0]
tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

# %% silu
tf.nn.silu([-1.0, 0.0, 1.0])

# %% softmax
tf.nn.softmax([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])

# %% softmax_cross_entropy_with_logits
labels, logits = [[1.0, 0.0], [0.5, 0.5]], [[2.0, -2.0], [2.0, -2.0]]
tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)

# %% softmax_cross_entropy_with_logits_v2
labels, logits = tf.constant([[1.0, 0.0]]), tf.constant([[2.0, -2.0]])
loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
loss, tf.gradients(loss, [labels, logits])

# %% softplus
tf.nn.softplus([-1.0, 0.0, 1.0])

# %% softsign
tf.nn.softsign([-1.0, 0.0, 1.0])

# %% space_to_batch
image = np.arange(4.0).reshape(1, 2, 2, 1)
tf.nn.space_to_batch(image, paddings=[[0, 0], [0, 0]], block_size=2)

# %% space_to_depth
image = np.array([[1, 2, 5, 6], [3, 4, 7, 8]]).reshape(1, 2, 4, 1)
tf.nn.space_to_depth(image, block_size=2)

# %% sparse_softmax_cross_entropy_with_logits
logits = [[2.0, 0.0, -2.0], [2.0, 0.0, -2.0]]
tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2], logits=logits)

# %% static_bidirectional_rnn
forward = tf.nn.rnn_cell.BasicRNNCell(1, activation=tf.identity)
backward = tf.nn.rnn_cell.BasicRNNCell(1, activation=tf.identity)
steps = [tf.constant([[1.0]]), tf.constant([[2.0]]), tf.constant([[3.0]])]
with tf.variable_scope("sums", initializer=tf.ones_initializer()):
    outputs, last_forward, last_backward = tf.nn.static_bidirectional_rnn(
        forward, backward, steps, dtype=tf.float32
    )
tf.stack(outputs), last_forward, last_backward

# %% static_rnn
cell = tf.nn.rnn_cell.BasicRNNCell(1, activation=tf.identity)
steps = [tf.constant([[1.0]]), tf.constant([[2.0]]), tf.constant([[3.0]])]
with tf.variable_scope("sums", initializer=tf.ones_initializer()):
    outputs, last = tf.nn.static_rnn(cell, steps, dtype=tf.float32)
outputs, last


# %% static_state_saving_rnn
class Saver:
    def __init__(self):
        self.value = tf.get_variable("state", initializer=[[0.0]])

    def state(self, name):
        return self.value.read_value()

    def save_state(self, name, value):
        return tf.assign(self.value, value)


cell = tf.nn.rnn_cell.BasicRNNCell(1, activation=tf.identity)
saver, steps = Saver(), [tf.constant([[1.0]]), tf.constant([[2.0]])]
with tf.variable_scope("sums", initializer=tf.ones_initializer()):
    outputs, last = tf.nn.static_state_saving_rnn(cell, steps, saver, "state")
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print([session.run(outputs[-1]) for _ in range(3)])

# %% sufficient_statistics
count, total, squares, shift = tf.nn.sufficient_statistics([1.0, 2.0, 6.0], axes=[0])
count, total, squares

# %% tanh
tf.nn.tanh([-1.0, 0.0, 1.0])

# %% top_k
values, indices = tf.nn.top_k([1, 3, 2], k=2)
values, indices

# %% uniform_candidate_sampler
candidates = tf.nn.uniform_candidate_sampler(
    [[0], [7]], 1, num_sampled=5, unique=True, range_max=10, seed=1
)
candidates.sampled_candidates, candidates.true_expected_count

# %% weighted_cross_entropy_with_logits
labels, logits = [1.0, 0.0], [0.0, 0.0]
tf.nn.weighted_cross_entropy_with_logits(labels, logits, pos_weight=3.0)

# %% weighted_moments
values, weights = tf.constant([1.0, 5.0]), [3.0, 1.0]
tf.nn.weighted_moments(values, axes=[0], frequency_weights=weights)

# %% xw_plus_b
tf.nn.xw_plus_b([[1.0, 2.0]], [[1.0, 0.0], [0.0, 10.0]], [0.5, 0.5])

# %% zero_fraction
tf.nn.zero_fraction([0.0, 1.0, 0.0, 2.0])
