# %% bitwise_and
tf.bitwise.bitwise_and([0b1100, 7], [0b1010, 2])

# %% bitwise_or
tf.bitwise.bitwise_or([0b1100, 4], [0b1010, 3])

# %% bitwise_xor
tf.bitwise.bitwise_xor([0b1100, 7], [0b1010, 2])

# %% invert
tf.bitwise.invert([0, 5, -1]), tf.bitwise.invert(np.array([0, 5, 255], "uint8"))

# %% left_shift
tf.bitwise.left_shift([1, 1, 5], [0, 3, 1])

# %% right_shift
tf.bitwise.right_shift([8, 9, -8], [3, 1, 1])
