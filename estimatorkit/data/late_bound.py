"""Modules that depend on `Dataset` and are used by its methods, imported on first use.

A dataset of files or arrays thus imports the graph's core only if a function is traced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimatorkit.lazy import LazyFunctions

if TYPE_CHECKING:
    from estimatorkit.data import (
        dataset,
        dataset_values,
        experimental,
        iterator_ops,
        traced_functions,
    )
    from estimatorkit.data.readers import list_files
else:
    dataset = LazyFunctions("estimatorkit.data.dataset")
    dataset_values = LazyFunctions("estimatorkit.data.dataset_values")
    experimental = LazyFunctions("estimatorkit.data.experimental")
    iterator_ops = LazyFunctions("estimatorkit.data.iterator_ops")
    list_files = LazyFunctions("estimatorkit.data.readers.list_files")
    traced_functions = LazyFunctions("estimatorkit.data.traced_functions")

__all__ = [
    "dataset",
    "dataset_values",
    "experimental",
    "iterator_ops",
    "list_files",
    "traced_functions",
]
