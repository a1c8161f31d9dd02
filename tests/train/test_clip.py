"""Clipping by norm, of dense and sparse tensors, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from estimatorkit.core.conversion import constant
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import Graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import indexing
from estimatorkit.ops.variables.variable_collections import global_variables_initializer
from estimatorkit.runtime.session import Session
from estimatorkit.train.optimizers.clip import clip_by_global_norm, clip_by_norm, global_norm
from estimatorkit.train.optimizers.optimizers import GradientDescentOptimizer


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph


def rows() -> IndexedSlices:
    return IndexedSlices(constant([[6.0], [8.0]]), constant([2, 2]), constant([4, 1]))


def run(fetches: Any) -> Any:
    return Session().run(fetches)


def test_global_norm_counts_dense_and_sparse_elements() -> None:
    norm = global_norm([constant([[1.0, 2.0], [2.0, 0.0]]), None, rows()])
    assert norm.dtype.name == "float32"
    assert norm.name == "global_norm/global_norm:0"
    assert run(norm) == pytest.approx(np.sqrt(9 + 100))


@pytest.mark.parametrize(("limit", "scale"), [(5.0, 0.5), (10.0, 1.0), (50.0, 1.0)])
def test_clip_by_global_norm_scales_all_equally(limit: float, scale: float) -> None:
    (small, none, sparse), norm = clip_by_global_norm([constant([0.0]), None, rows()], limit)
    assert none is None
    assert isinstance(sparse, IndexedSlices)
    values, indices, whole = run([sparse.values, sparse.indices, norm])
    np.testing.assert_allclose(values[:, 0], [6 * scale, 8 * scale], rtol=1e-6)
    np.testing.assert_array_equal(indices, [2, 2])
    assert whole == pytest.approx(10.0)
    assert run(small) == 0.0


def test_clip_by_global_norm_with_given_norm() -> None:
    (clipped,), norm = clip_by_global_norm([constant([1.0, 2.0])], 1.0, use_norm=constant(4.0))
    assert run(norm) == 4.0
    np.testing.assert_allclose(run(clipped), [0.25, 0.5])


def test_non_finite_norm_propagates() -> None:
    (bad, good), _ = clip_by_global_norm([constant([np.inf, 1.0]), constant([1.0])], 1.0)
    assert np.isnan(run(bad)).all()
    assert np.isnan(run(good)).all()
    (zero,), _ = clip_by_global_norm([constant([0.0])], 1.0)
    assert run(zero) == 0.0


def test_clip_by_norm() -> None:
    x = constant([[3.0, 4.0], [0.3, 0.4]])
    whole, each = run([clip_by_norm(x, 1.0), clip_by_norm(x, 1.0, axes=[1])])
    array_ = np.array([[3.0, 4.0], [0.3, 0.4]])
    np.testing.assert_allclose(whole, array_ / np.linalg.norm(array_), rtol=1e-6)
    np.testing.assert_allclose(each, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    sparse = clip_by_norm(rows(), 1.0)
    assert isinstance(sparse, IndexedSlices)
    np.testing.assert_allclose(run(sparse.values)[:, 0], [0.6, 0.8], rtol=1e-6)


def test_clip_by_norm_gradient_is_finite_at_zero() -> None:
    x = constant([0.0, 0.0])
    (gradient,) = gradients(clip_by_norm(x, 1.0), [x])
    np.testing.assert_array_equal(run(gradient), [1.0, 1.0])


def test_clipped_gradients_train_in_one_segment_and_stay_sparse() -> None:
    table = Variable(np.zeros((4, 1), np.float32), name="table")
    w = Variable(np.zeros(1, np.float32), name="w")
    loss = indexing.gather(table, [1, 1]) * 4.0 + w * 3.0
    optimizer = GradientDescentOptimizer(1.0)
    found, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, norm = clip_by_global_norm(list(found), 1.0)
    assert isinstance(clipped[0], IndexedSlices)
    update = optimizer.apply_gradients(zip(clipped, variables, strict=True))
    with Session() as session:
        session.run(global_variables_initializer())
        assert len(session.plan([update, norm]).segments) == 1
        # Of the values 4, 4 and 6: rows that stand twice count twice.
        assert session.run([update, norm])[1] == pytest.approx(np.sqrt(68), rel=1e-6)
        assert session.run(w) == pytest.approx([-6 / np.sqrt(68)], rel=1e-6)
        expected = [0, -8 / np.sqrt(68), 0, 0]
        np.testing.assert_allclose(session.run(table)[:, 0], expected, rtol=1e-6)


def test_non_list_of_tensors_raises() -> None:
    with pytest.raises(TypeError, match="should be a sequence of tensors"):
        global_norm(constant(1.0))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="should be a sequence of tensors"):
        clip_by_global_norm("abc", 1.0)


def test_global_norm_of_no_tensors_is_zero() -> None:
    with Graph().as_default(), Session() as session:
        assert session.run([global_norm([None]), clip_by_global_norm([], 1.0)[1]]) == [0.0, 0.0]
