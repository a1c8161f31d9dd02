"""Imports all op modules, which registers their ops and the operators of tensors."""

# ruff: noqa: F401

from __future__ import annotations

from typing import Any

import estimatorkit.ops.array.array
import estimatorkit.ops.array.filling
import estimatorkit.ops.array.gather_nd
import estimatorkit.ops.array.indexing
import estimatorkit.ops.array.joining
import estimatorkit.ops.array.random_draws
import estimatorkit.ops.array.ranking
import estimatorkit.ops.array.rearrange
import estimatorkit.ops.array.segment
import estimatorkit.ops.array.selection
import estimatorkit.ops.array.windows
import estimatorkit.ops.control.collectives
import estimatorkit.ops.control.custom_gradients
import estimatorkit.ops.control.decoded_steps
import estimatorkit.ops.control.function_ops
import estimatorkit.ops.control.jax_functions
import estimatorkit.ops.control.tensor_array
import estimatorkit.ops.debug.checks
import estimatorkit.ops.debug.debug
import estimatorkit.ops.debug.py_func
import estimatorkit.ops.debug.shape_matching
import estimatorkit.ops.files.checkpoint_ops
import estimatorkit.ops.files.files
import estimatorkit.ops.files.summary
import estimatorkit.ops.image.color
import estimatorkit.ops.image.encoding
import estimatorkit.ops.image.files
import estimatorkit.ops.image.resize
import estimatorkit.ops.image.shapes
import estimatorkit.ops.linalg.decompositions
import estimatorkit.ops.linalg.diagonals
import estimatorkit.ops.linalg.matrices
import estimatorkit.ops.linalg.products
import estimatorkit.ops.math.checked
import estimatorkit.ops.math.elementwise
import estimatorkit.ops.math.linalg
import estimatorkit.ops.math.random
import estimatorkit.ops.math.reduce
import estimatorkit.ops.math.special
import estimatorkit.ops.nn.activations
import estimatorkit.ops.nn.convolution
import estimatorkit.ops.nn.convolution_functions
import estimatorkit.ops.nn.embedding
import estimatorkit.ops.nn.nearest_neighbors
import estimatorkit.ops.nn.nn
import estimatorkit.ops.nn.normalization
import estimatorkit.ops.nn.pooling
import estimatorkit.ops.nn.recurrent
import estimatorkit.ops.nn.space_blocks
import estimatorkit.ops.nn.transposed_convolution
import estimatorkit.ops.parsing.parsing
import estimatorkit.ops.queues.queue_kinds
import estimatorkit.ops.queues.queues
import estimatorkit.ops.queues.readers
import estimatorkit.ops.sparse.counts
import estimatorkit.ops.sparse.joining
import estimatorkit.ops.sparse.products
import estimatorkit.ops.sparse.shapes
import estimatorkit.ops.sparse.sparse
import estimatorkit.ops.tables.class_names
import estimatorkit.ops.tables.embedding_rows
import estimatorkit.ops.tables.feature_crosses
import estimatorkit.ops.tables.feature_ids
import estimatorkit.ops.tables.mutable_tables
import estimatorkit.ops.tables.packed_ids
import estimatorkit.ops.tables.static_tables
import estimatorkit.ops.tables.tables
import estimatorkit.ops.text.csv_records
import estimatorkit.ops.text.decoding
import estimatorkit.ops.text.string_numbers
import estimatorkit.ops.text.string_pieces
import estimatorkit.ops.text.strings
import estimatorkit.ops.text.unicode
import estimatorkit.ops.variables.state
from estimatorkit.core.graph import in_graph_of
from estimatorkit.core.tensor import operators


def load() -> None:
    """Does nothing; importing this module registers all ops."""


def operate(name: str, *operands: Any) -> Any:
    """Applies Python's operator `name` ('add', 'getitem', ...) to tensors, in their graph."""
    with in_graph_of(operands):
        return operators[name](*operands)
