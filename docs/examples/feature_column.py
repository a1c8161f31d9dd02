# %% BucketizedColumn
age = tf.feature_column.numeric_column("age")
column = tf.feature_column.bucketized_column(age, [18, 65])
type(column).__name__, column.name, column.boundaries, column.num_buckets


# %% CategoricalColumn
class Parity(tf.feature_column.CategoricalColumn):
    name = "parity"
    num_buckets = 2

    @property
    def parse_example_spec(self):
        return {"count": tf.FixedLenFeature([1], tf.int64)}

    def transform(self, features):
        return tf.feature_column.Ids(features.tensor("count", self.name) % 2)


column = tf.feature_column.indicator_column(Parity())
tf.feature_column.input_layer({"count": np.array([4, 7])}, [column])


# %% DenseColumn
class Norm(tf.feature_column.DenseColumn):
    name = "norm"
    variable_shape = tf.TensorShape([1])

    @property
    def parse_example_spec(self):
        return {"point": tf.FixedLenFeature([2], tf.float32)}

    def transform(self, features):
        return tf.norm(features.tensor("point", self.name), axis=1, keepdims=True)

    def dense_tensor(self, features, weights):
        return features.transformed(self)


features = {"point": tf.constant([[3.0, 4.0], [0.0, 1.0]])}
tf.feature_column.input_layer(features, [Norm()])

# %% DenseFeatures
colour = tf.feature_column.categorical_column_with_vocabulary_list(
    "colour", ["red", "green", "blue"]
)
columns = [
    tf.feature_column.numeric_column("size"),
    tf.feature_column.indicator_column(colour),
]
layer = tf.feature_column.DenseFeatures(columns)
layer({"size": tf.constant([1.5, 2.5]), "colour": tf.constant(["blue", "red"])})

# %% EmbeddingTable
table = tf.feature_column.EmbeddingTable(
    "user", dynamic=True, min_count=2, optimizer=tf.train.RowwiseAdagradOptimizer(0.1)
)
user = tf.feature_column.categorical_column_with_hash_bucket("user", 2**62)  # any string
column = tf.feature_column.embedding_column(user, 4, table=table)
classifier = tf.estimator.DNNClassifier([8], [column])
data = {"user": np.array(["ann", "bob", "ann", "eve"])}, np.array([1, 0, 1, 0])
classifier.train(lambda: tf.data.Dataset.from_tensor_slices(data).batch(2))
print(classifier.get_variable_value("user/ids")[:, 1:3])  # row (-1 without) and count of each

# %% FeatureColumn
columns = [
    tf.feature_column.numeric_column("size"),
    tf.feature_column.crossed_column(["colour", "shape"], 100),
]
assert all(isinstance(column, tf.feature_column.FeatureColumn) for column in columns)
{column.name: column.parents for column in columns}

# %% Features
features = tf.feature_column.Features({"tags": [["a", "b"], ["c"]], "size": [1.0, 2.0]})
features.raw("tags", "this example").value, features.tensor("size", "this example")

# %% FixedLenFeature
point = tf.train.Feature(float_list=tf.train.FloatList(value=[3.0, 4.0]))
features = tf.train.Features(feature={"point": point})
example = tf.train.Example(features=features).SerializeToString()
spec = {
    "point": tf.feature_column.FixedLenFeature([2], tf.float32),
    "count": tf.feature_column.FixedLenFeature([], tf.int64, default_value=1),
}
tf.io.parse_example([example], spec)

# %% Ids
letters = ["a", "b", "c"]
tags = tf.feature_column.categorical_column_with_vocabulary_list("tags", letters)
features = tf.feature_column.Features({"tags": [["c", "a"], ["b", "?"]]})
ids = tags.transform(features)
print(type(ids).__name__, ids.weights)
ids.ids

# %% NumericColumn
column = tf.feature_column.numeric_column("point", shape=2)
type(column).__name__, column.key, column.shape, column.parse_example_spec

# %% SequenceDenseColumn
column = tf.feature_column.sequence_numeric_column("steps")
assert isinstance(column, tf.feature_column.SequenceDenseColumn)
steps = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1.0, 2.0, 5.0], [2, 2])
column.sequence(tf.feature_column.Features({"steps": steps}), weights=None)

# %% SequenceFeatures
column = tf.feature_column.sequence_numeric_column("steps")
steps = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1.0, 2.0, 5.0], [2, 2])
layer = tf.feature_column.SequenceFeatures([column])
layer({"steps": steps})

# %% bucketized_column
age = tf.feature_column.numeric_column("age")
column = tf.feature_column.bucketized_column(age, boundaries=[18, 65])
tf.feature_column.input_layer({"age": tf.constant([7.0, 18.0, 80.0])}, [column])

