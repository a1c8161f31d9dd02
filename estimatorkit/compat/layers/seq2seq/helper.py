"""Helpers: sampling and next inputs of a `BasicDecoder`.

Training helpers read given inputs; with scheduled sampling (Bengio et al. 2015) they replace some
of them by outputs. Inference helpers are in `inference_helper`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import bool_, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import name_scope
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.control.decoded_steps import transposed
from estimatorkit.ops.control.tensor_array import TensorArray
from estimatorkit.ops.math import elementwise, random, reduce
from estimatorkit.ops.nn.embedding import embedding_lookup


class Helper:
    """Interface of a `BasicDecoder`'s sampling; subclass it.

    Subclasses define the properties `batch_size`, `sample_ids_shape` and `sample_ids_dtype`, and
    the methods below.
    """

    @property
    def batch_size(self) -> Any:
        """The batch size, int32 scalar."""
        raise NotImplementedError("batch_size has not been implemented")

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of a sample, without the batch dimension."""
        raise NotImplementedError("sample_ids_shape has not been implemented")

    @property
    def sample_ids_dtype(self) -> Any:
        """The dtype of samples."""
        raise NotImplementedError("sample_ids_dtype has not been implemented")

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Returns the finished flags (bool `(batch,)`) and the first inputs."""
        raise NotImplementedError(f"{type(self).__name__} must define initialize")

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Samples ids from the outputs."""
        raise NotImplementedError(f"{type(self).__name__} must define sample")

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Returns the finished flags, the next inputs, and the next state."""
        raise NotImplementedError(f"{type(self).__name__} must define next_inputs")

    def _steps(self) -> Any:
        """The number of steps if it is known before the loop, else None."""
        return None


class CustomHelper(Helper):
    """A helper built from functions.

    Args:
        initialize_fn: returns the finished flags and the first inputs.
        sample_fn: `sample_fn(time, outputs, state)` returns ids.
        next_inputs_fn: `next_inputs_fn(time, outputs, state, sample_ids)` returns the finished
            flags, next inputs and next state.
        sample_ids_shape: without the batch dimension; scalars by default.
        sample_ids_dtype: int32 by default.
    """

    def __init__(
        self,
        initialize_fn: Callable[[], Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize_fn = initialize_fn
        self._sample_fn = sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._batch_size: Any = None
        self._sample_ids_shape = TensorShape(sample_ids_shape or [])
        self._sample_ids_dtype = sample_ids_dtype or int32

    @property
    def batch_size(self) -> Any:
        """The batch size of `initialize_fn`'s result.

        Raises:
            ValueError: `initialize` has not been called.
        """
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        """See `Helper`."""
        return self._sample_ids_shape

    @property
    def sample_ids_dtype(self) -> Any:
        """See `Helper`."""
        return self._sample_ids_dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """See `Helper`."""
        with name_scope(name, f"{type(self).__name__}Initialize"):
            finished, inputs = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = array.size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """See `Helper`."""
        with name_scope(name, f"{type(self).__name__}Sample", [time]):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """See `Helper`."""
        with name_scope(name, f"{type(self).__name__}NextInputs", [time]):
            found: tuple[Any, Any, Any] = self._next_inputs_fn(
                time=time, outputs=outputs, state=state, sample_ids=sample_ids
            )
            return found


class TrainingHelper(Helper):
    """A helper that reads given inputs; sampled ids are the argmax of the outputs.

    Args:
        inputs: `(batch, time, ...)`.
        sequence_length: int32 `(batch,)`.
        time_major: whether inputs are `(time, batch, ...)`.
        name: the name scope.

    Raises:
        ValueError: `sequence_length` is not a vector.
    """

    def __init__(
        self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None
    ) -> None:
        with name_scope(name, "TrainingHelper", [inputs, sequence_length]):
            self._inputs = convert_to_tensor(inputs, name="inputs")
            columns = self._inputs if time_major else transposed(self._inputs)
            self._input_tas = _as_array(columns)
            self._sequence_length = convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.shape.rank != 1:
                raise value_error(
                    "Expected sequence_length to be a vector, but received shape: "
                    f"{self._sequence_length.shape}",
                    made_at=self._sequence_length.op.source,
                )
            self._zero_inputs = filling.zeros_like(columns[0])
            self._last = array.shape(columns)[0] - 1
            self._batch_size = array.size(self._sequence_length)

    @property
    def inputs(self) -> Tensor:
        """The inputs as given."""
        return self._inputs

    @property
    def sequence_length(self) -> Tensor:
        """The sequence lengths."""
        return self._sequence_length

    @property
    def batch_size(self) -> Tensor:
        """The length of `sequence_length`."""
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
        with name_scope(name, "TrainingHelperInitialize"):
            finished = elementwise.equal(self._sequence_length, 0)
            return finished, self._read(self._input_tas, 0)

    def sample(
        self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **kwargs: Any
    ) -> Any:
        """See `Helper`."""
        with name_scope(name, "TrainingHelperSample", [time, outputs]):
            return reduce.argmax(outputs, -1, output_type=int32)

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> tuple[Any, Any, Any]:
        """See `Helper`."""
        with name_scope(name, "TrainingHelperNextInputs", [time, outputs]):
            following = time + 1
            length = self._sequence_length
            finished = elementwise.greater_equal(elementwise.cast(following, length.dtype), length)
            return finished, self._read(self._input_tas, following), state

    def _read(self, steps: TensorArray, time: Any) -> Any:
        """The inputs of a step, clamped to the last one."""
        row = steps.read(elementwise.minimum(time, self._last))
        row.set_shape(self._zero_inputs.shape)
        return row

    def _steps(self) -> Any:
        ends = type(self).next_inputs in _ENDS_WITH_LENGTHS
        return elementwise.cast(reduce.reduce_max(self._sequence_length), int32) if ends else None


class _Scheduled(TrainingHelper):
    """A training helper with scheduled sampling."""

    def _set_probability(self, probability: Any) -> None:
        self._sampling_probability = convert_to_tensor(probability, name="sampling_probability")
        if self._sampling_probability.shape.rank not in (0, 1):
            raise value_error(
                "sampling_probability must be either a scalar or a vector. "
                f"saw shape: {self._sampling_probability.shape}",
                made_at=self._sampling_probability.op.source,
            )

    def _drawn(self, seed: int | None) -> Tensor:
        """Draws which sequences are sampled, bool `(batch,)`."""
        probability = self._sampling_probability
        shape = array.reshape(self._batch_size, [1])
        drawn = random.random_uniform(shape, dtype=probability.dtype, seed=seed)
        return elementwise.less(drawn, probability)


class ScheduledEmbeddingTrainingHelper(_Scheduled):
    """Reads inputs, or with some probability the embeddings of ids sampled from the outputs.

    Ids are -1 where nothing was sampled.

    Args:
        inputs, sequence_length, time_major, name: see `TrainingHelper`.
        embedding: a function of ids, or the table for `nn.embedding_lookup`.
        sampling_probability: float scalar, or `(batch,)`.
        seed: of the sampled ids.
        scheduling_seed: of the choice where to sample.

    Raises:
        ValueError: `sampling_probability` is neither a scalar nor a vector.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "ScheduledEmbeddingSamplingWrapper"):
            self._embedding_fn = embedding_function(embedding)
            self._set_probability(sampling_probability)
            self._seed = seed
            self._scheduling_seed = scheduling_seed
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(
        self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **kwargs: Any
    ) -> Any:
        """See `Helper`."""
        with name_scope(name, "ScheduledEmbeddingTrainingHelperSample", [time, outputs]):
            chosen = self._drawn(self._scheduling_seed)
            ids = sampled_classes(outputs, self._seed)
            return indexing.where(chosen, ids, -filling.ones_like(ids))

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> tuple[Any, Any, Any]:
        """See `Helper`."""
        with name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs", [time, outputs]):
            finished, read, state = super().next_inputs(time, outputs, state)
            chosen = elementwise.greater(sample_ids, -1)
            sampled = self._embedding_fn(elementwise.maximum(sample_ids, 0))
            return finished, indexing.where(chosen, sampled, read), state


