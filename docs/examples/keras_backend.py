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
images = tf.reshape(tf.range(8.0), [2, 2, 2])
tf.keras.backend.batch_flatten(images)

# %% batch_get_value
variables = [tf.keras.backend.variable(1.0), tf.keras.backend.variable(2.0)]
tf.keras.backend.batch_get_value(variables)

# %% batch_normalization
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.batch_normalization(x, mean=2.0, var=1.0, beta=0.0, gamma=1.0)

# %% batch_set_value
scale, offset = tf.keras.backend.variable(1.0), tf.keras.backend.variable(0.0)
tf.keras.backend.batch_set_value([(scale, 5.0), (offset, 2.0)])
tf.keras.backend.batch_get_value([scale, offset])

# %% bias_add
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.bias_add(x, [10.0, 20.0])

# %% binary_crossentropy
tf.keras.backend.binary_crossentropy(tf.constant([1.0, 0.0]), tf.constant([0.9, 0.2]))

# %% binary_focal_crossentropy
labels, probabilities = tf.constant([1.0, 0.0]), tf.constant([0.9, 0.2])
tf.keras.backend.binary_focal_crossentropy(labels, probabilities)

# %% cast
tf.keras.backend.cast(tf.constant([1.5, 2.5]), "int32")

# %% cast_to_floatx
tf.keras.backend.cast_to_floatx(np.array([1, 2])).dtype

# %% categorical_crossentropy
labels, probabilities = tf.constant([[1.0, 0.0]]), tf.constant([[0.9, 0.1]])
tf.keras.backend.categorical_crossentropy(labels, probabilities)

# %% categorical_focal_crossentropy
labels, probabilities = tf.constant([[1.0, 0.0]]), tf.constant([[0.9, 0.1]])
tf.keras.backend.categorical_focal_crossentropy(labels, probabilities)

# %% clear_session
from threading import Thread


def make_layers():
    tf.keras.backend.clear_session()
    print(tf.keras.layers.Dense(1).name, tf.keras.layers.Dense(1).name)
    tf.keras.backend.clear_session()
    print(tf.keras.layers.Dense(1).name)


# A thread, because these examples run in `with graph.as_default()`, where it raises.
thread = Thread(target=make_layers)
thread.start()
thread.join()

# %% clip
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.clip(x, 1.5, 3.5)

# %% concatenate
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.concatenate([x, x], axis=0)

# %% constant
tf.keras.backend.constant([1.0, 2.0])

# %% conv1d
series = tf.reshape([1.0, 4.0, 9.0, 16.0], [1, 4, 1])
differences = tf.reshape([-1.0, 1.0], [2, 1, 1])
tf.keras.backend.conv1d(series, differences)[0, :, 0]

# %% conv2d
image = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
tf.keras.backend.conv2d(image, tf.ones([2, 2, 1, 1]))[0, :, :, 0]

# %% conv2d_transpose
image = tf.reshape([1.0, 2.0, 3.0, 4.0], [1, 2, 2, 1])
larger = tf.keras.backend.conv2d_transpose(
    image, tf.ones([2, 2, 1, 1]), output_shape=(1, 4, 4, 1), strides=(2, 2)
)
larger[0, :, :, 0]

# %% conv3d
volume = tf.reshape(tf.range(12.0), [1, 2, 2, 3, 1])
tf.keras.backend.conv3d(volume, tf.ones([2, 2, 2, 1, 1]))[0, 0, 0, :, 0]

# %% count_params
tf.keras.backend.count_params(tf.keras.backend.zeros([2, 3]))

# %% ctc_batch_cost
outputs = tf.nn.softmax(tf.ones([1, 4, 3]))
tf.keras.backend.ctc_batch_cost(tf.constant([[0, 1]]), outputs, [[4]], [[2]])

# %% ctc_decode
outputs = tf.constant([[[0.9, 0.05, 0.05], [0.05, 0.05, 0.9], [0.1, 0.8, 0.1]]])
decoded, scores = tf.keras.backend.ctc_decode(outputs, [3])
decoded[0], scores

# %% ctc_label_dense_to_sparse
labels = tf.constant([[1, 2], [3, 0]])
tf.keras.backend.ctc_label_dense_to_sparse(labels, [2, 1])

# %% cumprod
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.cumprod(x, axis=0)

# %% cumsum
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.cumsum(x, axis=0)

