"""The tests of `tests/ops/nn/test_nn_golden.py` that need names of TensorFlow 1."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.compat.ops.nn import candidates
from estimatorkit.core.x64 import x64
from tests.golden.snippets_nn import LEGACY, NN, NN_ERRORS, numbers
from tests.ops.nn.test_nn_golden import test_errors as check_errors, test_results as check_results


@pytest.mark.slow
def test_sampler_distributions() -> None:
    labels = tf.constant([[0], [3]], tf.int64)
    count, classes = 4000, 8
    counts = np.array([5, 1, 2, 8, 4, 1, 1, 2], float)
    zipf = np.log((np.arange(8.0) + 2) / (np.arange(8.0) + 1)) / np.log(9)
    reserved = np.r_[0, 0, counts[:6]]
    laws: dict[str, Any] = {  # of the first run
        "uniform": (tf.nn.uniform_candidate_sampler, {}, np.full(8, 1 / 8)),
        "log_uniform": (tf.nn.log_uniform_candidate_sampler, {}, zipf),
    }
    for name, options, weights in (
        ("fixed", {"unigrams": counts.tolist()}, counts),
        ("distorted", {"unigrams": counts.tolist(), "distortion": 0.75}, counts**0.75),
        ("reserved", {"unigrams": counts[:6].tolist(), "num_reserved_ids": 2}, reserved),
    ):
        laws[name] = (tf.nn.fixed_unigram_candidate_sampler, options, weights / weights.sum())
    made = {
        name: [
            function(labels, 1, count, False, classes, seed=7, **options),
            function(labels, 1, 4, True, classes, seed=8, **options),
        ]
        for name, (function, options, _) in laws.items()
    }
    with tf.Session() as session:
        found = session.run(made)
    for name, (_, _, law) in laws.items():
        (drawn, true, sampled), (unique, few, of_unique) = found[name]
        assert drawn.shape == (count,)
        assert len(set(unique.tolist())) == 4
        assert ((unique >= 0) & (unique < classes)).all()
        assert true.shape == few.shape == (2, 1)
        assert ((few >= 0) & (few <= 1)).all()
        assert ((of_unique > 0) & (of_unique <= 1)).all()
        shares = np.bincount(drawn, minlength=classes) / count
        np.testing.assert_allclose(shares, law, atol=5 * np.sqrt(0.25 / count), err_msg=name)
        np.testing.assert_allclose(true[:, 0], count * law[[0, 3]], rtol=1e-4)
        np.testing.assert_allclose(sampled, count * law[drawn], rtol=1e-4)
        assert law[unique].all(), name  # what cannot be drawn is not


@pytest.mark.slow
def test_unigram_shards_are_renumbered() -> None:
    """What TensorFlow 2.15.1 expects of each class where each draw is kept."""
    for unigrams, reserved, shard, law in (
        ([1.0, 2, 3, 4, 5, 6], 0, 1, [1 / 6, 1 / 3, 1 / 2]),
        ([1.0, 2, 3, 4, 5], 1, 0, [0, 1 / 3, 2 / 3]),
        ([1.0, 2, 3, 4, 5, 6], 1, 0, [0, 1 / 6, 1 / 3, 1 / 2]),
        ([1.0, 2, 3, 4, 5], 1, 1, [1 / 3, 2 / 3]),
    ):
        classes = np.arange(len(law))[:, None]
        sampled, true, _ = tf.nn.fixed_unigram_candidate_sampler(
            *(classes, 1, 100, False, len(law)),
            **{"num_reserved_ids": reserved, "num_shards": 2, "shard": shard},
            unigrams=unigrams,
        )
        with tf.Session() as session:
            drawn, expected = session.run([sampled, true])
        np.testing.assert_allclose(expected[:, 0], 100 * np.array(law), rtol=1e-5)
        assert drawn.max() < len(law)
    with pytest.raises(ValueError, match="range_max=3, the ids of shard 1 of 2"):
        tf.nn.fixed_unigram_candidate_sampler(
            [[0]], 1, 1, False, 6, unigrams=[1.0, 2, 3, 4, 5, 6], num_shards=2, shard=1
        )


def draws_of(probabilities: Any, count: int, unique: bool) -> Any:
    """The ids of a key, as a function."""

    tables = candidates._tables(probabilities, count, unique)

    def ids(key: Any) -> Any:
        return candidates._sample(np.array([[0]]), *tables, count, unique, key=key)[0]

    return ids


@pytest.mark.parametrize("unique", [False, True])
def test_sparse_sampling_draws_few_numbers(unique: bool) -> None:
    """Not one for each class and draw: 64 of 50,000 classes took 200 ms of a step."""
    with x64():
        draws = draws_of(np.full(5000, 1 / 5000, np.float32), 8, unique)
        program = str(jax.make_jaxpr(draws)(jax.random.key(0)))
    bits = re.findall(r"random_bits\[[^\]]*shape=\(([\d, ]+)\)", program)
    assert [each.strip(" ,") for each in bits] == ["16" if unique else "8"]


@pytest.mark.slow
def test_sampling_of_many_classes_matches_few() -> None:
    """Those that come first, by either way, have the same law, and are different."""
    law = np.r_[0.0, 0.4, 0.3, 0.2, 0.1].astype(np.float32)
    many = np.r_[law, np.zeros(600, np.float32)]
    with x64():
        keys = jax.random.split(jax.random.key(1), 4000)
        few, others = (jax.jit(jax.vmap(draws_of(each, 2, True)))(keys) for each in (law, many))
    shares = [np.bincount(np.asarray(ids) @ [5, 1], minlength=25) / 4000 for ids in (few, others)]
    pairs = np.outer(law, law) / (1 - law[:, None]) * (1 - np.eye(5))
    for share in shares:
        np.testing.assert_allclose(share, pairs.reshape(-1), atol=5 * np.sqrt(0.25 / 4000))
    assert not np.array_equal(few, others)


@pytest.mark.slow
def test_sampled_losses_draw_independently() -> None:
    """The expectation of a sampled softmax with all classes is the softmax."""
    w, b = tf.constant(numbers(0, 6, 4)), tf.constant(numbers(1, 6))
    x, labels = tf.constant(numbers(2, 3, 4)), tf.constant([[1], [5], [0]], tf.int64)
    every = tf.nn.all_candidate_sampler(labels, 1, 6, True)
    sampled = tf.nn.sampled_softmax_loss(w, b, labels, x, 6, 6, sampled_values=every)
    whole = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels[:, 0], logits=tf.matmul(x, w, transpose_b=True) + b
    )
    drawn = [
        tf.nn.nce_loss(w, b, labels, x, num_sampled=4, num_classes=6),
        tf.nn.nce_loss(w, b, x, labels, 4, 6),  # the order before TensorFlow 1.0
        tf.nn.sampled_softmax_loss(w, b, labels, x, 4, 6),
    ]
    with tf.Session() as session:
        found, expected, losses = session.run([sampled, whole, drawn])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for loss in losses:
        assert loss.shape == (3,)
        assert np.isfinite(loss).all()
        assert (loss > 0).all()


@pytest.mark.slow
def test_impossible_ctc_labels_have_infinite_loss_and_no_gradient() -> None:
    logits = tf.constant(numbers(0, 3, 1, 4))
    labels = tf.SparseTensor([[0, 0], [0, 1], [0, 2]], tf.constant([1, 1, 2]), [1, 3])
    loss = tf.nn.ctc_loss(labels, logits, [3])
    left_out = tf.nn.ctc_loss(labels, logits, [3], ignore_longer_outputs_than_inputs=True)
    with tf.Session() as session:
        found, none, slope = session.run([loss, left_out, tf.gradients(loss, logits)[0]])
    assert np.isposinf(found).all()
    assert not none.any()
    assert not slope.any()


@pytest.mark.parametrize("name", sorted(NN.keys() & LEGACY))
def test_results(name: str) -> None:
    check_results(name)


@pytest.mark.parametrize("name", sorted(NN_ERRORS.keys() & LEGACY))
def test_errors(name: str) -> None:
    check_errors(name)


def test_samplers_check_number_of_true_classes() -> None:
    names = ("uniform", "log_uniform")
    for sampler in (getattr(tf.nn, f"{name}_candidate_sampler") for name in names):
        for classes, count in (([[0], [3]], 2), ([0, 3], 1)):
            with pytest.raises(tf.errors.InvalidArgumentError, match="must have num_true columns"):
                sampler(tf.constant(classes, tf.int64), count, 2, False, 4)
