"""Candidate sampling for training with many classes: samplers, NCE loss and sampled softmax.

A sampler draws class ids, shared by a batch, and returns their expected counts, by which the losses
are corrected. The formulas are those of TensorFlow's "Candidate Sampling Algorithms Reference".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int64
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.faults import in_range
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.math import elementwise, linalg, reduce
from estimatorkit.ops.math.random import get_seed
from estimatorkit.ops.nn import nn
from estimatorkit.ops.nn.embedding import embedding_lookup


class Candidates(NamedTuple):
    """The result of a candidate sampler.

    Attributes:
        sampled_candidates: int64 `(num_sampled,)`, class ids.
        true_expected_count: float32, the shape of the true classes: their expected counts among
            the sampled ones.
        sampled_expected_count: float32 `(num_sampled,)`.
    """

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def _ends(probabilities: NDArray[Any]) -> NDArray[Any]:
    """Cumulative probabilities, scaled to uint32.

    A float32 draw cannot express probabilities below 2^-23, and the last classes of 10 million by
    `log_uniform` have 6e-9.
    """
    ends: NDArray[Any] = np.cumsum(probabilities, dtype=np.float64)
    ends = np.rint(ends / ends[-1] * 2.0**32)
    return ends[ends < 2.0**32].astype(np.uint32)  # only classes that can be drawn end later


def _numbers(key: Any, ends: Any, count: int) -> Any:
    """Samples class ids with replacement: a binary search for random numbers among `_ends`."""
    drawn = jax.random.bits(key, (count,), np.uint32)
    size = ends.shape[0]
    found = jnp.zeros(count, np.int32)
    # Not `jnp.searchsorted`, which must know the size.
    for bit in reversed(range(size.bit_length() if isinstance(size, int) else 31)):
        more = found + (1 << bit)
        is_found = (more <= size) & (jnp.asarray(ends).at[more - 1].get(mode="clip") <= drawn)
        found = jnp.where(is_found, more, found)
    return found


def _first_different(key: Any, ends: Any, count: int) -> Any:
    """The first distinct ids of draws with replacement, `2 * count` at a time until they suffice.

    Unfilled positions are -1.
    """

    def lacks(state: tuple[Any, Any, Any]) -> Any:
        return state[1] < count

    def more(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        found, _, turn = state
        drawn = _numbers(jax.random.fold_in(key, turn), ends, 2 * count)
        drawn = jnp.concatenate([found, drawn])
        order = jnp.argsort(drawn, stable=True)
        ranked = drawn[order]
        differs = ranked != jnp.concatenate([jnp.full(1, -1, np.int32), ranked[:-1]])
        is_first = jnp.zeros(drawn.shape, bool).at[order].set(differs)
        place = jnp.where(is_first, jnp.cumsum(is_first) - 1, count)
        found = jnp.full_like(found, -1).at[place].set(drawn, mode="drop")
        return found, is_first.sum(dtype=np.int32), turn + 1

    start = (jnp.full(count, -1, np.int32), np.int32(0), np.int32(0))
    return jax.lax.while_loop(lacks, more, start)[0]


def _largest(key: Any, logs: Any, count: int) -> Any:
    """Samples class ids without replacement by the Gumbel top-k trick."""
    noisy = logs + jax.random.gumbel(key, logs.shape, logs.dtype)
    return jax.lax.top_k(noisy, count)[1]


_CLASSES_PER_DRAW = 128
"""64 of 10,000 classes take 95 us drawn until there are enough, and 140 by noise for each class; of
500,000 classes 140 and 5500. 1024 of 50,000 take 720 and 600."""


def _tries(misses: NDArray[Any], count: int) -> float:
    """The number of draws with replacement whose expected number of distinct classes is `count`.

    `misses` is, for each class, the log probability that one draw misses it. Found by bisection.
    """
    low, high = np.log(count), np.log(count * 1e6)
    for _ in range(32):
        middle = (low + high) / 2
        if -np.sum(np.expm1(np.exp(middle) * misses)) >= count:
            high = middle
        else:
            low = middle
    return float(np.exp((low + high) / 2))


def _tables(
    probabilities: NDArray[np.float32], count: int, unique: bool
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """The sampler's constants: its distribution, and the expected count of each class.

    Returns:
        uint32 `_ends`, or float32 logarithms of probabilities for `_largest`; and float32
        `(classes,)`.
    """
    if not unique:
        return _ends(probabilities), probabilities * np.float32(count)
    misses = np.log1p(-np.minimum(probabilities.astype(np.float64), 1 - 1e-6))
    tries = _tries(misses, count)
    expected = -np.expm1(tries * misses).astype(np.float32)
    if len(probabilities) > _CLASSES_PER_DRAW * count and tries < 2 * count:
        return _ends(probabilities), expected
    with np.errstate(divide="ignore"):
        return np.log(probabilities), expected


def _sample(
    true_classes: Any, drawn_by: Any, expected: Any, num_sampled: int, unique: bool, *, key: Any
) -> Any:
    if drawn_by.dtype != np.uint32:
        ids = _largest(key, drawn_by, num_sampled)
    else:
        ids = (_first_different if unique else _numbers)(key, drawn_by, num_sampled)
    table = jnp.asarray(expected)
    return ids.astype(np.int64), table[true_classes], table[ids]


def infer_candidates(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    """Shape inference of samplers: classes, and expected counts of true and sampled ones."""
    shape = TensorShape([attrs["num_sampled"]])
    return [Spec(int64, shape), Spec(float32, inputs[0].shape), Spec(float32, shape)]


register(
    "CandidateSampler",
    _sample,
    fault=lambda inputs, attrs: in_range(
        0,
        inputs[0],
        inputs[2].shape[0],
        "`true_candidate` out of range [0, {bound}), received {value}",
    ),
    infer=infer_candidates,
    gradient=None,
    random=True,
    pure=False,
    cases=lambda: [
        Case(
            (np.array([[0], [2]], np.int64), *_tables(np.full(5, 0.2, np.float32), 3, unique)),
            {"num_sampled": 3, "unique": unique},
        )
        for unique in (False, True)
    ],
)


def check_range(num_sampled: int, unique: bool, range_max: int, sampler: str) -> None:
    """Raises InvalidArgumentError if more unique classes are requested than exist."""
    if unique and num_sampled > range_max:
        raise InvalidArgumentError.explained(
            f"Sampler's range is too small: {sampler} is asked for more unique classes than "
            "there are",
            expected=f"at most {range_max}",
            received=num_sampled,
        )


def as_true_classes(true_classes: Any, num_true: int) -> Tensor:
    """True classes as int64 `(batch, num_true)`; InvalidArgumentError if known not to fit."""
    classes = elementwise.cast(convert_to_tensor(true_classes, name="true_classes"), int64)
    dims = classes.shape.dims
    if dims is not None and (len(dims) != 2 or dims[1] not in (None, num_true)):
        problem = f"true_classes must have num_true columns, expected: {num_true}"
        raise InvalidArgumentError.explained(problem, received=classes)
    return classes


def _sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    probabilities: Any,
    seed: int | None,
    name: str,
) -> Candidates:
    classes = as_true_classes(true_classes, num_true)
    check_range(num_sampled, unique, len(probabilities), name)
    attrs = {"num_sampled": int(num_sampled), "unique": bool(unique), "_seed": get_seed(seed)}
    # Inputs, not attributes: large constants take XLA long to compile (400 KB a tenth of a second).
    tables = _tables(np.asarray(probabilities, np.float32), int(num_sampled), bool(unique))
    with get_default_graph().name_scope(name) as scope:
        inputs = [classes, *map(convert_to_tensor, tables)]
        return Candidates(*registry.apply("CandidateSampler", inputs, attrs, scope).outputs)


def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Samples classes uniformly.

    Args:
        true_classes: int64 `(batch, num_true)`.
        num_true: the number of true classes per example.
        num_sampled: the number of classes to sample.
        unique: whether to sample without replacement.
        range_max: the number of classes; they are numbered from 0.
        seed: the operation's seed; see `set_random_seed`.

    Returns:
        The sampled classes, int64 `(num_sampled,)`, and the expected counts of the true and of the
        sampled classes, float32.
    """
    table = np.full(range_max, 1.0 / range_max)
    return _sampler(
        true_classes, num_true, num_sampled, unique, table, seed, name or "UniformCandidateSampler"
    )


