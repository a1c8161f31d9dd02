"""A forest of decision trees as arrays, and as operations of a graph.

The nodes of all trees are numbered together. A split sends a row to its `child` if its test fails
and to the node after that if it holds; the child of a leaf is the leaf. So all rows walk all trees
at once, a level at a time, by gathers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from estimatorkit.core.dtypes import float32, int32, int64
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import array, indexing, joining
from estimatorkit.ops.array.filling import range_, zeros_like
from estimatorkit.ops.array.rearrange import bitcast
from estimatorkit.ops.array.segment import unsorted_segment_sum
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.elementwise import is_nan
from estimatorkit.ops.math.special import bitwise_and, right_shift

SCOPE = "boosted_trees"


class Forest(NamedTuple):
    """The parts of a forest: arrays, the variables that hold them, or their tensors.

    Attributes:
        feature: the place of the number that a split tests, int32 `(nodes,)`; 0 of leaves.
        threshold: the test is `x >= threshold`, float32 `(nodes,)`; NaN, which never holds, of
            leaves and of splits by category.
        missing: whether a missing number passes the test, bool `(nodes,)`.
        words: the place of each category, of one number after another, in a split's list of
            `categories`, int32 `(sum of inputs,)`; 0 of those that are rare. So the lists of
            splits do not grow with the buckets of a hash.
        mask: where the split's list begins, int32 `(nodes,)`; -1 of splits by order.
        categories: whether a category passes, bool `(at least 1,)`.
        child: int32 `(nodes,)`.
        value: what a tree adds to a logit, float32 `(nodes,)`; of splits what they would add if
            they were leaves.
        gain: how much a split reduced the loss, float32 `(nodes,)`.
        root: the trees' first nodes, int32 `(trees,)`: those of the logits in turn.
        bias: the logits without trees, float32 `(logits,)`.
        inputs: how many categories each number of a row has, int32 `(numbers,)`; 0: it is ordered.
        splits: how many splits there are on each level, int32 `(max_depth,)`.
    """

    feature: Any
    threshold: Any
    missing: Any
    words: Any
    mask: Any
    categories: Any
    child: Any
    value: Any
    gain: Any
    root: Any
    bias: Any
    inputs: Any
    splits: Any


_DTYPES = Forest(
    feature=np.int32,
    threshold=np.float32,
    missing=np.bool_,
    words=np.int32,
    mask=np.int32,
    categories=np.bool_,
    child=np.int32,
    value=np.float32,
    gain=np.float32,
    root=np.int32,
    bias=np.float32,
    inputs=np.int32,
    splits=np.int32,
)


def forest_variables(
    logits: int, inputs: Sequence[int], max_depth: int, scope: str = SCOPE
) -> Forest:
    """The variables of a forest, in the default graph.

    They are named `<scope>/<part>`. Their first dimension is that of the checkpoint, but for
    the parts that say what it must fit: those with a length given here.

    Args:
        logits: how many there are.
        inputs: see `Forest`.
        max_depth: how many levels of splits a tree may have.
        scope: 'boosted_trees' by default.
    """
    fixed = {"bias": logits, "inputs": len(inputs), "words": sum(inputs), "splits": max_depth}

    def made(name: str, dtype: Any) -> Variable:
        return Variable(
            np.zeros([fixed.get(name, 0)], dtype),
            trainable=False,
            validate_shape=False,
            shape=[fixed.get(name)],
            name=f"{scope}/{name}",
        )

    with get_default_graph().name_scope(None):
        return Forest(*(made(*each) for each in _DTYPES._asdict().items()))


def forest_of_graph() -> Forest:
    """The variables that `forest_variables` made in the default graph."""
    variables = get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)
    by_name = {each.op.name: each for each in variables}
    return Forest(*(by_name[f"{SCOPE}/{name}"] for name in Forest._fields))


def _with_words(forest: Forest, rows: Tensor, inputs: Sequence[int]) -> Tensor:
    """Rows with the words of categories instead of their ids."""
    counts = np.array(inputs, np.int32)
    by_category = elementwise.logical_and(counts > 0, elementwise.logical_not(is_nan(rows)))
    ids = elementwise.cast(indexing.where(by_category, rows, zeros_like(rows)), int32)
    starts = np.where(counts > 0, np.cumsum(counts, dtype=np.int32) - counts, 0)
    words = indexing.gather(forest.words, ids + starts)
    return indexing.where(by_category, elementwise.cast(words, float32), rows)


class _Nodes(NamedTuple):
    """Nodes packed into two words each, since gathers dominate the walk.

    With seven arrays instead, it takes 3.5 times as long on a CPU.

    Attributes:
        packed: from the lowest bit on, the `feature`, whether the split is by category, `missing`,
            and how far the `child` is, int32 `(nodes,)`; int64 if its bits could be too few.
        operand: the bits of `threshold`, or `mask`, int32 `(nodes,)`.
        bits: those of the feature.
    """

    packed: Tensor
    operand: Tensor
    bits: int

    @staticmethod
    def of(forest: Forest, inputs: Sequence[int]) -> _Nodes:
        """The nodes of a forest."""
        bits = (len(inputs) - 1).bit_length()
        # A child is at most a level of its tree away.
        word = int32 if bits + 2 + forest.splits.shape[0] < 31 else int64
        feature, missing, mask, child = (
            elementwise.cast(each.value(), word)
            for each in (forest.feature, forest.missing, forest.mask, forest.child)
        )
        offset = child - elementwise.cast(range_(array.shape(child)[0]), word)
        by_category = mask >= 0
        packed = feature + (elementwise.cast(by_category, word) + 2 * missing + 4 * offset) * (
            1 << bits
        )
        operand = indexing.where(by_category, forest.mask, bitcast(forest.threshold, int32))
        return _Nodes(packed, operand, bits)


def _visited(forest: Forest, rows: Tensor, inputs: Sequence[int]) -> Iterator[Tensor]:
    """The nodes that rows are at on each level from the roots on, int32 `(trees, batch)`."""
    has_categories = any(inputs)
    rows = _with_words(forest, rows, inputs) if has_categories else rows
    # Trees come first: a level's gathers then run along rows, 3 times faster on a CPU.
    numbers = array.reshape(array.transpose(rows), [-1])
    batch = array.shape(rows)[0]
    place = range_(batch)
    node = array.expand_dims(forest.root, 1) + zeros_like(array.expand_dims(place, 0))
    yield node
    nodes = _Nodes.of(forest, inputs)

    def part(packed: Tensor, first: int, mask: int) -> Tensor:
        return elementwise.cast(bitwise_and(right_shift(packed, first), mask), int32)

    for _ in range(forest.splits.shape[0]):
        packed, operand = indexing.gather(nodes.packed, node), indexing.gather(nodes.operand, node)
        number = indexing.gather(numbers, part(packed, 0, (1 << nodes.bits) - 1) * batch + place)
        absent = is_nan(number)
        passes = elementwise.greater_equal(number, bitcast(operand, float32))
        if has_categories:
            by_category = elementwise.not_equal(part(packed, nodes.bits, 1), 0)
            known = elementwise.logical_and(by_category, elementwise.logical_not(absent))
            category = indexing.where(known, number, zeros_like(number))
            begin = indexing.where(by_category, operand, zeros_like(operand))
            listed = indexing.gather(forest.categories, begin + elementwise.cast(category, int32))
            passes = indexing.where(by_category, listed, passes)
        if_absent = elementwise.not_equal(part(packed, nodes.bits + 1, 1), 0)
        passes = indexing.where(absent, if_absent, passes)
        offset = elementwise.cast(right_shift(packed, nodes.bits + 2), int32)
        node = node + offset + elementwise.cast(passes, int32)
        yield node


def forest_logits(forest: Forest, rows: Tensor, inputs: Sequence[int]) -> Tensor:
    """The logits of rows, float32 `(batch, logits)`.

    Args:
        forest: variables.
        rows: float32 `(batch, numbers)`; NaN is a missing number, categories are their ids.
        inputs: see `Forest`.
    """
    logits = forest.bias.shape[0]
    with get_default_graph().without_tests():  # nodes and ids are in range
        *_, leaves = _visited(forest, rows, inputs)
        terms = indexing.gather(forest.value, leaves)
        if logits == 1:
            sums = array.expand_dims(reduce.reduce_sum(terms, 0), 1)
        else:
            rounds = array.shape(forest.root)[0] // logits
            shape = joining.stack([rounds, logits, array.shape(rows)[0]])
            sums = array.transpose(reduce.reduce_sum(array.reshape(terms, shape), 0))
        found: Tensor = sums + forest.bias
        return found


def contributions(
    forest: Forest, rows: Tensor, inputs: Sequence[int], link: Any, columns: Sequence[int]
) -> Tensor:
    """What the columns add to `link(bias)` so that it becomes `link(logit)`, for a single logit.

    A row's way through the trees, one after another, changes the logit with each step; the change
    is that of the column that the split tests ("directional feature contributions", Palczewska et
    al. 2013, arXiv:1312.1121, as in TensorFlow's boosted trees).

    Args:
        forest: variables.
        rows, inputs: see `forest_logits`.
        link: makes predictions of logits.
        columns: the column of each number of a row.

    Returns:
        float32 `(batch, columns)`.
    """
    batch, count = array.shape(rows)[0], max(columns) + 1
    with get_default_graph().without_tests():
        nodes = list(_visited(forest, rows, inputs))
        leaves = indexing.gather(forest.value, nodes[-1])
        before = reduce.cumsum(leaves, 0, exclusive=True) + forest.bias
        # A root adds nothing: it is where the trees before it have led.
        last = link(before)
        total = array.reshape(zeros_like(rows[:, :1]) + np.zeros([count], np.float32), [-1])
        column_of = indexing.gather(np.array(columns, np.int32), forest.feature)
        for node, after in pairwise(nodes):
            # Where the node is a leaf already, nothing changes.
            moved = elementwise.not_equal(node, after)
            value = link(before + indexing.gather(forest.value, after))
            change = indexing.where(moved, value - last, zeros_like(value))
            target = range_(batch) * count + indexing.gather(column_of, node)
            total = total + unsorted_segment_sum(
                array.reshape(change, [-1]), array.reshape(target, [-1]), batch * count
            )
            last = indexing.where(moved, value, last)
        return array.reshape(total, [-1, count])


__all__ = [
    "SCOPE",
    "Forest",
    "contributions",
    "forest_logits",
    "forest_of_graph",
    "forest_variables",
]
