# %% AUGRUCell
steps, attention = tf.ones([1, 3, 2]), tf.constant([[[0.0], [0.5], [1.0]]])
layer = tf.keras.layers.RNN(tf.keras.layers.AUGRUCell(2), return_sequences=True)
layer((steps, attention))


# %% AbstractRNNCell
class Sum(tf.keras.layers.AbstractRNNCell):
    state_size = output_size = 1

    def call(self, inputs, states):
        total = states[0] + inputs
        return total, [total]


tf.keras.layers.RNN(Sum(), return_sequences=True)(tf.constant([[[1.0], [2.0], [3.0]]]))

# %% Activation
tf.keras.layers.Activation("relu")(tf.constant([[-1.0, 2.0]]))

# %% ActivityRegularization
layer = tf.keras.layers.ActivityRegularization(l2=0.5)
outputs = layer(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
outputs, layer.losses

# %% Add
first, second = tf.constant([[1.0, 2.0]]), tf.constant([[10.0, 20.0]])
tf.keras.layers.Add()([first, second])

# %% AdditiveAttention
query = [[[1.0, 0.0]]]
value = [[[1.0, 0.0], [0.0, 1.0]]]
layer = tf.keras.layers.AdditiveAttention(use_scale=False)
layer([query, value], return_attention_scores=True)

# %% AlphaDropout
tf.set_random_seed(1)
tf.keras.layers.AlphaDropout(0.5)(np.ones([2, 4], "float32"), training=True)

# %% Attention
query = [[[4.0, 0.0]]]
value = [[[1.0, 0.0], [0.0, 1.0]]]
layer = tf.keras.layers.Attention()
layer([query, value], return_attention_scores=True)

# %% Average
first, second = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 6.0]])
tf.keras.layers.Average()([first, second])

# %% AveragePooling1D
steps = np.array([[1.0], [3.0], [5.0], [7.0]])
tf.keras.layers.AveragePooling1D(2)(steps[None])

# %% AveragePooling2D
image = np.arange(16.0).reshape(1, 4, 4, 1)
tf.keras.layers.AveragePooling2D(2)(image)[0, :, :, 0]

# %% AveragePooling3D
volume = np.arange(8.0).reshape(1, 2, 2, 2, 1)
tf.keras.layers.AveragePooling3D(2)(volume)

# %% BatchNormalization
layer = tf.keras.layers.BatchNormalization(momentum=0.5)
outputs = layer(tf.constant([[1.0, 10.0], [3.0, 30.0]]), training=True)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print(session.run(outputs))
    session.run(layer.updates)
    print(session.run(layer.moving_mean))

# %% Bidirectional
inputs = np.ones([2, 3, 4], "float32")
layer = tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(5, return_sequences=True))
layer(inputs).shape

# %% BilinearInteraction
fields = np.ones([2, 3, 4], "float32")
tf.keras.layers.BilinearInteraction(bilinear_type="each")(fields).shape

# %% CategoryEncoding
layer = tf.keras.layers.CategoryEncoding(num_tokens=4, output_mode="count")
layer(tf.constant([[0, 1, 1], [3, 3, 3]]))

# %% CompressedInteraction
fields = np.ones([2, 5, 4], "float32")
layer = tf.keras.layers.CompressedInteraction(maps=[8, 6], split_half=True)
layer(fields).shape, [kernel.shape for kernel in layer.kernels]

# %% Concatenate
first, second = tf.constant([[1.0, 2.0]]), tf.constant([[3.0]])
tf.keras.layers.Concatenate()([first, second])

# %% Conv1D
steps = np.array([[1.0], [2.0], [4.0], [8.0]])
layer = tf.keras.layers.Conv1D(1, 2, padding="causal", kernel_initializer="ones")
layer(steps[None])

# %% Conv1DTranspose
steps = np.array([[1.0], [2.0]])
layer = tf.keras.layers.Conv1DTranspose(1, 2, strides=2, kernel_initializer="ones")
layer(steps[None])

