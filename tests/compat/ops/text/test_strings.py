"""The tests of `tests/ops/text/test_strings.py` that need names of TensorFlow 1."""

from __future__ import annotations

import numpy as np

from estimatorkit.core import registry
from estimatorkit.ops.text.strings import string_array


def test_kernels_accept_numpy_strings() -> None:
    kernel = registry.lookup("LookupTableFindOrHash").kernel
    attrs = {"table": "", "spec": (), "num_oov_buckets": 9, "hash_key": (), "context": None}
    assert kernel(np.array(b"ab"), **attrs) == kernel(string_array(b"ab"), **attrs)
