# %% clone_model
model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=[3], use_bias=False)])
copy = tf.keras.models.clone_model(model)
x = np.ones([1, 3], "float32")
print(np.allclose(model.predict(x), copy.predict(x)))
copy.set_weights(model.get_weights())
print(np.allclose(model.predict(x), copy.predict(x)))

# %% load_model
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[3])])
model.compile("adam", "mse")
tf.keras.models.save_model(model, "model.keras")
loaded = tf.keras.models.load_model("model.keras")
x = np.ones([1, 3], "float32")
print(np.array_equal(model.predict(x), loaded.predict(x)))
loaded.fit(x, [[1.0]], verbose=0).epoch

# %% model_from_config
model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=[3])], name="small")
config = {"class_name": "Sequential", "config": model.get_config()}
copy = tf.keras.models.model_from_config(config)
copy.name, copy.output_shape

# %% model_from_json
model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=[3])], name="small")
copy = tf.keras.models.model_from_json(model.to_json())
copy.name, copy.output_shape

# %% model_from_yaml
import json

import yaml

model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=[3])], name="small")
text = yaml.safe_dump(json.loads(model.to_json()))
copy = tf.keras.models.model_from_yaml(text)
copy.name, copy.output_shape

# %% save_model
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[3])])
tf.keras.models.save_model(model, "model.h5")
tf.keras.models.save_model(model, "folder")
sorted(tf.gfile.ListDirectory(".")), tf.keras.models.load_model("folder").output_shape
