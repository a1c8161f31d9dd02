"""The summary functions before TensorFlow 1.0: `scalar_summary(tags, values)` and similar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.files import summary


def _tag(tags: Any) -> str:
    if isinstance(tags, (list, tuple)) and len(tags) == 1:
        (tags,) = tags
    if not isinstance(tags, str):
        raise TypeError(f"one tag, a string, is expected; received {tags!r}")
    return tags.replace(" ", "_")


def scalar_summary(
    tags: Any, values: Any, collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """`summary.scalar(tags, values)`."""
    return summary.scalar(_tag(tags), values, collections)


def histogram_summary(
    tag: Any, values: Any, collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """`summary.histogram(tag, values)`."""
    return summary.histogram(_tag(tag), values, collections)


def image_summary(
    tag: Any,
    tensor: Any,
    max_images: int = 3,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """`summary.image(tag, tensor, max_images)`."""
    return summary.image(_tag(tag), tensor, max_images, collections)


def audio_summary(
    tag: Any,
    tensor: Any,
    sample_rate: float,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """`summary.audio(tag, tensor, sample_rate, max_outputs)`."""
    return summary.audio(_tag(tag), tensor, sample_rate, max_outputs, collections)
