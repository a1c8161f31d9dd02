"""Connectionist temporal classification (Graves et al. 2006): loss, and decoders on the host."""

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
from estimatorkit.core.errors import FailedPreconditionError, InvalidArgumentError, explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.ops import array, elementwise
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor


def _loss(logits: Any, labels: Any, lengths: Any, blank: int) -> Any:
    """One loss for each example.

    logits `(time, batch, classes)`, labels `(batch, n)` with -1 after the end, lengths `(batch,)`.
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
        skip = skip.at[:, 3::2].set(known[:, 1:] != known[:, :-1])
    emitted = jnp.take_along_axis(
        logs, jnp.broadcast_to(states[None], (time, *states.shape)), axis=2
    )
    # The logarithm of an impossible path: finite, so that no derivative is NaN.
    finfo: Any = jnp.finfo
    never = jnp.asarray(finfo(logs.dtype).min / 4, logs.dtype)
    first = jnp.arange(2 * count + 1) < 2
    alpha = jnp.where(first[None], emitted[0], never)

    def step(alpha: Any, given: Any) -> Any:
        number, output = given
        one = jnp.pad(alpha[:, :-1], ((0, 0), (1, 0)), constant_values=never)
        two = jnp.pad(alpha[:, :-2], ((0, 0), (2, 0)), constant_values=never)[:, : alpha.shape[1]]
        reached = jnp.logaddexp(jnp.logaddexp(alpha, one), jnp.where(skip, two, never))
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


def _by_enumeration(logits: Any, labels: Any, lengths: Any, blank: int) -> Any:
    """The same, by summing over every path."""
    losses = []
    for example in range(logits.shape[1]):
        time, wanted = int(lengths[example]), [int(k) for k in labels[example] if k >= 0]
        scores = logits[:time, example].astype(np.float64)
        logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
        total = 0.0
        for path in np.ndindex(*[logits.shape[2]] * time):
            merged = [k for at, k in enumerate(path) if at == 0 or path[at - 1] != k]
            if [k for k in merged if k != blank] == wanted:
                total += np.exp(sum(logs[at, k] for at, k in enumerate(path)))
        losses.append(-np.log(total))
    return np.array(losses, np.float32)


def _cases() -> list[Case]:
    logits = np.sin(np.arange(4 * 2 * 3, dtype=np.float32)).reshape(4, 2, 3)
    labels = np.array([[0, 0], [1, -1]], np.int32)
    lengths = np.array([4, 3], np.int32)
    expected = _by_enumeration(logits, labels, lengths, 2)
    return [Case((logits, labels, lengths), {"blank": 2}, expected)]


register("CTCLoss", _loss, infer=_infer_loss, accepts="f", cases=_cases)


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
        sequence_length: int32 `(batch,)`: the steps of each example.
        preprocess_collapse_repeated: merge repeated labels first.
        ctc_merge_repeated: must be True.
        ignore_longer_outputs_than_inputs: a loss of 0 where the labels are too many for the steps,
            instead of an infinite one.
        time_major: False for logits `(batch, time, classes)`.

    Raises:
        TypeError: labels are no `SparseTensor`.
        ValueError: ctc_merge_repeated is false.
    """
    if not isinstance(labels, SparseTensor):
        raise TypeError(
            "Expected argument `labels` to be a SparseTensor. "
            f"Received labels={labels} of type: {type(labels).__name__}"
        )
    if not ctc_merge_repeated:
        raise ValueError("ctc_loss: ctc_merge_repeated=False is not supported.")
    from estimatorkit.core.ops.sparse import sparse_tensor_to_dense

    with get_default_graph().name_scope("CTCLoss"):
        scores = convert_to_tensor(logits if inputs is None else inputs)
        if not time_major:
            scores = array.transpose(scores, [1, 0, 2])
        dense = sparse_tensor_to_dense(labels, default_value=-1)
        if preprocess_collapse_repeated:
            from estimatorkit.core.ops.reduce import reduce_sum

            count = reduce_sum(elementwise.cast(elementwise.greater_equal(dense, 0), int32), 1)
            dense = registry.apply("CollapseRepeated", [dense, count], {"fill": -1}).outputs[0]
        return _make_loss(
            scores, dense, sequence_length, _classes(scores) - 1, ignore_longer_outputs_than_inputs
        )


