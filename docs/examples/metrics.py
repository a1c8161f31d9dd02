# %% accuracy
labels, predictions = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
value, update = tf.metrics.accuracy(labels, predictions)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update, {labels: [1, 0], predictions: [1, 1]})
    session.run(update, {labels: [1, 0], predictions: [1, 0]})
    print(session.run(value))

# %% accuracy_baseline
value, update = tf.metrics.accuracy_baseline(labels=[1.0, 0.0, 1.0, 1.0])
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% auc
value, update = tf.metrics.auc(labels=[1, 0, 1, 1], predictions=[0.9, 0.4, 0.3, 0.8])
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% average_precision_at_k
labels = tf.constant([[0], [2]], tf.int64)
scores = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]]
value, update = tf.metrics.average_precision_at_k(labels, scores, k=2)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% calibration
value, update = tf.metrics.calibration(labels=[1, 0, 1, 1], predictions=[0.9, 0.4, 0.3, 0.8])
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% calibration_by_bucket
value, update = tf.metrics.calibration_by_bucket(
    labels=[1, 0, 1, 1], predictions=[0.9, 0.4, 0.3, 0.8]
)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% false_negatives
labels, predictions = [1, 0, 1, 1], [1, 0, 0, 1]
value, update = tf.metrics.false_negatives(labels, predictions)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% false_negatives_at_thresholds
value, update = tf.metrics.false_negatives_at_thresholds(
    labels=[1, 0, 1, 1], predictions=[0.9, 0.4, 0.3, 0.8], thresholds=[0.2, 0.5]
)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% false_positives
labels, predictions = [1, 0, 1, 1], [1, 0, 0, 1]
value, update = tf.metrics.false_positives(labels, predictions)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% false_positives_at_thresholds
value, update = tf.metrics.false_positives_at_thresholds(
    labels=[1, 0, 1, 1], predictions=[0.9, 0.4, 0.3, 0.8], thresholds=[0.2, 0.5]
)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% group_auc
labels, predictions, users = [1, 0, 1, 0], [0.9, 0.4, 0.3, 0.8], ["ann", "ann", "bob", "bob"]
value, update = tf.metrics.group_auc(labels, predictions, groups=users)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% hit_rate_at_k
labels, scores = [[0, 1, 0], [1, 0, -1]], [[0.9, 0.4, 0.3], [0.2, 0.8, 0.0]]
value, update = tf.metrics.hit_rate_at_k(labels, scores, k=2)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% list_recall_at_k
labels, scores = [[0, 1, 0], [1, 0, -1]], [[0.9, 0.4, 0.3], [0.2, 0.8, 0.0]]
value, update = tf.metrics.list_recall_at_k(labels, scores, k=2)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% mean
values = tf.placeholder(tf.float32, [None])
value, update = tf.metrics.mean(values)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update, {values: [1.0, 2.0]})
    session.run(update, {values: [6.0]})
    print(session.run(value))

# %% mean_absolute_error
labels, predictions = [1.0, 2.0], [1.0, 4.0]
value, update = tf.metrics.mean_absolute_error(labels, predictions)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% mean_average_precision_at_k
labels, scores = [[0, 1, 0], [1, 0, -1]], [[0.9, 0.4, 0.3], [0.2, 0.8, 0.0]]
value, update = tf.metrics.mean_average_precision_at_k(labels, scores, k=2)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% mean_cosine_distance
value, update = tf.metrics.mean_cosine_distance([[0.6, 0.8]], [[1.0, 0.0]], dim=1)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% mean_iou
labels, predictions = [1, 0, 1, 1], [1, 0, 0, 1]
value, update = tf.metrics.mean_iou(labels, predictions, num_classes=2)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% mean_per_class_accuracy
value, update = tf.metrics.mean_per_class_accuracy(
    labels=[1, 0, 1, 1], predictions=[1, 0, 0, 1], num_classes=2
)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% mean_reciprocal_rank
labels, scores = [[0, 1, 0], [1, 0, -1]], [[0.9, 0.4, 0.3], [0.2, 0.8, 0.0]]
value, update = tf.metrics.mean_reciprocal_rank(labels, scores, k=2)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% mean_relative_error
labels, predictions = [1.0, 2.0], [1.0, 4.0]
value, update = tf.metrics.mean_relative_error(labels, predictions, labels)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% mean_squared_error
value, update = tf.metrics.mean_squared_error(labels=[1.0, 2.0], predictions=[1.0, 4.0])
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% mean_tensor
values = tf.placeholder(tf.float32, [2])
value, update = tf.metrics.mean_tensor(values)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update, {values: [1.0, 2.0]})
    session.run(update, {values: [3.0, 6.0]})
    print(session.run(value))

