"""Non-maximum suppression: selects the best-scoring boxes among overlapping ones.

A box is y1, x1, y2, x2, two opposite corners in any unit. These are host ops, as the number of
selected boxes depends on values.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, apply, constant_value, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.debug.shape_matching import check_dims

Array = NDArray[Any]


def _overlap(box: Array, others: Array) -> Array:
    """Intersection over union of a box with each of the others (corners in any order)."""
    low = np.minimum(others[:, :2], others[:, 2:])
    high = np.maximum(others[:, :2], others[:, 2:])
    own_low, own_high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    shared = np.prod(np.maximum(np.minimum(high, own_high) - np.maximum(low, own_low), 0), 1)
    union = np.prod(high - low, 1) + np.prod(own_high - own_low) - shared
    return np.where(union > 0, shared / np.where(union > 0, union, 1), 0.0)


def _choose(
    similarity: Callable[[int, list[int]], Array],
    scores: Array,
    most: int,
    threshold: float,
    least: float,
    sigma: float = 0.0,
) -> tuple[list[int], list[float]]:
    """The selected boxes and their scores, best first.

    Args:
        similarity: that of a box with each of those chosen.
        scores: of the boxes.
        most: how many to choose.
        threshold: boxes more similar than this to a chosen one are dropped; unless `sigma`.
        least: so is what has no higher score.
        sigma: if positive, scores fall with similarity (Bodla et al., 2017, "Soft-NMS").
    """
    if most < 0:
        raise InvalidArgumentError(None, None, f"output size must be non-negative, got {most}")
    if not 0 <= threshold <= 1:
        problem = f"iou_threshold must be in [0, 1], got {threshold}"
        raise InvalidArgumentError(None, None, problem)
    waiting = [(-float(scores[at]), at, 0) for at in np.flatnonzero(scores > least).tolist()]
    heapq.heapify(waiting)
    chosen: list[int] = []
    found: list[float] = []
    while waiting and len(chosen) < most:
        negative, at, compared = heapq.heappop(waiting)
        shares = similarity(at, chosen[compared:]) if compared < len(chosen) else np.zeros(0)
        if sigma <= 0 and (shares > threshold).any():
            continue
        weight = float(np.exp(-0.5 / sigma * np.square(shares)).prod()) if sigma > 0 else 1.0
        if weight == 1.0:
            chosen.append(at)
            found.append(-negative)
        elif -negative * weight > least:
            heapq.heappush(waiting, (negative * weight, at, len(chosen)))
    return chosen, found


def _of_boxes(boxes: Array) -> Callable[[int, list[int]], Array]:
    return lambda at, chosen: _overlap(boxes[at], boxes[chosen])


def _filled(values: Any, dtype: Any, count: int) -> Array:
    given = np.array(values, dtype)
    return np.pad(given, [(0, max(0, count - len(given)))] + [(0, 0)] * (given.ndim - 1))


def _suppress(
    boxes: Array,
    scores: Array,
    most: Array,
    overlap: Array,
    least: Array,
    sigma: Array,
    padded: bool,
) -> Any:
    batch, size = boxes.shape[:-2], int(most) if padded else 0
    if scores.shape != boxes.shape[:-1]:
        problem = f"scores has incompatible shape: {scores.shape} for boxes {boxes.shape}"
        raise InvalidArgumentError(None, None, problem)
    limits = int(most), float(overlap), float(least), float(sigma)
    found = [
        _choose(_of_boxes(each), scores[at], *limits)
        for at, each in ((at, boxes[at]) for at in np.ndindex(*batch))
    ]
    return (
        np.stack([_filled(each, np.int32, size) for each, _ in found]).reshape(*batch, -1),
        np.stack([_filled(each, scores.dtype, size) for _, each in found]).reshape(*batch, -1),
        np.array([len(each) for each, _ in found], np.int32).reshape(batch),
    )


def _size(tensor: Tensor) -> int | None:
    check_dims(tensor, (), "max_output_size")
    value = constant_value(tensor)
    return None if value is None else int(value)


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    boxes, scores, most = inputs[:3]
    known = _size(most)
    size = known if attrs["padded"] else None
    for tensor, what in zip(inputs[3:], ("iou_threshold", "score_threshold", "sigma"), strict=True):
        check_dims(tensor, (), what)
    if boxes.shape.rank is None:
        unknown = TensorShape(None)
        return [Spec(int32, unknown), Spec(scores.dtype, unknown), Spec(int32, unknown)]
    dims = boxes.shape.as_list()
    check_dims(boxes, (*dims[:-1], 4), "boxes")
    check_dims(scores, dims[:-1], "scores")
    batch = dims[:-2]
    return [
        Spec(int32, TensorShape([*batch, size])),
        Spec(scores.dtype, TensorShape([*batch, size])),
        Spec(int32, TensorShape(batch)),
    ]


_BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 5, 1, 6]], np.float32)
_SCORES = np.array([0.5, 0.9, 0.1], np.float32)
_LIMITS = (np.int32(3), np.float32(0.5), np.float32(-np.inf))

register(
    "NonMaxSuppressionV5",
    _suppress,
    where="host",
    infer=_infer,
    gradient=None,
    cases=lambda: [
        Case(
            (_BOXES, _SCORES, *_LIMITS, np.float32(0)),
            {"padded": True},
            (np.array([1, 2, 0], np.int32), np.array([0.9, 0.1, 0], np.float32), np.int32(2)),
        )
    ],
)


def _suppressed(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any,
    score_threshold: Any,
    sigma: Any,
    padded: bool,
    name: str | None,
) -> Sequence[Tensor]:
    with get_default_graph().name_scope(name or "non_max_suppression") as scope:
        places = convert_to_tensor(boxes, name="boxes")
        if not places.dtype.is_floating:
            places = convert_to_tensor(boxes, float32, name="boxes")
        inputs = [
            places,
            convert_to_tensor(scores, places.dtype, name="scores"),
            convert_to_tensor(max_output_size, int32, name="max_output_size"),
            convert_to_tensor(iou_threshold, name="iou_threshold"),
            convert_to_tensor(score_threshold, name="score_threshold"),
            convert_to_tensor(sigma, name="soft_nms_sigma"),
        ]
        return apply("NonMaxSuppressionV5", inputs, {"padded": bool(padded)}, scope).outputs


def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Tensor, Tensor]:
    """The indices of the best non-overlapping boxes, and their number.

    Args:
        boxes: floating `(..., boxes, 4)`.
        scores: `(..., boxes)`.
        max_output_size: the maximum number of boxes to select.
        iou_threshold: boxes overlap if their intersection over union exceeds this.
        score_threshold: boxes whose scores do not exceed this are dropped.
        pad_to_max_output_size: whether to pad the indices with 0; required for batched input.
        sorted_input, canonicalized_coordinates, tile_size: accepted for compatibility only.

    Returns:
        The indices, int32 `(..., selected)`, in descending order of score, and their number, int32
        `(...)`.

    Raises:
        ValueError: the shapes are incompatible, or batched input is not padded.
        InvalidArgumentError: (when run) `iou_threshold` is not within [0, 1].
    """
    if not pad_to_max_output_size:
        rank = convert_to_tensor(boxes).shape.rank
        if rank is not None and rank > 2:
            raise ValueError(
                "'pad_to_max_output_size' (value False) must be True for batched input"
            )
    limits = (max_output_size, iou_threshold, score_threshold, 0.0)
    found = _suppressed(boxes, scores, *limits, pad_to_max_output_size, name)
    return found[0], found[2]


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """The indices of the best non-overlapping boxes; see `non_max_suppression_padded`."""
    return non_max_suppression_padded(
        boxes, scores, max_output_size, iou_threshold, score_threshold, name=name
    )[0]


def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The indices of the best boxes and their scores, optionally decayed by overlap (soft NMS).

    Args:
        boxes: floating `(boxes, 4)`.
        scores, max_output_size, iou_threshold, score_threshold: see `non_max_suppression_padded`.
        soft_nms_sigma: if positive, `iou_threshold` is ignored, and each selected box multiplies
            the others' scores by exp(-iou ** 2 / (2 sigma)) (Bodla et al., 2017).

    Returns:
        The indices, int32 `(selected,)`, and their scores.
    """
    limits = (max_output_size, iou_threshold, score_threshold, soft_nms_sigma)
    name = name or "non_max_suppression_with_scores"
    chosen, found, _ = _suppressed(boxes, scores, *limits, False, name)
    return chosen, found


