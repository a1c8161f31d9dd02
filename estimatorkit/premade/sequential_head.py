"""`SequentialHeadWrapper`: applies a head to each step of sequences, without padding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import float32, int32, string
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.sparse_tensor import SparseTensor, SparseTensorValue
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.serving.export_outputs import ExportOutput
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.sparse.sparse import sparse_tensor_to_dense
from estimatorkit.premade.head import Head, Outcome
from estimatorkit.premade.single_head import SingleHead
from estimatorkit.train.checks import add_step_check


class SequentialHeadWrapper(Head):
    """Applies a head to each step of sequences (`tf.estimator`'s wrapper of the same name).

    Logits: `(batch, steps, n)`. Labels and weights: `(batch, steps)` or `(batch, steps, m)`, dense
    or a `SparseTensor` with values for just the steps that count. Steps that the mask leaves out
    count neither in the loss nor in metrics, as if they were not there; they are given weight 0, so
    that sequences of other lengths are not a new compilation. Predictions: those of the head, for
    each step, and the mask.

    Args:
        static_head: the head; not a `MultiHead`.
        sequence_length_mask: the feature that is the mask, bool `(batch, steps)`.
        feature_columns: keys of the features that the head needs: its weights.

    Raises:
        TypeError: a key is not a string.
        ValueError: the head is none of one task.
    """

    def __init__(
        self,
        static_head: Head,
        sequence_length_mask: str = "sequence_length_mask",
        feature_columns: str | Iterable[str] | None = None,
    ) -> None:
        keys = [feature_columns] if isinstance(feature_columns, str) else feature_columns or ()
        if not isinstance(keys, Iterable):
            raise TypeError(
                "`feature_columns` must be either a string or an iterable of strings got "
                f"{type(keys)} instead."
            )
        self._keys = tuple(keys)
        for key in (sequence_length_mask, *self._keys):
            if not isinstance(key, str):
                raise TypeError(f"Column must a string. Given type: {type(key)}.")
        if not isinstance(static_head, SingleHead):
            raise value_error(
                "`MultiHead` is not supported with `SequentialHeadWrapper`.",
                expected="a head for one task",
                received=type(static_head).__name__,
            )
        kind = type(static_head)
        own = [
            name
            for name in ("loss", "metrics", "update_metrics")
            if getattr(kind, name) is not getattr(Head, name)
        ]
        if own:
            raise value_error(
                f"`SequentialHeadWrapper` does not call {own[0]} of {kind.__name__}",
                expected="a head without a loss and metrics of its own",
                hint="override _unweighted_loss_and_weights, which is called for each step",
            )
        self._head = static_head
        self._mask_key = sequence_length_mask

    @property
    def static_head(self) -> Head:
        """The head for each step."""
        return self._head

    @property
    def input_sequence_mask_key(self) -> str:
        """The key of the mask among the features."""
        return self._mask_key

    @property
    def name(self) -> str | None:
        """The head's name and '_sequential', or None."""
        return f"{self._head.name}_sequential" if self._head.name else None

    @property
    def logits_dimension(self) -> int:
        """As for the wrapped head."""
        return self._head.logits_dimension

    @property
    def loss_reduction(self) -> str:
        """As for the wrapped head."""
        return self._head.loss_reduction

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Tensor]:
        """The wrapped head's predictions, for each step."""
        return self._head.predictions(logits, keys)

    def create_estimator_spec(
        self, features: Mapping[str, Any], mode: str, *args: Any, **kwargs: Any
    ) -> EstimatorSpec:
        """See `Head`; predictions have the mask, too."""
        spec = super().create_estimator_spec(features, mode, *args, **kwargs)
        if mode != ModeKeys.PREDICT:
            return spec
        mask = {self._mask_key: convert_to_tensor(self._mask(features))}
        return spec._replace(predictions={**spec.predictions, **mask})

    def _mask(self, features: Mapping[str, Any]) -> Any:
        if self._mask_key not in features:
            raise ValueError(
                f"The provided sequence_length_mask key `{self._mask_key}` should be included in "
                f"the features dictionary, but was not found. Found keys: {list(features)}."
            )
        mask = features[self._mask_key]
        rank = convert_to_tensor(mask).shape.rank
        if rank not in (2, None):
            raise ValueError(f"Mask is expected to have two dimensions, got {rank} instead.")
        return mask

    def _outcome(
        self,
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Sequence[Tensor] | None,
    ) -> Outcome:
        mask = elementwise.cast(convert_to_tensor(self._mask(features)), "bool")
        missing = [key for key in self._keys if key not in features]
        if missing:
            raise ValueError(f"`{missing[0]}` column expected in features dictionary.")
        flat = {key: _in_rows(features[key], mask) for key in self._keys}
        for what, values in [("labels", labels), *((key, features[key]) for key in self._keys)]:
            if isinstance(values, (SparseTensor, SparseTensorValue)):
                _check_steps(SparseTensor.from_value(values), mask, what)
        return self._head._outcome(
            flat,
            _in_rows(logits, mask),
            None if labels is None else self._in_range(_in_rows(labels, mask), mask),
            regularization_losses,
            elementwise.cast(_in_rows(mask, mask), float32),
        )

    def _in_range(self, labels: Tensor, mask: Tensor) -> Tensor:
        """The labels, with those of padding replaced by one that every head accepts."""
        there = _in_rows(mask, mask)
        if labels.dtype is not string:
            return indexing.where(there, labels, filling.zeros_like(labels))
        names = getattr(self._head, "_vocabulary", None) or (b"",)
        return indexing.where(there, labels, constant(np.array([[names[0]]], object)))

    def _export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        return self._head._export_outputs(predictions)