def _classes(scores: Tensor) -> int:
    classes = scores.shape[2] if scores.shape.rank == 3 else None
    if classes is None:
        raise ValueError(
            explain(
                (
                    f"Shape must be rank 3 but is rank {scores.shape.rank}: the logits of CTC"
                    if scores.shape.rank not in (None, 3)
                    else "CTC: the number of classes must be known"
                ),
                expected="logits (time, batch, classes)",
                received=scores,
                made_at=scores.op.source,
            )
        )
    return classes


def _make_loss(
    scores: Tensor, dense: Tensor, lengths: Any, blank: int, zero_infinite: bool
) -> Tensor:
    inputs = [scores, elementwise.cast(dense, int32), convert_to_tensor(lengths, int32)]
    known, time = registry.constant_value(inputs[2]), scores.shape[0]
    for number, length in enumerate(() if known is None or time is None else known):
        if length > time:
            raise InvalidArgumentError(
                None,
                inputs[2].op,
                explain(
                    f"sequence_length({number}) <= {time}",
                    received=int(length),
                    made_at=inputs[2].op.source,
                ),
            )
    loss = registry.output("CTCLoss", inputs, {"blank": int(blank)}, "CTCLoss")
    if not zero_infinite:
        return loss
    from estimatorkit.core.ops.filling import zeros_like
    from estimatorkit.core.ops.indexing import where

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
        label_length: `(batch,)`: how many labels of each row count.
        logit_length: `(batch,)`: how many steps count.
        logits_time_major: False for logits `(batch, time, classes)`.
        unique: accepted for TensorFlow's signature.
        blank_index: the blank's class: 0 for a matrix and the last for a `SparseTensor` by
            default.
        name: the name scope.
    """
    with get_default_graph().name_scope(name or "ctc_loss"):
        scores = convert_to_tensor(logits)
        if not logits_time_major:
            scores = array.transpose(scores, [1, 0, 2])
        classes = _classes(scores)
        if isinstance(labels, SparseTensor):
            from estimatorkit.core.ops.sparse import sparse_tensor_to_dense

            dense = sparse_tensor_to_dense(labels, default_value=-1)
            blank = classes - 1 if blank_index is None else blank_index
        else:
            from estimatorkit.core.ops.filling import ones_like, range_
            from estimatorkit.core.ops.indexing import where

            given = convert_to_tensor(labels)
            lengths = elementwise.cast(convert_to_tensor(label_length), int32)
            places = range_(array.shape(given)[1])
            inside = elementwise.less(array.expand_dims(places, 0), array.expand_dims(lengths, 1))
            dense = where(inside, given, -ones_like(given))
            blank = 0 if blank_index is None else blank_index
        return _make_loss(scores, dense, logit_length, blank % classes, False)


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


def collapse_repeated(
    labels: Any, seq_length: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Merges repeated labels.

    Args:
        labels: int `(batch, n)`.
        seq_length: int `(batch,)`: how many labels of each row count.
        name: the name scope.

    Returns:
        The labels, `(batch, the most that are left)`, 0 after the end; and how many are left of
        each row, int32 `(batch,)`.
    """
    with get_default_graph().name_scope(name or "collapse_repeated_labels"):
        inputs = [convert_to_tensor(labels), convert_to_tensor(seq_length)]
        op = registry.apply("CollapseRepeated", inputs, {"fill": 0})
        return op.outputs[0], op.outputs[1]


# -- decoders


def _sparse(rows: Sequence[Sequence[int]]) -> tuple[Any, Any, Any]:
    indices = [(number, at) for number, row in enumerate(rows) for at in range(len(row))]
    longest = max((len(row) for row in rows), default=0)
    return (
        np.array(indices, np.int64).reshape(-1, 2),
        np.array([value for row in rows for value in row], np.int64),
        np.array([len(rows), longest], np.int64),
    )


