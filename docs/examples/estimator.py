# %% AutoInt
features = {"user": ["ann", "bob", "ann", "eve"], "ad": ["x", "y", "y", "x"]}
dataset = tf.data.Dataset.from_tensor_slices((features, [1, 0, 0, 1])).batch(4)
hashed = tf.feature_column.categorical_column_with_hash_bucket
fields = [tf.feature_column.embedding_column(hashed(key, 100), 4) for key in features]
config = tf.estimator.RunConfig(tf_random_seed=1)
model = tf.estimator.AutoInt(fields, attention_layers=2, config=config)
model.train(lambda: dataset.repeat(100)).evaluate(lambda: dataset)["auc"]


# %% BaselineClassifier
def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[1.0]] * 4}, [0, 1, 1, 1])).repeat(200)


model = tf.estimator.BaselineClassifier()
model.train(input_fn)
next(model.predict(input_fn, "probabilities"))


# %% BaselineEstimator
def input_fn():
    dataset = tf.data.Dataset.from_tensors(({"x": [[1.0]] * 3}, [2.0, 4.0, 9.0]))
    return dataset.repeat(50)


head = tf.estimator.RegressionHead()
model = tf.estimator.BaselineEstimator(head, optimizer="SGD").train(input_fn)
next(model.predict(input_fn))


# %% BaselineRegressor
def input_fn():
    dataset = tf.data.Dataset.from_tensors(({"x": [[1.0]] * 3}, [2.0, 4.0, 9.0]))
    return dataset.repeat(50)


model = tf.estimator.BaselineRegressor(optimizer="SGD").train(input_fn)
next(model.predict(input_fn))

# %% BoostedTreesClassifier
features = {"age": [22.0, 38.0, np.nan, 35.0] * 10, "sex": ["m", "f", "f", "m"] * 10}
dataset = tf.data.Dataset.from_tensor_slices((features, [0, 1, 1, 0] * 10)).batch(8)
sex = tf.feature_column.categorical_column_with_vocabulary_list("sex", ["f", "m"])
columns = [tf.feature_column.numeric_column("age"), sex]
model = tf.estimator.BoostedTreesClassifier(columns, n_trees=10).train(lambda: dataset)
next(model.predict(lambda: dataset, "probabilities"))

# %% BoostedTreesEstimator
features = {"x": np.linspace(0.0, 3.0, 40)}
dataset = tf.data.Dataset.from_tensor_slices((features, np.arange(40) // 10)).batch(8)
columns = [tf.feature_column.numeric_column("x")]
head = tf.estimator.PoissonRegressionHead()
model = tf.estimator.BoostedTreesEstimator(columns, 1, head, n_trees=20)
next(model.train(lambda: dataset).predict(lambda: dataset))

# %% BoostedTreesRegressor
features = {"x": np.linspace(0.0, 1.0, 40)}
dataset = tf.data.Dataset.from_tensor_slices((features, features["x"] ** 2)).batch(8)
columns = [tf.feature_column.numeric_column("x")]
model = tf.estimator.BoostedTreesRegressor(columns, n_trees=20, max_depth=3)
model.train(lambda: dataset).experimental_feature_importances()

# %% BestExporter
dataset = tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [1.0, 3.0]))
columns = [tf.feature_column.numeric_column("x")]
receiver = tf.estimator.export.serving_input_receiver_fn_from_columns(columns)
exporter = tf.estimator.BestExporter("best", receiver, metric="average_loss")
train_spec = tf.estimator.TrainSpec(dataset.repeat, max_steps=20)
eval_spec = tf.estimator.EvalSpec(lambda: dataset, exporters=exporter)
model = tf.estimator.LinearRegressor(columns, "model")
_, exports = tf.estimator.train_and_evaluate(model, train_spec, eval_spec)
tf.estimator.load_predictor(exports[0])({"x": [[3.0]]})["predictions"].shape

# %% BinaryClassHead
head = tf.estimator.BinaryClassHead()
logits = [[2.0], [-1.0]]
head.loss([[1], [0]], logits), head.predictions(logits, ["probabilities", "class_ids"])

# %% CheckpointSaverHook
step = tf.train.get_or_create_global_step()
increase = tf.assign_add(step, 1)
saver = tf.estimator.CheckpointSaverHook("model", save_steps=2)
stop = tf.estimator.StopAtStepHook(5)
with tf.train.MonitoredSession(hooks=[saver, stop]) as session:
    while not session.should_stop():
        session.run(increase)
checkpoints = tf.train.get_checkpoint_state("model").all_model_checkpoint_paths
[path[-12:] for path in checkpoints]


# %% CheckpointSaverListener
class Report(tf.estimator.CheckpointSaverListener):
    def after_save(self, session, global_step_value):
        print("saved step", global_step_value)


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[1.0]]}, [3.0])).repeat(4)