# %% Conv2D
images = np.zeros([8, 28, 28, 3], "float32")
layer = tf.keras.layers.Conv2D(16, (3, 3), strides=2, padding="same", activation="relu")
layer(images).shape, layer.kernel.shape

# %% Conv2DTranspose
images = np.zeros([8, 14, 14, 16], "float32")
tf.keras.layers.Conv2DTranspose(3, (3, 3), strides=2, padding="same")(images).shape

# %% Conv3D
volumes = np.zeros([2, 8, 8, 8, 1], "float32")
tf.keras.layers.Conv3D(4, 3)(volumes).shape

# %% Conv3DTranspose
volumes = np.zeros([2, 4, 4, 4, 1], "float32")
tf.keras.layers.Conv3DTranspose(2, 3, strides=2, padding="same")(volumes).shape

# %% ConvLSTM2D
videos = np.zeros([2, 5, 8, 8, 3], "float32")
layer = tf.keras.layers.ConvLSTM2D(4, (3, 3), padding="same", return_sequences=True)
layer(videos).shape

# %% Cropping1D
steps = np.array([[1.0], [2.0], [3.0], [4.0]])
tf.keras.layers.Cropping1D((1, 2))(steps[None])

# %% Cropping2D
image = np.arange(16.0).reshape(1, 4, 4, 1)
tf.keras.layers.Cropping2D(((1, 1), (2, 0)))(image)[0, :, :, 0]

# %% Cropping3D
volume = np.arange(27.0).reshape(1, 3, 3, 3, 1)
tf.keras.layers.Cropping3D(1)(volume)

# %% CrossNetwork
inputs = np.ones([2, 6], "float32")
layer = tf.keras.layers.CrossNetwork(num_layers=3)
layer(inputs).shape, len(layer.kernels)

# %% CrossNetworkV2
inputs = np.ones([2, 6], "float32")
full = tf.keras.layers.CrossNetworkV2(num_layers=2)
mixture = tf.keras.layers.CrossNetworkV2(num_layers=2, rank=3, experts=4)
full(inputs).shape, mixture(inputs).shape, mixture.projections[0].shape

# %% CuDNNGRU
layer = tf.keras.layers.CuDNNGRU(4)
layer(np.ones([2, 3, 5], "float32")).shape, [each.shape for each in layer.weights]

# %% CuDNNLSTM
layer = tf.keras.layers.CuDNNLSTM(4)
layer(np.ones([2, 3, 5], "float32")).shape, [each.shape for each in layer.weights]

# %% Dense
layer = tf.keras.layers.Dense(2, activation="relu", kernel_initializer="ones")
outputs = layer(tf.constant([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]]))
outputs, layer.kernel, layer.bias

# %% DepthwiseConv1D
steps = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
layer = tf.keras.layers.DepthwiseConv1D(2, depthwise_initializer="ones")
layer(steps[None])

# %% DepthwiseConv2D
images = np.zeros([8, 28, 28, 3], "float32")
layer = tf.keras.layers.DepthwiseConv2D((3, 3), depth_multiplier=2)
layer(images).shape, layer.depthwise_kernel.shape

# %% Dice
tf.keras.layers.Dice()(tf.constant([[-2.0, 0.0, 2.0]]))

# %% Discretization
layer = tf.keras.layers.Discretization(bin_boundaries=[18.0, 65.0])
layer(tf.constant([[5.0, 18.0, 40.0, 70.0]]))

# %% Dot
first, second = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 4.0]])
tf.keras.layers.Dot(axes=1)([first, second])

# %% Dropout
tf.set_random_seed(1)
layer = tf.keras.layers.Dropout(0.5)
inputs = np.ones([2, 4], "float32")
layer(inputs, training=True), layer(inputs, training=False)

# %% ELU
tf.keras.layers.ELU()(tf.constant([[-1.0, 2.0]]))

# %% EinsumDense
inputs = np.zeros([8, 10, 64], "float32")
layer = tf.keras.layers.EinsumDense("abc,cde->abde", (None, 4, 16), bias_axes="de")
layer(inputs).shape, layer.kernel.shape, layer.bias.shape

