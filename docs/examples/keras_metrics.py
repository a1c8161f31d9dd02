# %% AUC
labels, scores = [0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9]
tf.keras.metrics.AUC()(labels, scores)

# %% Accuracy
tf.keras.metrics.Accuracy()([1, 2, 3, 4], [1, 2, 3, 0])

# %% AveragePrecision
labels, scores = [0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8]
tf.keras.metrics.AveragePrecision()(labels, scores)

# %% BinaryAccuracy
labels, probabilities = [1, 1, 0, 0], [0.9, 0.3, 0.2, 0.1]
tf.keras.metrics.BinaryAccuracy(threshold=0.5)(labels, probabilities)

# %% BinaryCrossentropy
labels, probabilities = [[1.0], [0.0]], [[0.9], [0.2]]
tf.keras.metrics.BinaryCrossentropy()(labels, probabilities)

# %% BinaryIoU
labels, probabilities = [0, 1, 1, 0], [0.1, 0.9, 0.4, 0.2]
tf.keras.metrics.BinaryIoU(target_class_ids=[1])(labels, probabilities)

# %% Calibration
metric = tf.keras.metrics.Calibration()
metric([1, 0, 1, 1], [0.9, 0.4, 0.3, 0.8])

# %% CalibrationByBucket
metric = tf.keras.metrics.CalibrationByBucket()
metric([1, 0, 1, 1], [0.9, 0.4, 0.3, 0.8])

# %% CategoricalAccuracy
labels, scores = [[0, 1, 0], [1, 0, 0]], [[0.1, 0.8, 0.1], [0.2, 0.5, 0.3]]
tf.keras.metrics.CategoricalAccuracy()(labels, scores)

# %% CategoricalCrossentropy
labels, probabilities = [[0.0, 1.0, 0.0]], [[0.1, 0.8, 0.1]]
tf.keras.metrics.CategoricalCrossentropy()(labels, probabilities)

# %% CategoricalHinge
labels, scores = [[0.0, 1.0, 0.0]], [[0.5, 1.0, -1.0]]
tf.keras.metrics.CategoricalHinge()(labels, scores)

# %% CosineSimilarity
labels, predictions = [[1.0, 0.0], [1.0, 0.0]], [[2.0, 0.0], [3.0, 4.0]]
tf.keras.metrics.CosineSimilarity()(labels, predictions)

# %% F1Score
labels = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
scores = [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7]]
tf.keras.metrics.F1Score()(labels, scores)

# %% FBetaScore
labels = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
scores = [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7]]
tf.keras.metrics.FBetaScore(average="macro", beta=2.0)(labels, scores)

# %% FalseNegatives
labels, probabilities = [1, 1, 1, 0], [0.9, 0.3, 0.2, 0.8]
tf.keras.metrics.FalseNegatives()(labels, probabilities)

# %% FalsePositives
labels, probabilities = [1, 1, 1, 0], [0.9, 0.3, 0.2, 0.8]
tf.keras.metrics.FalsePositives()(labels, probabilities)

# %% GroupAUC
metric = tf.keras.metrics.GroupAUC()
metric([1, 0, 1, 0], [0.9, 0.4, 0.3, 0.8], groups=[7, 7, 8, 8])

# %% Hinge
tf.keras.metrics.Hinge()([[1.0], [-1.0]], [[0.5], [0.5]])

# %% HitRate
metric = tf.keras.metrics.HitRate(k=2)
metric([[0, 1, 0], [1, 0, -1]], [[0.9, 0.4, 0.3], [0.2, 0.8, 0.0]])

# %% IoU
metric = tf.keras.metrics.IoU(num_classes=3, target_class_ids=[0, 2])
metric([0, 0, 1, 2], [0, 1, 1, 2])

# %% KLDivergence
tf.keras.metrics.KLDivergence()([[0.5, 0.5]], [[0.9, 0.1]])

# %% ListRecall
metric = tf.keras.metrics.ListRecall(k=2)
metric([[0, 1, 0], [1, 0, -1]], [[0.9, 0.4, 0.3], [0.2, 0.8, 0.0]])

# %% LogCoshError
tf.keras.metrics.LogCoshError()([[0.0], [0.0]], [[0.1], [10.0]])

# %% Mean
metric = tf.keras.metrics.Mean()
values = tf.placeholder(tf.float32, [None])
update = metric.update_state(values)
with tf.Session() as session:
    session.run([each.initializer for each in metric.variables])
    for batch in [1.0, 2.0], [6.0]:
        session.run(update, {values: batch})
    print(session.run(metric.result()))

# %% MeanAbsoluteError
tf.keras.metrics.MeanAbsoluteError()([[1.0], [2.0]], [[1.5], [4.0]])