config = tf.estimator.RunConfig(save_checkpoints_steps=2)
columns = [tf.feature_column.numeric_column("x")]
model = tf.estimator.LinearRegressor(columns, config=config)
print(model.train(input_fn, saving_listeners=[Report()]).latest_checkpoint()[-12:])

# %% DCN
features = {"user": ["ann", "bob", "ann", "eve"], "ad": ["x", "y", "y", "x"]}
dataset = tf.data.Dataset.from_tensor_slices((features, [1, 0, 0, 1])).batch(4)
hashed = tf.feature_column.categorical_column_with_hash_bucket
fields = [tf.feature_column.embedding_column(hashed(key, 100), 4) for key in features]
config = tf.estimator.RunConfig(tf_random_seed=1)
model = tf.estimator.DCN(fields, [8], rank=4, experts=2, config=config)
model.train(lambda: dataset.repeat(100)).evaluate(lambda: dataset)["auc"]

# %% DIEN
ids = tf.feature_column.categorical_column_with_identity("item", 10)
viewed = tf.feature_column.sequence_categorical_column_with_identity("viewed", 10)
item, viewed = tf.feature_column.shared_embeddings([ids, viewed], 4)
features = {"item": [1, 2], "viewed": [[1, 3, -1], [4, 5, 6]]}  # -1 pads


def input_fn():
    return tf.data.Dataset.from_tensors((features, [1, 0])).repeat(20)


model = tf.estimator.DIEN([8], [item], sequences=[(viewed, item)])
model.train(input_fn)
model.evaluate(input_fn, steps=1)["auc"]

# %% DIN
ids = tf.feature_column.categorical_column_with_identity("item", 10)
viewed = tf.feature_column.sequence_categorical_column_with_identity("viewed", 10)
item, viewed = tf.feature_column.shared_embeddings([ids, viewed], 4)
features = {"item": [1, 2], "viewed": [[1, 3, -1], [4, 5, 6]]}  # -1 pads


def input_fn():
    return tf.data.Dataset.from_tensors((features, [1, 0])).repeat(20)


model = tf.estimator.DIN([8], [item], sequences=[(viewed, item)])
model.train(input_fn)
model.evaluate(input_fn, steps=1)["auc"]

# %% DNNClassifier
(features, labels), test = tf.datasets.iris.load_data()
train_input_fn = tf.estimator.inputs.pandas_input_fn(
    features, labels, batch_size=32, num_epochs=20, shuffle=True
)
test_input_fn = tf.estimator.inputs.pandas_input_fn(*test, shuffle=False)
columns = [tf.feature_column.numeric_column(key) for key in features]
config = tf.estimator.RunConfig(tf_random_seed=1)
model = tf.estimator.DNNClassifier([10, 10], columns, n_classes=3, config=config)
model.train(train_input_fn).evaluate(test_input_fn)


# %% DNNEstimator
def input_fn():
    labels = {"colour": [0, 2, 1], "price": [1.0, 2.0, 3.0]}
    dataset = tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0], [3.0]]}, labels))
    return dataset.repeat(50)


colour = tf.estimator.MultiClassHead(n_classes=3, name="colour")
price = tf.estimator.RegressionHead(name="price")
columns = [tf.feature_column.numeric_column("x")]
head = tf.estimator.MultiHead([colour, price])
model = tf.estimator.DNNEstimator(head, [8], columns)
sorted(model.train(input_fn).evaluate(input_fn, steps=1))

# %% DNNLinearCombinedClassifier
features = {"age": [20.0, 30.0, 40.0, 50.0], "job": ["chef", "pilot", "chef", "pilot"]}
dataset = tf.data.Dataset.from_tensor_slices((features, [0, 1, 0, 1])).batch(4)
age = tf.feature_column.numeric_column("age", normalizer_fn=lambda age: age / 50)
jobs = ["chef", "pilot"]
job = tf.feature_column.categorical_column_with_vocabulary_list("job", jobs)
model = tf.estimator.DNNLinearCombinedClassifier(
    linear_feature_columns=[job],
    linear_optimizer=tf.train.FtrlOptimizer(0.5),
    dnn_feature_columns=[age, tf.feature_column.embedding_column(job, 2)],
    dnn_hidden_units=[8, 4],
    config=tf.estimator.RunConfig(tf_random_seed=1),
)
model.train(lambda: dataset.repeat(100))
[row["class_ids"] for row in model.predict(lambda: dataset)]

# %% DNNLinearCombinedEstimator
features = {"size": [1.0, 2.0, 3.0], "city": ["Bern", "Oslo", "Bern"]}
dataset = tf.data.Dataset.from_tensor_slices((features, [1.0, 6.0, 3.0])).batch(3)
cities = ["Bern", "Oslo"]
city = tf.feature_column.categorical_column_with_vocabulary_list("city", cities)
model = tf.estimator.DNNLinearCombinedEstimator(
    tf.estimator.PoissonRegressionHead(),
    linear_feature_columns=[city],
    dnn_feature_columns=[tf.feature_column.numeric_column("size")],
    dnn_hidden_units=[8],
    config=tf.estimator.RunConfig(tf_random_seed=1),
)
model.train(lambda: dataset.repeat(200)).evaluate(lambda: dataset)

