# %% Constant
tf.keras.initializers.Constant(0.5)([2, 3])

# %% GlorotNormal
kernel = tf.keras.initializers.GlorotNormal(seed=1)([100, 300])
tf.math.reduce_std(kernel), tf.reduce_max(tf.abs(kernel))

# %% GlorotUniform
kernel = tf.keras.initializers.GlorotUniform(seed=1)([100, 300])
tf.math.reduce_std(kernel), tf.reduce_max(tf.abs(kernel))

# %% HeNormal
kernel = tf.keras.initializers.HeNormal(seed=1)([100, 300])
tf.math.reduce_std(kernel), tf.reduce_max(tf.abs(kernel))

# %% HeUniform
kernel = tf.keras.initializers.HeUniform(seed=1)([100, 300])
tf.math.reduce_std(kernel), tf.reduce_max(tf.abs(kernel))

# %% Identity
tf.keras.initializers.Identity(gain=2.0)([2, 2])


# %% Initializer
class Ramp(tf.keras.initializers.Initializer):
    def __call__(self, shape, dtype=None, partition_info=None):
        return tf.reshape(tf.range(float(np.prod(shape))), shape)


tf.keras.layers.Dense(3, kernel_initializer=Ramp())(tf.constant([[1.0, 1.0]]))

# %% LecunNormal
kernel = tf.keras.initializers.LecunNormal(seed=1)([100, 300])
tf.math.reduce_std(kernel), tf.reduce_max(tf.abs(kernel))

# %% LecunUniform
kernel = tf.keras.initializers.LecunUniform(seed=1)([100, 300])
tf.math.reduce_std(kernel), tf.reduce_max(tf.abs(kernel))

# %% Ones
tf.keras.initializers.Ones()([2, 3])

# %% Orthogonal
matrix = tf.keras.initializers.Orthogonal(seed=1)([2, 2])
matrix, tf.matmul(matrix, matrix, transpose_a=True)

# %% RandomNormal
tf.keras.initializers.RandomNormal(stddev=0.1, seed=1)([2, 3])

# %% RandomSigns
tf.keras.initializers.RandomSigns(seed=1)([2, 3])

# %% RandomUniform
tf.keras.initializers.RandomUniform(0.0, 1.0, seed=1)([2, 3])

# %% TruncatedNormal
values = tf.keras.initializers.TruncatedNormal(stddev=0.1, seed=1)([10000])
tf.reduce_min(values), tf.reduce_max(values)

# %% VarianceScaling
initializer = tf.keras.initializers.VarianceScaling(2.0, mode="fan_out", seed=1)
tf.math.reduce_variance(initializer([100, 400]))

# %% Zeros
tf.keras.initializers.Zeros()([2, 3])

# %% deserialize
config = tf.keras.initializers.serialize(tf.keras.initializers.Constant(0.5))
initializer = tf.keras.initializers.deserialize(config)
initializer([3])

# %% get
initializer = tf.keras.initializers.get("ones")
initializer([3])

# %% serialize
tf.keras.initializers.serialize(tf.keras.initializers.Constant(0.5))
