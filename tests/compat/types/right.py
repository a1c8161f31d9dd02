"""Correct uses of TensorFlow 1's names: type checkers report none of these lines."""

import numpy as np

import estimatorkit.compat.v1 as tf1
from estimatorkit.compat.v1.contrib import rnn

array = np.zeros([2, 3], np.float32)
cell = rnn.BasicLSTMCell(3)
weights = tf1.contrib.layers.xavier_initializer()
old = tf1.layers.flatten(tf1.placeholder_with_default(array, [None, 3]))
tf1.logging.set_verbosity(tf1.logging.INFO)