# %% categorical_column_with_hash_bucket
word = tf.feature_column.categorical_column_with_hash_bucket("word", hash_bucket_size=5)
column = tf.feature_column.indicator_column(word)
tf.feature_column.input_layer({"word": tf.constant(["cat", "dog", "cat"])}, [column])

# %% categorical_column_with_hashed_words
notes = tf.constant(["Late delivery!", "late again, again"])
words = tf.feature_column.categorical_column_with_hashed_words("note", 6, pairs=False)
tf.feature_column.input_layer({"note": notes}, [tf.feature_column.indicator_column(words)])

# %% categorical_column_with_identity
day = tf.feature_column.categorical_column_with_identity("day", num_buckets=3)
column = tf.feature_column.indicator_column(day)
tf.feature_column.input_layer({"day": tf.constant([0, 2, 1])}, [column])

# %% categorical_column_with_vocabulary_file
with tf.gfile.GFile("colours.txt", "w") as file:
    file.write("red\ngreen\nblue\n")
colour = tf.feature_column.categorical_column_with_vocabulary_file(
    "colour", "colours.txt", num_oov_buckets=1
)
column = tf.feature_column.indicator_column(colour)
tf.feature_column.input_layer({"colour": tf.constant(["blue", "pink"])}, [column])

# %% categorical_column_with_vocabulary_list
colour = tf.feature_column.categorical_column_with_vocabulary_list(
    "colour", ["red", "green", "blue"]
)
column = tf.feature_column.indicator_column(colour)
tf.feature_column.input_layer({"colour": tf.constant(["blue", "pink"])}, [column])

# %% check_sparse_combiner
try:
    tf.feature_column.check_sparse_combiner("max")
except ValueError as error:
    print(error)

# %% check_vocabulary_fingerprints
with tf.gfile.GFile("colours.txt", "w") as file:
    file.write("red\nblue\n")
colour = tf.feature_column.categorical_column_with_vocabulary_file(
    key="colour",
    vocabulary_file="colours.txt",
)
tf.feature_column.linear_model({"colour": tf.constant(["red"])}, [colour])
saved = tf.feature_column.vocabulary_fingerprints()
saved["colour"]["sha256"] = "that of another file"
try:
    tf.feature_column.check_vocabulary_fingerprints(saved)
except tf.errors.FailedPreconditionError as error:
    print(str(error).splitlines()[0])

# %% column_texts
column = tf.feature_column.numeric_column("size")
tf.feature_column.input_layer({"size": tf.constant([1.0])}, [column])
tf.feature_column.column_texts(tf.get_default_graph())

# %% concatenate_context_input
context = tf.constant([[10.0], [20.0]])
sequence = tf.constant([[[1.0], [2.0]], [[3.0], [4.0]]])
tf.feature_column.concatenate_context_input(context, sequence)

# %% crossed_column
cross = tf.feature_column.crossed_column(["colour", "shape"], hash_bucket_size=5)
column = tf.feature_column.indicator_column(cross)
features = {
    "colour": tf.constant(["red", "red", "blue"]),
    "shape": tf.constant(["round", "square", "round"]),
}
tf.feature_column.input_layer(features, [column])

# %% embedding_column
colours = ["red", "blue"]
colour = tf.feature_column.categorical_column_with_vocabulary_list("colour", colours)
column = tf.feature_column.embedding_column(
    colour, dimension=3, initializer=tf.constant_initializer([[1, 2, 3], [4, 5, 6]])
)
tf.feature_column.input_layer({"colour": [["blue", ""], ["red", "blue"]]}, [column])

# %% indicator_column
letters = ["a", "b", "c"]
tags = tf.feature_column.categorical_column_with_vocabulary_list("tags", letters)
column = tf.feature_column.indicator_column(tags)
tf.feature_column.input_layer({"tags": [["a", "c"], ["b", "b"]]}, [column])

# %% input_layer
age = tf.feature_column.numeric_column("age")
colours = ["red", "blue"]
colour = tf.feature_column.categorical_column_with_vocabulary_list("colour", colours)
columns = [age, tf.feature_column.indicator_column(colour)]
features = {"age": tf.constant([31.0, 42.0]), "colour": tf.constant(["blue", "red"])}
tf.feature_column.input_layer(features, columns)

# %% linear_model
age = tf.feature_column.numeric_column("age")
colours = ["red", "blue"]
colour = tf.feature_column.categorical_column_with_vocabulary_list("colour", colours)
features = {"age": tf.constant([31.0, 42.0]), "colour": tf.constant(["blue", "red"])}
outputs = tf.feature_column.linear_model(features, [age, colour])
print({variable.name: variable.shape for variable in tf.trainable_variables()})
outputs

# %% make_parse_example_spec
columns = [
    tf.feature_column.numeric_column("point", shape=2),
    tf.feature_column.categorical_column_with_hash_bucket("word", 100),
]
tf.feature_column.make_parse_example_spec(columns)

