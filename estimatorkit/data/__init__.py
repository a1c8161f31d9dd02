"""Datasets: plans, iterators that execute them in blocks, readers, and bundled data sets."""

from __future__ import annotations

from typing import Any

from estimatorkit.data.csv import read_csv
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.dataset_methods import AUTOTUNE
from estimatorkit.data.execution.block_iterator import BlockIterator
from estimatorkit.data.plan import INFINITE, UNKNOWN, TracedFunction
from estimatorkit.data.spec import DatasetSpec, SparseTensorSpec, TensorSpec
from estimatorkit.lazy import attach, listing, names

INFINITE_CARDINALITY = INFINITE
UNKNOWN_CARDINALITY = UNKNOWN

# Iterators in a graph import JAX, which reading data alone does not need.
_lazy_getattr = attach(
    __name__,
    {
        **names(
            "estimatorkit.data.iterator_ops",
            "Iterator make_initializable_iterator make_one_shot_iterator",
        ),
        "experimental": "estimatorkit.data.experimental",
        **names("estimatorkit.data.inputs", "numpy_input_fn pandas_input_fn"),
        **names("estimatorkit.data.options", "Options ThreadingOptions"),
        **names("estimatorkit.data.readers.tfrecords", "TFRecordDataset"),
        **names("estimatorkit.data.readers.fixed_length_records", "FixedLengthRecordDataset"),
        **names("estimatorkit.data.readers.text_lines", "TextLineDataset"),
        **names("estimatorkit.data.readers.parquet", "ArrowDataset ParquetDataset"),
    },
)[0]

__all__ = [
    "AUTOTUNE",
    "ArrowDataset",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "BlockIterator",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "Iterator",
    "Options",
    "ParquetDataset",
    "SparseTensorSpec",
    "TFRecordDataset",
    "TensorSpec",
    "TextLineDataset",
    "ThreadingOptions",
    "TracedFunction",
    "experimental",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
    "numpy_input_fn",
    "pandas_input_fn",
    "read_csv",
]
__dir__ = listing(__name__)


def get_output_types(dataset_or_iterator: Any) -> Any:
    """The nest of dtypes of an element."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """The nest of static shapes of an element."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """The nest of classes of an element's leaves."""
    return dataset_or_iterator.output_classes


def __getattr__(name: str) -> Any:
    """Imports the public name `name` on first use."""
    return _lazy_getattr(name)
