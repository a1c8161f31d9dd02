# %% FixedLenSequenceFeature
example = tf.train.Example()
example.features.feature["ages"].int64_list.value.extend([3, 4])
ages = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
tf.io.parse_single_example(example.SerializeToString(), {"ages": ages})["ages"]

# %% PaddingFIFOQueue
queue = tf.io.PaddingFIFOQueue(10, [tf.int32], shapes=[[None]])
with tf.Session() as session:
    session.run(queue.enqueue([[1, 2]]))
    session.run(queue.enqueue([[3]]))
    print(session.run(queue.dequeue_many(2)))

# %% PriorityQueue
queue = tf.io.PriorityQueue(10, [tf.string], shapes=[[]])
with tf.Session() as session:
    session.run(queue.enqueue_many([[5, 1], ["later", "first"]]))
    print(session.run(queue.dequeue()))

# %% QueueBase
queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]])
print(isinstance(queue, tf.io.QueueBase))
with tf.Session() as session:
    session.run(queue.enqueue_many([[1, 2]]))
    print(session.run(queue.dequeue()))

# %% RandomShuffleQueue
queue = tf.io.RandomShuffleQueue(10, 0, [tf.int32], shapes=[[]], seed=1)
size = queue.size()
with tf.Session() as session:
    session.run(queue.enqueue_many([[1, 2, 3]]))
    session.run(queue.dequeue())
    print(session.run(size))

# %% SparseFeature
example = tf.train.Example()
example.features.feature["at"].int64_list.value.extend([0, 2])
example.features.feature["values"].float_list.value.extend([1.5, 2.5])
feature = tf.io.SparseFeature("at", "values", tf.float32, size=4)
parsed = tf.io.parse_single_example(example.SerializeToString(), {"x": feature})
tf.sparse_tensor_to_dense(parsed["x"])

# %% TFRecordCompressionType
tf.io.TFRecordCompressionType.GZIP

# %% TFRecordOptions
options = tf.io.TFRecordOptions("GZIP")
with tf.io.TFRecordWriter("records.gz", options) as writer:
    writer.write(b"first")
list(tf.io.tf_record_iterator("records.gz", options))

# %% TFRecordWriter
with tf.io.TFRecordWriter("records") as writer:
    writer.write(b"first")
    writer.write(b"second")
list(tf.io.tf_record_iterator("records"))

# %% VarLenFeature
example = tf.train.Example()
example.features.feature["ages"].int64_list.value.extend([3, 4])
features = {"ages": tf.io.VarLenFeature(tf.int64)}
tf.io.parse_single_example(example.SerializeToString(), features)["ages"].values

# %% decode_base64
tf.io.decode_base64(tf.io.encode_base64("hello"))

# %% decode_csv
age, town = tf.io.decode_csv(["31,Rome", ",Oslo"], record_defaults=[[40], [""]])
age, town

# %% decode_json_example
text = '{"features": {"feature": {"age": {"int64List": {"value": ["31"]}}}}}'
features = {"age": tf.FixedLenFeature([], tf.int64)}
tf.io.parse_single_example(tf.io.decode_json_example(text), features)

# %% decode_raw
tf.io.decode_raw(b"\x01\x00\x02\x00", tf.int16)

# %% encode_base64
tf.io.encode_base64("hello", pad=True)

# %% matching_files
for name in ("a.txt", "b.txt"):
    with tf.gfile.GFile(name, "w") as file:
        file.write("text")
tf.io.matching_files("*.txt")

# %% parse_example
example = tf.train.Example()
example.features.feature["age"].int64_list.value.append(31)
serialized = [example.SerializeToString()] * 2
tf.io.parse_example(serialized, {"age": tf.FixedLenFeature([], tf.int64)})

# %% parse_sequence_example
example = tf.train.SequenceExample()
example.context.feature["age"].int64_list.value.append(31)
steps = example.feature_lists.feature_list["visits"]
for value in (1.0, 2.0):
    steps.feature.add().float_list.value.append(value)
context, sequences, lengths = tf.io.parse_sequence_example(
    [example.SerializeToString()],
    context_features={"age": tf.FixedLenFeature([], tf.int64)},
    sequence_features={"visits": tf.FixedLenSequenceFeature([], tf.float32)},
)
sequences["visits"], lengths["visits"]

# %% parse_single_example
example = tf.train.Example()
example.features.feature["age"].int64_list.value.append(31)
serialized = example.SerializeToString()
tf.io.parse_single_example(serialized, {"age": tf.FixedLenFeature([], tf.int64)})

# %% parse_single_sequence_example
example = tf.train.SequenceExample()
example.context.feature["age"].int64_list.value.append(31)
steps = example.feature_lists.feature_list["visits"]
for value in (1.0, 2.0):
    steps.feature.add().float_list.value.append(value)
tf.io.parse_single_sequence_example(
    example.SerializeToString(),
    context_features={"age": tf.FixedLenFeature([], tf.int64)},
    sequence_features={"visits": tf.FixedLenSequenceFeature([], tf.float32)},
)

# %% parse_tensor
tf.io.parse_tensor(tf.io.serialize_tensor([[1, 2]]), tf.int32)

# %% read_file
with open("note.txt", "w") as file:
    file.write("hello")
tf.io.read_file("note.txt")

# %% serialize_tensor
tf.io.parse_tensor(tf.io.serialize_tensor([1.0, 2.0]), tf.float32)

# %% tf_record_iterator
with tf.io.TFRecordWriter("records") as writer:
    writer.write(b"first")
for record in tf.io.tf_record_iterator("records"):
    print(record)

# %% write_file
with tf.Session() as session:
    session.run(tf.io.write_file("note.txt", "hello"))
tf.gfile.GFile("note.txt").read()