def log_uniform_probabilities(range_max: int) -> Any:
    """log((k + 2) / (k + 1)) / log(range_max + 1) for class k, by falling frequency."""
    numbers = np.arange(range_max, dtype=np.float64)
    return np.log((numbers + 2) / (numbers + 1)) / np.log(range_max + 1)


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Samples classes from a log-uniform (Zipfian) distribution.

    Small class ids are the most frequent. See `uniform_candidate_sampler` for the arguments.
    """
    table = log_uniform_probabilities(range_max)
    return _sampler(
        true_classes,
        num_true,
        num_sampled,
        unique,
        table,
        seed,
        name or "LogUniformCandidateSampler",
    )


def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Samples classes in proportion to given counts raised to the power `distortion`.

    Args:
        true_classes, num_true, num_sampled, unique, range_max, seed, name: see
            `uniform_candidate_sampler`.
        vocab_file: a file whose lines end in a comma and the count of a class.
        distortion: 1 for the counts themselves, 0 for equal probabilities.
        num_reserved_ids: the number of ids at the beginning that are never drawn.
        num_shards, shard: sample only the ids that equal `shard` modulo `num_shards`, renumbered
            from 0; `range_max` is then their number. As in TensorFlow, the ids of the counts begin
            at the number of reserved ids of this shard.
        unigrams: the counts, instead of a file.

    Raises:
        InvalidArgumentError: neither or both of `vocab_file` and `unigrams` are given.
        ValueError: the counts do not fit `range_max`.
    """
    if bool(vocab_file) == bool(len(unigrams)):
        raise InvalidArgumentError(
            None, None, "Must provide either vocab_file or unigrams, and not both."
        )
    if vocab_file:
        with open(vocab_file, encoding="utf-8") as file:
            unigrams = [float(line.rsplit(",", 1)[1]) for line in file if line.strip()]
    reserved = np.zeros(num_reserved_ids)[shard::num_shards]
    counted = np.asarray(unigrams, float)[(shard - len(reserved)) % num_shards :: num_shards]
    weights = np.concatenate([reserved, counted**distortion])
    if len(weights) != range_max:
        raise value_error(
            "fixed_unigram_candidate_sampler: the counts do not fit range_max",
            expected=f"range_max={len(weights)}, the ids of shard {shard} of {num_shards}",
            received=range_max,
        )
    return _sampler(
        true_classes,
        num_true,
        num_sampled,
        unique,
        weights / weights.sum(),
        seed,
        name or "FixedUnigramCandidateSampler",
    )


