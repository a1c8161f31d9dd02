# %% ClassificationOutput
scores = tf.constant([[0.2, 0.8]])
classes = tf.constant([["no", "yes"]])
output = tf.estimator.export.ClassificationOutput(scores, classes)
signature = output.as_signature_def({"examples": tf.placeholder(tf.string, [None])})
signature.method_name, sorted(signature.outputs)

# %% EvalOutput
loss = tf.constant(0.5)
predictions = {"price": tf.constant([2.0])}
output = tf.estimator.export.EvalOutput(loss, predictions)
signature = output.as_signature_def({"x": tf.placeholder(tf.float32, [None])})
sorted(signature.outputs)

# %% ExportOutput
head = tf.estimator.RegressionHead()
mode = tf.estimator.ModeKeys.PREDICT
outputs = head.create_estimator_spec({}, mode, tf.constant([[2.0]])).export_outputs
all(isinstance(each, tf.estimator.export.ExportOutput) for each in outputs.values())

# %% PredictOutput
output = tf.estimator.export.PredictOutput({"price": tf.constant([2.0])})
signature = output.as_signature_def({"x": tf.placeholder(tf.float32, [None])})
signature.method_name, list(signature.inputs), list(signature.outputs)

# %% RegressionOutput
output = tf.estimator.export.RegressionOutput(tf.constant([2.0]))
signature = output.as_signature_def({"examples": tf.placeholder(tf.string, [None])})
signature.method_name, list(signature.outputs)


# %% ServingInputReceiver
def serving_input_receiver_fn():
    celsius = tf.placeholder(tf.float32, [None, 1])
    features = {"x": celsius / 100}
    return tf.estimator.export.ServingInputReceiver(features, {"celsius": celsius})


dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0]]}, [32.0, 212.0]))
model = tf.estimator.LinearRegressor(
    [tf.feature_column.numeric_column("x")], optimizer=tf.train.AdamOptimizer(1.0)
)
model.train(lambda: dataset.repeat(1000))
folder = model.export_saved_model("exports", serving_input_receiver_fn)
tf.estimator.load_predictor(folder)({"celsius": [[20.0]]})


# %% TensorServingInputReceiver
def model_fn(features, labels, mode):
    factor = tf.get_variable("factor", initializer=2.0)
    loss = tf.reduce_sum(factor * features)
    step = tf.assign_add(tf.train.get_global_step(), 1)
    return tf.estimator.EstimatorSpec(mode, factor * features, loss, step)


def serving_input_receiver_fn():
    numbers = tf.placeholder(tf.float32, [None])
    return tf.estimator.export.TensorServingInputReceiver(numbers, numbers)


dataset = tf.data.Dataset.from_tensors(([1.0, 2.0], [0.0, 0.0]))
model = tf.estimator.Estimator(model_fn).train(lambda: dataset)
folder = model.export_saved_model("exports", serving_input_receiver_fn)
tf.estimator.load_predictor(folder)({"input": [3.0, 4.0]})

# %% build_parsing_serving_input_receiver_fn
columns = [tf.feature_column.numeric_column("x")]
spec = tf.feature_column.make_parse_example_spec(columns)
receiver_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
model = tf.estimator.LinearRegressor(columns).train(lambda: dataset.repeat(1000))
folder = model.export_saved_model("exports", receiver_fn)
value = tf.train.Feature(float_list=tf.train.FloatList(value=[3.0]))
example = tf.train.Example(features=tf.train.Features(feature={"x": value}))
predictor = tf.estimator.load_predictor(folder)
predictor({"examples": [example.SerializeToString()]}, "predict")

# %% build_raw_serving_input_receiver_fn
columns = [tf.feature_column.numeric_column("x")]
receiver_fn = tf.estimator.export.build_raw_serving_input_receiver_fn(
    {"x": tf.TensorSpec([None, 1])}
)
dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
model = tf.estimator.LinearRegressor(columns).train(lambda: dataset.repeat(1000))
folder = model.export_saved_model("exports", receiver_fn)
tf.estimator.load_predictor(folder)({"x": [[3.0]]})

# %% serving_input_receiver_fn_from_columns
x = tf.feature_column.numeric_column("x", shape=[2])
colours = ["red", "blue"]
colour = tf.feature_column.categorical_column_with_vocabulary_list("colour", colours)
receiver_fn = tf.estimator.export.serving_input_receiver_fn_from_columns([x, colour])
{key: (each.dtype, each.shape) for key, each in receiver_fn().receiver_tensors.items()}