# %% DNNLinearCombinedRegressor
features = {"size": [1.0, 2.0, 3.0], "city": ["Bern", "Oslo", "Bern"]}
dataset = tf.data.Dataset.from_tensor_slices((features, [1.0, 6.0, 3.0])).batch(3)
cities = ["Bern", "Oslo"]
city = tf.feature_column.categorical_column_with_vocabulary_list("city", cities)
model = tf.estimator.DNNLinearCombinedRegressor(
    linear_feature_columns=[city],
    linear_optimizer=tf.train.AdamOptimizer(0.1),
    dnn_feature_columns=[tf.feature_column.numeric_column("size")],
    dnn_optimizer=tf.train.AdamOptimizer(0.01),
    dnn_hidden_units=[8],
    config=tf.estimator.RunConfig(tf_random_seed=1),
)
model.train(lambda: dataset.repeat(200)).evaluate(lambda: dataset)

# %% DNNRegressor
features = {"x": [0.0, 1.0, 2.0, 3.0]}
dataset = tf.data.Dataset.from_tensor_slices((features, [0.0, 1.0, 4.0, 9.0])).batch(4)
model = tf.estimator.DNNRegressor(
    hidden_units=[16, 16],
    feature_columns=[tf.feature_column.numeric_column("x")],
    optimizer=tf.train.AdamOptimizer(0.01),
    config=tf.estimator.RunConfig(tf_random_seed=1),
)
model.train(lambda: dataset.repeat(300))
[row["predictions"] for row in model.predict(lambda: dataset)]

# %% DeepFM
features = {"user": ["ann", "bob", "ann", "eve"], "ad": ["x", "y", "y", "x"]}
dataset = tf.data.Dataset.from_tensor_slices((features, [1, 0, 0, 1])).batch(4)
hashed = tf.feature_column.categorical_column_with_hash_bucket
fields = [tf.feature_column.embedding_column(hashed(key, 100), 4) for key in features]
config = tf.estimator.RunConfig(tf_random_seed=1)
model = tf.estimator.DeepFM(fields, [8, 4], config=config)
model.train(lambda: dataset.repeat(100)).evaluate(lambda: dataset)["auc"]


# %% ESMM
def input_fn():
    labels = {"ctr": [0, 1, 1, 1], "ctcvr": [0, 0, 1, 1]}  # clicks, and clicks with conversion
    return tf.data.Dataset.from_tensors(({"x": [0.0, 1.0, 2.0, 3.0]}, labels)).repeat(50)


model = tf.estimator.ESMM([4], [tf.feature_column.numeric_column("x")])
model.train(input_fn)
first = next(model.predict(input_fn))
first["ctr", "logistic"], first["cvr", "logistic"], first["ctcvr", "logistic"]

# %% EarlyStopping
train_set = tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [1.0, 3.0]))
eval_set = tf.data.Dataset.from_tensors(({"x": [[3.0]]}, [4.0]))
model = tf.estimator.LinearRegressor(
    [tf.feature_column.numeric_column("x")],
    optimizer=tf.train.GradientDescentOptimizer(0.05),
    config=tf.estimator.RunConfig(save_checkpoints_steps=1),
)
stopping = tf.estimator.EarlyStopping(metric="average_loss", patience=2)
train_spec = tf.estimator.TrainSpec(train_set.repeat, max_steps=100, hooks=[stopping])
eval_spec = tf.estimator.EvalSpec(lambda: eval_set, throttle_secs=0)
tf.estimator.train_and_evaluate(model, train_spec, eval_spec)[0]


# %% Estimator
def model_fn(features, labels, mode):
    outputs = tf.layers.dense(features["x"], 1)[:, 0]
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=outputs)
    loss = tf.losses.mean_squared_error(labels, outputs)
    step = tf.train.get_global_step()
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


dataset = tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [3.0, 5.0]))
config = tf.estimator.RunConfig(tf_random_seed=1)
model = tf.estimator.Estimator(model_fn, config=config)
model.train(lambda: dataset.repeat(500))
list(model.predict(lambda: dataset)), model.get_variable_value("dense/kernel")


# %% EstimatorSpec
def model_fn(features, labels, mode):
    outputs = tf.layers.dense(features["x"], 1)[:, 0]
    loss = tf.losses.mean_squared_error(labels, outputs)
    step = tf.train.get_global_step()
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, step)
    metrics = {"error": tf.metrics.mean_absolute_error(labels, outputs)}
    return tf.estimator.EstimatorSpec(mode, None, loss, train_op, metrics)


dataset = tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [3.0, 5.0]))
model = tf.estimator.Estimator(model_fn).train(lambda: dataset.repeat(200))
sorted(model.evaluate(lambda: dataset))

