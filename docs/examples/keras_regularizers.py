# %% L1
tf.keras.regularizers.L1(0.1)([1.0, -2.0])

# %% L1L2
tf.keras.regularizers.L1L2(l1=0.1, l2=0.01)([1.0, -2.0])

# %% L2
layer = tf.keras.layers.Dense(
    1, kernel_initializer="ones", kernel_regularizer=tf.keras.regularizers.L2(0.1)
)
layer(tf.zeros([4, 3]))
layer.losses


# %% Regularizer
class Near(tf.keras.regularizers.Regularizer):
    def __init__(self, target):
        self.target = target

    def __call__(self, x):
        return tf.reduce_sum((x - self.target) ** 2)

    def get_config(self):
        return {"target": self.target}


layer = tf.keras.layers.Dense(2, "relu", bias_regularizer=Near(1.0))
layer(tf.zeros([4, 3]))
layer.losses

# %% deserialize
config = tf.keras.regularizers.serialize(tf.keras.regularizers.L2(0.1))
regularizer = tf.keras.regularizers.deserialize(config)
regularizer([1.0, -2.0])

# %% get
regularizer = tf.keras.regularizers.get("l2")
regularizer([10.0])

# %% l1_l2
tf.keras.regularizers.l1_l2()([10.0])

# %% serialize
tf.keras.regularizers.serialize(tf.keras.regularizers.L1L2(l1=0.1))
