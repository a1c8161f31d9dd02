"""CTC decoders on the host: greedy (most likely path) and beam search (most likely labels)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.compat.ops.nn.ctc import loss_by_enumeration, number_of_classes
from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int32, int64
from estimatorkit.core.errors import FailedPreconditionError, InvalidArgumentError
from estimatorkit.core.registry import Case, Spec, folding, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor


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
            raise FailedPreconditionError.explained(
                f"sequence_length({number}) <= {time}",
                expected=f"lengths from 0 to the {time} steps that there are",
                received=int(length),
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
    accepts="f",
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
    """The labels of the most likely path.

    Args:
        inputs: logits `(time, batch, classes)`.
        sequence_length: int32 `(batch,)`.
        merge_repeated: whether to merge repeated labels that no blank separates.
        blank_index: the blank's class, the last by default.

    Returns:
        A list of one `SparseTensor` of int64 labels, and the negative sum of the greatest logits,
        `(batch, 1)`.
    """
    scores = convert_to_tensor(inputs)
    classes = number_of_classes(scores)
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
    with folding.quiet():
        found = [
            _beam_search(logits[: int(length), example].astype(np.float64), beam_width, top_paths)
            for example, length in enumerate(lengths)
        ]
    if any(len(beams) < top_paths for beams in found):
        raise InvalidArgumentError.explained(
            "Less leaves in the beam search than requested",
            expected=f"sequences with at least {top_paths} labellings",
            received=f"{min(map(len, found))} of the shortest",
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
    """The most likely labelings of one example, with their log probabilities."""
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
    """Reference log probability of the labels 1, 0 in the example, summed over every path."""
    logits, lengths = _decoder_inputs()
    return -float(loss_by_enumeration(logits, np.array([[1, 0]]), lengths, 2)[0])


register(
    "CTCBeamSearchDecoder",
    _beams,
    where="host",
    accepts="f",
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
    """The most likely labelings, found by beam search; the blank is the last class.

    Args:
        inputs: logits `(time, batch, classes)`.
        sequence_length: int32 `(batch,)`.
        beam_width: the number of prefixes kept.
        top_paths: the number of labelings returned.
        merge_repeated: whether to merge repeated labels of the result (True by default, as in
            TensorFlow 1).

    Returns:
        `top_paths` `SparseTensor`s of int64 labels, and their log probabilities,
        `(batch, top_paths)`.

    Raises:
        InvalidArgumentError: `top_paths` exceeds `beam_width`.
    """
    if top_paths > beam_width:
        raise InvalidArgumentError.explained(
            "requested more paths than the beam width",
            expected=f"top_paths of at most {beam_width}",
            received=top_paths,
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
    """`ctc_beam_search_decoder` without merging repeated labels of the result."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, False)
