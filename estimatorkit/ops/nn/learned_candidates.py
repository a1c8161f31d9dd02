"""Candidate sampler that learns the class frequencies.

Its counts live in the session (`Unigrams`) under its handle's name, and restart with each session,
as in TensorFlow.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import apply, register, register_handle
from estimatorkit.ops.math.random import get_seed
from estimatorkit.ops.nn.candidates import (
    Candidates,
    as_true_classes,
    check_range,
    infer_candidates,
)


class Unigrams:
    """Class counts (plus one), and draws in proportion to them.

    `seed` is two words; None draws differently in each session.
    """

    def __init__(self, range_max: int, seed: tuple[int, int] | None) -> None:
        self._counts = np.ones(range_max, np.int64)
        self._generator = np.random.default_rng(seed)
        self._lock = threading.Lock()

    def sample(self, true_classes: NDArray[Any], num_sampled: int, unique: bool) -> list[Any]:
        """Draws classes and computes expected counts, then counts the true classes (int64, any
        shape).

        Returns:
            The classes, int64 `(num_sampled,)`, and the expected counts of the true classes and of
            the sampled ones, float32.
        """
        classes = len(self._counts)
        outside = true_classes[(true_classes < 0) | (true_classes >= classes)]
        if outside.size:
            problem = f"`true_candidate` out of range [0, {classes}), received {outside[0]}"
            raise InvalidArgumentError.explained(problem, received=outside[:10].tolist())
        with self._lock:
            probabilities = self._counts / self._counts.sum()
            ids, tries = self._draw(num_sampled, unique)
            np.add.at(self._counts, true_classes.reshape(-1), 1)
        expected = probabilities * num_sampled
        if tries != num_sampled:
            expected = -np.expm1(tries * np.log1p(-probabilities))
        table = expected.astype(np.float32)
        return [ids, table[true_classes], table[ids]]

    def _draw(self, count: int, unique: bool) -> tuple[NDArray[Any], int]:
        """Sampled classes, and the number of draws needed."""
        ends = np.cumsum(self._counts)
        if not unique:
            return self._numbers(ends, count), count
        found: dict[int, None] = {}  # in the order in which they came
        tries = 0
        while len(found) < count:
            for number in self._numbers(ends, 2 * count).tolist():
                tries += 1
                found[number] = None
                if len(found) == count:
                    break
        return np.array(list(found), np.int64), tries

    def _numbers(self, ends: NDArray[Any], count: int) -> NDArray[Any]:
        drawn = self._generator.integers(ends[-1], size=count)
        return np.searchsorted(ends, drawn, side="right").astype(np.int64)


def _sample(
    true_classes: Any,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: tuple[int, int] | None,
    sampler: str,
    context: Any,
) -> list[Any]:
    held: Unigrams = context.resource(("unigrams", sampler), lambda: Unigrams(range_max, seed))
    return held.sample(np.asarray(true_classes), num_sampled, unique)


register_handle("UnigramSampler", "a sampler's handle")
register(
    "LearnedUnigramCandidateSampler",
    _sample,
    infer=infer_candidates,
    gradient=None,
    where="host",
    context=True,
    pure=False,
    holder="sampler",
)


def learned_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Samples classes in proportion to one plus their counts as true classes in this session.

    Args:
        true_classes: int64 `(batch, num_true)`; counted after each run's draw.
        num_true: the number of true classes per example.
        num_sampled: the number of classes to sample.
        unique: sample without replacement.
        range_max: the number of classes.
        seed: the op seed.

    Raises:
        InvalidArgumentError: more unique classes are requested than exist, or (at run time) a true
            class is out of range.
    """
    check_range(num_sampled, unique, range_max, "learned_unigram_candidate_sampler")
    default = name or "LearnedUnigramCandidateSampler"
    with get_default_graph().init_scope():
        counts = f"{default.removesuffix('/')}/counts"
        handle = apply("UnigramSampler", (), {"range_max": int(range_max)}, counts)
    attrs = {
        "num_sampled": int(num_sampled),
        "unique": bool(unique),
        "range_max": int(range_max),
        "seed": get_seed(seed),
        "sampler": handle.name,
    }
    classes = as_true_classes(true_classes, num_true)
    return Candidates(*apply("LearnedUnigramCandidateSampler", [classes], attrs, default).outputs)