# %% EvalSpec
train_set = tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [1.0, 3.0]))
holdout_set = tf.data.Dataset.from_tensors(({"x": [[3.0]]}, [4.0]))
model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
train_spec = tf.estimator.TrainSpec(train_set.repeat, max_steps=10)
eval_specs = [
    tf.estimator.EvalSpec(lambda: train_set, name="train"),
    tf.estimator.EvalSpec(lambda: holdout_set, name="holdout"),
]
metrics, _ = tf.estimator.train_and_evaluate(model, train_spec, eval_specs)
{name: values["average_loss"] for name, values in metrics.items()}


# %% Exporter
class Report(tf.estimator.Exporter):
    name = "report"

    def export(self, estimator, export_path, checkpoint_path, eval_result, **kwargs):
        tf.gfile.MakeDirs(export_path)
        with tf.gfile.GFile(f"{export_path}/step.txt", "w") as file:
            file.write(str(eval_result["global_step"]))
        return export_path


dataset = tf.data.Dataset.from_tensor_slices(({"x": [1.0, 2.0]}, [1.0, 3.0])).batch(2)
model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")], "model")
train_spec = tf.estimator.TrainSpec(dataset.repeat, max_steps=10)
eval_spec = tf.estimator.EvalSpec(lambda: dataset, exporters=Report())
tf.estimator.train_and_evaluate(model, train_spec, eval_spec)
tf.gfile.GFile("model/export/report/step.txt").read()

# %% FeedFnHook
number = tf.placeholder(tf.float32)
tenfold = number * 10
numbers = iter([1.0, 2.0, 3.0])
feed = tf.estimator.FeedFnHook(lambda: {number: next(numbers)})
with tf.train.MonitoredSession(hooks=[feed]) as session:
    print([session.run(tenfold) for _ in range(3)])

# %% FiBiNET
features = {"user": ["ann", "bob", "ann", "eve"], "ad": ["x", "y", "y", "x"]}
dataset = tf.data.Dataset.from_tensor_slices((features, [1, 0, 0, 1])).batch(4)
hashed = tf.feature_column.categorical_column_with_hash_bucket
fields = [tf.feature_column.embedding_column(hashed(key, 100), 4) for key in features]
config = tf.estimator.RunConfig(tf_random_seed=1)
model = tf.estimator.FiBiNET(fields, [8], bilinear_type="all", config=config)
model.train(lambda: dataset.repeat(100)).evaluate(lambda: dataset)["auc"]

# %% FinalExporter
dataset = tf.data.Dataset.from_tensor_slices(({"x": [1.0, 2.0]}, [1.0, 3.0])).batch(2)
columns = [tf.feature_column.numeric_column("x")]
receiver = tf.estimator.export.serving_input_receiver_fn_from_columns(columns)
model = tf.estimator.LinearRegressor(columns, "model")
exporter = tf.estimator.FinalExporter("final", receiver)
train_spec = tf.estimator.TrainSpec(dataset.repeat, max_steps=10)
eval_spec = tf.estimator.EvalSpec(lambda: dataset, exporters=exporter)
_, exports = tf.estimator.train_and_evaluate(model, train_spec, eval_spec)
tf.estimator.load_predictor(exports[0])({"x": [[3.0]]})["predictions"].shape

# %% FinalOpsHook
total = tf.get_variable("total", initializer=0)
increase = tf.assign_add(total, 5)
final = tf.estimator.FinalOpsHook({"total": total})
with tf.train.MonitoredSession(hooks=[final]) as session:
    for _ in range(3):
        session.run(increase)
final.final_ops_values

# %% GlobalStepWaiterHook
step = tf.train.get_or_create_global_step()
increase = tf.assign_add(step, 1)
hook = tf.estimator.GlobalStepWaiterHook(wait_until_step=3)
with tf.train.MonitoredSession(hooks=[hook]) as session:
    for _ in range(3):
        session.run_step_fn(lambda step_context: step_context.session.run(increase))
    print(session.run(increase))


# %% Head
class MedianHead(tf.estimator.Head):
    name, logits_dimension = None, 1
    loss_reduction = tf.losses.Reduction.SUM_OVER_BATCH_SIZE

    def predictions(self, logits, keys=None):
        return {"median": logits}

    def loss(self, labels, logits, *args, **kwargs):
        return tf.losses.absolute_difference(labels, logits)


features, labels = {"x": [[1.0]] * 3}, [[1.0], [2.0], [9.0]]
dataset = tf.data.Dataset.from_tensors((features, labels))
model = tf.estimator.BaselineEstimator(MedianHead(), optimizer="SGD")
model.train(lambda: dataset.repeat(60))
next(model.predict(lambda: dataset))

