"""Estimates how often items occur in a stream of batches, with memory that does not grow.

Source: Yi et al., "Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations"
(RecSys 2019), algorithms 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from estimatorkit.core.dtypes import float32, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.distribute.replica_context import replica_context
from estimatorkit.ops.array import indexing, joining
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.text.fingerprints import FINGERPRINTS
from estimatorkit.ops.variables.initializers import Zeros
from estimatorkit.ops.variables.variable_scope import get_variable, variable_scope
from estimatorkit.ops.variables.variable_updates import scatter_update
from estimatorkit.train.global_steps import get_or_create_global_step


@dataclass(frozen=True)
class ItemFrequency:
    """The probability that an item is in a batch, from a moving average of the steps between those
    in which it is.

    Variables, float32 and int64 `(hashes * buckets,)`: `item_frequency/interval` and
    `item_frequency/last_step`. Items are hashed into buckets, with each hash into others; of the
    intervals of an item's buckets the longest is used, as other items can only shorten it. Differs
    from the paper: the first interval of a bucket starts the average, so that it needs no initial
    value, and an item that is several times in a batch counts once.

    Args:
        buckets: the number of buckets of each hash; several times that of frequent items.
        hashes: the number of hashes.
        rate: the share of the newest interval in the average.

    Raises:
        ValueError: an argument is invalid.
    """

    buckets: int
    hashes: int
    rate: float

    def __post_init__(self) -> None:
        if self.buckets < 1 or self.hashes < 1 or self.buckets**self.hashes > FINGERPRINTS:
            raise value_error(
                "the buckets of item frequencies are too few or too many",
                expected="buckets >= 1, hashes >= 1, and buckets ** hashes <= 2 ** 62",
                received=f"{self.buckets} buckets, {self.hashes} hashes",
            )
        if not 0 < self.rate <= 1:
            raise value_error(
                "the rate of item frequencies is no share",
                expected="0 < rate <= 1",
                received=self.rate,
            )

    def probability(self, fingerprints: Tensor, training: bool) -> Tensor:
        """The probability of items, float32 `(items,)`.

        Args:
            fingerprints: int64 `(items,)`, below 2**62.
            training: whether these are the items of a step of training, which they update (in the
                collection UPDATE_OPS).
        """
        context = replica_context()
        with variable_scope("item_frequency"):
            size = [self.hashes * self.buckets]
            interval, last_step = (
                get_variable(name, size, dtype, Zeros(), trainable=False)
                for name, dtype in (("interval", float32), ("last_step", int64))
            )
        seen = fingerprints
        if training and context is not None:  # so that all replicas update alike
            seen = context.all_gather([fingerprints])[0]
        step = elementwise.cast(get_or_create_global_step(), int64) + 1
        places = self._places(seen)
        before = indexing.gather(last_step, places)
        average = indexing.gather(interval, places)
        if not training:
            return _probability(average, step)
        since = elementwise.cast(step - before, float32)
        moved = average + self.rate * (since - average)
        now = indexing.where(elementwise.equal(before, 0), since, moved)
        for variable, values in ((interval, now), (last_step, places * 0 + step)):
            update = scatter_update(variable, places, values)
            get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, update.op)
        if context is None:
            return _probability(now, step)
        return _probability(indexing.gather(interval, self._places(fingerprints)), step)

    def _places(self, fingerprints: Tensor) -> Tensor:
        """Each hash's bucket, int64 `(hashes, items)`: the digits of a fingerprint."""
        digits = []
        for number in range(self.hashes):
            digit = elementwise.floormod(fingerprints, self.buckets)
            digits.append(digit + number * self.buckets)
            fingerprints = elementwise.floordiv(fingerprints, self.buckets)
        return joining.stack(digits)


def _probability(average: Tensor, step: Tensor) -> Tensor:
    """From intervals `(hashes, items)`; of an item never seen, at most once in all steps so far."""
    unseen = elementwise.equal(average, 0.0)
    known = indexing.where(unseen, average * 0.0 + elementwise.cast(step, float32), average)
    return 1.0 / elementwise.maximum(reduce.reduce_max(known, 0), 1.0)


__all__ = ["ItemFrequency"]