# %% Embedding
layer = tf.keras.layers.Embedding(input_dim=3, output_dim=2)
vectors = layer(tf.constant([[2, 0, 2]]))
vectors.shape, layer.embeddings.shape

# %% FactorizationMachine
fields = tf.constant([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]])
tf.keras.layers.FactorizationMachine()(fields)

# %% FieldAttention
fields = np.ones([2, 5, 4], "float32")
tf.keras.layers.FieldAttention(num_heads=2, key_dim=8)(fields).shape

# %% Flatten
tf.keras.layers.Flatten()(np.arange(8.0).reshape(2, 2, 2))

# %% GRU
inputs = np.ones([2, 3, 5], "float32")
layer = tf.keras.layers.GRU(4, return_sequences=True, return_state=True)
outputs, state = layer(inputs)
outputs.shape, state.shape

# %% GRUCell
cell = tf.keras.layers.GRUCell(4)
output, states = cell(np.ones([2, 5], "float32"), [tf.zeros([2, 4])])
output.shape, states[0].shape

# %% GaussianDropout
tf.set_random_seed(1)
tf.keras.layers.GaussianDropout(0.2)(np.ones([2, 4], "float32"), training=True)

# %% GaussianNoise
tf.set_random_seed(1)
tf.keras.layers.GaussianNoise(0.1)(np.ones([2, 4], "float32"), training=True)

# %% GlobalAveragePooling1D
tf.keras.layers.GlobalAveragePooling1D()(tf.constant([[[1.0, 10.0], [3.0, 30.0]]]))

# %% GlobalAveragePooling2D
images = np.arange(16.0).reshape(2, 2, 2, 2)
tf.keras.layers.GlobalAveragePooling2D()(images)

# %% GlobalAveragePooling3D
volumes = np.arange(16.0).reshape(1, 2, 2, 2, 2)
tf.keras.layers.GlobalAveragePooling3D(keepdims=True)(volumes)

# %% GlobalMaxPool1D
tf.keras.layers.GlobalMaxPool1D()(tf.constant([[[1.0, 30.0], [3.0, 10.0]]]))

# %% GlobalMaxPool2D
images = np.arange(16.0).reshape(2, 2, 2, 2)
tf.keras.layers.GlobalMaxPool2D()(images)

# %% GlobalMaxPool3D
volumes = np.arange(16.0).reshape(1, 2, 2, 2, 2)
tf.keras.layers.GlobalMaxPool3D(keepdims=True)(volumes)

# %% GroupNormalization
tf.keras.layers.GroupNormalization(groups=2)(tf.constant([[1.0, 3.0, 10.0, 30.0]]))

# %% HashedCrossing
colour, size = tf.constant(["red", "red", "blue"]), tf.constant(["S", "L", "L"])
tf.keras.layers.HashedCrossing(num_bins=10)([colour, size])

# %% Hashing
tf.keras.layers.Hashing(num_bins=10)(tf.constant([["red", "green", "red"]]))

# %% Identity
tf.keras.layers.Identity()(tf.constant([[1.0, 2.0]]))

# %% InputLayer
model = tf.keras.Sequential(
    [tf.keras.layers.InputLayer(input_shape=(4,)), tf.keras.layers.Dense(2)]
)
model.input_shape, model.output_shape

# %% InputSpec
layer = tf.keras.layers.Dense(2)
layer.input_spec = tf.keras.layers.InputSpec(ndim=2, axes={-1: 3})
try:
    layer(np.zeros([5, 4], "float32"))
except ValueError as error:
    print(error)

# %% IntegerLookup
layer = tf.keras.layers.IntegerLookup(vocabulary=[10, 20, 30])
layer(tf.constant([[20, 30, 99]]))

# %% LSTM
inputs = np.ones([2, 3, 5], "float32")
output, hidden, memory = tf.keras.layers.LSTM(4, return_state=True)(inputs)
output.shape, hidden.shape, memory.shape