def _suppress_similar(
    overlaps: Array, scores: Array, most: Array, threshold: Array, least: Array
) -> Any:
    size = len(scores)
    if overlaps.shape != (size, size):
        problem = f"overlaps must be square, with a row for each score: {overlaps.shape}, {size}"
        raise InvalidArgumentError(None, None, problem)
    limits = int(most), float(threshold), float(least)
    chosen, _ = _choose(lambda at, others: overlaps[at, others], scores, *limits)
    return np.array(chosen, np.int32)


def _infer_similar(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    overlaps, scores = inputs[:2]
    check_dims(overlaps, (None, None), "overlaps")
    check_dims(scores, (None,), "scores")
    rows = scores.shape[0] if scores.shape.rank else None
    check_dims(overlaps, (rows, rows), "overlaps")
    _size(inputs[2])
    return [Spec(int32, TensorShape([None]))]


register(
    "NonMaxSuppressionWithOverlaps",
    _suppress_similar,
    where="host",
    infer=_infer_similar,
    gradient=None,
    cases=lambda: [
        Case(
            (np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]], np.float32), _SCORES, *_LIMITS),
            {},
            np.array([1, 2], np.int32),
        )
    ],
)


def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """Non-maximum suppression with precomputed pairwise overlaps.

    Args:
        overlaps: float32 `(n, n)`.
        scores: float32 `(n,)`.
        max_output_size: the maximum number of boxes to select.
        overlap_threshold: of two boxes whose overlap exceeds this, only the better is selected.
        score_threshold: boxes whose scores do not exceed this are dropped.

    Returns:
        The indices, int32 `(selected,)`, in descending order of score.
    """
    with get_default_graph().name_scope(name or "non_max_suppression_overlaps") as scope:
        inputs = [
            convert_to_tensor(overlaps, float32, name="overlaps"),
            convert_to_tensor(scores, float32, name="scores"),
            convert_to_tensor(max_output_size, int32, name="max_output_size"),
            convert_to_tensor(overlap_threshold, float32, name="overlap_threshold"),
            convert_to_tensor(score_threshold, float32, name="score_threshold"),
        ]
        return apply("NonMaxSuppressionWithOverlaps", inputs, name=scope).outputs[0]


