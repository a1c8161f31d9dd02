# %% all
tf.keras.backend.all([[True, False], [True, True]], axis=1)

# %% any
tf.keras.backend.any([[True, False], [True, True]], axis=1)

# %% arange
tf.keras.backend.arange(1, 7, 2)

# %% argmax
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.argmax(x)

# %% argmin
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.argmin(x)

# %% backend
tf.keras.backend.backend()

# %% batch_dot
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.batch_dot(x, x, axes=1)

# %% batch_flatten
tf.keras.backend.batch_flatten(tf.ones([2, 3, 4])).shape

# %% batch_get_value
variables = [tf.keras.backend.variable(1.0), tf.keras.backend.variable(2.0)]
tf.keras.backend.batch_get_value(variables)

# %% batch_normalization
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.batch_normalization(x, mean=2.0, var=1.0, beta=0.0, gamma=1.0)

# %% batch_set_value
v = tf.keras.backend.variable(1.0)
tf.keras.backend.batch_set_value([(v, 5.0)])
tf.keras.backend.get_value(v)

# %% bias_add
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.bias_add(x, [10.0, 20.0])

# %% binary_crossentropy
tf.keras.backend.binary_crossentropy(tf.constant([1.0, 0.0]), tf.constant([0.9, 0.2]))

# %% binary_focal_crossentropy
tf.keras.backend.binary_focal_crossentropy(tf.constant([1.0, 0.0]), tf.constant([0.9, 0.2]))

# %% cast
tf.keras.backend.cast(tf.constant([1.5, 2.5]), "int32")

# %% cast_to_floatx
tf.keras.backend.cast_to_floatx(np.array([1, 2])).dtype

# %% categorical_crossentropy
tf.keras.backend.categorical_crossentropy(tf.constant([[1.0, 0.0]]), tf.constant([[0.9, 0.1]]))

# %% categorical_focal_crossentropy
tf.keras.backend.categorical_focal_crossentropy(
    tf.constant([[1.0, 0.0]]), tf.constant([[0.9, 0.1]])
)

# %% clear_session
try:
    tf.keras.backend.clear_session()
except (AssertionError, RuntimeError):
    print("this example runs inside `with graph.as_default()`")

# %% clip
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.clip(x, 1.5, 3.5)

# %% concatenate
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.concatenate([x, x], axis=0)

# %% constant
tf.keras.backend.constant([1.0, 2.0])

# %% conv1d
tf.keras.backend.conv1d(tf.ones([1, 5, 1]), tf.ones([3, 1, 1]))[0, :, 0]

# %% conv2d
tf.keras.backend.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([3, 3, 1, 2])).shape

# %% conv2d_transpose
tf.keras.backend.conv2d_transpose(tf.ones([1, 2, 2, 1]), tf.ones([3, 3, 1, 1]), (1, 4, 4, 1)).shape

# %% conv3d
tf.keras.backend.conv3d(tf.ones([1, 4, 4, 4, 1]), tf.ones([3, 3, 3, 1, 2])).shape

# %% count_params
tf.keras.backend.count_params(tf.keras.backend.zeros([2, 3]))

# %% ctc_batch_cost
outputs = tf.nn.softmax(tf.ones([1, 4, 3]))
tf.keras.backend.ctc_batch_cost(tf.constant([[0, 1]]), outputs, [[4]], [[2]])

# %% ctc_decode
outputs = tf.constant([[[0.9, 0.05, 0.05], [0.05, 0.05, 0.9], [0.1, 0.8, 0.1]]])
decoded, score = tf.keras.backend.ctc_decode(outputs, [3])
decoded[0]

# %% ctc_label_dense_to_sparse
sparse = tf.keras.backend.ctc_label_dense_to_sparse(tf.constant([[1, 2], [3, 0]]), [2, 1])
sparse.values

# %% cumprod
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.cumprod(x, axis=0)

# %% cumsum
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.cumsum(x, axis=0)

# %% depthwise_conv2d
tf.keras.backend.depthwise_conv2d(tf.ones([1, 4, 4, 2]), tf.ones([3, 3, 2, 1])).shape

# %% dot
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.dot(x, x)

# %% dropout
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.dropout(x, 0.5, seed=1).shape

# %% dtype
tf.keras.backend.dtype(tf.constant([1.0]))

# %% epsilon
tf.keras.backend.epsilon()

# %% eval
tf.keras.backend.eval(tf.constant([1.0, 2.0]) * 2.0)

# %% expand_dims
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.expand_dims(x).shape

# %% eye
tf.keras.backend.eye(2)

# %% flatten
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.flatten(x)

# %% floatx
tf.keras.backend.floatx()

# %% foldl
tf.keras.backend.foldl(lambda total, x: total * 2 + x, tf.constant([1, 2, 3]))