def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Returns all `num_sampled` classes, each with an expected count of 1.

    It serves to compare a sampled loss with the one over all classes. See
    `uniform_candidate_sampler` for the arguments; `unique` and `seed` have no effect.
    """
    classes = as_true_classes(true_classes, num_true)
    with get_default_graph().name_scope(name or "AllCandidateSampler"):
        every = elementwise.cast(filling.range_(num_sampled), int64)
        return Candidates(
            every, filling.ones_like(classes, dtype=float32), filling.ones([num_sampled])
        )


def compute_accidental_hits(
    true_classes: Any,
    sampled_candidates: Any,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Finds the sampled classes that are true classes of an example.

    Args:
        true_classes: int `(batch, num_true)`.
        sampled_candidates: int64 `(num_sampled,)`.
        num_true: the number of true classes per example.
        seed: accepted for compatibility only.

    Returns:
        `(indices, ids, weights)`, vectors with an element for each hit: the example, the (last)
        position among the sampled classes, and a weight to add to that logit, the most negative
        float32.
    """
    with get_default_graph().name_scope(name or "ComputeAccidentalHits"):
        drawn = array.reshape(convert_to_tensor(sampled_candidates), [-1])
        order = filling.range_(array.size(drawn))
        repeats = elementwise.logical_and(
            elementwise.equal(array.expand_dims(drawn, 1), drawn),
            elementwise.less(array.expand_dims(order, 1), order),
        )
        last = elementwise.logical_not(reduce.reduce_any(repeats, 1))  # as in TensorFlow
        same = _same(true_classes, drawn, num_true)
        places = indexing.where(elementwise.logical_and(same, last))
        least = float(np.finfo(np.float32).min)
        return (
            elementwise.cast(places[:, 0], "int32"),
            places[:, 2],
            filling.fill(array.shape(places)[:1], least),
        )


def _hits(true_classes: Any, sampled: Any, num_true: int) -> Tensor:
    """Whether a sampled class is a true one of the example, `(batch, num_sampled)`."""
    return reduce.reduce_any(_same(true_classes, sampled, num_true), 1)