# %% MeanAbsolutePercentageError
metric = tf.keras.metrics.MeanAbsolutePercentageError()
metric([[100.0], [200.0]], [[110.0], [150.0]])

# %% MeanAveragePrecision
metric = tf.keras.metrics.MeanAveragePrecision(k=2)
metric([[0, 1, 0], [1, 0, -1]], [[0.9, 0.4, 0.3], [0.2, 0.8, 0.0]])

# %% MeanIoU
tf.keras.metrics.MeanIoU(num_classes=3)([0, 0, 1, 2], [0, 1, 1, 2])


# %% MeanMetricWrapper
def largest_error(y_true, y_pred):
    return tf.reduce_max(tf.abs(y_true - y_pred), -1)


metric = tf.keras.metrics.MeanMetricWrapper(largest_error, name="largest_error")
metric([[1.0, 2.0], [3.0, 4.0]], [[1.0, 4.0], [3.0, 5.0]])

# %% MeanReciprocalRank
metric = tf.keras.metrics.MeanReciprocalRank(k=2)
metric([[0, 1, 0], [1, 0, -1]], [[0.9, 0.4, 0.3], [0.2, 0.8, 0.0]])

# %% MeanRelativeError
metric = tf.keras.metrics.MeanRelativeError(normalizer=[1.0, 10.0])
metric([1.0, 10.0], [1.5, 15.0])

# %% MeanSquaredError
metric = tf.keras.metrics.MeanSquaredError()
metric([[1.0], [2.0]], [[1.0], [4.0]], sample_weight=[1.0, 3.0])

# %% MeanSquaredLogarithmicError
tf.keras.metrics.MeanSquaredLogarithmicError()([[1.0], [100.0]], [[3.0], [100.0]])

# %% MeanTensor
metric = tf.keras.metrics.MeanTensor()
values = tf.placeholder(tf.float32, [2])
update = metric.update_state(values)
with tf.Session() as session:
    session.run([each.initializer for each in metric.variables])
    for batch in [1.0, 10.0], [3.0, 30.0]:
        session.run(update, {values: batch})
    print(session.run(metric.result()))


# %% Metric
class Positives(tf.keras.metrics.Metric):
    def __init__(self):
        super().__init__("positives")
        self.total = self.add_weight("total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        return self.total.assign_add(tf.reduce_sum(tf.cast(y_pred > 0.5, "float32")))

    def result(self):
        return self.total


Positives()(tf.constant([1, 0, 1]), tf.constant([0.9, 0.2, 0.7]))

# %% NDCG
metric = tf.keras.metrics.NDCG(k=2)
metric([[0, 1, 0], [1, 0, -1]], [[0.9, 0.4, 0.3], [0.2, 0.8, 0.0]])

# %% NormalizedCrossEntropy
metric = tf.keras.metrics.NormalizedCrossEntropy()
metric([1, 0, 1, 1], [0.9, 0.4, 0.3, 0.8])

# %% OneHotIoU
labels = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
scores = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.9, 0.0], [0.0, 0.2, 0.8]]
tf.keras.metrics.OneHotIoU(num_classes=3, target_class_ids=[0, 2])(labels, scores)

# %% OneHotMeanIoU
labels = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
scores = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.9, 0.0], [0.0, 0.2, 0.8]]
tf.keras.metrics.OneHotMeanIoU(num_classes=3)(labels, scores)

# %% Poisson
tf.keras.metrics.Poisson()([[2.0], [0.0]], [[1.5], [0.5]])

# %% Precision
labels, probabilities = [1, 1, 1, 0], [0.9, 0.7, 0.2, 0.8]
tf.keras.metrics.Precision(thresholds=[0.5, 0.85])(labels, probabilities)

# %% PrecisionAtRecall
labels, scores = [0, 0, 0, 1, 1], [0.1, 0.3, 0.8, 0.4, 0.9]
tf.keras.metrics.PrecisionAtRecall(recall=1.0)(labels, scores)

# %% R2Score
tf.keras.metrics.R2Score()([[1.0], [2.0], [3.0]], [[1.0], [2.5], [3.0]])

# %% Recall
labels, probabilities = [1, 1, 1, 0], [0.9, 0.7, 0.2, 0.8]
tf.keras.metrics.Recall()(labels, probabilities)

# %% RecallAtPrecision
labels, scores = [0, 0, 0, 1, 1], [0.1, 0.3, 0.8, 0.4, 0.9]
tf.keras.metrics.RecallAtPrecision(precision=0.9)(labels, scores)

# %% RootMeanSquaredError
tf.keras.metrics.RootMeanSquaredError()([[1.0], [2.0]], [[4.0], [6.0]])