def _check_lengths(lengths: Any, time: int) -> None:
    for number, length in enumerate(lengths):
        if not 0 <= length <= time:
            raise FailedPreconditionError(
                None,
                None,
                explain(
                    f"sequence_length({number}) <= {time}",
                    expected=f"lengths from 0 to the {time} steps that there are",
                    received=int(length),
                ),
            )


def _greedy(logits: Any, lengths: Any, merge_repeated: bool, blank: int) -> Any:
    _check_lengths(lengths, len(logits))
    rows, scores = [], []
    for example in range(logits.shape[1]):
        steps = logits[: int(lengths[example]), example]
        path = steps.argmax(-1)
        rows.append(
            [
                int(k)
                for at, k in enumerate(path)
                if k != blank and not (merge_repeated and at and path[at - 1] == k)
            ]
        )
        scores.append([-steps.max(-1).sum() if len(steps) else 0.0])
    return (*_sparse(rows), np.array(scores, logits.dtype))


def _infer_decoded(paths: int) -> Any:
    def infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
        batch = inputs[0].shape[1] if inputs[0].shape.rank == 3 else None
        count = attrs.get("top_paths", paths)
        return [
            *(Spec(int64, TensorShape([None, 2])) for _ in range(count)),
            *(Spec(int64, TensorShape([None])) for _ in range(count)),
            *(Spec(int64, TensorShape([2])) for _ in range(count)),
            Spec(inputs[0].dtype, TensorShape([batch, count])),
        ]

    return infer


def _decoder_inputs() -> tuple[Any, Any]:
    logits = np.log(
        np.array([[[0.1, 0.6, 0.3]], [[0.2, 0.5, 0.3]], [[0.1, 0.2, 0.7]], [[0.8, 0.1, 0.1]]], "f")
    )
    return logits, np.array([4], np.int32)


register(
    "CTCGreedyDecoder",
    _greedy,
    where="host",
    infer=_infer_decoded(1),
    gradient=None,
    cases=lambda: [
        Case(
            _decoder_inputs(),
            {"merge_repeated": True, "blank": 2},
            (
                np.array([[0, 0], [0, 1]], np.int64),
                np.array([1, 0], np.int64),
                np.array([1, 2], np.int64),
                np.array([[-np.log(0.6 * 0.5 * 0.7 * 0.8)]], np.float32),
            ),
        )
    ],
)


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list[SparseTensor], Tensor]:
    """The labels of the likeliest path.

    Args:
        inputs: logits `(time, batch, classes)`.
        sequence_length: int32 `(batch,)`.
        merge_repeated: merge repeated labels that no blank separates.
        blank_index: the blank's class, the last by default.

    Returns:
        A list of one `SparseTensor` of int64 labels, and minus the sum of the greatest logits,
        `(batch, 1)`.
    """
    scores = convert_to_tensor(inputs)
    classes = _classes(scores)
    attrs = {
        "merge_repeated": bool(merge_repeated),
        "blank": (classes - 1 if blank_index is None else blank_index) % classes,
    }
    op = registry.apply(
        "CTCGreedyDecoder", [scores, convert_to_tensor(sequence_length, int32)], attrs
    )
    return [SparseTensor(*op.outputs[:3])], op.outputs[3]


def _beams(logits: Any, lengths: Any, beam_width: int, top_paths: int, merge_repeated: bool) -> Any:
    _check_lengths(lengths, len(logits))
    found = [
        _beam_search(logits[: int(length), example].astype(np.float64), beam_width, top_paths)
        for example, length in enumerate(lengths)
    ]
    if any(len(beams) < top_paths for beams in found):
        raise InvalidArgumentError(
            None,
            None,
            explain(
                "Less leaves in the beam search than requested",
                expected=f"sequences with at least {top_paths} labellings",
                received=f"{min(map(len, found))} of the shortest",
            ),
        )
    parts = []
    for path in range(top_paths):
        rows = []
        for beams in found:
            labels = beams[path][0]
            if merge_repeated:
                labels = tuple(k for at, k in enumerate(labels) if at == 0 or labels[at - 1] != k)
            rows.append(labels)
        parts.append(_sparse(rows))
    scores = np.array(
        [[beams[path][1] for path in range(top_paths)] for beams in found], logits.dtype
    )
    return (*(p[0] for p in parts), *(p[1] for p in parts), *(p[2] for p in parts), scores)