# %% foldr
tf.keras.backend.foldr(lambda total, x: total * 2 + x, tf.constant([1, 2, 3]))

# %% function
x = tf.keras.backend.placeholder(shape=[None])
double = tf.keras.backend.function([x], [x * 2.0])
double([np.array([1.0, 2.0])])

# %% gather
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.gather(x, [1, 0])

# %% get_session
isinstance(tf.keras.backend.get_session(), tf.Session)

# %% get_uid
tf.keras.backend.get_uid("layer"), tf.keras.backend.get_uid("layer")

# %% get_value
tf.keras.backend.get_value(tf.keras.backend.variable([1.0, 2.0]))

# %% gradients
x = tf.keras.backend.variable(3.0)
tf.keras.backend.gradients(x * x, [x])

# %% image_data_format
tf.keras.backend.image_data_format()

# %% in_test_phase
tf.keras.backend.in_test_phase(tf.constant(1.0), tf.constant(2.0), training=False)

# %% in_top_k
tf.keras.backend.in_top_k(tf.constant([[0.1, 0.7, 0.2]]), tf.constant([2]), k=2)

# %% in_train_phase
tf.keras.backend.in_train_phase(tf.constant(1.0), tf.constant(2.0), training=True)

# %% int_shape
tf.keras.backend.int_shape(tf.placeholder(tf.float32, [None, 3]))

# %% is_keras_tensor
(
    tf.keras.backend.is_keras_tensor(tf.keras.Input([3])),
    tf.keras.backend.is_keras_tensor(tf.constant(1.0)),
)

# %% is_sparse
(
    tf.keras.backend.is_sparse(tf.SparseTensor([[0]], [1.0], [2])),
    tf.keras.backend.is_sparse(tf.constant(1.0)),
)

# %% l2_normalize
tf.keras.backend.l2_normalize(tf.constant([[3.0, 4.0]]), axis=1)

# %% learning_phase
tf.keras.backend.set_learning_phase(1)
tf.keras.backend.learning_phase()

# %% learning_phase_scope
with tf.keras.backend.learning_phase_scope(1):
    print(tf.keras.backend.learning_phase())

# %% local_conv1d
tf.keras.backend.local_conv1d(tf.ones([1, 3, 1]), tf.ones([2, 2, 1]), (2,), (1,))[0, :, 0]

# %% local_conv2d
tf.keras.backend.local_conv2d(tf.ones([1, 3, 3, 1]), tf.ones([4, 4, 1]), (2, 2), (1, 1), (2, 2))[
    0, :, :, 0
]

# %% manual_variable_initialization
tf.keras.backend.manual_variable_initialization(True)
tf.keras.backend.manual_variable_initialization(False)

# %% map_fn
tf.keras.backend.map_fn(lambda x: x * x, tf.constant([1, 2, 3]))

# %% max
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.max(x, axis=0)

# %% mean
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.mean(x, axis=0)

# %% min
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.min(x, axis=0)

# %% moving_average_update
average = tf.keras.backend.variable(1.0)
tf.keras.backend.moving_average_update(average, 3.0, momentum=0.5)

# %% ndim
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.ndim(x)

# %% normalize_batch_in_training
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
normalized, mean, variance = tf.keras.backend.normalize_batch_in_training(
    x, gamma=tf.ones([2]), beta=tf.zeros([2]), reduction_axes=[0]
)
normalized, mean, variance

# %% one_hot
tf.keras.backend.one_hot(tf.constant([0, 2]), num_classes=3)

# %% ones
tf.keras.backend.eval(tf.keras.backend.ones([2, 2]))

# %% ones_like
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.eval(tf.keras.backend.ones_like(x))

# %% permute_dimensions
tf.keras.backend.permute_dimensions(tf.ones([2, 3, 4]), (2, 0, 1)).shape

# %% placeholder
tf.keras.backend.placeholder(shape=[None, 3]).shape

# %% pool2d
tf.keras.backend.pool2d(tf.ones([1, 4, 4, 1]), (2, 2), (2, 2)).shape

# %% pool3d
tf.keras.backend.pool3d(tf.ones([1, 4, 4, 4, 1]), (2, 2, 2), (2, 2, 2), pool_mode="avg").shape

# %% print_tensor
tf.keras.backend.print_tensor(tf.constant([1.0, 2.0]), message="x is")

# %% prod
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.prod(x, axis=0)

# %% random_bernoulli
tf.keras.backend.random_bernoulli([4], p=1.0)

# %% random_normal
tf.keras.backend.random_normal([2, 3], seed=1).shape

# %% random_normal_variable
tf.keras.backend.random_normal_variable([2, 3], mean=0.0, scale=1.0).shape

# %% random_uniform
tf.keras.backend.random_uniform([2, 3], seed=1).shape

# %% random_uniform_variable
tf.keras.backend.random_uniform_variable([2, 3], low=0.0, high=1.0).shape