def _same(true_classes: Any, sampled: Any, num_true: int) -> Tensor:
    """Whether a sampled class equals a true one, `(batch, num_true, num_sampled)`."""
    classes = array.reshape(
        elementwise.cast(convert_to_tensor(true_classes), int64), [-1, num_true]
    )
    drawn = elementwise.cast(convert_to_tensor(sampled), int64)
    return elementwise.equal(array.expand_dims(classes, 2), array.reshape(drawn, [1, 1, -1]))


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    subtract_log_q: bool = True,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "sampled_logits",
    seed: int | None = None,
) -> tuple[Tensor, Tensor]:
    with get_default_graph().name_scope(name):
        classes = elementwise.cast(convert_to_tensor(labels), int64)
        classes = array.reshape(classes, [-1, num_true])
        flat = array.reshape(classes, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                classes, num_true, num_sampled, True, num_classes, seed
            )
        sampled, true_count, sampled_count = (
            array.stop_gradient(convert_to_tensor(each)) for each in sampled_values
        )
        sampled = elementwise.cast(sampled, int64)
        ids = joining.concat([flat, sampled], 0)
        rows = embedding_lookup(weights, ids, partition_strategy)
        offsets = embedding_lookup(biases, ids, partition_strategy)
        x = convert_to_tensor(inputs)
        size = array.shape(flat)[0]
        true_rows, sampled_rows = rows[:size], rows[size:]
        true_offsets, sampled_offsets = offsets[:size], offsets[size:]
        dim = x.shape[-1]
        true_rows = array.reshape(true_rows, [-1, num_true, -1 if dim is None else dim])
        true_logits = reduce.reduce_sum(array.expand_dims(x, 1) * true_rows, 2)
        true_logits = true_logits + array.reshape(true_offsets, [-1, num_true])
        sampled_logits = linalg.matmul(x, sampled_rows, transpose_b=True) + sampled_offsets
        if remove_accidental_hits:
            hits = elementwise.cast(_hits(classes, sampled, num_true), sampled_logits.dtype)
            sampled_logits = sampled_logits + hits * float(np.finfo(np.float32).min)
        if subtract_log_q:
            true_logits = true_logits - elementwise.log(true_count)
            sampled_logits = sampled_logits - elementwise.log(sampled_count)
        logits = joining.concat([true_logits, sampled_logits], 1)
        targets = joining.concat(
            [
                filling.ones_like(true_logits) / float(num_true),
                filling.zeros_like(sampled_logits),
            ],
            1,
        )
        return logits, targets


def _in_order(labels: Any, inputs: Any) -> tuple[Any, Any]:
    """(labels, inputs), swapped if in the order used before TensorFlow 1.0."""
    one, other = convert_to_tensor(labels), convert_to_tensor(inputs)
    if one.dtype.is_floating and other.dtype.is_integer:
        return other, one
    return one, other


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any = None,
    inputs: Any = None,
    num_sampled: Any = None,
    num_classes: Any = None,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Tensor:
    """The noise-contrastive estimation loss of each example (Gutmann & Hyvarinen 2010).

    Args:
        weights: `(num_classes, dim)`, or a list of partitions.
        biases: `(num_classes,)`.
        labels: int `(batch, num_true)`.
        inputs: `(batch, dim)`. Float labels and integer inputs are swapped: that was their order
            before TensorFlow 1.0.
        num_sampled: the number of classes sampled per batch.
        num_classes: the number of classes.
        num_true: the number of true classes per example.
        sampled_values: the result of a candidate sampler; by default that of
            `log_uniform_candidate_sampler`.
        remove_accidental_hits: whether to ignore sampled classes that are true classes.
        partition_strategy: see `embedding_lookup`.
    """
    classes, x = _in_order(labels, inputs)
    logits, targets = _sampled_logits(
        weights,
        biases,
        classes,
        x,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        True,
        remove_accidental_hits,
        partition_strategy,
        name,
        None,
    )
    losses = nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)
    return reduce.reduce_sum(losses, 1)


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any = None,
    inputs: Any = None,
    num_sampled: Any = None,
    num_classes: Any = None,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """The softmax cross-entropy over the true and the sampled classes (Jean et al. 2014).

    For training only: evaluate with the softmax over all classes. See `nce_loss` for the
    arguments.
    """
    classes, x = _in_order(labels, inputs)
    logits, targets = _sampled_logits(
        weights,
        biases,
        classes,
        x,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        True,
        remove_accidental_hits,
        partition_strategy,
        name,
        seed,
    )
    return nn.softmax_cross_entropy_with_logits_v2(
        labels=array.stop_gradient(targets), logits=logits
    )