def _check_steps(values: SparseTensor, mask: Tensor, what: str) -> None:
    """Adds a step check that exactly the unmasked steps have values."""
    ones = filling.ones(array.shape(values.values), int32)
    there = _dense(SparseTensor(values.indices, ones, values.dense_shape), mask)
    if len(values.shape) > 2:
        there = reduce.reduce_min(there, list(range(2, len(values.shape))))
    wrong = elementwise.not_equal(there, elementwise.cast(mask, int32))

    def check(counts: list[NDArray[Any]]) -> None:
        if counts[0].any():
            raise InvalidArgumentError.explained(
                f"Tensor shape is incompatible with provided mask: {what}",
                expected="a value for exactly the steps that the mask covers",
                received=f"{int(counts[0][counts[0] > 0][0])} differing steps in a batch",
                made_at=values.op.source,
                hint="give the labels of each sequence as many steps as its features",
                op=values.op,
            )

    add_step_check([reduce.reduce_sum(elementwise.cast(wrong, int32))], check)


def _dense(sparse: SparseTensor, mask: Tensor) -> Tensor:
    """`(batch, steps, ...)` with the mask's steps; 0 or '' where there is no value."""
    shape = joining.concat([array.shape(mask, out_type="int64"), sparse.dense_shape[2:]], axis=0)
    default = "" if sparse.dtype is string else 0
    return sparse_tensor_to_dense(
        SparseTensor(sparse.indices, sparse.values, shape), default, validate_indices=False
    )


def _in_rows(values: Any, mask: Tensor) -> Tensor:
    """`(batch, steps, ...)` as `(batch * steps, n)`, filled up to the mask's steps if sparse."""
    if isinstance(values, (SparseTensor, SparseTensorValue)):
        values = _dense(SparseTensor.from_value(values), mask)
    tensor = convert_to_tensor(values)
    rank = tensor.shape.rank
    if rank is None or rank < 2:
        raise value_error(
            f"Input tensor expected to have at least 2 dimensions, got {rank} instead.",
            expected="(batch, steps) or (batch, steps, n)",
            received=f"{tensor.name} {tensor.shape}",
            made_at=tensor.op.source,
        )
    last = 1 if rank == 2 else tensor.shape[2]
    return array.reshape(tensor, [-1, -1 if last is None else last])


__all__ = ["SequentialHeadWrapper"]