# %% LatestExporter
dataset = tf.data.Dataset.from_tensor_slices(({"x": [1.0, 2.0]}, [1.0, 3.0])).batch(2)
columns = [tf.feature_column.numeric_column("x")]
receiver = tf.estimator.export.serving_input_receiver_fn_from_columns(columns)
config = tf.estimator.RunConfig("model", save_checkpoints_steps=5)
model = tf.estimator.LinearRegressor(columns, config=config)
exporter = tf.estimator.LatestExporter("latest", receiver, exports_to_keep=2)
train_spec = tf.estimator.TrainSpec(dataset.repeat, max_steps=15)
eval_spec = tf.estimator.EvalSpec(lambda: dataset, exporters=exporter, throttle_secs=0)
tf.estimator.train_and_evaluate(model, train_spec, eval_spec)
len(tf.gfile.glob("model/export/latest/*"))

# %% LinearClassifier
(features, labels), test = tf.datasets.iris.load_data()
train_input_fn = tf.estimator.inputs.pandas_input_fn(
    features, labels, batch_size=32, num_epochs=20, shuffle=True
)
test_input_fn = tf.estimator.inputs.pandas_input_fn(*test, shuffle=False)
columns = [tf.feature_column.numeric_column(key) for key in features]
config = tf.estimator.RunConfig(tf_random_seed=1)
model = tf.estimator.LinearClassifier(columns, n_classes=3, config=config)
model.train(train_input_fn).evaluate(test_input_fn)

# %% LinearEstimator
dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 2.0, 4.0]))
model = tf.estimator.LinearEstimator(
    head=tf.estimator.PoissonRegressionHead(),
    feature_columns=[tf.feature_column.numeric_column("x")],
)
model.train(lambda: dataset.repeat(200))
[row["predictions"] for row in model.predict(lambda: dataset)]

# %% LinearRegressor
dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
model.train(lambda: dataset.repeat(1000))
for name in ("x/weights", "bias_weights"):
    print(name, model.get_variable_value(f"linear/linear_model/{name}"))

# %% LoggingTensorHook
step = tf.train.get_or_create_global_step()
increase = tf.assign_add(step, 1)
hook = tf.estimator.LoggingTensorHook(
    {"square": increase**2},
    every_n_iter=2,
    formatter=lambda values: print(values) or "",
)
with tf.train.MonitoredSession(hooks=[hook]) as session:
    for _ in range(4):
        session.run(increase)

# %% LogisticRegressionHead
head = tf.estimator.LogisticRegressionHead()
logits = [[0.0], [2.0]]
head.loss([[0.25], [0.9]], logits), head.predictions(logits)


# %% MLflowHook
def train_with_mlflow(model, train_input_fn, eval_input_fn):
    hook = tf.estimator.MLflowHook("first run", {"units": 8}, experiment="flowers")
    train_spec = tf.estimator.TrainSpec(train_input_fn, max_steps=1000, hooks=[hook])
    eval_spec = tf.estimator.EvalSpec(eval_input_fn)
    return tf.estimator.train_and_evaluate(model, train_spec, eval_spec)


# %% MMoE
def input_fn():
    labels = {"click": [0, 1, 1, 1], "like": [0, 0, 1, 1]}
    return tf.data.Dataset.from_tensors(({"x": [0.0, 1.0, 2.0, 3.0]}, labels)).repeat(50)


heads = [tf.estimator.BinaryClassHead(name=name) for name in ("click", "like")]
columns = [tf.feature_column.numeric_column("x")]
model = tf.estimator.MMoE(heads, [4], columns, expert_units=[8])
model.train(input_fn)
next(model.predict(input_fn))["like", "probabilities"]

# %% ModeKeys
tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL, tf.estimator.ModeKeys.PREDICT

# %% MultiClassHead
colours = ["red", "green", "blue"]
head = tf.estimator.MultiClassHead(n_classes=3, label_vocabulary=colours)
logits = [[2.0, 0.0, 0.0]]
head.loss([["red"]], logits), head.predictions(logits, ["probabilities", "classes"])

# %% MultiHead
colour = tf.estimator.MultiClassHead(n_classes=3, name="colour")
price = tf.estimator.RegressionHead(name="price")
head = tf.estimator.MultiHead([colour, price], head_weights=[1.0, 0.5])
logits = {"colour": [[0.0, 1.0, 2.0]], "price": [[3.0]]}
predictions = head.predictions(logits)
loss = head.loss({"colour": [2], "price": [5.0]}, logits)
loss, predictions["colour", "class_ids"], predictions["price", "predictions"]

# %% MultiLabelHead
head = tf.estimator.MultiLabelHead(n_classes=3)
logits = [[2.0, -2.0, 0.0]]
head.loss([[1, 0, 1]], logits), head.predictions(logits, ["probabilities"])


# %% NanLossDuringTrainingError
def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[float("nan")]]}, [1.0]))


model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
try:
    model.train(input_fn)
except tf.estimator.NanLossDuringTrainingError as error:
    print(str(error).partition(";")[0])

# %% NanTensorHook
numbers = tf.data.Dataset.from_tensor_slices([1.0, -1.0, 4.0])
loss = tf.log(tf.data.make_one_shot_iterator(numbers).get_next())
hook = tf.estimator.NanTensorHook(loss, fail_on_nan_loss=False)
with tf.train.MonitoredSession(hooks=[hook]) as session:
    while not session.should_stop():
        print(session.run(loss))