# %% ndcg_at_k
labels, scores = [[0, 1, 0], [1, 0, -1]], [[0.9, 0.4, 0.3], [0.2, 0.8, 0.0]]
value, update = tf.metrics.ndcg_at_k(labels, scores, k=2)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% normalized_cross_entropy
value, update = tf.metrics.normalized_cross_entropy(
    labels=[1, 0, 1, 1], predictions=[0.9, 0.4, 0.3, 0.8]
)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% percentage_below
value, update = tf.metrics.percentage_below([1.0, 2.0, 6.0], threshold=3.0)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% precision
value, update = tf.metrics.precision(labels=[1, 0, 1, 1], predictions=[1, 0, 0, 1])
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% precision_at_k
labels = tf.constant([[0], [2]], tf.int64)
scores = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]]
value, update = tf.metrics.precision_at_k(labels, scores, k=2)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% precision_at_thresholds
value, update = tf.metrics.precision_at_thresholds(
    labels=[1, 0, 1, 1], predictions=[0.9, 0.4, 0.3, 0.8], thresholds=[0.2, 0.5]
)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% precision_at_top_k
labels = tf.constant([[0], [2]], tf.int64)
best = tf.constant([[0, 1], [1, 2]], tf.int64)
value, update = tf.metrics.precision_at_top_k(labels, best, k=2)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% recall
value, update = tf.metrics.recall(labels=[1, 0, 1, 1], predictions=[1, 0, 0, 1])
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% recall_at_k
labels = tf.constant([[0], [2]], tf.int64)
scores = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]]
value, update = tf.metrics.recall_at_k(labels, scores, k=2)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% recall_at_thresholds
value, update = tf.metrics.recall_at_thresholds(
    labels=[1, 0, 1, 1], predictions=[0.9, 0.4, 0.3, 0.8], thresholds=[0.2, 0.5]
)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% recall_at_top_k
labels = tf.constant([[0], [2]], tf.int64)
best = tf.constant([[0, 1], [1, 2]], tf.int64)
value, update = tf.metrics.recall_at_top_k(labels, best, k=2)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% root_mean_squared_error
labels, predictions = [1.0, 2.0], [1.0, 4.0]
value, update = tf.metrics.root_mean_squared_error(labels, predictions)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% sensitivity_at_specificity
value, update = tf.metrics.sensitivity_at_specificity(
    labels=[1, 0, 1, 1], predictions=[0.9, 0.4, 0.3, 0.8], specificity=0.9
)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% specificity_at_sensitivity
value, update = tf.metrics.specificity_at_sensitivity(
    labels=[1, 0, 1, 1], predictions=[0.9, 0.4, 0.3, 0.8], sensitivity=0.6
)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% true_negatives
value, update = tf.metrics.true_negatives(labels=[1, 0, 1, 1], predictions=[1, 0, 0, 1])
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% true_negatives_at_thresholds
value, update = tf.metrics.true_negatives_at_thresholds(
    labels=[1, 0, 1, 1], predictions=[0.9, 0.4, 0.3, 0.8], thresholds=[0.2, 0.5]
)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% true_positives
value, update = tf.metrics.true_positives(labels=[1, 0, 1, 1], predictions=[1, 0, 0, 1])
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))

# %% true_positives_at_thresholds
value, update = tf.metrics.true_positives_at_thresholds(
    labels=[1, 0, 1, 1], predictions=[0.9, 0.4, 0.3, 0.8], thresholds=[0.2, 0.5]
)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    print(session.run(value))
