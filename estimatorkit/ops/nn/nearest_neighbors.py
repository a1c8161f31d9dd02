"""`nearest_neighbors`: the rows of a matrix with the largest inner products, approximately.

The index is faiss's scan of product-quantized rows of 4 bits for every two numbers, whose best
candidates are scored exactly (André et al. 2017, arXiv:1812.09162; as ScaNN does). It lives in the
session, and is built where the operation first runs.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, apply, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.ranking import TopK

Array = NDArray[Any]

SCANNED = 20_000
"""Rows from which an index pays: fewer are multiplied in less than a millisecond."""

_CANDIDATES = 50  # scored exactly, for each result: recall@10 is 0.97 of 1M random rows of 64
_TRAINED_ON = 100_000


class _Index:
    """An index of a matrix, rebuilt for another matrix."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: Array | None = None
        self._index: Any = None

    def search(self, queries: Array, rows: Array, k: int) -> list[Array]:
        """The k best rows: scores and places."""
        with self._lock:
            if self._rows is None or not _is_same(self._rows, rows):
                self._index = _built(rows)
                self._rows = rows
            index = self._index
        scores, places = index.search(np.ascontiguousarray(queries), k)
        return [scores, places.astype(np.int32)]


def _is_same(one: Array, other: Array) -> bool:
    """Whether two arrays are views of the same memory, which the one that is held keeps in use."""
    return one.ctypes.data == other.ctypes.data and one.shape == other.shape


def _built(rows: Array) -> Any:
    faiss = _faiss()
    size = rows.shape[1]
    parts = size if size % 2 else size // 2
    index = faiss.index_factory(size, f"PQ{parts}x4fs,RFlat", faiss.METRIC_INNER_PRODUCT)
    index.k_factor = _CANDIDATES
    index.train(np.ascontiguousarray(rows[:: max(1, len(rows) // _TRAINED_ON)]))
    index.add(np.ascontiguousarray(rows))
    return index


def _faiss() -> Any:
    if importlib.util.find_spec("faiss") is None:
        raise ImportError(
            explain("nearest neighbors need faiss", hint="pip install 'estimatorkit[ann]'")
        )
    import faiss

    return faiss


def _nearest_neighbors(queries: Any, rows: Any, *, k: int, index: str, context: Any) -> list[Array]:
    queries, rows = np.asarray(queries), np.asarray(rows)
    if len(rows) < SCANNED:
        scores = queries @ rows.T
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return [np.take_along_axis(scores, best, 1), best.astype(np.int32)]
    held: _Index = context.resource(("nearest_neighbors", index), _Index)
    return held.search(queries, rows, k)


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    queries, rows = inputs
    k, items = attrs["k"], rows.shape[0]
    matrices = [tensor for tensor in inputs if tensor.shape.rank is not None]
    fits = all(tensor.shape.rank == 2 for tensor in matrices)
    fits = fits and len({tensor.shape[1] for tensor in matrices} - {None}) <= 1
    if not fits or k < 1 or (items is not None and k > items):
        raise value_error(
            "nearest_neighbors does not accept these inputs",
            expected="queries (batch, size), rows (items, size), and 1 <= k <= items",
            received=f"{queries.shape}, {rows.shape}, k={k}",
            made_at=queries.op.source,
        )
    shape = TensorShape([queries.shape[0], k])
    return [Spec(float32, shape), Spec(int32, shape)]


register(
    "NearestNeighbors",
    _nearest_neighbors,
    infer=_infer,
    gradient=None,
    where="host",
    context=True,
    accepts=("float32", "float32"),
    cases=lambda: [
        Case(
            (np.float32([[1, 0], [0, -1]]), np.float32([[1, 2], [3, 0], [2, -5]])),
            {"k": 2, "index": "one"},
            (np.float32([[3, 2], [5, 0]]), np.int32([[1, 2], [2, 1]])),
        )
    ],
)


def nearest_neighbors(queries: Any, rows: Any, k: int, name: str | None = None) -> TopK:
    """The rows of the largest inner products with each query, approximately.

    Needs faiss (the extra `ann`). The index is built in the first run, in about 8 seconds for a
    million rows of 64 numbers, and again where the rows change. Fewer than 20,000 rows are all
    compared.

    Args:
        queries: float32 `(batch, size)`.
        rows: float32 `(items, size)`.
        k: the number of rows to find.

    Returns:
        `(values, indices)`, float32 and int32 `(batch, k)`: the exact inner products in descending
        order, and the rows.

    Raises:
        ValueError: the shapes do not fit.
        ImportError: faiss is not installed.
    """
    _faiss()
    inputs = [convert_to_tensor(queries, float32), convert_to_tensor(rows, float32)]
    with get_default_graph().name_scope(name or "nearest_neighbors") as scope:
        op = apply("NearestNeighbors", inputs, {"k": int(k), "index": scope}, "NearestNeighbors")
    return TopK(*op.outputs)


__all__ = ["nearest_neighbors"]
