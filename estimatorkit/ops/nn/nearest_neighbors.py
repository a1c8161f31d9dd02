"""`nearest_neighbors`: the rows of a matrix with the largest inner products, approximately.

The index is faiss's scan of product-quantized rows of 4 bits for every two numbers, whose best
candidates are scored exactly (André et al. 2019, arXiv:1812.09162; as ScaNN does). It lives in the
session, where an initializer builds it: passing a million rows to each run would take longer than
the search.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.errors import FailedPreconditionError, explain, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.registry import Spec, apply, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.ranking import TopK

Array = NDArray[Any]

BUILD = "BuildNearestNeighbors"
"""The op type that builds an index."""

SCANNED = 20_000
"""Rows from which an index pays: fewer are multiplied in less than a millisecond."""

_CANDIDATES = 50  # scored exactly, per result: recall@10 is 0.97 on 1M random rows of 64
_TRAINED_ON = 100_000


class _Index:
    """The index of a session's matrix: one of faiss, or all rows if they are few."""

    def __init__(self) -> None:
        self._rows: Array | None = None
        self._index: Any = None

    def build(self, rows: Array) -> None:
        """Replaces the matrix."""
        if len(rows) < SCANNED:
            self._rows = np.array(rows)
        else:
            self._index = _built(rows)

    def search(self, queries: Array, k: int) -> list[Array]:
        """The k best rows: scores and places."""
        if self._index is not None:
            scores, places = self._index.search(np.ascontiguousarray(queries), k)
            return [scores, places.astype(np.int32)]
        if self._rows is None:
            raise FailedPreconditionError.explained(
                "the index of nearest neighbors is not built", hint="run tables_initializer()"
            )
        products = queries @ self._rows.T
        best = np.argsort(-products, axis=1, kind="stable")[:, :k]
        return [np.take_along_axis(products, best, 1), best.astype(np.int32)]


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


def _held(context: Any, index: str) -> _Index:
    held: _Index = context.resource(("nearest_neighbors", index), _Index)
    return held


def _build(rows: Any, *, index: str, context: Any) -> list[Array]:
    _held(context, index).build(np.asarray(rows))
    return []


def _search(queries: Any, *, index: str, k: int, size: int, context: Any) -> list[Array]:
    return _held(context, index).search(np.asarray(queries), k)


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    (queries,) = inputs
    if not queries.shape.is_compatible_with([None, attrs["size"]]):
        raise value_error(
            "the queries of nearest_neighbors do not fit its rows",
            expected=f"(batch, {attrs['size']})",
            received=queries.shape,
            made_at=queries.op.source,
        )
    shape = TensorShape([queries.shape.with_rank(2)[0], attrs["k"]])
    return [Spec(float32, shape), Spec(int32, shape)]


_ON_HOST: dict[str, Any] = {
    "gradient": None,
    "where": "host",
    "context": True,
    "pure": False,
    "accepts": ("float32",),
}
register(BUILD, _build, infer=lambda inputs, attrs: [], **_ON_HOST)
register("NearestNeighbors", _search, infer=_infer, **_ON_HOST)


def nearest_neighbors(queries: Any, rows: Any, k: int, name: str | None = None) -> TopK:
    """The rows of the largest inner products with each query, approximately.

    Needs faiss (the extra `ann`). The index is built by `tables_initializer()`, of the rows as they
    are then: in about 8 seconds for a million of 64 numbers. Fewer than 20,000 are all compared.

    Args:
        queries: float32 `(batch, size)`.
        rows: float32 `(items, size)`, fully known.
        k: the number of rows to find.

    Returns:
        `(values, indices)`, float32 and int32 `(batch, k)`: the exact inner products in descending
        order, and the rows.

    Raises:
        ValueError: the shapes do not fit.
        ImportError: faiss is not installed.
    """
    _faiss()
    given = convert_to_tensor(queries, float32), convert_to_tensor(rows, float32)
    dims = given[1].shape.dims or ()
    if len(dims) != 2 or None in dims or not 1 <= k <= (dims[0] or 0):
        raise value_error(
            "nearest_neighbors does not accept these rows",
            expected="shape (items, size), known, and 1 <= k <= items",
            received=f"{given[1].shape}, k={k}",
            made_at=given[1].op.source,
        )
    graph = get_default_graph()
    with graph.name_scope(name or "nearest_neighbors") as scope:
        own = {"index": scope}
        graph.add_to_collection(
            GraphKeys.TABLE_INITIALIZERS, apply(BUILD, [given[1]], own, "build")
        )
        found = {**own, "k": int(k), "size": dims[1]}
        op = apply("NearestNeighbors", [given[0]], found, "NearestNeighbors")
    return TopK(*op.outputs)


__all__ = ["BUILD", "nearest_neighbors"]
