"""Wrong uses of TensorFlow 1's names: type checkers report each line that ends in `# wrong`."""

import numpy as np

import estimatorkit.compat.v1 as tf1

array = np.zeros([2, 3], np.float32)
tf1.placeholder_with_defualt(array, [None, 3])  # wrong
tf1.contrib.layers.xavier_initialiser()  # wrong
