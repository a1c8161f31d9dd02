"""`data.experimental.TFRecordWriter`: writes a dataset of strings to a TFRecord file.

One host operation that traverses the dataset.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import string
from estimatorkit.core.errors import OutOfRangeError, type_error
from estimatorkit.core.registry import apply, no_outputs, register
from estimatorkit.core.tensor import Operation
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.randomness import Seeds
from estimatorkit.data.plan import Plan
from estimatorkit.data.spec import TensorSpec
from estimatorkit.storage.filesystem import compression_name
from estimatorkit.storage.records import TFRecordWriter as _Writer

_AT_ONCE = 1024


def _text(value: Any) -> str:
    return os.fsdecode(np.asarray(value, object).item())


def _write(filename: Any, compression: Any, *values: Any, plan: Plan, context: Any) -> list[Any]:
    plan = plan.bind(dict(zip(plan.tensors(), values, strict=True)))
    iterator = plan.iterator(Seeds(context.graph.seed, context))
    try:
        with _Writer(_text(filename), compression_name(_text(compression))) as writer:
            while True:
                try:
                    (records,) = iterator.next_block(_AT_ONCE)
                except OutOfRangeError:
                    return []
                for record in records:
                    writer.write(record)
    finally:
        iterator.close()


register(
    "DatasetToTFRecord",
    _write,
    infer=no_outputs,
    gradient=None,
    where="host",
    context=True,
    pure=False,
    client_only=True,
    effects="files",
)


class TFRecordWriter:
    """Writes datasets to a TFRecord file (`tf.data.experimental.TFRecordWriter`).

    Args:
        filename: the file, a string or a scalar string tensor; overwritten if it exists.
        compression_type: None, '', 'GZIP' or 'ZLIB', or a scalar string tensor.
    """

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        name = os.fspath(filename) if isinstance(filename, os.PathLike) else filename
        self._filename = convert_to_tensor(name, string, "filename")
        self._compression = convert_to_tensor(
            "" if compression_type is None else compression_type, string, "compression_type"
        )

    def write(self, dataset: Dataset) -> Operation:
        """Returns an operation that writes all elements of a dataset.

        Raises:
            TypeError: `dataset` is not a dataset of scalar strings.
        """
        if not isinstance(dataset, Dataset):
            raise type_error("`dataset` must be a Dataset", expected="a Dataset", received=dataset)
        spec = dataset.element_spec
        if not (isinstance(spec, TensorSpec) and spec.is_compatible_with(TensorSpec((), string))):
            raise type_error(
                "`dataset` must produce scalar strings",
                expected=TensorSpec((), string),
                received=spec,
                hint="map the elements to serialized examples first",
            )
        inputs = [self._filename, self._compression, *dataset._plan.tensors()]
        return apply("DatasetToTFRecord", inputs, {"plan": dataset._plan}, "DatasetToTFRecord")


__all__ = ["TFRecordWriter"]
