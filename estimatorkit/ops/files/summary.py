"""Summary operations, which output serialized `Summary` protos for TensorBoard, as in `tf.summary`.

They run on the host after the step's XLA call, which computes their inputs. Tags are the
operations' names, prefixed by the family if any. `ops.files.summary_values` builds the protos.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import float32, string, uint8
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.registry import Case, fixed, register
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.files import summary_values

_NOT_IN_TAGS = re.compile(r"[^-/\w.]")


@contextmanager
def summary_scope(name: str, family: str | None) -> Iterator[tuple[str, str]]:
    """Opens the name scope of a summary; yields its tag and scope."""
    name = _clean(name)
    family = None if family is None else _clean(family)
    base = name if family is None else f"{family}/{name}"
    with get_default_graph().name_scope(base) as scope:
        tag = scope.rstrip("/")
        yield (tag if family is None else f"{family}/{tag}"), scope


def _clean(name: str) -> str:
    """Replaces the characters that operation names cannot contain, as TensorFlow does."""
    cleaned = _NOT_IN_TAGS.sub("_", name).lstrip("/")
    if cleaned != name:
        logging.getLogger("estimatorkit").info(
            "Summary name %s is illegal; using %s instead.", name, cleaned
        )
    return cleaned


def _make(
    op_type: str,
    name: str,
    family: str | None,
    tensor: Any,
    collections: Sequence[str] | None,
    attrs: Mapping[str, Any],
    key: str = "tensor",
) -> Tensor:
    with summary_scope(name, family) as (tag, scope):
        made = make(op_type, {key: tensor}, {"tag": tag, **attrs}, scope)
    keys = [GraphKeys.SUMMARIES] if collections is None else list(collections)
    made.graph.add_to_collections(keys, made)
    return made


def _register(
    op_type: str, kernel: Callable[..., bytes], accepts: str, cases: Callable[[], list[Case]]
) -> None:
    def run(*inputs: Any, **attrs: Any) -> Any:
        return _as_array(kernel(*inputs, **attrs))

    register(
        op_type,
        run,
        where="host",
        infer=fixed(string),
        gradient=None,
        accepts=accepts,
        cases=cases,
    )


def _as_array(value: bytes) -> Any:
    array = np.empty((), object)
    array[()] = value
    return array


def _case(function: Callable[..., bytes], *inputs: Any, **attrs: Any) -> list[Case]:
    return [Case(inputs, attrs, _as_array(function(*inputs, **attrs)))]


_SAMPLE = np.array([-1.5, 0.0, 2.0], np.float32)

_register(
    "ScalarSummary",
    summary_values.scalar,
    "fi",
    lambda: [
        Case((np.float32(0.5),), {"tag": "loss"}, _as_array(b"\n\x0b\n\x04loss\x15\x00\x00\x00?"))
    ],
)
_register(
    "HistogramSummary",
    summary_values.histogram,
    "fi",
    lambda: _case(summary_values.histogram, _SAMPLE, tag="h"),
)
_register(
    "ImageSummary",
    summary_values.image,
    "fi",
    lambda: _case(
        summary_values.image,
        np.zeros([2, 2, 3, 1], np.float32),
        tag="i",
        max_outputs=1,
        bad_color=(255, 0, 0, 255),
    ),
)
_register(
    "AudioSummaryV2",
    summary_values.audio,
    "f",
    lambda: _case(
        summary_values.audio,
        np.zeros([1, 4], np.float32),
        np.float32(8000),
        tag="a",
        max_outputs=1,
    ),
)
_register(
    "TensorSummaryV2",
    summary_values.tensor,
    "",
    lambda: _case(summary_values.tensor, _SAMPLE, tag="t", metadata=b""),
)
_register(
    "MergeSummary",
    summary_values.merge,
    "s",
    lambda: [
        Case(
            (_as_array(b"\n\x0b\n\x04loss\x15\x00\x00\x00?"), _as_array(b"")),
            {},
            _as_array(b"\n\x0b\n\x04loss\x15\x00\x00\x00?"),
        )
    ],
)


def scalar(
    name: str,
    tensor: Any,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A serialized `Summary` of a scalar.

    Args:
        name: the tag, under the current name scope; made unique.
        tensor: a real number, shape ().
        collections: the collections to add it to; SUMMARIES by default.
        family: a prefix of the tag, by which TensorBoard groups charts.

    Returns:
        A string scalar, the serialized proto.
    """
    return _make("ScalarSummary", name, family, tensor, collections, {}, "values")