# %% PLE
def input_fn():
    labels = {"click": [0, 1, 1, 1], "like": [0, 0, 1, 1]}
    return tf.data.Dataset.from_tensors(({"x": [0.0, 1.0, 2.0, 3.0]}, labels)).repeat(50)


heads = [tf.estimator.BinaryClassHead(name=name) for name in ("click", "like")]
columns = [tf.feature_column.numeric_column("x")]
model = tf.estimator.PLE(heads, [4], columns, expert_units=[8])
model.train(input_fn)
next(model.predict(input_fn))["like", "probabilities"]

# %% PoissonRegressionHead
head = tf.estimator.PoissonRegressionHead()
logits = [[0.0], [1.0]]
head.loss([[1.0], [3.0]], logits), head.predictions(logits)

# %% ProfilerHook
step = tf.train.get_or_create_global_step()
increase = tf.assign_add(step, 1)
hook = tf.estimator.ProfilerHook(save_steps=2, output_dir="profiles")
with tf.train.MonitoredSession(hooks=[hook]) as session:
    for _ in range(4):
        session.run(increase)
sorted(tf.gfile.listdir("profiles"))

# %% RegressionHead
head = tf.estimator.RegressionHead()
logits = [[1.0], [2.0]]
head.loss([[1.5], [4.0]], logits), head.predictions(logits)

# %% RetrievalHead
users = [[1.0, 0.0], [0.0, 1.0]]
items = [[1.0, 0.0], [0.6, 0.8]]
head = tf.estimator.RetrievalHead(2, temperature=0.1, top_k=[1])
logits = {"user": users, "item": items}
head.loss(None, logits), head.predictions(logits)["score"]

# %% RunConfig
config = tf.estimator.RunConfig("model", tf_random_seed=1, save_checkpoints_steps=100)
changed = config.replace(keep_checkpoint_max=2)
changed.model_dir, changed.save_checkpoints_steps, changed.keep_checkpoint_max

# %% SecondOrStepTimer
timer = tf.estimator.SecondOrStepTimer(every_steps=3)
for step in range(8):
    if timer.should_trigger_for_step(step):
        print(step, timer.update_last_triggered_step(step)[1])


# %% SessionRunArgs
class ShowDouble(tf.estimator.SessionRunHook):
    def before_run(self, run_context):
        return tf.estimator.SessionRunArgs({"double": double}, {number: 4.0})

    def after_run(self, run_context, run_values):
        print(run_values.results)


number = tf.placeholder(tf.float32)
successor, double = number + 1, number * 2
with tf.train.MonitoredSession(hooks=[ShowDouble()]) as session:
    print(session.run(successor))


# %% SessionRunContext
class StopAtThree(tf.estimator.SessionRunHook):
    def before_run(self, run_context):
        return tf.estimator.SessionRunArgs(increase)

    def after_run(self, run_context, run_values):
        if run_values.results == 3:
            run_context.request_stop()


step = tf.train.get_or_create_global_step()
increase = tf.assign_add(step, 1)
with tf.train.MonitoredSession(hooks=[StopAtThree()]) as session:
    while not session.should_stop():
        print(session.run(increase))


# %% SessionRunHook
class CountSteps(tf.estimator.SessionRunHook):
    count = 0

    def after_run(self, run_context, run_values):
        self.count += 1

    def end(self, session):
        print("steps:", self.count)


dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
model.train(lambda: dataset.repeat(4), hooks=[CountSteps()]).latest_checkpoint()[-12:]


# %% SessionRunValues
class ShowSum(tf.estimator.SessionRunHook):
    def before_run(self, run_context):
        return tf.estimator.SessionRunArgs({"sum": total})

    def after_run(self, run_context, run_values):
        print(run_values.results["sum"])


numbers = tf.constant([1, 2, 3])
total = tf.reduce_sum(numbers)
with tf.train.MonitoredSession(hooks=[ShowSum()]) as session:
    session.run(numbers)

# %% StepCounterHook
step = tf.train.get_or_create_global_step()
increase = tf.assign_add(step, 1)
hook = tf.estimator.StepCounterHook(every_n_steps=2, output_dir="speed_logs")
with tf.train.MonitoredSession(hooks=[hook]) as session:
    for _ in range(6):
        session.run(increase)
events = tf.train.summary_iterator(tf.gfile.Glob("speed_logs/*")[0])
[(event.step, value.tag) for event in events for value in event.summary.value]

# %% StopAtStepHook
step = tf.train.get_or_create_global_step()
increase = tf.assign_add(step, 1)
hook = tf.estimator.StopAtStepHook(last_step=3)
with tf.train.MonitoredSession(hooks=[hook]) as session:
    while not session.should_stop():
        print(session.run(increase))

