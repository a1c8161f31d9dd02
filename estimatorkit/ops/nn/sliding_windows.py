"""Sliding windows of convolutions and pooling.

Parses TensorFlow's window arguments (`as_window_attrs` and its parts), computes padding and output
lengths, and rejects windows that are too large. Padding is 'SAME' (the odd position at the end),
'VALID' (none), or a pair of numbers per spatial dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core.errors import InvalidArgumentError, explain, value_error
from estimatorkit.core.tensor import Tensor

# -- lengths


def window_reach(size: int, dilation: int) -> int:
    """The extent of a dilated window from its first to its last position."""
    return (size - 1) * dilation + 1


def window_pads(
    lengths: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    padding: Any,
    dilations: Sequence[int] | None = None,
) -> list[tuple[int, int]]:
    """Resolves padding to the numbers before and after each spatial dimension."""
    if padding == "VALID":
        return [(0, 0)] * len(lengths)
    if padding != "SAME":
        return [(before, after) for before, after in padding]
    pads = []
    for at, (length, size, stride) in enumerate(zip(lengths, window, strides, strict=True)):
        reach = window_reach(size, dilations[at] if dilations else 1)
        total = max(0, (-(-length // stride) - 1) * stride + reach - length)
        pads.append((total // 2, total - total // 2))
    return pads


def output_length(
    length: int | None, window: int | None, stride: int, padding: Any, dilation: int = 1
) -> int | None:
    """The output length of a convolution or pooling along one dimension.

    `length` and `window` are None if unknown; `padding` is 'SAME', 'VALID', or a pair of numbers.
    """
    if length is None:
        return None
    if padding == "SAME":
        return -(-length // stride)
    if window is None:
        return None
    extra = 0 if padding == "VALID" else sum(padding)
    return max(0, (length + extra - window_reach(window, dilation)) // stride + 1)


def too_large(length: int, window: int, stride: int, padding: Any, dilation: int) -> str | None:
    """TensorFlow's kernel error message if a window is much too large, else None.

    If the window is less than two strides too large, the output is empty (but see
    `check_known_window`).
    """
    reach = window_reach(window, dilation)
    extra = 0 if isinstance(padding, str) else sum(padding)
    over = length + extra - reach + stride
    if padding == "SAME" or over > -stride:
        return None
    return explain(
        f"Computed output size would be negative: {-(-over // stride)} [input_size: "
        f"{length + extra}, effective_filter_size: {reach}, stride: {stride}]",
        hint="use padding='SAME', a smaller window or larger inputs",
    )


def check_window(
    lengths: Sequence[int], window: Sequence[int], strides: Any, padding: Any, dilations: Any
) -> None:
    """Rejects windows that are empty or much larger than an input of run-time shape."""
    if 0 in window[: len(lengths)]:
        words = "filter must not have zero elements (i.e. all dimensions must be non-zero)"
        raise InvalidArgumentError.explained(words, received=tuple(window))
    for at, length in enumerate(lengths):
        own = padding if isinstance(padding, str) else padding[at]
        problem = too_large(length, window[at], strides[at], own, dilations[at])
        if problem:
            raise InvalidArgumentError(None, None, problem)


def check_known_window(tensor: Tensor, length: int | None, reach: int | None, padding: Any) -> None:
    """Rejects a window whose extent exceeds its static input length along one dimension."""
    if padding == "SAME" or length is None or reach is None:
        return
    given = length if padding == "VALID" else length + sum(padding)
    if reach > given:
        raise value_error(
            f"Negative dimension size caused by subtracting {reach} from {given}: the window "
            "is larger than its input",
            received=tensor,
            made_at=tensor.op.source,
            hint="use padding='SAME' or a smaller window",
        )


# -- arguments, as TensorFlow takes them


def as_window_attrs(
    strides: Any, padding: Any, dilations: Any, rank: int, first: bool
) -> dict[str, Any]:
    """The attributes that describe a convolution's window."""
    return {
        "strides": as_spatial(strides, rank, first, "strides"),
        "padding": as_padding(padding, rank, first),
        "dilations": as_spatial(dilations, rank, first, "dilations"),
    }


def as_spatial(values: Any, rank: int, first: bool, what: str) -> tuple[int, ...]:
    """The spatial part of strides, dilations, or window sizes.

    Args:
        values: one number for all dimensions (or a list of it), one per spatial dimension, or one
            per input dimension with 1 for batch and channels; 1 by default.
        rank: the number of spatial dimensions.
        first: whether channels come second, not last.
        what: the argument's name, for errors.

    Raises:
        ValueError: it is none of these, or a number below 1.
    """
    given = [int(each) for each in np.atleast_1d(1 if values is None else values)]
    if len(given) not in (1, rank, rank + 2):
        raise value_error(
            f"{what} should be of length 1, {rank} or {rank + 2} but was {len(given)}",
            received=given,
        )
    if min(given) < 1:
        raise value_error(f"{what} must be positive", received=given)
    if len(given) < rank + 2:
        return tuple(given) * (rank // len(given))
    channels = 1 if first else -1
    if given[0] != 1 or given[channels] != 1:
        raise value_error(
            f"Current implementation does not yet support {what} in the batch and depth dimensions",
            expected="1 there",
            received=given,
        )
    return tuple(given[2:] if first else given[1:-1])


def as_padding(padding: Any, rank: int, first: bool) -> Any:
    """'SAME', 'VALID', or the spatial pairs.

    `padding` has one pair per spatial dimension, or per input dimension with zeros for batch and
    channels; otherwise ValueError. See `as_spatial` for the rest.
    """
    if isinstance(padding, str):
        if padding.upper() in ("SAME", "VALID"):
            return padding.upper()
    elif np.ndim(padding) == 2 and np.shape(padding)[1] == 2:
        pairs = [(int(before), int(after)) for before, after in padding]
        if len(pairs) == rank + 2:
            channels = pairs.pop(1 if first else -1)
            batch = pairs.pop(0)
            if batch != (0, 0) or channels != (0, 0):
                problem = "Nonzero explicit padding in the batch or depth dimensions is not"
                raise value_error(f"{problem} supported", received=padding)
        if min(map(min, pairs)) < 0:
            problem = "All elements of explicit_paddings must be nonnegative"
            raise value_error(problem, received=padding)
        if len(pairs) == rank:
            return tuple(pairs)
    raise value_error(
        "padding is none of its values",
        expected=f"'SAME', 'VALID' or {rank} or {rank + 2} pairs of numbers",
        received=repr(padding),
    )


def is_channels_first(data_format: str | None) -> bool:
    """Whether channels come second ('NCHW' and the like); false by default."""
    given = data_format or "NHWC"
    if not (given.startswith("NC") or (given.startswith("N") and given.endswith("C"))):
        raise value_error(
            "data_format is none of its values",
            expected="'NHWC' or 'NCHW' (or of other dimensions)",
            received=repr(data_format),
        )
    return given.startswith("NC") and not given.endswith("C")


def check_channels_last(data_format: str | None) -> None:
    """Rejects channels-first formats where TensorFlow does not support them."""
    if is_channels_first(data_format):
        raise value_error(
            "Data formats other than 'NHWC' are not yet supported",
            received=repr(data_format),
            hint="transpose the images",
        )
