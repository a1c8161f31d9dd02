# %% ArrowDataset
import pyarrow
import pyarrow.feather

table = pyarrow.table({"size": [1.5, 2.5], "name": ["ant", "bee"]})
pyarrow.feather.write_feather(table, "animals.arrow")
list(tf.data.ArrowDataset("animals.arrow"))

# %% BlockIterator
dataset = tf.data.Dataset.range(5).map(lambda number: number * 10)
iterator = dataset.make_block_iterator()
assert isinstance(iterator, tf.data.BlockIterator)
first = iterator.next_block(2)
state = iterator.get_state()
rest = iterator.next_block(10)
iterator.set_state(state)
first, rest, iterator.next_block(1)

# %% Dataset
features = {"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue", "red", "blue"]}
dataset = tf.data.Dataset.from_tensor_slices((features, [0, 1, 0, 1]))
dataset = dataset.map(lambda features, label: (features["size"] * 10, label))
list(dataset.shuffle(4, seed=1).repeat(2).batch(3))

# %% DatasetSpec
windows = tf.data.Dataset.range(6).window(3)
spec = tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))
windows.element_spec, windows.element_spec == spec

# %% FixedLengthRecordDataset
with open("numbers.bin", "wb") as file:
    file.write(b"head" + np.array([1, 2, 3], "<i4").tobytes())
dataset = tf.data.FixedLengthRecordDataset("numbers.bin", 4, header_bytes=4)
list(dataset.map(lambda record: tf.decode_raw(record, tf.int32)))

# %% Iterator
small, large = tf.data.Dataset.range(3), tf.data.Dataset.range(100, 103)
iterator = tf.data.Iterator.from_structure(small.output_types, small.output_shapes)
number = iterator.get_next()
start_small, start_large = map(iterator.make_initializer, (small, large))
with tf.Session() as session:
    for start in (start_small, start_large):
        session.run(start)
        print([session.run(number) for _ in range(3)])

# %% Options
options = tf.data.Options()
options.experimental_deterministic = True
dataset = tf.data.Dataset.range(3).with_options(options)
dataset.options().experimental_deterministic

# %% ParquetDataset
import pyarrow
import pyarrow.parquet

table = pyarrow.table({"size": [1.5, None], "name": ["ant", "bee"]})
pyarrow.parquet.write_table(table, "animals.parquet")
list(tf.data.ParquetDataset("animals.parquet", missing={"size": 0.0}))

# %% SparseTensorSpec
rows = tf.SparseTensorValue([[0, 1], [1, 0]], [10, 20], [2, 3])
dataset = tf.data.Dataset.from_tensor_slices(rows)
spec = tf.data.SparseTensorSpec([3], tf.int32)
dataset.element_spec, spec.is_compatible_with(dataset.element_spec)

# %% TFRecordDataset
with tf.python_io.TFRecordWriter("words.tfrecord") as writer:
    for word in (b"ant", b"bee"):
        writer.write(word)
list(tf.data.TFRecordDataset("words.tfrecord"))

# %% TensorSpec
spec = tf.data.TensorSpec([None, 2], tf.float32)
dataset = tf.data.Dataset.from_generator(
    lambda: iter([np.ones([1, 2]), np.ones([3, 2])]), output_signature=spec
)
[element.shape for element in dataset]

# %% TextLineDataset
with open("words.txt", "w") as file:
    file.write("ant\nbee\ncat\n")
list(tf.data.TextLineDataset("words.txt").skip(1))

# %% ThreadingOptions
options = tf.data.Options()
options.threading = tf.data.ThreadingOptions()
options.threading.private_threadpool_size = 2
tf.data.Dataset.range(3).with_options(options).options().threading

# %% TracedFunction
factor = tf.placeholder(tf.float32, [], name="factor")
dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: x * factor)
function = dataset._plan.function
function.output_spec, function.tensors()[0].name

# %% get_output_classes
dataset = tf.data.Dataset.from_tensors({"size": [1.5, 2.5]})
tf.data.get_output_classes(dataset)

# %% get_output_shapes
dataset = tf.data.Dataset.from_tensors({"size": [1.5, 2.5]})
tf.data.get_output_shapes(dataset)

# %% get_output_types
dataset = tf.data.Dataset.from_tensors({"size": [1.5, 2.5]})
tf.data.get_output_types(dataset)

# %% make_initializable_iterator
limit = tf.placeholder(tf.int64, [])
iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(limit))
number = iterator.get_next()
with tf.Session() as session:
    for value in (2, 3):
        session.run(iterator.initializer, {limit: value})
        print([session.run(number) for _ in range(value)])

# %% make_one_shot_iterator
dataset = tf.data.Dataset.from_tensor_slices([10, 20])
number = tf.data.make_one_shot_iterator(dataset).get_next()
with tf.Session() as session:
    print(session.run(number), session.run(number))
    try:
        session.run(number)
    except tf.errors.OutOfRangeError:
        print("end of the dataset")

# %% numpy_input_fn
input_fn = tf.estimator.inputs.numpy_input_fn(
    {"size": np.array([1.0, 2.0, 3.0])},
    np.array([0, 1, 0]),
    batch_size=2,
    num_epochs=None,
    shuffle=False,
)
input_fn()

# %% pandas_input_fn
import pandas as pd

table = pd.DataFrame({"size": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]})
labels = pd.Series([0, 1, 0])
input_fn = tf.estimator.inputs.pandas_input_fn(table, labels, 2, shuffle=False)
input_fn()

# %% read_csv
with open("animals.csv", "w") as file:
    file.write("name,legs,size\nant,6,0.5\nspider,8,\n")
tf.data.read_csv("animals.csv", dtypes={"size": tf.float32})

# %% split_cells
items = tf.data.split_cells(["toy|game|toy", "", "book"])
tags, weights = tf.data.split_cells(["red:0.3|big:1", "red:2"], "|", weights=":", length=2)
items, tags, weights