# %% SummarySaverHook
step = tf.train.get_or_create_global_step()
increase = tf.assign_add(step, 1)
summary = tf.summary.scalar("square", increase**2)
hook = tf.estimator.SummarySaverHook(2, output_dir="square_logs", summary_op=summary)
with tf.train.MonitoredSession(hooks=[hook]) as session:
    for _ in range(5):
        session.run(increase)
events = tf.train.summary_iterator(tf.gfile.Glob("square_logs/*")[0])
[(event.step, value.simple_value) for event in events for value in event.summary.value]

# %% TrainSpec
dataset = tf.data.Dataset.from_tensor_slices(({"x": [1.0, 2.0]}, [1.0, 3.0])).batch(2)
model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
train_spec = tf.estimator.TrainSpec(dataset.repeat, max_steps=10)
eval_spec = tf.estimator.EvalSpec(lambda: dataset)
metrics, _ = tf.estimator.train_and_evaluate(model, train_spec, eval_spec)
metrics["global_step"]


# %% TwoTower
def embedded(key, size):
    ids = tf.feature_column.categorical_column_with_identity(key, size)
    return tf.feature_column.embedding_column(ids, 8)


clicks = {"user": [0, 0, 1, 1, 2, 2], "item": [0, 1, 1, 2, 3, 4]}
dataset = tf.data.Dataset.from_tensor_slices(clicks).batch(6)
model = tf.estimator.TwoTower(
    [embedded("user", 3)], [embedded("item", 5)], item_id="item", top_k=[2]
)
model.train(lambda: dataset.repeat(100))
print(model.evaluate(lambda: dataset)["in_batch_top_2_accuracy"])

# %% VocabInfo
for name, words in [("old.txt", "red blue"), ("new.txt", "blue green red")]:
    with tf.gfile.GFile(name, "w") as file:
        file.write(words.replace(" ", "\n"))
with tf.Graph().as_default(), tf.Session() as session:
    table = tf.get_variable("table", initializer=[[1.0], [2.0]])
    session.run(table.initializer)
    path = tf.train.Saver().save(session, "old/model")
table = tf.get_variable("table", [3, 1])
change = tf.estimator.VocabInfo("new.txt", 3, 0, "old.txt")
tf.train.warm_start(path, var_name_to_vocab_info={"table": change})
table


# %% WandbHook
def train_with_wandb(model, train_input_fn, eval_input_fn):
    hook = tf.estimator.WandbHook("first run", {"units": 8}, project="flowers")
    train_spec = tf.estimator.TrainSpec(train_input_fn, max_steps=1000, hooks=[hook])
    eval_spec = tf.estimator.EvalSpec(eval_input_fn)
    return tf.estimator.train_and_evaluate(model, train_spec, eval_spec)


# %% WarmStartSettings
def regressor(warm_start_from=None):
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    columns = [tf.feature_column.numeric_column("x")]
    return tf.estimator.LinearRegressor(
        columns, optimizer=optimizer, warm_start_from=warm_start_from
    )


dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
old = regressor().train(lambda: dataset.repeat(200))
settings = tf.estimator.WarmStartSettings(old.model_dir, vars_to_warm_start=".*")
new = regressor(settings).train(lambda: dataset, steps=1)
cold = regressor().train(lambda: dataset, steps=1)
[round(float(each.evaluate(lambda: dataset)["loss"]), 4) for each in (new, cold)]


# %% add_metrics
def largest_label(labels, predictions):
    return {"largest": tf.metrics.mean(tf.reduce_max(labels))}


dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
model = tf.estimator.add_metrics(model, largest_label)
model.train(lambda: dataset).evaluate(lambda: dataset)["largest"]

# %% classifier_parse_example_spec
columns = [tf.feature_column.numeric_column("age")]
spec = tf.estimator.classifier_parse_example_spec(columns, label_key="label")
features = tf.train.Features(
    feature={
        "age": tf.train.Feature(float_list=tf.train.FloatList(value=[30.0])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[1])),
    }
)
example = tf.train.Example(features=features)
tf.io.parse_example([example.SerializeToString()], spec)


# %% export_candidates
def embedded(key, size):
    ids = tf.feature_column.categorical_column_with_identity(key, size)
    return tf.feature_column.embedding_column(ids, 8)


clicks = {"user": [0, 0, 1, 1, 2, 2], "item": [0, 1, 1, 2, 3, 4]}
model = tf.estimator.TwoTower([embedded("user", 3)], [embedded("item", 5)], item_id="item")
model.train(lambda: tf.data.Dataset.from_tensors(clicks).repeat(100))
receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
    {"user": tf.TensorSpec([None], tf.int64)}
)
path = tf.estimator.export_candidates(
    model, "exports", receiver, lambda: {"item": list(range(5))}, k=2
)
tf.load_predictor(path)({"user": [0, 2]})["ids"].tolist()


# %% export_onnx
def export_regressor(model):
    columns = [tf.feature_column.numeric_column("x")]
    receiver = tf.estimator.export.serving_input_receiver_fn_from_columns(columns)
    return tf.estimator.export_onnx(model, "model.onnx", receiver, signature="predict")