class ScheduledOutputTrainingHelper(_Scheduled):
    """Reads inputs, or with some probability the outputs.

    Ids are 1 where the outputs are read, and 0 elsewhere.

    Args:
        inputs, sequence_length, time_major, name: see `TrainingHelper`.
        sampling_probability: float scalar, or `(batch,)`.
        seed: of the choice where to sample.
        next_inputs_fn: converts outputs to inputs; the identity by default.
        auxiliary_inputs: `(batch, time, ...)`, joined to the inputs or to the outputs along the
            last dimension.

    Raises:
        ValueError: `sampling_probability` is neither a scalar nor a vector.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "ScheduledOutputTrainingHelper"):
            self._set_probability(sampling_probability)
            self._seed = seed
            self._next_inputs_fn = next_inputs_fn
            self._auxiliary: TensorArray | None = None
            if auxiliary_inputs is not None:
                extra = convert_to_tensor(auxiliary_inputs, name="auxiliary_inputs")
                inputs = joining.concat([convert_to_tensor(inputs), extra], -1)
                self._auxiliary = _as_array(extra if time_major else transposed(extra))
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(
        self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **kwargs: Any
    ) -> Any:
        """See `Helper`."""
        with name_scope(name, "ScheduledOutputTrainingHelperSample", [time, outputs]):
            return elementwise.cast(self._drawn(self._seed), int32)

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> tuple[Any, Any, Any]:
        """See `Helper`."""
        with name_scope(name, "ScheduledOutputTrainingHelperNextInputs", [time, outputs]):
            finished, read, state = super().next_inputs(time, outputs, state)
            sampled = outputs if self._next_inputs_fn is None else self._next_inputs_fn(outputs)
            if self._auxiliary is not None:
                row = self._auxiliary.read(elementwise.minimum(time + 1, self._last))
                sampled = joining.concat([sampled, row], -1)
            chosen = elementwise.cast(sample_ids, bool_)
            return finished, indexing.where(chosen, sampled, read), state


_ENDS_WITH_LENGTHS = (
    TrainingHelper.next_inputs,
    ScheduledEmbeddingTrainingHelper.next_inputs,
    ScheduledOutputTrainingHelper.next_inputs,
)


def embedding_function(embedding: Any) -> Callable[[Any], Any]:
    """Returns `embedding` if it is callable, else a lookup in that table."""
    if callable(embedding):
        function: Callable[[Any], Any] = embedding
        return function
    return lambda ids: embedding_lookup(embedding, ids)


def sampled_classes(logits: Any, seed: int | None) -> Tensor:
    """Samples int32 classes from softmax(logits) over the last axis."""
    values = convert_to_tensor(logits, name="logits")
    flat = (
        array.reshape(values, [-1, array.shape(values)[-1]]) if values.shape.rank != 2 else values
    )
    drawn = random.multinomial(flat, 1, seed, output_dtype=int32)
    return array.reshape(drawn, array.shape(values)[:-1])


def _as_array(columns: Tensor) -> TensorArray:
    """Unstacks `(time, batch, ...)` into a `TensorArray`."""
    steps = TensorArray(columns.dtype, array.shape(columns)[0], element_shape=columns.shape[1:])
    return steps.unstack(columns)


__all__ = [
    "CustomHelper",
    "Helper",
    "ScheduledEmbeddingTrainingHelper",
    "ScheduledOutputTrainingHelper",
    "TrainingHelper",
]
__dir__ = listing(__name__)
