"""`contrib.crf` against sums over all sequences of tags."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

crf = tf.contrib.crf
LENGTHS = [4, 2, 1, 0]
STEPS, TAGS = 4, 3


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    random = np.random.default_rng(0)
    allowed = random.random((len(LENGTHS), STEPS, TAGS)) > 0.3
    allowed[:, :, 0] = True
    return {
        "scores": random.normal(size=(len(LENGTHS), STEPS, TAGS)).astype(np.float32),
        "transitions": random.normal(size=(TAGS, TAGS)).astype(np.float32),
        "tags": random.integers(0, TAGS, (len(LENGTHS), STEPS)).astype(np.int32),
        "allowed": allowed,
    }


def scores_of_all(data: dict[str, Any], row: int) -> dict[tuple[int, ...], float]:
    own, after = data["scores"][row], data["transitions"]
    return {
        tags: sum(own[step, tag] for step, tag in enumerate(tags))
        + sum(after[pair] for pair in itertools.pairwise(tags))
        for tags in itertools.product(range(TAGS), repeat=LENGTHS[row])
    }


def log_sum(values: Any) -> float:
    return float(np.log(np.sum(np.exp(list(values)))))


def test_scores_and_viterbi_decoding(data: dict[str, Any]) -> None:
    scores, after, tags = data["scores"], data["transitions"], data["tags"]
    with tf.Session() as session:
        likelihood, given = crf.crf_log_likelihood(scores, tags, LENGTHS, after)
        decoded, best = crf.crf_decode(scores, after, LENGTHS)
        several = crf.crf_multitag_sequence_score(scores, data["allowed"], LENGTHS, after)
        found = session.run([likelihood, decoded, best, several])
    assert given is after
    assert found[1].dtype == np.int32
    for row, length in enumerate(LENGTHS[:3]):
        every = scores_of_all(data, row)
        norm = log_sum(every.values())
        assert found[0][row] == pytest.approx(every[tuple(tags[row, :length])] - norm, abs=1e-5)
        likeliest = max(every, key=lambda each: every[each])
        assert tuple(found[1][row, :length]) == likeliest
        assert not found[1][row, length:].any()
        assert found[2][row] == pytest.approx(every[likeliest], abs=1e-5)
        fitting = [
            score
            for tags_, score in every.items()
            if all(data["allowed"][row, step, tag] for step, tag in enumerate(tags_))
        ]
        assert found[3][row] == pytest.approx(log_sum(fitting), abs=1e-5)
        path, score = crf.viterbi_decode(scores[row, :length], after)
        assert (tuple(path), score) == (likeliest, pytest.approx(every[likeliest], abs=1e-5))
    assert found[0][3] == found[3][3] == 0.0  # an empty sequence


@pytest.mark.slow
def test_training_with_unknown_sizes(data: dict[str, Any]) -> None:
    tf.set_random_seed(1)
    scores = tf.placeholder(tf.float32, [None, None, TAGS])
    tags = tf.placeholder(tf.int32, [None, None])
    lengths = tf.placeholder(tf.int32, [None])
    likelihood, transitions = crf.crf_log_likelihood(scores, tags, lengths)
    assert transitions.name == "transitions:0"
    train = tf.train.AdamOptimizer(0.3).minimize(-tf.reduce_mean(likelihood))
    decoded, _ = crf.crf_decode(scores, transitions, lengths)
    own = np.zeros((2, 3, TAGS), np.float32)
    feeds = {scores: own, tags: [[0, 1, 2], [1, 2, 0]], lengths: [3, 2]}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([train, likelihood], feeds)[1].mean() for _ in range(40)]
        assert losses[-1] > losses[0] + 1
        start = own.copy()
        start[:, 0, 0] = 5.0
        assert session.run(decoded, {scores: start, lengths: [3, 2]}).tolist() == [
            [0, 1, 2],
            [0, 1, 0],
        ]
        assert session.run(decoded, {scores: start[:, :1], lengths: [1, 1]}).tolist() == [[0], [0]]