# %% load_predictor
dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
columns = [tf.feature_column.numeric_column("x")]
model = tf.estimator.LinearRegressor(columns).train(lambda: dataset.repeat(500))
receiver = tf.estimator.export.serving_input_receiver_fn_from_columns(columns)
folder = model.export_saved_model("exports", receiver)
with tf.estimator.load_predictor(folder) as predictor:
    print(predictor({"x": [[3.0], [4.0]]}))

# %% model_to_estimator
tf.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[2], name="sum")])
model.compile("adam", "mean_squared_error", metrics=["mae"])
estimator = tf.keras.estimator.model_to_estimator(model)
dataset = tf.data.Dataset.from_tensors(([[1.0, 2.0]], [[3.0]]))
estimator.train(lambda: dataset.repeat(10))
sorted(estimator.evaluate(lambda: dataset))

# %% regressor_parse_example_spec
columns = [tf.feature_column.numeric_column("size")]
tf.estimator.regressor_parse_example_spec(columns, label_key="price")

# %% train_and_evaluate
dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
metrics, exports = tf.estimator.train_and_evaluate(
    model,
    tf.estimator.TrainSpec(dataset.repeat, max_steps=500),
    tf.estimator.EvalSpec(lambda: dataset),
)
metrics

# %% xDeepFM
features = {"user": ["ann", "bob", "ann", "eve"], "ad": ["x", "y", "y", "x"]}
dataset = tf.data.Dataset.from_tensor_slices((features, [1, 0, 0, 1])).batch(4)
hashed = tf.feature_column.categorical_column_with_hash_bucket
fields = [tf.feature_column.embedding_column(hashed(key, 100), 4) for key in features]
config = tf.estimator.RunConfig(tf_random_seed=1)
model = tf.estimator.xDeepFM(fields, [8], cin_layers=[6, 4], config=config)
model.train(lambda: dataset.repeat(100)).evaluate(lambda: dataset)["auc"]

# %% EnsembleClassifier
(features, labels), (test_features, test_labels) = tf.datasets.iris.load_data()
columns = [tf.feature_column.numeric_column(key) for key in features]
train = tf.data.Dataset.from_tensor_slices((dict(features), labels)).batch(32)
test = tf.data.Dataset.from_tensor_slices((dict(test_features), test_labels)).batch(32)
model = tf.estimator.EnsembleClassifier(columns, n_classes=3).train(lambda: train)
model.evaluate(lambda: test)["accuracy"], model.get_variable_value("ensemble/weights")

# %% EnsembleRegressor
features = {"x": np.linspace(0.0, 1.0, 60)}
dataset = tf.data.Dataset.from_tensor_slices((features, features["x"] ** 2)).batch(8)
columns = [tf.feature_column.numeric_column("x")]
model = tf.estimator.EnsembleRegressor(columns, members=["trees"]).train(lambda: dataset)
next(model.predict(lambda: dataset, "predictions"))

# %% TabularClassifier
features = {"age": [22.0, 38.0, np.nan, 35.0] * 10, "sex": ["m", "f", "f", "m"] * 10}
dataset = tf.data.Dataset.from_tensor_slices((features, [0, 1, 1, 0] * 10)).repeat().batch(8)
sex = tf.feature_column.categorical_column_with_vocabulary_list("sex", ["f", "m"])
columns = [tf.feature_column.numeric_column("age"), sex]
model = tf.estimator.TabularClassifier(columns, hidden_units=[16], members=2)
model.train(lambda: dataset, max_steps=20).evaluate(lambda: dataset, steps=2)["accuracy"]

# %% TabularEstimator
features = {"x": np.linspace(0.0, 3.0, 40)}
dataset = tf.data.Dataset.from_tensor_slices((features, np.arange(40) // 10)).repeat().batch(8)
columns = [tf.feature_column.numeric_column("x")]
head = tf.estimator.PoissonRegressionHead()
model = tf.estimator.TabularEstimator(head, columns, hidden_units=[16], learning_rate=0.02)
next(model.train(lambda: dataset, max_steps=20).predict(lambda: dataset))

# %% TabularRegressor
features = {"x": np.linspace(0.0, 1.0, 40)}
dataset = tf.data.Dataset.from_tensor_slices((features, features["x"] ** 2)).repeat().batch(8)
columns = [tf.feature_column.numeric_column("x")]
model = tf.estimator.TabularRegressor(columns, hidden_units=[16], members=2)
next(model.train(lambda: dataset, max_steps=20).predict(lambda: dataset, "predictions"))

# %% with_threshold
features = {"x": np.linspace(0.0, 3.0, 40)}
dataset = tf.data.Dataset.from_tensor_slices((features, np.arange(40) // 36)).batch(8)
columns = [tf.feature_column.numeric_column("x")]
model = tf.estimator.LinearClassifier(columns).train(lambda: dataset)
model = tf.estimator.with_threshold(model, 0.2)
next(model.predict(lambda: dataset, ["probabilities", "class_ids"]))
