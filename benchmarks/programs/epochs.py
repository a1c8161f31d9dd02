"""What the programs in ``shapes`` share: the variables' first values, and two timed epochs; NumPy
only."""

import time

import numpy as np


def weights(shape, dtype=None, partition_info=None):
    """An initializer for ``tf.variable_scope``: Glorot's uniform values, for any package the same,
    as they follow from the shape alone."""
    random = np.random.RandomState(sum(shape))
    limit = np.sqrt(6 / (shape[0] + shape[-1]))
    return random.uniform(-limit, limit, shape).astype(np.float32)


def two_epochs(epoch):
    """Runs ``epoch`` twice, prints how long each took, and the last loss, which it returns."""
    for name in ("first", "second"):
        started = time.perf_counter()
        loss = epoch()
        print(f"figure {name}_epoch_seconds {time.perf_counter() - started:.4f}")
    print(f"figure loss {loss:.6f}")