# -- several classes


def _combine(
    boxes: Array,
    scores: Array,
    most: Array,
    total: Array,
    overlap: Array,
    least: Array,
    per_class: bool,
    clip: bool,
) -> Any:
    classes = scores.shape[2]
    size = min(int(total), int(most) * classes) if per_class else int(total)
    rows = []
    for places, chances in zip(boxes, scores, strict=True):
        found = []
        for each in range(classes):
            own = places[:, min(each, places.shape[1] - 1)]
            limits = int(most), float(overlap), float(least)
            chosen, values = _choose(_of_boxes(own), chances[:, each], *limits)
            found += [(-value, each, own[at]) for at, value in zip(chosen, values, strict=True)]
        found = sorted(found, key=lambda entry: entry[0])[:size]
        corners = np.array([box for *_, box in found], np.float32).reshape(-1, 4)
        rows.append(
            (
                _filled(np.clip(corners, 0, 1) if clip else corners, np.float32, size),
                _filled([-value for value, *_ in found], np.float32, size),
                _filled([each for _, each, _ in found], np.float32, size),
                np.int32(len(found)),
            )
        )
    return tuple(np.stack(column) for column in zip(*rows, strict=True))


def _infer_combined(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    boxes, scores, most, total = inputs[:4]
    check_dims(boxes, (None, None, None, 4), "boxes")
    check_dims(scores, (None, None, None), "scores")
    batch, count, columns = boxes.shape.as_list()[:3] if boxes.shape.rank else [None] * 3
    check_dims(scores, (batch, count, None), "scores")
    classes = scores.shape[2] if scores.shape.rank else None
    limits = [_size(most), _size(total)]
    problem = None
    if None not in (columns, classes) and columns not in (1, classes):
        problem = (
            "third dimension of boxes must be either 1 or equal to the third dimension of scores"
        )
    elif limits[1] is not None and limits[1] <= 0:
        problem = "max_total_size should be > 0"
    elif limits[0] is not None and limits[0] <= 0:
        problem = "max_output_size_per_class should be > 0"
    if problem:
        raise value_error(problem, received=f"{boxes}, {scores}", made_at=boxes.op.source)
    size = limits[1]
    if attrs["per_class"]:
        known = None not in (*limits, classes)
        size = min(limits[1], limits[0] * classes) if known else None  # type: ignore[type-var,operator]
    shape = TensorShape([batch, size])
    return [
        Spec(float32, TensorShape([batch, size, 4])),
        Spec(float32, shape),
        Spec(float32, shape),
        Spec(int32, TensorShape([batch])),
    ]


register(
    "CombinedNonMaxSuppression",
    _combine,
    where="host",
    infer=_infer_combined,
    gradient=None,
    cases=lambda: [
        Case(
            (
                _BOXES[None, :, None],
                np.stack([_SCORES, _SCORES[::-1]], 1)[None],
                np.int32(1),
                np.int32(3),
                *_LIMITS[1:],
            ),
            {"per_class": False, "clip": True},
            (
                np.array([[[0, 0.1, 1, 1], [0, 0.1, 1, 1], [0, 0, 0, 0]]], np.float32),
                np.array([[0.9, 0.9, 0]], np.float32),
                np.array([[0, 1, 0]], np.float32),
                np.array([2], np.int32),
            ),
        )
    ],
)


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The best boxes of a batch of images, with suppression within each class.

    Args:
        boxes: float32 `(batch, boxes, classes, 4)`, or `(batch, boxes, 1, 4)` to share the boxes
            among classes.
        scores: float32 `(batch, boxes, classes)`.
        max_output_size_per_class: the maximum number of boxes to select per class.
        max_total_size: the maximum number of boxes to select per image.
        iou_threshold, score_threshold: see `non_max_suppression_padded`.
        pad_per_class: whether to limit the rows to `max_output_size_per_class` x classes.
        clip_boxes: whether to clip the corners to [0, 1].

    Returns:
        The boxes `(batch, rows, 4)`, their scores and classes, float32 `(batch, rows)`, best first
        and padded with 0, and the number of valid rows, int32 `(batch,)`.

    Raises:
        ValueError: the shapes are incompatible, or a size is not positive.
        InvalidArgumentError: (when run) `iou_threshold` is not within [0, 1].
    """
    with get_default_graph().name_scope(name or "combined_non_max_suppression") as scope:
        inputs = [
            convert_to_tensor(boxes, float32, name="boxes"),
            convert_to_tensor(scores, float32, name="scores"),
            convert_to_tensor(max_output_size_per_class, int32, name="max_output_size_per_class"),
            convert_to_tensor(max_total_size, int32, name="max_total_size"),
            convert_to_tensor(iou_threshold, float32, name="iou_threshold"),
            convert_to_tensor(score_threshold, float32, name="score_threshold"),
        ]
        attrs = {"per_class": bool(pad_per_class), "clip": bool(clip_boxes)}
        places, values, classes, valid = apply(
            "CombinedNonMaxSuppression", inputs, attrs, scope
        ).outputs
        return places, values, classes, valid