# %% depthwise_conv2d
image = tf.constant([[[[1.0, 10.0], [2.0, 20.0]], [[3.0, 30.0], [4.0, 40.0]]]])
tf.keras.backend.depthwise_conv2d(image, tf.ones([2, 2, 2, 1]))

# %% dot
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.dot(x, x)

# %% dropout
tf.keras.backend.dropout(tf.ones([2, 4]), 0.5, seed=1)

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
counter = tf.keras.backend.variable(3.0)
tf.keras.backend.get_session().run(counter * 2.0)

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
x, noisy = tf.constant(1.0), tf.constant(1.2)
[tf.keras.backend.in_test_phase(x, noisy, training) for training in (False, True)]

# %% in_top_k
tf.keras.backend.in_top_k(tf.constant([[0.1, 0.7, 0.2]]), tf.constant([2]), k=2)

# %% in_train_phase
noisy, x = tf.constant(1.2), tf.constant(1.0)
[tf.keras.backend.in_train_phase(noisy, x, training) for training in (False, True)]

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
scale = tf.keras.backend.in_train_phase(tf.constant(2.0), tf.constant(1.0))
phase = tf.keras.backend.learning_phase()
with tf.Session() as session:
    print(session.run(scale), session.run(scale, {phase: True}))

# %% learning_phase_scope
layer = tf.keras.layers.Dropout(0.5, seed=1)
with tf.keras.backend.learning_phase_scope(1):
    training = layer(tf.ones([4]))
inference = layer(tf.ones([4]))
training, inference

# %% local_conv1d
series, kernel = tf.ones([1, 3, 1]), [[[1.0], [1.0]], [[10.0], [10.0]]]
tf.keras.backend.local_conv1d(series, kernel, (2,), (1,))[0, :, 0]

# %% local_conv2d
kernel = tf.reshape([1.0, 2.0, 3.0, 4.0], [4, 1, 1]) * tf.ones([4, 4, 1])
outputs = tf.keras.backend.local_conv2d(
    tf.ones([1, 3, 3, 1]),
    kernel,
    kernel_size=(2, 2),
    strides=(1, 1),
    output_shape=(2, 2),
)
outputs[0, :, :, 0]

# %% manual_variable_initialization
tf.keras.backend.manual_variable_initialization(True)
counter = tf.keras.backend.variable(3.0, name="counter")
session = tf.keras.backend.get_session()
print(session.run(tf.report_uninitialized_variables()))
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
x = tf.keras.backend.placeholder(shape=[None, 3])
with tf.Session() as session:
    print(x.shape, session.run(x * 2.0, {x: [[1.0, 2.0, 3.0]]}))

# %% pool2d
image = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
tf.keras.backend.pool2d(image, (2, 2), strides=(2, 2))[0, :, :, 0]

# %% pool3d
volume = tf.reshape(tf.range(16.0), [1, 2, 2, 4, 1])
pooled = tf.keras.backend.pool3d(volume, (2, 2, 2), (2, 2, 2), pool_mode="avg")
pooled[0, 0, 0, :, 0]

# %% print_tensor
tf.keras.backend.print_tensor(tf.constant([1.0, 2.0]), message="x is")

# %% prod
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.prod(x, axis=0)

# %% random_bernoulli
tf.keras.backend.random_bernoulli([8], p=0.5, seed=1)

# %% random_normal
tf.keras.backend.random_normal([3], mean=10.0, stddev=0.1, seed=1)

# %% random_normal_variable
weights = tf.keras.backend.random_normal_variable([3], mean=10.0, scale=0.1, seed=1)
tf.keras.backend.get_value(weights)

# %% random_uniform
tf.keras.backend.random_uniform([3], minval=5.0, maxval=6.0, seed=1)

# %% random_uniform_variable
weights = tf.keras.backend.random_uniform_variable([3], low=5.0, high=6.0, seed=1)
tf.keras.backend.get_value(weights)

# %% relu
tf.keras.backend.relu(tf.constant([-1.0, 2.0, 9.0]), alpha=0.1, max_value=6.0)

# %% repeat
tf.keras.backend.repeat(tf.constant([[1.0, 2.0]]), 3)

# %% repeat_elements
tf.keras.backend.repeat_elements(tf.constant([1, 2]), 2, axis=0)

# %% reset_uids
numbers = [tf.keras.backend.get_uid("layer") for _ in range(3)]
tf.keras.backend.reset_uids()
numbers, tf.keras.backend.get_uid("layer")