# %% LSTMCell
cell = tf.keras.layers.LSTMCell(4)
output, states = cell(np.ones([2, 5], "float32"), [tf.zeros([2, 4]), tf.zeros([2, 4])])
output.shape, [state.shape for state in states]

# %% Lambda
tf.keras.layers.Lambda(lambda x: x**2)(tf.constant([[1.0, 2.0, 3.0]]))


# %% Layer
class Scale(tf.keras.layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight("factor", [input_shape[-1]], initializer="ones")
        super().build(input_shape)

    def call(self, inputs):
        return inputs * self.factor


layer = Scale()
layer(tf.constant([[1.0, 2.0]])), layer.trainable_weights

# %% LayerNormalization
tf.keras.layers.LayerNormalization()(tf.constant([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]))

# %% LeakyReLU
tf.keras.layers.LeakyReLU(alpha=0.1)(tf.constant([[-1.0, 2.0]]))

# %% LocallyConnected1D
layer = tf.keras.layers.LocallyConnected1D(2, kernel_size=3)
layer(np.zeros([8, 10, 4], "float32")).shape, layer.kernel.shape

# %% LocallyConnected2D
layer = tf.keras.layers.LocallyConnected2D(2, kernel_size=(3, 3))
layer(np.zeros([8, 6, 6, 4], "float32")).shape, layer.kernel.shape

# %% Masking
inputs = tf.constant([[[1.0], [2.0], [9.0]]])
layer = tf.keras.layers.Masking(mask_value=9.0)
layer.compute_mask(inputs), layer(inputs)

# %% MaxPool1D
steps = np.array([[1.0], [3.0], [5.0], [7.0]])
tf.keras.layers.MaxPool1D(2, strides=1)(steps[None])

# %% MaxPool2D
image = np.arange(16.0).reshape(1, 4, 4, 1)
tf.keras.layers.MaxPool2D(2)(image)[0, :, :, 0]

# %% MaxPool3D
volume = np.arange(8.0).reshape(1, 2, 2, 2, 1)
tf.keras.layers.MaxPool3D(2)(volume)

# %% Maximum
first, second = tf.constant([[1.0, 5.0]]), tf.constant([[3.0, 2.0]])
tf.keras.layers.Maximum()([first, second])

# %% MemberDense
inputs = np.ones([2, 3], "float32")
layer = tf.keras.layers.MemberDense(5, members=4, input_scale_initializer="random_signs")
layer(inputs).shape

# %% Minimum
first, second = tf.constant([[1.0, 5.0]]), tf.constant([[3.0, 2.0]])
tf.keras.layers.Minimum()([first, second])

# %% MultiGateMixtureOfExperts
layer = tf.keras.layers.MultiGateMixtureOfExperts(2, num_experts=3, expert_units=[4])
[each.shape for each in layer(tf.ones([5, 2]))]

# %% MultiHeadAttention
query, value = np.ones([2, 3, 8], "float32"), np.ones([2, 5, 8], "float32")
layer = tf.keras.layers.MultiHeadAttention(num_heads=4, key_dim=2)
outputs, scores = layer(query, value, return_attention_scores=True)
outputs.shape, scores.shape

# %% Multiply
first, second = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 4.0]])
tf.keras.layers.Multiply()([first, second])

# %% Normalization
layer = tf.keras.layers.Normalization()
layer.adapt(np.array([[1.0, 10.0], [3.0, 30.0]]))
tf.keras.Sequential([layer]).predict(np.array([[2.0, 20.0], [3.0, 40.0]]))

# %% PReLU
layer = tf.keras.layers.PReLU(alpha_initializer=tf.keras.initializers.Constant(0.25))
layer(tf.constant([[-1.0, 2.0]])), layer.alpha

# %% ParametricActivation
layer = tf.keras.layers.ParametricActivation("relu", alpha_initializer="zeros")
layer(tf.constant([[-1.0, 2.0]]))

# %% PeriodicEmbedding
tf.keras.layers.PeriodicEmbedding()(tf.constant([[-1.0, 2.0]])).shape

