# %% deserialize
function = tf.keras.activations.deserialize("softsign")
function([-2.0, 2.0])

# %% elu
tf.keras.activations.elu([-2.0, 0.0, 2.0])

# %% exponential
tf.keras.activations.exponential([-2.0, 0.0, 2.0])

# %% gelu
tf.keras.activations.gelu([-2.0, 0.0, 2.0])

# %% get
function = tf.keras.activations.get("relu")
function([-2.0, 2.0])

# %% hard_sigmoid
tf.keras.activations.hard_sigmoid([-2.0, 0.0, 2.0])

# %% linear
tf.keras.activations.linear(tf.constant([-2.0, 0.0, 2.0]))

# %% mish
tf.keras.activations.mish([-2.0, 0.0, 2.0])

# %% relu
tf.keras.activations.relu([-2.0, 0.0, 2.0, 8.0], alpha=0.1, max_value=6.0)

# %% selu
tf.keras.activations.selu([-2.0, 0.0, 2.0])

# %% serialize
tf.keras.activations.serialize(tf.nn.relu)

# %% sigmoid
tf.keras.activations.sigmoid([-2.0, 0.0, 2.0])

# %% softmax
tf.keras.activations.softmax([[1.0, 2.0, 3.0]])

# %% softplus
tf.keras.activations.softplus([-2.0, 0.0, 2.0])

# %% softsign
tf.keras.activations.softsign([-2.0, 0.0, 2.0])

# %% swish
tf.keras.activations.swish([-2.0, 0.0, 2.0])

# %% tanh
tf.keras.activations.tanh([-2.0, 0.0, 2.0])