# %% SensitivityAtSpecificity
labels, scores = [0, 0, 0, 1, 1], [0.1, 0.3, 0.8, 0.4, 0.9]
tf.keras.metrics.SensitivityAtSpecificity(specificity=1.0)(labels, scores)

# %% SparseCategoricalAccuracy
labels, scores = [1, 0], [[0.1, 0.8, 0.1], [0.2, 0.5, 0.3]]
tf.keras.metrics.SparseCategoricalAccuracy()(labels, scores)

# %% SparseCategoricalCrossentropy
labels, probabilities = [1, 0], [[0.1, 0.8, 0.1], [0.5, 0.25, 0.25]]
tf.keras.metrics.SparseCategoricalCrossentropy()(labels, probabilities)

# %% SparseTopKCategoricalAccuracy
labels, scores = [2, 0], [[0.1, 0.5, 0.4], [0.2, 0.5, 0.3]]
tf.keras.metrics.SparseTopKCategoricalAccuracy(k=2)(labels, scores)

# %% SpecificityAtSensitivity
labels, scores = [0, 0, 0, 1, 1], [0.1, 0.3, 0.8, 0.4, 0.9]
tf.keras.metrics.SpecificityAtSensitivity(sensitivity=1.0)(labels, scores)

# %% SquaredHinge
tf.keras.metrics.SquaredHinge()([[1.0], [-1.0]], [[0.5], [0.5]])


# %% StreamingMetric
class Bias(tf.keras.metrics.StreamingMetric):
    def sums(self, y_true, y_pred, sample_weight=None):
        error = tf.convert_to_tensor(y_pred) - y_true
        count = tf.cast(tf.size(error), "float32")
        return {"total": tf.reduce_sum(error), "count": count}

    def value(self, total, count):
        return total / count


Bias()([1.0, 2.0], [2.0, 4.0])

# %% Sum
tf.keras.metrics.Sum()([1.0, 2.0, 6.0])

# %% TopKCategoricalAccuracy
labels, scores = [[0, 0, 1], [1, 0, 0]], [[0.1, 0.5, 0.4], [0.2, 0.5, 0.3]]
tf.keras.metrics.TopKCategoricalAccuracy(k=2)(labels, scores)

# %% TrueNegatives
labels, probabilities = [1, 0, 0, 0], [0.9, 0.3, 0.2, 0.8]
tf.keras.metrics.TrueNegatives()(labels, probabilities)

# %% TruePositives
labels, probabilities = [1, 1, 1, 0], [0.9, 0.7, 0.2, 0.8]
tf.keras.metrics.TruePositives()(labels, probabilities)

# %% accuracy
tf.keras.metrics.accuracy([1, 2, 3, 4], [1, 2, 3, 0])

# %% as_metric
labels, scores = [1, 0], [[0.1, 0.8, 0.1], [0.2, 0.5, 0.3]]
metric = tf.keras.metrics.as_metric("accuracy", np.shape(labels), np.shape(scores))
print(type(metric).__name__)
metric(labels, scores)

# %% binary_accuracy
labels, probabilities = [[1, 1, 0, 0]], [[0.9, 0.3, 0.2, 0.1]]
tf.keras.metrics.binary_accuracy(labels, probabilities)

# %% categorical_accuracy
labels, scores = [[0, 1, 0], [1, 0, 0]], [[0.1, 0.8, 0.1], [0.2, 0.5, 0.3]]
tf.keras.metrics.categorical_accuracy(labels, scores)

# %% cosine
labels, predictions = [[1.0, 0.0], [1.0, 0.0]], [[2.0, 0.0], [3.0, 4.0]]
tf.keras.metrics.cosine(labels, predictions)

# %% deserialize
config = tf.keras.metrics.serialize(tf.keras.metrics.BinaryAccuracy(threshold=0.8))
metric = tf.keras.metrics.deserialize(config)
metric([1, 1], [0.9, 0.7])

# %% get
metric = tf.keras.metrics.get("AUC")
metric([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])

# %% serialize
tf.keras.metrics.serialize(tf.keras.metrics.BinaryAccuracy(threshold=0.8))

# %% sparse_categorical_accuracy
labels, scores = [1, 0], [[0.1, 0.8, 0.1], [0.2, 0.5, 0.3]]
tf.keras.metrics.sparse_categorical_accuracy(labels, scores)

# %% sparse_top_k_categorical_accuracy
labels, scores = [2, 0], [[0.1, 0.5, 0.4], [0.2, 0.5, 0.3]]
tf.keras.metrics.sparse_top_k_categorical_accuracy(labels, scores, k=2)

# %% top_k_categorical_accuracy
labels, scores = [[0, 0, 1], [1, 0, 0]], [[0.1, 0.5, 0.4], [0.2, 0.5, 0.3]]
tf.keras.metrics.top_k_categorical_accuracy(labels, scores, k=2)
