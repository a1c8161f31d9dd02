# %% AutoShardPolicy
options = tf.data.Options()
policy = tf.data.experimental.AutoShardPolicy.DATA
options.experimental_distribute.auto_shard_policy = policy
tf.data.Dataset.range(3).with_options(options).options().experimental_distribute

# %% Counter
list(tf.data.experimental.Counter(start=10, step=5).take(4))

# %% CsvDataset
with open("animals.csv", "w") as file:
    file.write("name,legs,size\nant,6,0.5\nspider,8,\n")
defaults = [tf.string, tf.int32, [0.0]]
dataset = tf.data.experimental.CsvDataset("animals.csv", defaults, header=True)
list(dataset)

# %% DistributeOptions
options = tf.data.Options()
options.experimental_distribute = tf.data.experimental.DistributeOptions()
options.experimental_distribute.num_devices = 2
tf.data.Dataset.range(3).with_options(options).options().experimental_distribute

# %% OptimizationOptions
options = tf.data.Options()
options.experimental_optimization = tf.data.experimental.OptimizationOptions()
options.experimental_optimization.map_fusion = True
tf.data.Dataset.range(3).with_options(options).options().experimental_optimization

# %% Optional
some = tf.data.experimental.Optional.from_value({"legs": 6})
none = tf.data.experimental.Optional.empty(some.element_spec)
with tf.Session() as session:
    print(session.run([some.has_value(), some.get_value(), none.has_value()]))

# %% Reducer
count = tf.data.experimental.Reducer(
    lambda key: 0, lambda state, number: state + 1, lambda state: state
)
by_parity = tf.data.experimental.group_by_reducer(lambda number: number % 2, count)
list(tf.data.Dataset.range(5).apply(by_parity))

# %% TFRecordWriter
dataset = tf.data.Dataset.from_tensor_slices(["ant", "bee"])
write = tf.data.experimental.TFRecordWriter("words.tfrecord").write(dataset)
with tf.Session() as session:
    session.run(write)
list(tf.data.TFRecordDataset("words.tfrecord"))

# %% assert_cardinality
dataset = tf.data.Dataset.range(5).filter(lambda number: number < 3)
counted = dataset.apply(tf.data.experimental.assert_cardinality(3))
tf.data.experimental.cardinality(dataset), tf.data.experimental.cardinality(counted)

# %% bucket_by_sequence_length
words = tf.data.Dataset.from_generator(
    lambda: iter([[1], [2, 2, 2], [3], [4, 4]]), tf.int32, [None]
)
bucket = tf.data.experimental.bucket_by_sequence_length(
    tf.size, bucket_boundaries=[2], bucket_batch_sizes=[2, 2]
)
list(words.apply(bucket))

# %% cardinality
dataset = tf.data.Dataset.range(10).batch(4)
[tf.data.experimental.cardinality(each) for each in (dataset, dataset.repeat())]

# %% choose_from_datasets
words = [tf.data.Dataset.from_tensors(word).repeat() for word in ("ant", "bee")]
choices = tf.data.Dataset.from_tensor_slices(np.array([0, 1, 1, 0]))
list(tf.data.experimental.choose_from_datasets(words, choices))

# %% copy_to_device
dataset = tf.data.Dataset.range(3).apply(tf.data.experimental.copy_to_device("/gpu:0"))
list(dataset)

# %% dense_to_sparse_batch
dataset = tf.data.Dataset.range(1, 4).map(lambda count: tf.fill([count], count))
dataset = dataset.apply(tf.data.experimental.dense_to_sparse_batch(3, row_shape=[4]))
batch = tf.data.make_one_shot_iterator(dataset).get_next()
tf.sparse.to_dense(batch)

# %% enumerate_dataset
dataset = tf.data.Dataset.from_tensor_slices(["ant", "bee"])
list(dataset.apply(tf.data.experimental.enumerate_dataset(start=1)))

# %% get_next_as_optional
iterator = tf.data.Dataset.range(1).make_one_shot_iterator()
optional = tf.data.experimental.get_next_as_optional(iterator)
some = optional.has_value()
number = tf.cond(some, optional.get_value, lambda: tf.constant(-1, tf.int64))
with tf.Session() as session:
    print([session.run([some, number]) for _ in range(2)])

# %% get_single_element
dataset = tf.data.Dataset.range(1, 5).batch(4).map(lambda batch: batch**2)
tf.data.experimental.get_single_element(dataset)

