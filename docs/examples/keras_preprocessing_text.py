# %% Tokenizer
tokenizer = tf.keras.preprocessing.text.Tokenizer()
tokenizer.fit_on_texts(["to be or not to be"])
print(tokenizer.word_index)
print(tokenizer.texts_to_sequences(["not to be"]))
tokenizer.texts_to_matrix(["not to be or to be"], mode="count")

# %% hashing_trick
tf.keras.preprocessing.text.hashing_trick("to be or not", 100, hash_function="md5")

# %% one_hot
tf.keras.preprocessing.text.one_hot("to be or not to be", 100)

# %% text_to_word_sequence
tf.keras.preprocessing.text.text_to_word_sequence("To be, or not!")

# %% tokenizer_from_json
tokenizer = tf.keras.preprocessing.text.Tokenizer()
tokenizer.fit_on_texts(["to be or not to be"])
again = tf.keras.preprocessing.text.tokenizer_from_json(tokenizer.to_json())
again.word_index
