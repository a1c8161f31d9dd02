# %% CustomObjectScope
def doubled(x):
    return 2.0 * x


with tf.keras.utils.CustomObjectScope({"doubled": doubled}):
    layer = tf.keras.layers.Activation("doubled")
layer(tf.constant([[1.0, 2.0]]))

# %% FeatureSpace
table = {"age": [20.0, 30.0, 40.0], "town": ["Rome", "Oslo", "Rome"]}
kinds = {"age": "float_normalized", "town": "string_categorical"}
space = tf.keras.utils.FeatureSpace(kinds)
space.adapt(tf.data.Dataset.from_tensor_slices(table).batch(3))
space({"age": tf.constant([30.0, 40.0]), "town": tf.constant(["Rome", "Bern"])})

# %% Progbar
bar = tf.keras.utils.Progbar(target=4)
for loss in 0.8, 0.6, 0.5, 0.5:
    bar.add(1, [("loss", loss)])


# %% Sequence
class Squares(tf.keras.utils.Sequence):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        numbers = np.arange(4.0).reshape(4, 1) + 4 * index
        return numbers, numbers**2


model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="zeros")])
model.compile("sgd", "mse")
model.evaluate(Squares(), verbose=0)

# %% deserialize_keras_object
layer = tf.keras.layers.Dense(2, activation="relu")
config = {"class_name": "Dense", "config": layer.get_config()}
tf.keras.utils.deserialize_keras_object(config).units


# %% get_custom_objects
def doubled(x):
    return 2.0 * x


tf.keras.utils.get_custom_objects()["doubled"] = doubled
layer = tf.keras.layers.Activation("doubled")
del tf.keras.utils.get_custom_objects()["doubled"]
layer(tf.constant([[1.0, 2.0]]))

# %% get_file
tf.gfile.MakeDirs("datasets")
with tf.gfile.GFile("datasets/words.txt", "w") as file:
    file.write("red blue")
tf.keras.utils.get_file(origin="https://example.com/words.txt", cache_dir=".")


# %% get_registered_name
@tf.keras.utils.register_keras_serializable(package="mine")
def doubled(x):
    return 2.0 * x


print(tf.keras.utils.get_registered_name(doubled))
del tf.keras.utils.get_custom_objects()["mine>doubled"]

# %% get_registered_object
objects = {"halve": lambda x: x / 2}
tf.keras.utils.get_registered_object("halve", custom_objects=objects)(3.0)

# %% get_source_inputs
first, second = tf.keras.Input([3]), tf.keras.Input([2])
merged = tf.keras.layers.concatenate([first, second])
outputs = tf.keras.layers.Dense(1)(merged)
[each.shape for each in tf.keras.utils.get_source_inputs(outputs)]

# %% multi_gpu_model
try:
    tf.keras.utils.multi_gpu_model(tf.keras.Sequential(), gpus=2)
except NotImplementedError as error:
    print(error)

# %% normalize
tf.keras.utils.normalize([[3.0, 4.0], [0.0, 2.0]])


# %% register_keras_serializable
@tf.keras.utils.register_keras_serializable(package="mine")
def doubled(x):
    return 2.0 * x


config = tf.keras.layers.serialize(tf.keras.layers.Lambda(doubled))
layer = tf.keras.layers.deserialize(config)
del tf.keras.utils.get_custom_objects()["mine>doubled"]
layer(tf.constant([[1.0, 2.0]]))

# %% serialize_keras_object
tf.keras.utils.serialize_keras_object(tf.keras.regularizers.L2(0.1))

# %% set_random_seed
tf.keras.utils.set_random_seed(1)
print(np.random.uniform(size=2))
tf.random.uniform([2])

# %% to_categorical
tf.keras.utils.to_categorical([0, 2, 1], num_classes=4)
