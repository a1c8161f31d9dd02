"""Products other than matmul."""

from __future__ import annotations

import numpy as np

import estimatorkit as tf
from estimatorkit.core import registry


def test_einsum_of_bfloat16_in_numpy() -> None:
    x = np.arange(6).reshape(2, 3).astype(tf.bfloat16.as_numpy_dtype)
    found = registry.lookup("Einsum").numpy_kernel(x, x, equation="ij,kj->ik")
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.astype(np.float32), [[5, 14], [14, 50]])
