"""Inference helpers: samples determine the next inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimatorkit.compat.layers.seq2seq.helper import Helper, embedding_function, sampled_classes
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import bool_, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, filling
from estimatorkit.ops.math import elementwise, reduce


def start_and_end(start_tokens: Any, end_token: Any) -> tuple[Tensor, Tensor]:
    """Validates the start and end tokens, as int32.

    Raises:
        ValueError: `start_tokens` is not a vector, or `end_token` is not a scalar.
    """
    start = convert_to_tensor(start_tokens, int32, "start_tokens")
    end = convert_to_tensor(end_token, int32, "end_token")
    for what, tensor, rank, kind in (
        ("start_tokens", start, 1, "vector"),
        ("end_token", end, 0, "scalar"),
    ):
        if tensor.shape.rank != rank:
            raise value_error(f"{what} must be a {kind}", received=tensor, made_at=tensor.op.source)
    return start, end


class GreedyEmbeddingHelper(Helper):
    """Feeds back the embedding of the most likely id, until the end token.

    Args:
        embedding: a function of ids, or the table for `nn.embedding_lookup`.
        start_tokens: int32 `(batch,)`.
        end_token: int32 scalar.

    Raises:
        ValueError: `start_tokens` is not a vector, or `end_token` is not a scalar.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embedding_fn = embedding_function(embedding)
        self._start_tokens, self._end_token = start_and_end(start_tokens, end_token)
        self._batch_size = array.size(self._start_tokens)
        self._start_inputs = convert_to_tensor(self._embedding_fn(self._start_tokens))

    @property
    def batch_size(self) -> Tensor:
        """The number of start tokens."""
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        """Scalars."""
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        """int32."""
        return int32

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """See `Helper`."""
        return filling.zeros_like(self._start_tokens, bool_), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """See `Helper`."""
        return reduce.argmax(_one_tensor(outputs), -1, output_type=int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """See `Helper`."""
        finished = elementwise.equal(sample_ids, self._end_token)
        return finished, self._embedding_fn(sample_ids), state


def _one_tensor(outputs: Any) -> Tensor:
    if not isinstance(outputs, Tensor):
        raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")
    return outputs


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Samples ids from the outputs as logits, and feeds their embeddings back.

    Args:
        embedding, start_tokens, end_token: see `GreedyEmbeddingHelper`.
        softmax_temperature: what logits are divided by; 1 by default.
        seed: of the random numbers.
    """

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """See `Helper`."""
        logits = _one_tensor(outputs)
        if self._softmax_temperature is not None:
            logits = logits / self._softmax_temperature
        return sampled_classes(logits, self._seed)


class InferenceHelper(Helper):
    """A helper built from functions that sample and detect the end.

    Args:
        sample_fn: of outputs, gives samples.
        sample_shape: of a sample, without the batch dimension.
        sample_dtype: of a sample.
        start_inputs: the first inputs, `(batch, ...)`.
        end_fn: of samples, gives which sequences they end, bool `(batch,)`.
        next_inputs_fn: of samples, gives the next inputs; the samples themselves by default.
    """

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample_fn = sample_fn
        self._end_fn = end_fn
        self._sample_shape = TensorShape(sample_shape)
        self._sample_dtype = sample_dtype
        self._next_inputs_fn = next_inputs_fn
        self._start_inputs = convert_to_tensor(start_inputs, name="start_inputs")
        self._batch_size = array.shape(self._start_inputs)[0]

    @property
    def batch_size(self) -> Tensor:
        """The batch size of the first inputs."""
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        """See `Helper`."""
        return self._sample_shape

    @property
    def sample_ids_dtype(self) -> Any:
        """See `Helper`."""
        return self._sample_dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """See `Helper`."""
        finished = filling.fill(array.reshape(self._batch_size, [1]), False)
        finished.set_shape(self._start_inputs.shape[:1])
        return finished, self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """See `Helper`."""
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """See `Helper`."""
        following = sample_ids if self._next_inputs_fn is None else self._next_inputs_fn(sample_ids)
        return self._end_fn(sample_ids), following, state


__all__ = ["GreedyEmbeddingHelper", "InferenceHelper", "SampleEmbeddingHelper"]
__dir__ = listing(__name__)