# %% reshape
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.reshape(x, [4])

# %% resize_images
image = tf.reshape([1.0, 2.0, 3.0, 4.0], [1, 2, 2, 1])
tf.keras.backend.resize_images(image, 2, 2, "channels_last")[0, :, :, 0]

# %% resize_volumes
volume = tf.reshape([1.0, 2.0], [1, 1, 1, 2, 1])
tf.keras.backend.resize_volumes(volume, 1, 1, 3, "channels_last")[0, 0, 0, :, 0]

# %% reverse
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.reverse(x, axes=0)


# %% rnn
def step(inputs, states):
    total = inputs + states[0]
    return total, [total]


inputs, start = tf.ones([1, 3, 2]), [tf.zeros([1, 2])]
last, outputs, states = tf.keras.backend.rnn(step, inputs, start)
outputs

# %% separable_conv2d
image = tf.constant([[[[1.0, 10.0], [2.0, 20.0]], [[3.0, 30.0], [4.0, 40.0]]]])
pointwise = tf.reshape([1.0, 1.0], [1, 1, 2, 1])
tf.keras.backend.separable_conv2d(image, tf.ones([2, 2, 2, 1]), pointwise)

# %% set_epsilon
before = tf.keras.backend.epsilon()
tf.keras.backend.set_epsilon(1e-5)
print(tf.keras.backend.epsilon())
tf.keras.backend.set_epsilon(before)

# %% set_floatx
before = tf.keras.backend.floatx()
tf.keras.backend.set_floatx("float64")
print(tf.keras.backend.constant([1.0]).dtype)
tf.keras.backend.set_floatx(before)

# %% set_image_data_format
before = tf.keras.backend.image_data_format()
tf.keras.backend.set_image_data_format("channels_first")
print(tf.keras.backend.image_data_format())
tf.keras.backend.set_image_data_format(before)

# %% set_learning_phase
tf.keras.backend.set_learning_phase(1)
tf.keras.layers.Dropout(0.5, seed=1)(tf.ones([4]))

# %% set_session
counter = tf.keras.backend.variable(3.0)
with tf.Session() as session:
    tf.keras.backend.set_session(session)
    tf.keras.backend.set_value(counter, 5.0)
    print(session.run(counter))

# %% set_value
weights = tf.keras.backend.variable([1.0, 2.0])
tf.keras.backend.set_value(weights, [5.0, 6.0])
tf.keras.backend.get_value(weights)

# %% shape
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.shape(x)

# %% softmax
tf.keras.backend.softmax(tf.constant([[1.0, 2.0]]))

# %% sparse_categorical_crossentropy
labels, probabilities = tf.constant([0]), tf.constant([[0.9, 0.1]])
tf.keras.backend.sparse_categorical_crossentropy(labels, probabilities)

# %% spatial_2d_padding
image = tf.reshape([1.0, 2.0, 3.0, 4.0], [1, 2, 2, 1])
tf.keras.backend.spatial_2d_padding(image)[0, :, :, 0]

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
series = tf.reshape([1.0, 2.0], [1, 2, 1])
tf.keras.backend.temporal_padding(series, (1, 2))[0, :, 0]

# %% tile
tf.keras.backend.tile(tf.constant([1, 2]), [2])

# %% to_dense
tf.keras.backend.to_dense(tf.SparseTensor([[1]], [5.0], [3]))

# %% transpose
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.transpose(x)

# %% truncated_normal
tf.keras.backend.truncated_normal([3], mean=10.0, stddev=0.1, seed=1)

# %% update
counter = tf.keras.backend.variable(1.0)
tf.keras.backend.update(counter, 5.0)

# %% update_add
counter = tf.keras.backend.variable(1.0)
tf.keras.backend.update_add(counter, 5.0)

# %% update_sub
counter = tf.keras.backend.variable(1.0)
tf.keras.backend.update_sub(counter, 5.0)

# %% var
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.var(x, axis=0)

# %% variable
weights = tf.keras.backend.variable([1.0, 2.0], name="weights")
weights.name, tf.keras.backend.get_value(weights)

# %% zeros
tf.keras.backend.eval(tf.keras.backend.zeros([2, 2]))

# %% zeros_like
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
tf.keras.backend.eval(tf.keras.backend.zeros_like(x))