# %% Permute
inputs = np.zeros([8, 2, 3, 5], "float32")
tf.keras.layers.Permute((3, 1, 2))(inputs).shape

# %% PiecewiseLinearEmbedding
layer = tf.keras.layers.PiecewiseLinearEmbedding([[0.0, 1.0, 3.0]], units=5)
layer(tf.constant([[-1.0], [2.0]])).shape

# %% PiecewiseLinearEncoding
layer = tf.keras.layers.PiecewiseLinearEncoding([[0.0, 1.0, 3.0]])
layer(tf.constant([[-1.0], [0.5], [2.0], [5.0]]))

# %% ProgressiveLayeredExtraction
layer = tf.keras.layers.ProgressiveLayeredExtraction(2, num_levels=2, expert_units=[4])
[each.shape for each in layer(tf.ones([5, 2]))]

# %% RNN
cells = [tf.keras.layers.LSTMCell(4), tf.keras.layers.LSTMCell(3)]
tf.keras.layers.RNN(cells, return_sequences=True)(np.ones([2, 6, 5], "float32")).shape

# %% ReLU
tf.keras.layers.ReLU(max_value=6.0)(tf.constant([[-1.0, 2.0, 8.0]]))

# %% RepeatVector
tf.keras.layers.RepeatVector(3)(tf.constant([[1.0, 2.0]]))

# %% Rescaling
tf.keras.layers.Rescaling(1 / 127.5, offset=-1.0)(tf.constant([[0.0, 127.5, 255.0]]))

# %% Reshape
tf.keras.layers.Reshape((3, -1))(np.arange(6.0).reshape(1, 6))

# %% ScalingLayer
tf.keras.layers.ScalingLayer()(tf.constant([[-1.0, 2.0]]))

# %% SeparableConv1D
layer = tf.keras.layers.SeparableConv1D(6, 3)
layer(np.zeros([8, 10, 4], "float32")).shape, layer.count_params()

# %% SeparableConv2D
layer = tf.keras.layers.SeparableConv2D(16, (3, 3), padding="same")
outputs = layer(np.zeros([8, 28, 28, 3], "float32"))
outputs.shape, layer.depthwise_kernel.shape, layer.pointwise_kernel.shape

# %% SimpleRNN
layer = tf.keras.layers.SimpleRNN(
    1,
    activation=None,
    kernel_initializer="ones",
    recurrent_initializer="ones",
    return_sequences=True,
)
layer(tf.constant([[[1.0], [2.0], [3.0]]]))

# %% SimpleRNNCell
cell = tf.keras.layers.SimpleRNNCell(
    1, activation=None, kernel_initializer="ones", recurrent_initializer="ones"
)
cell(tf.constant([[2.0]]), [tf.constant([[10.0]])])

# %% Softmax
tf.keras.layers.Softmax()(tf.constant([[1.0, 2.0, 3.0]]))

# %% SpatialDropout1D
tf.set_random_seed(1)
tf.keras.layers.SpatialDropout1D(0.5)(np.ones([1, 3, 4], "float32"), training=True)

# %% SpatialDropout2D
tf.set_random_seed(1)
images = np.ones([1, 2, 2, 4], "float32")
tf.keras.layers.SpatialDropout2D(0.5)(images, training=True)

# %% SpatialDropout3D
tf.set_random_seed(1)
volumes = np.ones([1, 2, 2, 1, 4], "float32")
tf.keras.layers.SpatialDropout3D(0.5)(volumes, training=True)

# %% SqueezeExcitation
fields = np.ones([2, 6, 4], "float32")
layer = tf.keras.layers.SqueezeExcitation(reduction_ratio=3)
layer(fields).shape, layer.squeeze.shape

# %% StackedRNNCells
cells = [tf.keras.layers.GRUCell(4), tf.keras.layers.GRUCell(3)]
cell = tf.keras.layers.StackedRNNCells(cells)
tf.keras.layers.RNN(cell)(np.ones([2, 6, 5], "float32")).shape, cell.state_size

