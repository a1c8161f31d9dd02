"""`tf.python.layers.utils`, `keras.utils.conv_utils`: argument checks of convolutions."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.layers.engine.configured import as_window, image_data_format

_LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def _choice(value: Any, name: str, *allowed: str) -> str:
    given = str(value).lower()
    if given not in allowed:
        quoted = ", ".join(f'"{each}"' for each in allowed)
        raise value_error(f"The `{name}` argument must be one of {quoted}", received=repr(value))
    return given


def normalize_tuple(value: Any, n: int, name: str, allow_zero: bool = False) -> tuple[int, ...]:
    """`n` integers: `value` if it is a sequence of `n`, otherwise `value` repeated.

    Args:
        value: an integer, or `n` of them.
        n: the number of integers.
        name: the argument's name, for errors.
        allow_zero: whether zeros are allowed.

    Raises:
        ValueError: there are not `n` integers, or one is too small.
    """
    return as_window(value, n, name, least=0 if allow_zero else 1)


def normalize_data_format(value: str | None) -> str:
    """'channels_first' or 'channels_last'; Keras's `image_data_format` if None.

    Raises:
        ValueError: it is neither.
    """
    given = image_data_format() if value is None else value
    return _choice(given, "data_format", "channels_first", "channels_last")


def normalize_padding(value: Any) -> Any:
    """'valid', 'same' or 'causal' in lower case; a list of explicit paddings is returned unchanged.

    Raises:
        ValueError: it is none of them.
    """
    if isinstance(value, (list, tuple)):
        return value
    return _choice(value, "padding", "valid", "same", "causal")


def convert_data_format(data_format: str, ndim: int) -> str:
    """The data format's name in operations, for example 'NHWC'.

    Args:
        data_format: 'channels_last' or 'channels_first'.
        ndim: the rank of the inputs: 3, 4 or 5.

    Raises:
        ValueError: the format or rank is invalid.
    """
    if ndim - 2 not in _LAYOUTS:
        raise value_error("Input rank not supported", expected="3, 4 or 5", received=str(ndim))
    given = _choice(data_format, "data_format", "channels_last", "channels_first")
    return _LAYOUTS[ndim - 2][given == "channels_first"]


def conv_output_length(
    input_length: int | None, filter_size: int, padding: str, stride: int, dilation: int = 1
) -> int | None:
    """The output length of a convolution along an axis; None if `input_length` is None.

    Args:
        input_length: the length of the axis.
        filter_size: the filter's length.
        padding: 'same', 'valid', 'full' or 'causal'.
        stride, dilation: of the filter.
    """
    if input_length is None:
        return None
    reach = (filter_size - 1) * dilation
    longer = {"same": 0, "causal": 0, "valid": -reach, "full": reach}
    return (input_length + longer[padding] + stride - 1) // stride


def conv_input_length(
    output_length: int | None, filter_size: int, padding: str, stride: int
) -> int | None:
    """The input length of a convolution with this output length ('same', 'valid' or 'full')."""
    if output_length is None:
        return None
    border = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
    return (output_length - 1) * stride - 2 * border + filter_size


def deconv_output_length(
    input_length: int | None,
    filter_size: int,
    padding: str,
    output_padding: int | None = None,
    stride: int = 0,
    dilation: int = 1,
) -> int | None:
    """The output length of a transposed convolution along an axis.

    Args:
        input_length: the length of the axis; None returns None.
        filter_size: the filter's length.
        padding: 'same', 'valid' or 'full'.
        output_padding: elements added at the end; None for the minimum that the padding allows.
        stride, dilation: of the filter.
    """
    if input_length is None:
        return None
    size = filter_size + (filter_size - 1) * (dilation - 1)
    if output_padding is None:
        longer = {"same": 0, "valid": max(size - stride, 0), "full": 2 - stride - size}
        return input_length * stride + longer[padding]
    border = {"same": size // 2, "valid": 0, "full": size - 1}[padding]
    return (input_length - 1) * stride + size - 2 * border + output_padding