def _beam_search(scores: Any, width: int, paths: int) -> list[tuple[tuple[int, ...], float]]:
    """The likeliest labellings of one example, with their log probabilities."""
    logs = scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True)
    blank = scores.shape[1] - 1
    never = -np.inf
    # For each prefix the log probabilities of the paths that end in a blank, and that do not.
    beams: dict[tuple[int, ...], tuple[float, float]] = {(): (0.0, never)}
    for step in logs:
        after: dict[tuple[int, ...], list[float]] = {}

        def put(prefix: tuple[int, ...], at: int, value: float, table: Any = after) -> None:
            entry = table.setdefault(prefix, [never, never])
            entry[at] = float(np.logaddexp(entry[at], value))

        for prefix, (ended, open_) in beams.items():
            whole = float(np.logaddexp(ended, open_))
            put(prefix, 0, whole + step[blank])
            for label in range(blank):
                if prefix and prefix[-1] == label:
                    put(prefix, 1, open_ + step[label])
                    put((*prefix, label), 1, ended + step[label])
                else:
                    put((*prefix, label), 1, whole + step[label])
        best = sorted(after.items(), key=lambda item: -np.logaddexp(item[1][0], item[1][1]))[:width]
        beams = {prefix: (entry[0], entry[1]) for prefix, entry in best}
    ranked = sorted(beams.items(), key=lambda item: -np.logaddexp(*item[1]))[:paths]
    return [(prefix, float(np.logaddexp(*entry))) for prefix, entry in ranked]


def _decoded_score() -> float:
    """The log probability of the labels 1, 0 in the example, by summing over every path."""
    logits, lengths = _decoder_inputs()
    return -float(_by_enumeration(logits, np.array([[1, 0]]), lengths, 2)[0])


register(
    "CTCBeamSearchDecoder",
    _beams,
    where="host",
    infer=_infer_decoded(1),
    gradient=None,
    cases=lambda: [
        Case(
            _decoder_inputs(),
            {"beam_width": 10, "top_paths": 1, "merge_repeated": False},
            (
                np.array([[0, 0], [0, 1]], np.int64),
                np.array([1, 0], np.int64),
                np.array([1, 2], np.int64),
                np.array([[_decoded_score()]], np.float32),
            ),
        )
    ],
)


def ctc_beam_search_decoder(
    inputs: Any,
    sequence_length: Any,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[SparseTensor], Tensor]:
    """The likeliest labellings, found by a beam search; the blank is the last class.

    Args:
        inputs: logits `(time, batch, classes)`.
        sequence_length: int32 `(batch,)`.
        beam_width: how many prefixes are kept.
        top_paths: how many labellings are given.
        merge_repeated: merge repeated labels of the result (True by default, as TensorFlow 1).

    Returns:
        `top_paths` `SparseTensor`s of int64 labels, and their log probabilities,
        `(batch, top_paths)`.

    Raises:
        InvalidArgumentError: more paths than prefixes are asked for.
    """
    if top_paths > beam_width:
        raise InvalidArgumentError(
            None,
            None,
            explain(
                "requested more paths than the beam width",
                expected=f"top_paths of at most {beam_width}",
                received=top_paths,
            ),
        )
    scores = convert_to_tensor(inputs)
    attrs = {
        "beam_width": int(beam_width),
        "top_paths": int(top_paths),
        "merge_repeated": bool(merge_repeated),
    }
    lengths = convert_to_tensor(sequence_length, int32)
    outputs = registry.apply("CTCBeamSearchDecoder", [scores, lengths], attrs).outputs
    count = int(top_paths)
    decoded = [
        SparseTensor(outputs[at], outputs[count + at], outputs[2 * count + at])
        for at in range(count)
    ]
    return decoded, outputs[-1]


def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """`ctc_beam_search_decoder` that does not merge repeated labels of the result."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, False)
