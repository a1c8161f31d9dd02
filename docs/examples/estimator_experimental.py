# %% InMemoryEvaluatorHook
dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
columns = [tf.feature_column.numeric_column("x")]
model = tf.estimator.LinearRegressor(columns, "regressor")
evaluator = tf.estimator.experimental.InMemoryEvaluatorHook
hook = evaluator(model, lambda: dataset, every_n_iter=50)
model.train(lambda: dataset.repeat(100), hooks=[hook])
for event in tf.train.summary_iterator(tf.gfile.Glob("regressor/eval/*")[0]):
    for value in event.summary.value:
        if value.tag == "loss":
            print(event.step, value.simple_value)

# %% KMeans
points = np.float32([[0, 0], [0, 2], [10, 0], [10, 2]])
dataset = tf.data.Dataset.from_tensors(points)
model = tf.estimator.experimental.KMeans(
    num_clusters=2, initial_clusters=[[1.0, 1.0], [9.0, 1.0]], use_mini_batch=False
)
model.train(lambda: dataset.repeat(5))
model.cluster_centers(), list(model.predict_cluster_index(lambda: dataset))

# %% RNNClassifier
words = [["good", "film"], ["bad", "film"], ["good", "good"], ["bad", ""]]
dataset = tf.data.Dataset.from_tensors(({"words": words}, [1, 0, 1, 0]))
column = tf.feature_column.sequence_categorical_column_with_vocabulary_list(
    "words", ["good", "bad", "film"]
)
model = tf.estimator.experimental.RNNClassifier(
    [tf.feature_column.embedding_column(column, 4)],
    units=8,
    cell_type="gru",
    config=tf.estimator.RunConfig(tf_random_seed=1),
)
model.train(lambda: dataset.repeat(50))
[row["class_ids"] for row in model.predict(lambda: dataset)]

# %% RNNEstimator
steps = tf.SparseTensorValue([[0, 0], [0, 1], [1, 0]], np.float32([1, 2, 5]), [2, 2])
dataset = tf.data.Dataset.from_tensors(({"steps": steps}, [3.0, 5.0]))
model = tf.estimator.experimental.RNNEstimator(
    tf.estimator.RegressionHead(),
    [tf.feature_column.sequence_numeric_column("steps")],
    units=8,
    config=tf.estimator.RunConfig(tf_random_seed=1),
)
model.train(lambda: dataset.repeat(100))
[row["predictions"] for row in model.predict(lambda: dataset)]

# %% SavedModelEstimator
dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
model.train(lambda: dataset.repeat(500))
receiver_fn = tf.estimator.experimental.build_raw_supervised_input_receiver_fn(
    {"x": tf.TensorSpec([None, 1])}, tf.TensorSpec([None])
)
receiver_fns = {tf.estimator.ModeKeys.EVAL: receiver_fn}
folder = model.experimental_export_all_saved_models("exports", receiver_fns)
loaded = tf.estimator.experimental.SavedModelEstimator(folder)
loaded.evaluate(lambda: dataset)["loss"]

# %% build_raw_supervised_input_receiver_fn
receiver_fn = tf.estimator.experimental.build_raw_supervised_input_receiver_fn(
    {"x": tf.TensorSpec([None, 1])}, {"label": tf.TensorSpec([None], tf.int64)}
)
receiver_fn().receiver_tensors.keys()


# %% call_logit_fn
def logit_fn(features, mode):
    print(mode)
    return features["x"] * 10.0


features = {"x": tf.constant([[1.0], [2.0]])}
tf.estimator.experimental.call_logit_fn(
    logit_fn, features, tf.estimator.ModeKeys.EVAL, params={}, config=None
)

# %% dnn_logit_fn_builder
logit_fn = tf.estimator.experimental.dnn_logit_fn_builder(
    units=3,
    hidden_units=[8, 4],
    feature_columns=[tf.feature_column.numeric_column("x")],
    activation_fn=tf.nn.relu,
    dropout=None,
    input_layer_partitioner=None,
    batch_norm=False,
)
logits = logit_fn({"x": tf.constant([[1.0], [2.0]])}, tf.estimator.ModeKeys.TRAIN)
logits.shape, [variable.name for variable in tf.trainable_variables()]

