"""Connectionist temporal classification (Graves et al. 2006): the loss.

A scan over time sums, in log space, over all paths that yield the labels. `ctc_decoders` maps
logits to labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int32, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.faults import Fault
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.math.checked import checked


def _loss(logits: Any, labels: Any, lengths: Any, blank: int, merge: bool = True) -> Any:
    """One loss per example. Unless repeated outputs are merged, each yields a label.

    logits `(time, batch, classes)`, labels `(batch, n)` padded with -1, lengths `(batch,)`.
    """
    logs = jax.nn.log_softmax(jnp.asarray(logits))
    time, batch, _ = logs.shape
    count = labels.shape[1]
    real = labels >= 0
    size = jnp.sum(real, 1)
    known = jnp.where(real, labels, blank)
    # The path's states: a blank before, between and after the labels.
    states = jnp.full((batch, 2 * count + 1), blank, known.dtype).at[:, 1::2].set(known)
    skip = jnp.zeros((batch, 2 * count + 1), bool)
    if count > 1:
        skip = skip.at[:, 3::2].set((known[:, 1:] != known[:, :-1]) | (not merge))
    stay = jnp.ones_like(skip) if merge else states == blank
    emitted = jnp.take_along_axis(
        logs, jnp.broadcast_to(states[None], (time, *states.shape)), axis=2
    )
    # Log probability of an impossible path: finite, so that no derivative is NaN.
    finfo: Any = jnp.finfo
    never = jnp.asarray(finfo(logs.dtype).min / 4, logs.dtype)
    first = jnp.arange(2 * count + 1) < 2
    alpha = jnp.where(first[None], emitted[0], never)

    def step(alpha: Any, given: Any) -> Any:
        number, output = given
        one = jnp.pad(alpha[:, :-1], ((0, 0), (1, 0)), constant_values=never)
        two = jnp.pad(alpha[:, :-2], ((0, 0), (2, 0)), constant_values=never)[:, : alpha.shape[1]]
        reached = jnp.logaddexp(jnp.where(stay, alpha, never), one)
        reached = jnp.logaddexp(reached, jnp.where(skip, two, never))
        new = jnp.maximum(reached + output, never)
        return jnp.where((number < lengths)[:, None], new, alpha), None

    numbers = jnp.arange(1, time)
    alpha, _ = lax.scan(step, alpha, (numbers, emitted[1:]))
    last = jnp.take_along_axis(alpha, (2 * size)[:, None], 1)[:, 0]
    before = jnp.take_along_axis(alpha, jnp.maximum(2 * size - 1, 0)[:, None], 1)[:, 0]
    total = jnp.where(size > 0, jnp.logaddexp(last, before), last)
    return jnp.where(total <= never / 2, jnp.asarray(np.inf, total.dtype), -total)


def _infer_loss(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    batch = inputs[0].shape[1] if inputs[0].shape.rank == 3 else None
    if batch is None and inputs[2].shape.rank == 1:
        batch = inputs[2].shape[0]
    return [Spec(inputs[0].dtype, TensorShape([batch]))]


def loss_by_enumeration(
    logits: Any, labels: Any, lengths: Any, blank: int, merge: bool = True
) -> Any:
    """Reference that sums over every path."""
    losses = []
    for example in range(logits.shape[1]):
        time, wanted = int(lengths[example]), [int(k) for k in labels[example] if k >= 0]
        scores = logits[:time, example].astype(np.float64)
        logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
        total = 0.0
        for path in np.ndindex(*[logits.shape[2]] * time):
            merged = [k for at, k in enumerate(path) if at == 0 or path[at - 1] != k or not merge]
            if [k for k in merged if k != blank] == wanted:
                total += np.exp(sum(logs[at, k] for at, k in enumerate(path)))
        losses.append(-np.log(total))
    return np.array(losses, np.float32)


def _cases() -> list[Case]:
    logits = np.sin(np.arange(4 * 2 * 3, dtype=np.float32)).reshape(4, 2, 3)
    labels = np.array([[0, 0], [1, -1]], np.int32)
    lengths = np.array([4, 3], np.int32)
    attrs: list[dict[str, Any]] = [{"blank": 2}, {"blank": 2, "merge": False}]
    return [
        Case((logits, labels, lengths), each, loss_by_enumeration(logits, labels, lengths, **each))
        for each in attrs
    ]


def _loss_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    logits, labels, lengths = inputs
    time = int(logits.shape[0])

    def too_long(index: tuple[int, ...], values: tuple[int, ...]) -> str:
        return f"sequence_length({index[0]}) <= {time}: it is {values[0]}"

    def too_short(index: tuple[int, ...], values: tuple[int, ...]) -> str:
        return (
            "Not enough time for target transition sequence (required: "
            f"{values[0]}, available: {values[1]}), example {index[0]}. You can turn this error "
            "into a warning by using the flag ignore_longer_outputs_than_inputs"
        )

    def empty(index: tuple[int, ...], _: tuple[int, ...]) -> str:
        return f"Labels length is zero in batch {index[0]}"

    faults = [Fault(2, lengths > time, (lengths,), too_long)]
    if attrs.get("_labeled"):
        faults.append(Fault(1, (labels < 0).all(1), (), empty))
    if attrs.get("_strict"):
        required = (labels >= 0).sum(1).astype(lengths.dtype)
        faults.append(Fault(2, required > lengths, (required, lengths), too_short))
    return faults


register("CTCLoss", _loss, fault=_loss_fault, infer=_infer_loss, accepts="f", cases=_cases)


def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """The CTC loss of each example; the blank is the last class.

    Args:
        labels: an int32 `SparseTensor`, `(batch, n)`: the labels of each example.
        inputs: logits `(time, batch, classes)`; `logits` is a newer name.
        sequence_length: int32 `(batch,)`: the number of steps of each example.
        preprocess_collapse_repeated: whether to merge repeated labels first.
        ctc_merge_repeated: whether an output that repeats yields one label, as in the definition;
            otherwise each yields one.
        ignore_longer_outputs_than_inputs: whether an example with too many labels for its steps has
            a loss of 0 instead of infinity.
        time_major: False for logits `(batch, time, classes)`.

    Raises:
        TypeError: labels are not a `SparseTensor`.
    """
    if not isinstance(labels, SparseTensor):
        raise TypeError(
            "Expected argument `labels` to be a SparseTensor. "
            f"Received labels={labels} of type: {type(labels).__name__}"
        )
    with get_default_graph().name_scope("CTCLoss"):
        scores = convert_to_tensor(logits if inputs is None else inputs)
        if not time_major:
            scores = array.transpose(scores, [1, 0, 2])
        labels = labels.with_values(checked(labels.values, "labels", on_host=True))
        dense = _dense(labels)
        if preprocess_collapse_repeated:
            from estimatorkit.ops.math.reduce import reduce_sum

            count = reduce_sum(elementwise.cast(elementwise.greater_equal(dense, 0), int32), 1)
            dense = registry.apply("CollapseRepeated", [dense, count], {"fill": -1}).outputs[0]
            dense = registry.output("PadLabels", [dense], {"fill": -1})
        return _make_loss(
            scores,
            dense,
            sequence_length,
            number_of_classes(scores) - 1,
            ignore_longer_outputs_than_inputs,
            merge=bool(ctc_merge_repeated),
            strict=not ignore_longer_outputs_than_inputs,
            labeled=True,
        )


def _dense(labels: SparseTensor) -> Tensor:
    """Labels as a matrix padded with -1."""
    from estimatorkit.ops.sparse.sparse import sparse_tensor_to_dense

    dense = sparse_tensor_to_dense(labels, default_value=-1)
    return registry.output("PadLabels", [dense], {"fill": -1})


def _pad_labels(labels: Any, fill: int) -> Any:
    """Pads labels to bucketed widths (ratio at most 1.5): a new width recompiles (0.7 s)."""
    count = max(8, labels.shape[1])
    power = 1 << (count - 1).bit_length()
    width = power * 3 // 4 if count <= power * 3 // 4 else power
    return np.pad(labels, ((0, 0), (0, width - labels.shape[1])), constant_values=fill)


register(
    "PadLabels",
    _pad_labels,
    where="host",
    infer=lambda inputs, attrs: [
        Spec(
            inputs[0].dtype,
            TensorShape([inputs[0].shape[0] if inputs[0].shape.rank == 2 else None, None]),
        )
    ],
    gradient=None,
    cases=lambda: [
        Case(
            (np.array([[1, 2], [3, -1]], np.int32),),
            {"fill": -1},
            np.array([[1, 2, *[-1] * 6], [3, *[-1] * 7]], np.int32),
        )
    ],
)


def number_of_classes(scores: Tensor) -> int:
    """The classes of logits `(time, batch, classes)`; ValueError if unknown or of other rank."""
    classes = scores.shape[2] if scores.shape.rank == 3 else None
    if classes is None:
        raise value_error(
            (
                f"Shape must be rank 3 but is rank {scores.shape.rank}: the logits of CTC"
                if scores.shape.rank not in (None, 3)
                else "CTC: the number of classes must be known"
            ),
            expected="logits (time, batch, classes)",
            received=scores,
            made_at=scores.op.source,
        )
    return classes


def _make_loss(
    scores: Tensor,
    dense: Tensor,
    lengths: Any,
    blank: int,
    zero_infinite: bool,
    merge: bool = True,
    strict: bool = False,
    labeled: bool = False,
) -> Tensor:
    inputs = [scores, elementwise.cast(dense, int32), convert_to_tensor(lengths, int32)]
    attrs: dict[str, Any] = {"blank": int(blank)}
    if not merge:
        attrs["merge"] = False
    if strict:
        attrs["_strict"] = True
    if labeled:
        attrs["_labeled"] = True
    loss = registry.output("CTCLoss", inputs, attrs, "CTCLoss")
    if not zero_infinite:
        return loss
    from estimatorkit.ops.array.filling import zeros_like
    from estimatorkit.ops.array.indexing import where

    return where(elementwise.is_inf(loss), zeros_like(loss), loss)


def ctc_loss_v2(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """The CTC loss with labels as a matrix.

    Args:
        labels: int `(batch, n)`, or an int32 `SparseTensor` (then `label_length` is None).
        logits: `(time, batch, classes)`.
        label_length: `(batch,)`: the number of labels in each row.
        logit_length: `(batch,)`: the number of steps of each example.
        logits_time_major: False for logits `(batch, time, classes)`.
        unique: accepted for compatibility only.
        blank_index: the class of the blank; -1 is the last. It is 0 by default for a matrix, and
            required for a `SparseTensor`.

    Raises:
        ValueError: labels are a `SparseTensor` and `blank_index` is None.
    """
    if isinstance(labels, SparseTensor) and blank_index is None:
        raise ValueError("Argument `blank_index` must be provided when labels is a SparseTensor.")
    with get_default_graph().name_scope(name or "ctc_loss"):
        scores = convert_to_tensor(logits)
        if not logits_time_major:
            scores = array.transpose(scores, [1, 0, 2])
        classes = number_of_classes(scores)
        if isinstance(labels, SparseTensor):
            dense = _dense(labels)
        else:
            from estimatorkit.ops.array.filling import ones_like, range_
            from estimatorkit.ops.array.indexing import where

            given = convert_to_tensor(labels)
            lengths = elementwise.cast(convert_to_tensor(label_length), int32)
            places = range_(array.shape(given)[1])
            inside = elementwise.less(array.expand_dims(places, 0), array.expand_dims(lengths, 1))
            dense = where(inside, given, -ones_like(given))
        return _make_loss(scores, dense, logit_length, (blank_index or 0) % classes, False)


def _collapse(labels: Any, lengths: Any, fill: int) -> Any:
    rows = []
    for values, length in zip(labels, lengths, strict=True):
        values = values[:length]
        rows.append(
            [value for at, value in enumerate(values) if at == 0 or values[at - 1] != value]
        )
    counts = np.array([len(row) for row in rows], np.int32)
    result = np.full((len(rows), max(counts, default=0)), fill, labels.dtype)
    for row, kept in zip(result, rows, strict=True):
        row[: len(kept)] = kept
    return result, counts


def _infer_collapse(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    batch = inputs[0].shape[0] if inputs[0].shape.rank == 2 else None
    return [Spec(inputs[0].dtype, TensorShape([batch, None])), Spec(int32, TensorShape([batch]))]


register(
    "CollapseRepeated",
    _collapse,
    where="host",
    infer=_infer_collapse,
    gradient=None,
    cases=lambda: [
        Case(
            (np.array([[1, 1, 2], [3, 5, 5]], np.int32), np.array([3, 1], np.int32)),
            {"fill": -1},
            (np.array([[1, 2], [3, -1]], np.int32), np.array([2, 1], np.int32)),
        )
    ],
)


def ctc_unique_labels(labels: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The distinct labels of each row, in order of first occurrence.

    Args:
        labels: integers `(batch, length)`, padded with 0.

    Returns:
        The distinct labels, int64 `(batch, length)`, padded with 0, and the position of each label
        among them, int32 `(batch, length)`.
    """
    from estimatorkit.ops.array import indexing
    from estimatorkit.ops.array.filling import range_
    from estimatorkit.ops.math import reduce

    with get_default_graph().name_scope(name or "ctc_unique_labels"):
        given = elementwise.cast(convert_to_tensor(labels, name="labels"), int64)
        same = elementwise.equal(array.expand_dims(given, -1), array.expand_dims(given, -2))
        first = reduce.argmax(elementwise.cast(same, int32), -1, output_type=int32)
        length = array.shape(given)[1]
        is_first = elementwise.equal(first, range_(length))
        order = reduce.cumsum(elementwise.cast(is_first, int32), -1) - 1
        places = indexing.gather(order, first, batch_dims=1)
        chosen = indexing.where(is_first, given, given * 0)
        spread = indexing.one_hot(order, length, dtype=int64) * array.expand_dims(chosen, -1)
        return reduce.reduce_sum(spread, -2), places


def collapse_repeated(
    labels: Any, seq_length: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Merges adjacent equal labels.

    Args:
        labels: int `(batch, n)`.
        seq_length: int `(batch,)`, the number of labels in each row.

    Returns:
        The merged labels, padded with 0 to the length of the longest row, and their number in each
        row, int32 `(batch,)`.
    """
    with get_default_graph().name_scope(name or "collapse_repeated_labels"):
        inputs = [convert_to_tensor(labels), convert_to_tensor(seq_length)]
        op = registry.apply("CollapseRepeated", inputs, {"fill": 0})
        return op.outputs[0], op.outputs[1]
