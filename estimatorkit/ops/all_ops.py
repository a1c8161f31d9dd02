"""All op modules, imported: the registry has their rows, and tensors have their operators."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.tensor import operators
from estimatorkit.ops.array import (  # noqa: F401
    array,
    filling,
    gather_nd,
    indexing,
    joining,
    random_draws,
    ranking,
    rearrange,
    segment,
    selection,
    stateless_random,
    windows,
)
from estimatorkit.ops.control import collectives, decoded_steps, switches  # noqa: F401
from estimatorkit.ops.debug import checks, debug, py_func, shape_checks, shape_matching  # noqa: F401
from estimatorkit.ops.files import checkpoint_ops, files, summary  # noqa: F401
from estimatorkit.ops.image import boxes as image_boxes  # noqa: F401
from estimatorkit.ops.linalg import (  # noqa: F401
    decompositions,
    diagonals,
    fourier,
    lu,
    matrices,
    matrix_functions,
    products,
    signal,
    tridiagonal,
)
from estimatorkit.ops.math import elementwise, linalg, random, reduce, special  # noqa: F401
from estimatorkit.ops.nn import (  # noqa: F401
    activations,
    candidates,
    convolution,
    convolution_functions,
    ctc,
    ctc_decoders,
    embedding,
    fractional_pooling,
    learned_candidates,
    morphology,
    nn,
    normalization,
    pooling,
    recurrent,
    space_blocks,
    transposed_convolution,
)
from estimatorkit.ops.parsing import parsing  # noqa: F401
from estimatorkit.ops.queues import accumulators, queue_kinds, queues, readers  # noqa: F401
from estimatorkit.ops.sparse import sets, sparse  # noqa: F401
from estimatorkit.ops.tables import (  # noqa: F401
    class_names,
    feature_crosses,
    feature_ids,
    mutable_tables,
    packed_ids,
    static_tables,
    tables,
    vocabularies,
)
from estimatorkit.ops.text import (  # noqa: F401
    audio,
    csv_records,
    decoding,
    string_groups,
    string_numbers,
    string_pieces,
    strings,
    unicode,
)
from estimatorkit.ops.variables import session_tensors, state  # noqa: F401


def load() -> None:
    """Does nothing: to import this module is to register all ops."""


def operate(name: str, *operands: Any) -> Any:
    """What Python's operator `name` ('add', 'getitem', ...) makes of tensors."""
    return operators[name](*operands)


__all__ = ["load", "operate"]