# %% get_structure
dataset = tf.data.Dataset.from_tensors({"size": [1.5, 2.5], "name": "ant"})
tf.data.experimental.get_structure(dataset)

# %% group_by_reducer
total = tf.data.experimental.Reducer(
    lambda key: tf.constant(0, tf.int64), lambda state, number: state + number, lambda state: state
)
by_third = tf.data.experimental.group_by_reducer(lambda number: number % 3, total)
list(tf.data.Dataset.range(10).apply(by_third))

# %% group_by_window
group = tf.data.experimental.group_by_window(
    key_func=lambda number: number % 2,
    reduce_func=lambda key, window: window.batch(3),
    window_size=3,
)
list(tf.data.Dataset.range(8).apply(group))

# %% ignore_errors
dataset = tf.data.Dataset.from_tensor_slices(["1", "two", "3"])
dataset = dataset.map(lambda word: tf.string_to_number(word, tf.int32))
list(dataset.apply(tf.data.experimental.ignore_errors()))

# %% make_batched_features_dataset
with tf.python_io.TFRecordWriter("sizes.tfrecord") as writer:
    for value in (1.5, 2.5, 3.5):
        size = tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
        features = tf.train.Features(feature={"size": size})
        writer.write(tf.train.Example(features=features).SerializeToString())
dataset = tf.data.experimental.make_batched_features_dataset(
    "*.tfrecord",
    batch_size=2,
    features={"size": tf.FixedLenFeature([], tf.float32)},
    num_epochs=1,
    shuffle=False,
)
list(dataset)

# %% make_csv_dataset
with open("animals.csv", "w") as file:
    file.write("name,legs,flies\nant,6,0\nbee,6,1\nspider,8,0\n")
dataset = tf.data.experimental.make_csv_dataset(
    "animals.csv", batch_size=3, label_name="flies", num_epochs=1, shuffle=False
)
list(dataset)

# %% map_and_batch
square = tf.data.experimental.map_and_batch(lambda number: number**2, batch_size=3)
list(tf.data.Dataset.range(5).apply(square))

# %% parallel_interleave
interleave = tf.data.experimental.parallel_interleave(
    lambda number: tf.data.Dataset.from_tensors(number).repeat(2), cycle_length=2
)
list(tf.data.Dataset.range(3).apply(interleave))

# %% parse_example_dataset
size = tf.train.Feature(float_list=tf.train.FloatList(value=[1.5]))
example = tf.train.Example(features=tf.train.Features(feature={"size": size}))
spec = {"size": tf.FixedLenFeature([], tf.float32)}
parse = tf.data.experimental.parse_example_dataset(spec)
dataset = tf.data.Dataset.from_tensors(example.SerializeToString()).repeat(2).batch(2)
list(dataset.apply(parse))

# %% prefetch_to_device
dataset = tf.data.Dataset.range(4).batch(2)
list(dataset.apply(tf.data.experimental.prefetch_to_device("/gpu:0", buffer_size=2)))

# %% rejection_resample
labels = tf.data.Dataset.from_tensor_slices([0, 0, 0, 1]).repeat(500)
resample = tf.data.experimental.rejection_resample(
    lambda label: label, target_dist=[0.5, 0.5], initial_dist=[0.75, 0.25], seed=1
)
np.mean([label for label, _ in labels.apply(resample)])

# %% sample_from_datasets
words = [tf.data.Dataset.from_tensors(word).repeat() for word in ("ant", "bee")]
dataset = tf.data.experimental.sample_from_datasets(words, weights=[0.25, 0.75], seed=1)
list(dataset.take(6))

# %% scan
running_sum = tf.data.experimental.scan(
    np.int64(0), lambda total, number: (total + number, total + number)
)
list(tf.data.Dataset.range(5).apply(running_sum))

# %% shuffle_and_repeat
dataset = tf.data.Dataset.range(4)
list(dataset.apply(tf.data.experimental.shuffle_and_repeat(4, count=2, seed=1)))

# %% take_while
dataset = tf.data.Dataset.from_tensor_slices([1, 2, 5, 1])
list(dataset.apply(tf.data.experimental.take_while(lambda number: number < 3)))

# %% unbatch
dataset = tf.data.Dataset.range(5).batch(2)
list(dataset.apply(tf.data.experimental.unbatch()))

# %% unique
dataset = tf.data.Dataset.from_tensor_slices([1, 2, 1, 3, 2])
list(dataset.apply(tf.data.experimental.unique()))
