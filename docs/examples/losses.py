# %% Reduction
labels, predictions = tf.constant([1.0, 2.0]), tf.constant([1.5, 4.0])
none, total = tf.losses.Reduction.NONE, tf.losses.Reduction.SUM
(
    tf.losses.mean_squared_error(labels, predictions, reduction=none),
    tf.losses.mean_squared_error(labels, predictions, reduction=total),
)

# %% absolute_difference
labels, predictions = tf.constant([1.0, 2.0]), tf.constant([1.5, 4.0])
tf.losses.absolute_difference(labels, predictions)

# %% add_loss
penalty = tf.reduce_sum(tf.square(tf.constant([1.0, 2.0])))
tf.losses.add_loss(penalty)
tf.losses.get_total_loss()

# %% as_reduction
tf.losses.as_reduction("sum"), tf.losses.as_reduction("none")

# %% compute_weighted_loss
tf.losses.compute_weighted_loss([1.0, 2.0, 3.0], weights=[1.0, 0.0, 1.0])

# %% cosine_distance
tf.losses.cosine_distance([[0.6, 0.8]], [[1.0, 0.0]], axis=1)

# %% get_losses
tf.losses.mean_squared_error([1.0], [3.0])
tf.losses.absolute_difference([1.0], [2.0])
tf.losses.get_losses()

# %% get_regularization_loss
regularizer = tf.keras.regularizers.l2(0.1)
scale = tf.get_variable("scale", initializer=[1.0, 2.0], regularizer=regularizer)
offset = tf.get_variable("offset", initializer=[3.0], regularizer=regularizer)
tf.losses.get_regularization_loss()

# %% get_regularization_losses
regularizer = tf.keras.regularizers.l2(0.1)
scale = tf.get_variable("scale", initializer=[1.0, 2.0], regularizer=regularizer)
offset = tf.get_variable("offset", initializer=[3.0], regularizer=regularizer)
tf.losses.get_regularization_losses()

# %% get_total_loss
regularizer = tf.keras.regularizers.l2(0.1)
weights = tf.get_variable("weights", initializer=[1.0, 2.0], regularizer=regularizer)
tf.losses.mean_squared_error([1.0], [3.0])
tf.losses.get_total_loss()

# %% hinge_loss
tf.losses.hinge_loss([1.0, 0.0], [0.5, 0.5])

# %% huber_loss
labels, predictions = tf.constant([1.0, 2.0]), tf.constant([1.5, 4.0])
tf.losses.huber_loss(labels, predictions)

# %% log_loss
tf.losses.log_loss([1.0, 0.0], [0.9, 0.2])

# %% mean_pairwise_squared_error
labels, predictions = tf.constant([[1.0, 2.0]]), tf.constant([[1.5, 4.0]])
tf.losses.mean_pairwise_squared_error(labels, predictions)

# %% mean_squared_error
labels, predictions = tf.constant([1.0, 2.0]), tf.constant([1.5, 4.0])
tf.losses.mean_squared_error(labels, predictions)

# %% sigmoid_cross_entropy
tf.losses.sigmoid_cross_entropy([[1.0, 0.0]], [[2.0, -1.0]])

# %% softmax_cross_entropy
tf.losses.softmax_cross_entropy([[1.0, 0.0]], [[2.0, -1.0]])

# %% sparse_softmax_cross_entropy
tf.losses.sparse_softmax_cross_entropy([0], [[2.0, -1.0]])
