# %% Builder
x = tf.placeholder(tf.float32, [None], name="x")
y = tf.get_variable("w", initializer=2.0) * x
signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y})
builder = tf.saved_model.Builder("model")
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    builder.add_meta_graph_and_variables(
        session, [tf.saved_model.SERVING], {"serving_default": signature}
    )
builder.save()
tf.saved_model.contains_saved_model("model")

# %% build_signature_def
x = tf.placeholder(tf.float32, [None], name="x")
y = tf.multiply(x, 2.0, name="y")
signature = tf.saved_model.build_signature_def(
    {"x": tf.saved_model.build_tensor_info(x)},
    {"y": tf.saved_model.build_tensor_info(y)},
    "tensorflow/serving/predict",
)
signature.inputs["x"].name, signature.outputs["y"].name

# %% build_tensor_info
x = tf.placeholder(tf.float32, [None, 3], name="x")
tf.saved_model.build_tensor_info(x)

# %% classification_signature_def
examples = tf.placeholder(tf.string, [None])
scores = tf.placeholder(tf.float32, [None, 2])
signature = tf.saved_model.classification_signature_def(examples, None, scores)
signature.method_name, list(signature.inputs), list(signature.outputs)

# %% contains_saved_model
x = tf.placeholder(tf.float32, [None], name="x")
y = tf.get_variable("w", initializer=2.0) * x
before = tf.saved_model.contains_saved_model("model")
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.saved_model.simple_save(session, "model", {"x": x}, {"y": y})
before, tf.saved_model.contains_saved_model("model")

# %% get_tensor_from_tensor_info
x = tf.placeholder(tf.float32, [None], name="x")
info = tf.saved_model.build_tensor_info(x)
tf.saved_model.get_tensor_from_tensor_info(info) is x

# %% is_valid_signature
x = tf.placeholder(tf.float32, [None], name="x")
signature = tf.saved_model.predict_signature_def({"x": x}, {"y": x * 2.0})
empty = tf.saved_model.build_signature_def()
tf.saved_model.is_valid_signature(signature), tf.saved_model.is_valid_signature(empty)

# %% load
x = tf.placeholder(tf.float32, [None], name="x")
y = tf.get_variable("w", initializer=2.0) * x
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.saved_model.simple_save(session, "model", {"x": x}, {"y": y})
with tf.Session(graph=tf.Graph()) as session:
    loaded = tf.saved_model.load(session, [tf.saved_model.SERVING], "model")
    signature = loaded.signature_def["serving_default"]
    print(session.run(signature.outputs["y"].name, {signature.inputs["x"].name: [3.0]}))

# %% predict_signature_def
x = tf.placeholder(tf.float32, [None], name="x")
signature = tf.saved_model.predict_signature_def({"x": x}, {"y": x * 2.0})
signature.method_name, list(signature.inputs), list(signature.outputs)

# %% regression_signature_def
examples = tf.placeholder(tf.string, [None])
predictions = tf.placeholder(tf.float32, [None])
signature = tf.saved_model.regression_signature_def(examples, predictions)
signature.method_name, list(signature.inputs), list(signature.outputs)

# %% simple_save
x = tf.placeholder(tf.float32, [None], name="x")
y = tf.get_variable("w", initializer=2.0) * x
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.saved_model.simple_save(session, "model", {"x": x}, {"y": y})
sorted(tf.gfile.listdir("model"))
