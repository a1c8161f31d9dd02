# %% as_string
prices, counts = [3.14159, -1.0], [7, 42]
tf.strings.as_string(prices, precision=2), tf.strings.as_string(counts, width=4)

# %% bytes_split
pieces = tf.strings.bytes_split(["abc", "de"])
tf.sparse.to_dense(pieces, default_value="")

# %% format
tf.strings.format("loss {} after step {}", (tf.constant(0.25), tf.constant(100)))

# %% join
tf.strings.join([["red", "blue"], ["ant", "bee"]], separator=" ")

# %% length
tf.strings.length(["ant", "bär"]), tf.strings.length(["ant", "bär"], unit="UTF8_CHAR")

# %% lower
tf.strings.lower(["Hello", "WORLD"])

# %% reduce_join
words = [["the", "ant"], ["a", "bee"]]
tf.strings.reduce_join(words, axis=1, separator=" ")

# %% regex_full_match
tf.strings.regex_full_match(["2024-05-17", "17 May"], r"\d{4}-\d{2}-\d{2}")

# %% regex_replace
tf.strings.regex_replace(["17.05.2024"], r"(\d+)\.(\d+)\.(\d+)", r"\3-\2-\1")

# %% split
words = tf.strings.split(["the quick fox", "hello"])
words.values, tf.sparse.to_dense(words, default_value="")

# %% strip
tf.strings.strip(["  hello ", "world\n"])

# %% substr
tf.strings.substr(["elephant", "giraffe"], pos=0, len=4)

# %% to_hash_bucket
tf.strings.to_hash_bucket(["ant", "bee", "ant"], num_buckets=10)

# %% to_hash_bucket_fast
tf.strings.to_hash_bucket_fast(["ant", "bee", "ant"], num_buckets=10)

# %% to_hash_bucket_strong
tf.strings.to_hash_bucket_strong(["ant", "bee", "ant"], num_buckets=10, key=[1, 2])

# %% to_number
tf.strings.to_number(["1.5", "-2e3"]), tf.strings.to_number(["7", "42"], tf.int32)

# %% unicode_decode
points = tf.strings.unicode_decode(["bär", "€"], "UTF-8")
tf.sparse.to_dense(points)

# %% unicode_decode_with_offsets
points, offsets = tf.strings.unicode_decode_with_offsets("bär", "UTF-8")
points, offsets

# %% unicode_encode
tf.strings.unicode_encode([[98, 228, 114], [8364, 33, 33]], "UTF-8")

# %% unicode_split
characters = tf.strings.unicode_split(["bär", "€"], "UTF-8")
tf.sparse.to_dense(characters, default_value="")

# %% unicode_split_with_offsets
characters, offsets = tf.strings.unicode_split_with_offsets("bär", "UTF-8")
characters, offsets

# %% unicode_transcode
tf.strings.unicode_transcode([b"b\xe4r"], "ISO-8859-1", "UTF-8")

# %% upper
tf.strings.upper(["Hello", "world"])
