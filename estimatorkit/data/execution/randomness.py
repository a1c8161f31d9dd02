"""Random draws that depend on (key, epoch, position) only, not on the order of calls.

A `RandomStream` belongs to one shuffle. It reads raw 64-bit Philox words, which NumPy guarantees to
be stable across versions (unlike `Generator.integers`), so that saved positions stay valid. `Seeds`
provides the streams of all shuffles and functions of a pipeline.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.data.execution.checksums import GeneratorChecksums, PipelineChecksums

# Words 1 to 3 of Philox's 256-bit counter hold epoch and purpose; word 0 counts, so streams never
# overlap.
_SLOTS, _PERMUTATIONS = 0, 1

# Small inputs compute the permutations of many epochs in one call: 24 us for 34 epochs of 120 rows,
# the cost of a single one.
_PERMUTED_AT_ONCE = 4096


def nested_epoch(outer: int, inner: int) -> int:
    """The 64-bit epoch number of pass `inner` within pass `outer`; `inner` if `outer` is 0.

    Multiples of the golden ratio's factor lie far apart, so the passes of nested repeats get
    different numbers without knowing their counts.
    """
    return (outer * 0x9E3779B97F4A7C15 + inner) % 2**64


class RandomStream:
    """The draws of one shuffle.

    Args:
        key: 32 hexadecimal digits.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self._words = [int(key[:16], 16), int(key[16:], 16)]
        self._next: tuple[int, int] | None = None  # the (epoch, position) of _bits
        self._bits: Any = None
        self._orders: tuple[tuple[int, int], NDArray[np.int64]] | None = None

    def with_key(self, key: str) -> RandomStream:
        """The stream of another key."""
        return RandomStream(key)

    def slots(self, epoch: int, position: int, count: int, size: int) -> NDArray[np.int64]:
        """Draws `position` to `position + count - 1` of the epoch, uniform in [0, size)."""
        if self._next != (epoch, position):
            # Each counter step yields four words.
            self._bits = self._generator(position // 4, epoch, _SLOTS)
            self._bits.random_raw(position % 4)
        self._next = (epoch, position + count)
        # 53 random bits: the bias against a slot is below size / 2**53.
        words: NDArray[np.uint64] = self._bits.random_raw(count)
        return ((words >> np.uint64(11)) * 2.0**-53 * size).astype(np.int64)

    def permutation(self, epoch: int, size: int) -> NDArray[np.int64]:
        """The epoch's uniform random permutation of range(size): `(size,)`."""
        epochs = max(1, _PERMUTED_AT_ONCE // max(1, size))
        group = (epoch // epochs, size)
        if self._orders is None or self._orders[0] != group:
            words: NDArray[np.uint64] = self._generator(0, group[0], _PERMUTATIONS).random_raw(
                epochs * size
            )
            # Ties of 64-bit words (3e-8 for a million rows) merely make two orders slightly more
            # probable.
            self._orders = group, np.argsort(words.reshape(epochs, size), axis=1)
        order: NDArray[np.int64] = self._orders[1][epoch % epochs]
        return order

    def _generator(self, counter: int, epoch: int, purpose: int) -> np.random.Philox:
        return np.random.Philox(
            key=np.array(self._words, np.uint64),
            counter=np.array([counter, epoch, purpose, 0], np.uint64),
        )


class Seeds:
    """Shared by the iterators of a pipeline: the source of their streams, and the session.

    As in TensorFlow, an order is reproducible if the operation or the graph has a seed. Shuffles
    without their own seed get different streams (by their index in the pipeline); those with equal
    seeds get equal streams.

    Args:
        graph_seed: the seed of the whole graph, or None.
        state: the state of the session whose tables functions use; None without a session.
        entropy: hexadecimal digits that determine unseeded streams; random by default.
        checksums: those of the pipeline's generators.
        place: of a pipeline within another.
    """

    def __init__(
        self,
        graph_seed: int | None,
        state: Any = None,
        entropy: str | None = None,
        checksums: PipelineChecksums | None = None,
        place: str = "",
    ) -> None:
        self.state = state
        self._checksums = checksums or PipelineChecksums()
        self._place = place
        self._generators = 0
        self._graph_seed = graph_seed
        self._entropy = entropy or os.urandom(16).hex()
        self._shuffles = 0
        self._functions = 0

    def stream(self, seed: int | None) -> RandomStream:
        """The stream of the next shuffle, which has its own seed `seed` or None."""
        number, self._shuffles = self._shuffles, self._shuffles + 1
        if seed is not None:
            text = f"graph {self._graph_seed}, seed {seed}"
        elif self._graph_seed is not None:
            text = f"graph {self._graph_seed}, shuffle {number}"
        else:
            text = f"entropy {self._entropy}, shuffle {number}"
        return RandomStream(_digest(text))

    def function_stream(self) -> RandomStream:
        """The stream of the next function."""
        number, self._functions = self._functions, self._functions + 1
        source = self._entropy if self._graph_seed is None else f"graph {self._graph_seed}"
        return RandomStream(_digest(f"{source}, function {number}"))

    def within(self, stream: RandomStream, number: int) -> Seeds:
        """The seeds of a pipeline that is element `number` of another, which drew `stream`."""
        digest = _digest(f"{stream.key}, element {number}")
        place = f"{self._place}{stream.key[:4]}.{number}/"
        return Seeds(self._graph_seed, self.state, digest, self._checksums, place)

    def generator_checksums(self) -> GeneratorChecksums:
        """The checksums of the next generator."""
        number, self._generators = self._generators, self._generators + 1
        return self._checksums.of_generator(f"{self._place}{number}")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