def histogram(
    name: str,
    values: Any,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A serialized `Summary` with a histogram in TensorFlow's exponential buckets.

    Args:
        name: the tag, under the current name scope.
        values: real numbers, of any shape. The run fails if one is NaN or infinite.
        collections, family: see `scalar`.
    """
    return _make("HistogramSummary", name, family, values, collections, {}, "values")


def image(
    name: str,
    tensor: Any,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A `Summary` of images.

    Args:
        name: the tag, under the current name scope; images are `name/image` or `name/image/0`, ...
        tensor: (batch, height, width, channels) with 1 (grey), 3 (RGB) or 4 (RGBA) channels; uint8
            is used as is, floating values are scaled image by image: to 0..255 if none is negative,
            else such that 0 becomes 128. Pixels that are not finite are red.
        max_outputs: the maximum number of images.
        collections, family: see `scalar`.

    Raises:
        ValueError: `max_outputs` is not positive.
        TypeError: `tensor` is neither uint8 nor floating.
        InvalidArgumentError: it has another shape, when it is run, as in TensorFlow.
    """
    value = convert_to_tensor(tensor, name="tensor")
    if value.dtype is not uint8 and not value.dtype.is_floating:
        raise type_error(
            f"Value passed to parameter 'tensor' has DataType {value.dtype.name} not in list of "
            "allowed values: uint8, float32, float16, float64",
            received=value,
            made_at=value.op.source,
        )
    attrs = {"max_outputs": _count(max_outputs, name), "bad_color": (255, 0, 0, 255)}
    return _make("ImageSummary", name, family, value, collections, attrs)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A `Summary` of audio clips, as 16-bit WAV.

    Args:
        name: the tag, under the current name scope; clips are `name/audio` or `name/audio/0`, ...
        tensor: float32 in [-1, 1], (batch, frames) or (batch, frames, channels).
        sample_rate: frames per second, a number or a tensor.
        max_outputs: the maximum number of clips.
        collections, family: see `scalar`.
    """
    with summary_scope(name, family) as (tag, scope):
        inputs = {"tensor": tensor, "sample_rate": sample_rate}
        attrs = {"tag": tag, "max_outputs": _count(max_outputs, name)}
        dtypes = {"tensor": float32, "sample_rate": float32}
        made = make("AudioSummaryV2", inputs, attrs, scope, dtypes=dtypes)
    keys = [GraphKeys.SUMMARIES] if collections is None else list(collections)
    made.graph.add_to_collections(keys, made)
    return made


def _count(max_outputs: int, name: str) -> int:
    if max_outputs < 1:
        raise value_error(
            f"summary {name!r}: max_outputs is too small", expected=">= 1", received=max_outputs
        )
    return int(max_outputs)


def text(name: str, tensor: Any, collections: Sequence[str] | None = None) -> Tensor:
    """A `Summary` of text, which TensorBoard renders as Markdown.

    Args:
        name: the tag, under the current name scope.
        tensor: strings; a matrix is rendered as a table.
        collections: see `scalar`.

    Raises:
        ValueError: the tensor does not hold strings.
    """
    value = convert_to_tensor(tensor, name="tensor")
    if value.dtype is not string:
        raise value_error(
            f"Expected tensor {value.name} to have dtype string, got {value.dtype.name}",
            made_at=value.op.source,
            hint="use as_string(x)",
        )
    metadata = summary_values.plugin_metadata("text")
    return _make("TensorSummaryV2", name, None, value, collections, {"metadata": metadata})


def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: Any = None,
    collections: Sequence[str] | None = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """A `Summary` of an arbitrary tensor, for a TensorBoard plugin.

    Args:
        name: the tag, under the current name scope.
        tensor: values of any dtype and shape.
        summary_description: a long description, in Markdown.
        collections, family: see `scalar`.
        summary_metadata: a `SummaryMetadata` proto, which names the plugin.
        display_name: what TensorBoard shows in place of the tag.
    """
    metadata = summary_values.metadata(summary_metadata, display_name, summary_description)
    return _make("TensorSummaryV2", name, family, tensor, collections, {"metadata": metadata})


def merge(
    inputs: Sequence[Any], collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """Merges summaries into one.

    Args:
        inputs: serialized summaries. A run fails if two values have the same tag.
        collections: the collections to add it to; none by default.

    Raises:
        ValueError: there are no inputs.
    """
    values = [convert_to_tensor(each, string) for each in inputs]
    if not values:
        raise ValueError("summary.merge needs at least one summary; `inputs` is empty.")
    with get_default_graph().name_scope(name or "Merge"):
        merged = make(
            "MergeSummary", {f"inputs_{at}": value for at, value in enumerate(values)}, None, name
        )
    merged.graph.add_to_collections(list(collections or []), merged)
    return merged


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """Merges all summaries of the default graph.

    Summaries made in the body of a conditional, a loop or a function cannot be fetched; they are
    omitted with a warning.

    Args:
        key: their collection.
        scope: a regular expression that names must match at their beginning.

    Returns:
        The merged summary, or None if there are none.
    """
    graph = get_default_graph()
    found = graph.get_collection(key, scope)
    outside = [each for each in found if not graph.reaches(convert_to_tensor(each).graph)]
    if outside:
        logging.getLogger("estimatorkit").warning(
            "merge_all omits summaries made in the bodies of functions: %s; return the value "
            "from the body and make its summary outside.",
            ", ".join(each.name for each in outside),
        )
    inside = [each for each in found if each not in outside]
    return merge(inside, name=name) if inside else None


def get_summary_description(node_def: Any) -> Any:
    """The `SummaryDescription` of a TensorSummary operation.

    Args:
        node_def: its `NodeDef`, from a graph written by TensorFlow.

    Raises:
        ValueError: the node has another type.
    """
    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    return summary_values.description(node_def)


__all__ = [
    "audio",
    "get_summary_description",
    "histogram",
    "image",
    "merge",
    "merge_all",
    "scalar",
    "tensor_summary",
    "text",
]
