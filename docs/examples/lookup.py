# %% DenseHashTable
table = tf.lookup.experimental.DenseHashTable(
    tf.int64, tf.float32, default_value=-1.0, empty_key=0, deleted_key=-1
)
insert = table.insert(tf.constant([3, 7], tf.int64), [0.3, 0.7])
remove = table.remove(tf.constant([7], tf.int64))
found = table.lookup(tf.constant([3, 7, 9], tf.int64))
with tf.Session() as session:
    session.run(insert)
    print(session.run(found))
    session.run(remove)
    print(session.run(found))

# %% HashTable
ids = tf.lookup.KeyValueTensorInitializer(["red", "green"], [0, 1])
table = tf.lookup.HashTable(ids, default_value=-1)
table.lookup(tf.constant(["green", "blue"]))

# %% HasherSpec
fast = tf.lookup.HasherSpec("fasthash")
strong = tf.lookup.HasherSpec("stronghash", key=(3, 4))
tables = [
    tf.lookup.index_table_from_tensor(["red"], num_oov_buckets=100, hasher_spec=spec)
    for spec in (fast, strong)
]
[table.lookup(tf.constant(["red", "green", "blue"])) for table in tables]

# %% IdTableWithHashBuckets
ids = tf.constant([0, 1], tf.int64)
initializer = tf.lookup.KeyValueTensorInitializer(["red", "green"], ids)
vocabulary = tf.lookup.StaticHashTable(initializer, default_value=-1)
table = tf.lookup.IdTableWithHashBuckets(vocabulary, num_oov_buckets=3)
table.lookup(tf.constant(["green", "blue", "black"])), table.size()

# %% KeyValueTensorInitializer
prices = tf.lookup.KeyValueTensorInitializer(["apple", "pear"], [0.5, 0.75])
table = tf.lookup.StaticHashTable(prices, default_value=0.0)
table.lookup(tf.constant(["pear", "plum"]))

# %% MutableHashTable
table = tf.lookup.MutableHashTable(tf.string, tf.int64, default_value=0)
words = tf.constant(["a", "b", "a"])
insert = table.insert(["a", "b"], tf.constant([10, 20], tf.int64))
found, size = table.lookup(words), table.size()
with tf.Session() as session:
    print(session.run([found, size]))
    session.run(insert)
    print(session.run([found, size]))

# %% StaticHashTable
ids = tf.lookup.KeyValueTensorInitializer(["red", "green"], [0, 1])
table = tf.lookup.StaticHashTable(ids, default_value=-1)
table.lookup(tf.constant([["green", "blue"], ["red", "red"]])), table.size()

# %% StaticVocabularyTable
ids = tf.constant([0, 1], tf.int64)
initializer = tf.lookup.KeyValueTensorInitializer(["red", "green"], ids)
table = tf.lookup.StaticVocabularyTable(initializer, num_oov_buckets=3)
table.lookup(tf.constant(["green", "blue", "black"])), table.size()

# %% StrongHashSpec
spec = tf.lookup.StrongHashSpec([3, 4])
table = tf.lookup.index_table_from_tensor(["red"], 100, hasher_spec=spec)
table.lookup(tf.constant(["red", "green", "blue"]))

# %% TextFileIdTableInitializer
with tf.gfile.GFile("colors.txt", "w") as file:
    file.write("red\ngreen\n")
lines = tf.lookup.TextFileIdTableInitializer("colors.txt")
table = tf.lookup.StaticHashTable(lines, default_value=-1)
table.lookup(tf.constant(["green", "blue"]))

# %% TextFileIndex
with tf.gfile.GFile("colors.txt", "w") as file:
    file.write("red\ngreen\n")
initializer = tf.lookup.TextFileInitializer(
    "colors.txt",
    key_dtype=tf.string,
    key_index=tf.lookup.TextFileIndex.WHOLE_LINE,
    value_dtype=tf.int64,
    value_index=tf.lookup.TextFileIndex.LINE_NUMBER,
)
tf.lookup.StaticHashTable(initializer, -1).lookup(tf.constant(["green", "blue"]))

# %% TextFileInitializer
with tf.gfile.GFile("prices.csv", "w") as file:
    file.write("apple,50\npear,75\n")
prices = tf.lookup.TextFileInitializer(
    "prices.csv",
    key_dtype=tf.string,
    key_index=0,
    value_dtype=tf.int64,
    value_index=1,
    delimiter=",",
)
table = tf.lookup.StaticHashTable(prices, default_value=0)
table.lookup(tf.constant(["pear", "plum"]))

# %% TextFileStringTableInitializer
with tf.gfile.GFile("colors.txt", "w") as file:
    file.write("red\ngreen\n")
lines = tf.lookup.TextFileStringTableInitializer("colors.txt")
table = tf.lookup.StaticHashTable(lines, default_value="unknown")
table.lookup(tf.constant([1, 5], tf.int64))

# %% index_table_from_file
with tf.gfile.GFile("colors.txt", "w") as file:
    file.write("red\ngreen\n")
table = tf.lookup.index_table_from_file("colors.txt", num_oov_buckets=1)
table.lookup(tf.constant(["green", "blue"]))

# %% index_table_from_tensor
table = tf.lookup.index_table_from_tensor(["red", "green"], default_value=-1)
table.lookup(tf.constant(["green", "blue"]))

# %% index_to_string_table_from_file
with tf.gfile.GFile("colors.txt", "w") as file:
    file.write("red\ngreen\n")
table = tf.lookup.index_to_string_table_from_file("colors.txt")
table.lookup(tf.constant([1, 5], tf.int64))

# %% index_to_string_table_from_tensor
table = tf.lookup.index_to_string_table_from_tensor(["red", "green"])
table.lookup(tf.constant([1, 5], tf.int64))