# %% normalize_columns
columns = {tf.feature_column.numeric_column(key) for key in ("size", "age")}
[column.name for column in tf.feature_column.normalize_columns(columns)]

# %% numeric_column
age = tf.feature_column.numeric_column("age", normalizer_fn=lambda age: (age - 40) / 10)
point = tf.feature_column.numeric_column("point", shape=2)
features = {"age": tf.constant([30.0, 45.0]), "point": tf.constant([[1, 2], [3, 4]])}
tf.feature_column.input_layer(features, [age, point])

# %% sequence_categorical_column_with_hash_bucket
word = tf.feature_column.sequence_categorical_column_with_hash_bucket("words", 5)
column = tf.feature_column.indicator_column(word)
features = {"words": tf.constant([["cat", "dog"], ["cat", ""]])}
tf.feature_column.sequence_input_layer(features, [column])

# %% sequence_categorical_column_with_identity
day = tf.feature_column.sequence_categorical_column_with_identity("days", num_buckets=3)
column = tf.feature_column.indicator_column(day)
features = {"days": tf.constant([[0, 2], [1, -1]])}
tf.feature_column.sequence_input_layer(features, [column])

# %% sequence_categorical_column_with_vocabulary_file
with tf.gfile.GFile("words.txt", "w") as file:
    file.write("cat\ndog\n")
word = tf.feature_column.sequence_categorical_column_with_vocabulary_file(
    key="words",
    vocabulary_file="words.txt",
)
column = tf.feature_column.indicator_column(word)
features = {"words": tf.constant([["cat", "dog"], ["cat", ""]])}
tf.feature_column.sequence_input_layer(features, [column])

# %% sequence_categorical_column_with_vocabulary_list
word = tf.feature_column.sequence_categorical_column_with_vocabulary_list(
    key="words",
    vocabulary_list=["cat", "dog"],
)
column = tf.feature_column.indicator_column(word)
features = {"words": tf.constant([["cat", "dog"], ["cat", ""]])}
tf.feature_column.sequence_input_layer(features, [column])

# %% sequence_input_layer
steps = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1.0, 2.0, 5.0], [2, 2])
words = tf.constant([["cat", "dog"], ["dog", ""]])
word = tf.feature_column.sequence_categorical_column_with_vocabulary_list(
    key="words",
    vocabulary_list=["cat", "dog"],
)
columns = [
    tf.feature_column.sequence_numeric_column("steps"),
    tf.feature_column.indicator_column(word),
]
tf.feature_column.sequence_input_layer({"steps": steps, "words": words}, columns)

# %% sequence_numeric_column
column = tf.feature_column.sequence_numeric_column("steps", default_value=-1.0)
steps = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1.0, 2.0, 5.0], [2, 2])
tf.feature_column.sequence_input_layer({"steps": steps}, [column])

# %% shared_embedding_columns
sizes = ["small", "large"]
columns = tf.feature_column.shared_embedding_columns(
    [
        tf.feature_column.categorical_column_with_vocabulary_list(key, sizes)
        for key in ("ordered", "returned")
    ],
    dimension=2,
    initializer=tf.constant_initializer([[1, 2], [3, 4]]),
)
features = {"ordered": tf.constant(["small"]), "returned": tf.constant(["large"])}
outputs = tf.feature_column.input_layer(features, columns)
print(tf.trainable_variables()[0].name)
outputs

# %% shared_embeddings
sizes = ["small", "large"]
columns = tf.feature_column.shared_embeddings(
    [
        tf.feature_column.categorical_column_with_vocabulary_list(key, sizes)
        for key in ("ordered", "returned")
    ],
    dimension=2,
    initializer=tf.constant_initializer([[1, 2], [3, 4]]),
    shared_embedding_collection_name="size_table",
)
features = {"ordered": tf.constant(["small"]), "returned": tf.constant(["large"])}
outputs = tf.feature_column.input_layer(features, columns)
print(tf.trainable_variables()[0].name)
outputs

# %% vocabulary_fingerprints
with tf.gfile.GFile("colours.txt", "w") as file:
    file.write("red\nblue\n")
colour = tf.feature_column.categorical_column_with_vocabulary_file(
    key="colour",
    vocabulary_file="colours.txt",
)
tf.feature_column.linear_model({"colour": tf.constant(["red"])}, [colour])
tf.feature_column.vocabulary_fingerprints()["colour"]["sha256"][:16]

# %% weighted_categorical_column
letters = ["a", "b", "c"]
tags = tf.feature_column.categorical_column_with_vocabulary_list("tags", letters)
weighted = tf.feature_column.weighted_categorical_column(tags, "weights")
column = tf.feature_column.indicator_column(weighted)
features = {
    "tags": tf.constant([["a", "c"], ["b", "b"]]),
    "weights": tf.constant([[0.5, 2.0], [1.0, 3.0]]),
}
tf.feature_column.input_layer(features, [column])