# %% StringLookup
layer = tf.keras.layers.StringLookup()
layer.adapt(["red", "blue", "red", "red", "green", "blue"])
print(layer.get_vocabulary())
layer(tf.constant([["red", "violet"]]))

# %% Subtract
first, second = tf.constant([[5.0, 6.0]]), tf.constant([[1.0, 2.0]])
tf.keras.layers.Subtract()([first, second])

# %% TargetAttention
target, history = tf.ones([1, 2]), tf.constant([[[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]])
layer = tf.keras.layers.TargetAttention([4], softmax=True)
layer([target, history, tf.constant([2])], return_attention_scores=True)

# %% TextVectorization
layer = tf.keras.layers.TextVectorization()
layer.adapt(["The cat sat.", "The dog sat, too."])
print(layer.get_vocabulary())
layer(tf.constant(["The dog", "A cat sat"]))

# %% ThresholdedReLU
tf.keras.layers.ThresholdedReLU(theta=1.0)(tf.constant([[0.5, 1.5]]))

# %% TimeDistributed
videos = np.zeros([2, 5, 8, 8, 3], "float32")
layer = tf.keras.layers.TimeDistributed(tf.keras.layers.Conv2D(4, (3, 3)))
layer(videos).shape

# %% UnitNormalization
tf.keras.layers.UnitNormalization()(tf.constant([[3.0, 4.0]]))

# %% UpSampling1D
tf.keras.layers.UpSampling1D(2)(tf.constant([[[1.0], [2.0]]]))

# %% UpSampling2D
image = np.arange(4.0).reshape(1, 2, 2, 1)
tf.keras.layers.UpSampling2D((2, 1))(image)[0, :, :, 0]

# %% UpSampling3D
volumes = np.zeros([2, 2, 3, 4, 1], "float32")
tf.keras.layers.UpSampling3D(2)(volumes).shape


# %% Wrapper
class Doubled(tf.keras.layers.Wrapper):
    def call(self, inputs):
        return 2.0 * self.layer(inputs)


Doubled(tf.keras.layers.Dense(1, kernel_initializer="ones"))(tf.constant([[1.0, 2.0]]))

# %% ZeroPadding1D
tf.keras.layers.ZeroPadding1D((1, 2))(tf.constant([[[1.0], [2.0]]]))

# %% ZeroPadding2D
image = np.ones([1, 2, 2, 1], "float32")
tf.keras.layers.ZeroPadding2D(((1, 0), (0, 2)))(image)[0, :, :, 0]

# %% ZeroPadding3D
volumes = np.zeros([2, 2, 3, 4, 1], "float32")
tf.keras.layers.ZeroPadding3D(1)(volumes).shape

# %% add
first, second = tf.constant([[1.0, 2.0]]), tf.constant([[10.0, 20.0]])
tf.keras.layers.add([first, second])

# %% average
first, second = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 6.0]])
tf.keras.layers.average([first, second])

# %% concatenate
first, second = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 4.0]])
tf.keras.layers.concatenate([first, second], axis=0)

# %% deserialize
config = tf.keras.layers.serialize(tf.keras.layers.Dense(2, activation="relu"))
layer = tf.keras.layers.deserialize(config)
type(layer).__name__, layer.units

# %% dot
first, second = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 4.0]])
tf.keras.layers.dot([first, second], axes=1)

# %% maximum
first, second = tf.constant([[1.0, 5.0]]), tf.constant([[3.0, 2.0]])
tf.keras.layers.maximum([first, second])

# %% minimum
first, second = tf.constant([[1.0, 5.0]]), tf.constant([[3.0, 2.0]])
tf.keras.layers.minimum([first, second])

# %% multiply
first, second = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 4.0]])
tf.keras.layers.multiply([first, second])

# %% serialize
tf.keras.layers.serialize(tf.keras.layers.Activation("relu", name="rectify"))

# %% subtract
first, second = tf.constant([[5.0, 6.0]]), tf.constant([[1.0, 2.0]])
tf.keras.layers.subtract([first, second])
