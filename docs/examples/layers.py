# %% AveragePooling1D
layer = tf.layers.AveragePooling1D(pool_size=2, strides=2)
layer(tf.ones([1, 4, 1])).shape

# %% AveragePooling2D
layer = tf.layers.AveragePooling2D(pool_size=2, strides=2)
layer(tf.ones([1, 4, 4, 1])).shape

# %% AveragePooling3D
layer = tf.layers.AveragePooling3D(pool_size=2, strides=2)
layer(tf.ones([1, 4, 4, 4, 1])).shape

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
layer(tf.constant([[1.0, 2.0]]))

# %% Dropout
layer = tf.layers.Dropout(0.5, seed=1)
layer(tf.ones([1, 4])), layer(tf.ones([1, 4]), training=True)

# %% Flatten
tf.layers.Flatten()(tf.ones([2, 3, 4])).shape


# %% Layer
class Scale(tf.layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight("factor", [], initializer=tf.ones_initializer())

    def call(self, inputs):
        return inputs * self.factor


Scale()(tf.constant([1.0, 2.0]))

# %% MaxPooling1D
layer = tf.layers.MaxPooling1D(pool_size=2, strides=2)
layer(tf.ones([1, 4, 1])).shape

# %% MaxPooling2D
layer = tf.layers.MaxPooling2D(pool_size=2, strides=2)
layer(tf.ones([1, 4, 4, 1])).shape

# %% MaxPooling3D
layer = tf.layers.MaxPooling3D(pool_size=2, strides=2)
layer(tf.ones([1, 4, 4, 4, 1])).shape

# %% SeparableConv1D
layer = tf.layers.SeparableConv1D(filters=8, kernel_size=3)
layer(tf.ones([1, 4, 3])).shape, len(layer.trainable_weights)

# %% SeparableConv2D
layer = tf.layers.SeparableConv2D(filters=8, kernel_size=3)
layer(tf.ones([1, 4, 4, 3])).shape, len(layer.trainable_weights)

# %% average_pooling1d
images = tf.ones([1, 4, 1])
tf.layers.average_pooling1d(images, pool_size=2, strides=2).shape

# %% average_pooling2d
images = tf.ones([1, 4, 4, 1])
tf.layers.average_pooling2d(images, pool_size=2, strides=2).shape

# %% average_pooling3d
images = tf.ones([1, 4, 4, 4, 1])
tf.layers.average_pooling3d(images, pool_size=2, strides=2).shape

# %% batch_normalization
x = tf.constant([[1.0], [3.0]])
normalized = tf.layers.batch_normalization(x, training=True)
updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
with tf.control_dependencies(updates):  # as a training operation must
    normalized = tf.identity(normalized)
normalized

# %% conv1d
images = tf.ones([1, 4, 1])
tf.layers.conv1d(images, filters=8, kernel_size=3, padding="same").shape

# %% conv2d
images = tf.ones([1, 4, 4, 1])
tf.layers.conv2d(images, filters=8, kernel_size=3, padding="same").shape

# %% conv2d_transpose
images = tf.ones([1, 4, 4, 1])
tf.layers.conv2d_transpose(images, filters=2, kernel_size=2, strides=2).shape

# %% conv3d
images = tf.ones([1, 4, 4, 4, 1])
tf.layers.conv3d(images, filters=8, kernel_size=3, padding="same").shape

# %% conv3d_transpose
images = tf.ones([1, 4, 4, 4, 1])
tf.layers.conv3d_transpose(images, filters=2, kernel_size=2, strides=2).shape

# %% dense
with tf.variable_scope("network", reuse=tf.AUTO_REUSE):
    first = tf.layers.dense([[1.0, 2.0]], 3, activation=tf.nn.relu, name="hidden")
    again = tf.layers.dense([[3.0, 4.0]], 3, activation=tf.nn.relu, name="hidden")
[variable.name for variable in tf.trainable_variables()]

# %% dropout
tf.layers.dropout(tf.ones([1, 4]), 0.5, training=True, seed=1)

# %% flatten
tf.layers.flatten(tf.ones([2, 3, 4])).shape

# %% max_pooling1d
images = tf.ones([1, 4, 1])
tf.layers.max_pooling1d(images, pool_size=2, strides=2).shape

# %% max_pooling2d
images = tf.ones([1, 4, 4, 1])
tf.layers.max_pooling2d(images, pool_size=2, strides=2).shape

# %% max_pooling3d
images = tf.ones([1, 4, 4, 4, 1])
tf.layers.max_pooling3d(images, pool_size=2, strides=2).shape

# %% separable_conv1d
images = tf.ones([1, 4, 3])
tf.layers.separable_conv1d(images, filters=8, kernel_size=3).shape

# %% separable_conv2d
images = tf.ones([1, 4, 4, 3])
tf.layers.separable_conv2d(images, filters=8, kernel_size=3).shape