# %% linear_logit_fn_builder
colours = ["red", "blue"]
colour = tf.feature_column.categorical_column_with_vocabulary_list("colour", colours)
logit_fn = tf.estimator.experimental.linear_logit_fn_builder(
    units=1, feature_columns=[tf.feature_column.numeric_column("x"), colour]
)
features = {"x": tf.constant([[1.0], [2.0]]), "colour": tf.constant(colours)}
logits = logit_fn(features)
logits.shape, [variable.name for variable in tf.trainable_variables()]

# %% make_early_stopping_hook
calls = iter([False, False, True])
dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
hook = tf.estimator.experimental.make_early_stopping_hook(
    model, lambda: next(calls), run_every_secs=None, run_every_steps=10
)
model.train(dataset.repeat, hooks=[hook], max_steps=1000).latest_checkpoint()[-13:]

# %% make_stop_at_checkpoint_step_hook
dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
model = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
hook = tf.estimator.experimental.make_stop_at_checkpoint_step_hook(model, last_step=5)
model.train(dataset.repeat, hooks=[hook]).latest_checkpoint()[-12:]

# %% stop_if_higher_hook
dataset = tf.data.Dataset.from_tensors(({"x": [[-1.0], [-2.0], [2.0]]}, [0, 0, 1]))
model = tf.estimator.LinearClassifier(
    [tf.feature_column.numeric_column("x")],
    config=tf.estimator.RunConfig(save_checkpoints_steps=5),
)
hook = tf.estimator.experimental.stop_if_higher_hook(
    model, "accuracy", threshold=0.9, run_every_secs=None, run_every_steps=1
)
train_spec = tf.estimator.TrainSpec(dataset.repeat, max_steps=1000, hooks=[hook])
eval_spec = tf.estimator.EvalSpec(lambda: dataset, throttle_secs=0)
metrics, _ = tf.estimator.train_and_evaluate(model, train_spec, eval_spec)
metrics["accuracy"], metrics["global_step"]

# %% stop_if_lower_hook
dataset = tf.data.Dataset.from_tensors(({"x": [[0.0], [1.0], [2.0]]}, [1.0, 3.0, 5.0]))
model = tf.estimator.LinearRegressor(
    [tf.feature_column.numeric_column("x")],
    config=tf.estimator.RunConfig(save_checkpoints_steps=50),
)
hook = tf.estimator.experimental.stop_if_lower_hook(
    model, "average_loss", threshold=0.1, run_every_secs=None, run_every_steps=1
)
train_spec = tf.estimator.TrainSpec(dataset.repeat, max_steps=1000, hooks=[hook])
eval_spec = tf.estimator.EvalSpec(lambda: dataset, throttle_secs=0)
metrics, _ = tf.estimator.train_and_evaluate(model, train_spec, eval_spec)
metrics["average_loss"], metrics["global_step"]

# %% stop_if_no_decrease_hook
train_set = tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [1.0, 3.0]))
eval_set = tf.data.Dataset.from_tensors(({"x": [[3.0]]}, [4.0]))
model = tf.estimator.LinearRegressor(
    [tf.feature_column.numeric_column("x")],
    optimizer=tf.train.GradientDescentOptimizer(0.05),
    config=tf.estimator.RunConfig(save_checkpoints_steps=5),
)
hook = tf.estimator.experimental.stop_if_no_decrease_hook(
    model, "average_loss", 10, run_every_secs=None, run_every_steps=1
)
train_spec = tf.estimator.TrainSpec(train_set.repeat, max_steps=200, hooks=[hook])
eval_spec = tf.estimator.EvalSpec(lambda: eval_set, throttle_secs=0)
metrics, _ = tf.estimator.train_and_evaluate(model, train_spec, eval_spec)
metrics["average_loss"], metrics["global_step"]

# %% stop_if_no_increase_hook
dataset = tf.data.Dataset.from_tensors(({"x": [[-1.0], [-2.0], [2.0]]}, [0, 0, 1]))
model = tf.estimator.LinearClassifier(
    [tf.feature_column.numeric_column("x")],
    config=tf.estimator.RunConfig(save_checkpoints_steps=5),
)
hook = tf.estimator.experimental.stop_if_no_increase_hook(
    model, "accuracy", 10, run_every_secs=None, run_every_steps=1
)
train_spec = tf.estimator.TrainSpec(dataset.repeat, max_steps=1000, hooks=[hook])
eval_spec = tf.estimator.EvalSpec(lambda: dataset, throttle_secs=0)
metrics, _ = tf.estimator.train_and_evaluate(model, train_spec, eval_spec)
metrics["accuracy"], metrics["global_step"]
