# %% AveragePooling1D
series = tf.reshape(tf.range(4.0), [1, 4, 1])
layer = tf.layers.AveragePooling1D(pool_size=2, strides=2)
layer(series)[0, :, 0]

# %% AveragePooling2D
images = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
layer = tf.layers.AveragePooling2D(pool_size=2, strides=2)
layer(images)[0, :, :, 0]

# %% AveragePooling3D
volumes = tf.reshape(tf.range(16.0), [1, 2, 2, 4, 1])
layer = tf.layers.AveragePooling3D(pool_size=2, strides=2)
layer(volumes)[0, 0, 0, :, 0]

# %% BatchNormalization
layer = tf.layers.BatchNormalization()
normalized = layer(tf.constant([[1.0], [3.0]]), training=True)
print(len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)), "updates of moving averages")
normalized

# %% Conv1D
layer = tf.layers.Conv1D(filters=8, kernel_size=3)
layer(tf.ones([1, 4, 1])).shape, layer.kernel.shape

# %% Conv2D
layer = tf.layers.Conv2D(filters=8, kernel_size=3)
layer(tf.ones([1, 4, 4, 1])).shape, layer.kernel.shape

# %% Conv2DTranspose
layer = tf.layers.Conv2DTranspose(filters=2, kernel_size=2, strides=2)
layer(tf.ones([1, 4, 4, 1])).shape

# %% Conv3D
layer = tf.layers.Conv3D(filters=8, kernel_size=3)
layer(tf.ones([1, 4, 4, 4, 1])).shape, layer.kernel.shape

# %% Conv3DTranspose
layer = tf.layers.Conv3DTranspose(filters=2, kernel_size=2, strides=2)
layer(tf.ones([1, 4, 4, 4, 1])).shape

# %% Dense
layer = tf.layers.Dense(2, kernel_initializer=tf.ones_initializer())
outputs = layer(tf.constant([[1.0, 2.0]]))
outputs, layer.kernel, layer.bias

# %% Dropout
layer = tf.layers.Dropout(0.5, seed=1)
layer(tf.ones([1, 4])), layer(tf.ones([1, 4]), training=True)

# %% Flatten
tf.layers.Flatten()(tf.reshape(tf.range(8.0), [2, 2, 2]))


# %% Layer
class Scale(tf.layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight("factor", [], initializer=tf.ones_initializer())

    def call(self, inputs):
        return inputs * self.factor


Scale()(tf.constant([1.0, 2.0]))

# %% MaxPooling1D
series = tf.reshape(tf.range(4.0), [1, 4, 1])
layer = tf.layers.MaxPooling1D(pool_size=2, strides=2)
layer(series)[0, :, 0]

# %% MaxPooling2D
images = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
layer = tf.layers.MaxPooling2D(pool_size=2, strides=2)
layer(images)[0, :, :, 0]

# %% MaxPooling3D
volumes = tf.reshape(tf.range(16.0), [1, 2, 2, 4, 1])
layer = tf.layers.MaxPooling3D(pool_size=2, strides=2)
layer(volumes)[0, 0, 0, :, 0]

# %% SeparableConv1D
layer = tf.layers.SeparableConv1D(filters=8, kernel_size=3)
print(layer(tf.ones([1, 4, 3])).shape)
[(weight.name, weight.shape) for weight in layer.trainable_weights]

# %% SeparableConv2D
layer = tf.layers.SeparableConv2D(filters=8, kernel_size=3)
print(layer(tf.ones([1, 4, 4, 3])).shape)
[(weight.name, weight.shape) for weight in layer.trainable_weights]

# %% average_pooling1d
series = tf.reshape(tf.range(4.0), [1, 4, 1])
tf.layers.average_pooling1d(series, pool_size=2, strides=2)[0, :, 0]

# %% average_pooling2d
images = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
tf.layers.average_pooling2d(images, pool_size=2, strides=2)[0, :, :, 0]

# %% average_pooling3d
volumes = tf.reshape(tf.range(16.0), [1, 2, 2, 4, 1])
tf.layers.average_pooling3d(volumes, pool_size=2, strides=2)[0, 0, 0, :, 0]

# %% batch_normalization
x = tf.constant([[1.0], [5.0]])
loss = tf.reduce_sum(tf.layers.batch_normalization(x, momentum=0.9, training=True))
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train)
    for variable in tf.global_variables():
        print(variable.name, session.run(variable))

# %% conv1d
series = tf.ones([1, 4, 1])
tf.layers.conv1d(series, filters=8, kernel_size=3, padding="same").shape

# %% conv2d
images = tf.ones([1, 4, 4, 1])
tf.layers.conv2d(images, filters=8, kernel_size=3, padding="same").shape

# %% conv2d_transpose
images = tf.ones([1, 4, 4, 1])
tf.layers.conv2d_transpose(images, filters=2, kernel_size=2, strides=2).shape

# %% conv3d
volumes = tf.ones([1, 4, 4, 4, 1])
tf.layers.conv3d(volumes, filters=8, kernel_size=3, padding="same").shape

# %% conv3d_transpose
volumes = tf.ones([1, 4, 4, 4, 1])
tf.layers.conv3d_transpose(volumes, filters=2, kernel_size=2, strides=2).shape

# %% dense
with tf.variable_scope("network", reuse=tf.AUTO_REUSE):
    first = tf.layers.dense([[1.0, 2.0]], 3, activation=tf.nn.relu, name="hidden")
    again = tf.layers.dense([[3.0, 4.0]], 3, activation=tf.nn.relu, name="hidden")
print(first.shape, again.shape)
[variable.name for variable in tf.trainable_variables()]

# %% dropout
tf.layers.dropout(tf.ones([1, 4]), 0.5, training=True, seed=1)

# %% flatten
tf.layers.flatten(tf.reshape(tf.range(8.0), [2, 2, 2]))

# %% max_pooling1d
series = tf.reshape(tf.range(4.0), [1, 4, 1])
tf.layers.max_pooling1d(series, pool_size=2, strides=2)[0, :, 0]

# %% max_pooling2d
images = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
tf.layers.max_pooling2d(images, pool_size=2, strides=2)[0, :, :, 0]

# %% max_pooling3d
volumes = tf.reshape(tf.range(16.0), [1, 2, 2, 4, 1])
tf.layers.max_pooling3d(volumes, pool_size=2, strides=2)[0, 0, 0, :, 0]

# %% separable_conv1d
series = tf.ones([1, 4, 3])
tf.layers.separable_conv1d(series, filters=8, kernel_size=3).shape

# %% separable_conv2d
images = tf.ones([1, 4, 4, 3])
tf.layers.separable_conv2d(images, filters=8, kernel_size=3).shape
