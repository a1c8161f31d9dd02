"""Datasets: plans, the iterators that execute them in blocks, readers, bundled data sets."""

from __future__ import annotations

from estimatorkit.data.block_iterator import BlockIterator
from estimatorkit.data.csv import read_csv
from estimatorkit.data.dataset import AUTOTUNE, Dataset
from estimatorkit.data.inputs import numpy_input_fn, pandas_input_fn
from estimatorkit.data.plan import INFINITE, UNKNOWN, TracedFunction
from estimatorkit.data.spec import TensorSpec

INFINITE_CARDINALITY = INFINITE
UNKNOWN_CARDINALITY = UNKNOWN

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "BlockIterator",
    "Dataset",
    "TensorSpec",
    "TracedFunction",
    "numpy_input_fn",
    "pandas_input_fn",
    "read_csv",
]