# %% relu
tf.keras.backend.relu(tf.constant([-1.0, 2.0, 9.0]), alpha=0.1, max_value=6.0)

# %% repeat
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.repeat(x, 3).shape

# %% repeat_elements
tf.keras.backend.repeat_elements(tf.constant([1, 2]), 2, axis=0)

# %% reset_uids
first = tf.keras.backend.get_uid("layer")
tf.keras.backend.reset_uids()
tf.keras.backend.get_uid("layer")

# %% reshape
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.reshape(x, [4])

# %% resize_images
tf.keras.backend.resize_images(tf.ones([1, 2, 2, 1]), 2, 2, "channels_last").shape

# %% resize_volumes
tf.keras.backend.resize_volumes(tf.ones([1, 2, 2, 2, 1]), 2, 2, 2, "channels_last").shape

# %% reverse
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.reverse(x, axes=0)


# %% rnn
def step(inputs, states):
    total = inputs + states[0]
    return total, [total]


last, outputs, states = tf.keras.backend.rnn(step, tf.ones([1, 3, 2]), [tf.zeros([1, 2])])
outputs

# %% separable_conv2d
tf.keras.backend.separable_conv2d(
    tf.ones([1, 4, 4, 2]), tf.ones([3, 3, 2, 1]), tf.ones([1, 1, 2, 5])
).shape

# %% set_epsilon
before = tf.keras.backend.epsilon()
tf.keras.backend.set_epsilon(1e-5)
print(tf.keras.backend.epsilon())
tf.keras.backend.set_epsilon(before)

# %% set_floatx
before = tf.keras.backend.floatx()
tf.keras.backend.set_floatx("float64")
print(tf.keras.backend.floatx())
tf.keras.backend.set_floatx(before)

# %% set_image_data_format
before = tf.keras.backend.image_data_format()
tf.keras.backend.set_image_data_format("channels_first")
print(tf.keras.backend.image_data_format())
tf.keras.backend.set_image_data_format(before)

# %% set_learning_phase
tf.keras.backend.set_learning_phase(0)
tf.keras.backend.learning_phase()

# %% set_session
session = tf.Session()
tf.keras.backend.set_session(session)
print(tf.keras.backend.get_session() is session)

# %% set_value
v = tf.keras.backend.variable([1.0, 2.0])
tf.keras.backend.set_value(v, [5.0, 6.0])
tf.keras.backend.get_value(v)

# %% shape
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.shape(x)

# %% softmax
tf.keras.backend.softmax(tf.constant([[1.0, 2.0]]))

# %% sparse_categorical_crossentropy
tf.keras.backend.sparse_categorical_crossentropy(tf.constant([0]), tf.constant([[0.9, 0.1]]))

# %% spatial_2d_padding
tf.keras.backend.spatial_2d_padding(tf.ones([1, 2, 2, 1])).shape

# %% spatial_3d_padding
tf.keras.backend.spatial_3d_padding(tf.ones([1, 2, 2, 2, 1])).shape

# %% sqrt
tf.keras.backend.sqrt(tf.constant([4.0, -1.0]))

# %% squeeze
tf.keras.backend.squeeze(tf.ones([2, 1, 3]), axis=1).shape

# %% stack
tf.keras.backend.stack([tf.constant([1, 2]), tf.constant([3, 4])])

# %% std
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.std(x, axis=0)

# %% stop_gradient
x = tf.keras.backend.variable(3.0)
tf.keras.backend.gradients(x * tf.keras.backend.stop_gradient(x), [x])

# %% sum
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.sum(x, axis=0)

# %% switch
tf.keras.backend.switch(tf.constant(True), tf.constant(1.0), tf.constant(2.0))

# %% temporal_padding
tf.keras.backend.temporal_padding(tf.ones([1, 2, 1])).shape

# %% tile
tf.keras.backend.tile(tf.constant([1, 2]), [2])

# %% to_dense
tf.keras.backend.to_dense(tf.SparseTensor([[1]], [5.0], [3]))

# %% transpose
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.transpose(x)

# %% truncated_normal
tf.keras.backend.truncated_normal([2, 3], seed=1).shape

# %% update
v = tf.keras.backend.variable(1.0)
tf.keras.backend.update(v, 5.0)

# %% update_add
v = tf.keras.backend.variable(1.0)
tf.keras.backend.update_add(v, 5.0)

# %% update_sub
v = tf.keras.backend.variable(1.0)
tf.keras.backend.update_sub(v, 5.0)

# %% var
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.var(x, axis=0)

# %% variable
v = tf.keras.backend.variable([1.0, 2.0], name="v")
v.name, tf.keras.backend.get_value(v)

# %% zeros
tf.keras.backend.eval(tf.keras.backend.zeros([2, 2]))

# %% zeros_like
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.eval(tf.keras.backend.zeros_like(x))
