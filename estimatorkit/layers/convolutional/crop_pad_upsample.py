"""Layers that change the extent of space: `Cropping`, `ZeroPadding` and `UpSampling` of 1, 2 and 3
dimensions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer, as_data_format, as_window
from estimatorkit.layers.engine.input_spec import InputSpec
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.image.resize import resize_images
from estimatorkit.ops.math import elementwise

Pairs = tuple[tuple[int, int], ...]


def _pairs(value: Any, rank: int, name: str) -> Pairs:
    """A (before, after) pair for each dimension: a number for all, or for each dimension a number
    or a pair; of one dimension a pair.
    """
    if rank == 1 and not isinstance(value, (int, np.integer)):
        value = [value]
    given = [value] * rank if isinstance(value, (int, np.integer)) else list(value)
    if len(given) != rank:
        raise value_error(
            f"`{name}` should have {rank} elements",
            expected="a number, or for each dimension a number or a pair",
            received=repr(value),
        )
    return tuple(
        (windows[0], windows[1]) for windows in (as_window(each, 2, name, 0) for each in given)
    )


class _Borders(ConfiguredLayer):
    """What these layers share: where space is."""

    rank = 2

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = as_data_format("channels_last" if self.rank == 1 else data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    @property
    def first_axis(self) -> int:
        """The first spatial axis."""
        return 2 if self.data_format == "channels_first" else 1


class Cropping(_Borders):
    """Crops the borders of the spatial dimensions.

    Args:
        cropping: how much to cut off: an int, or for each dimension an int or a pair (before,
            after).
        data_format: 'channels_last' or 'channels_first'; that of the backend by default.
        kwargs: as for `Layer`.

    Raises:
        ValueError: nothing would be left.
    """

    def __init__(self, cropping: Any = 1, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self._cropping = _pairs(cropping, self.rank, "cropping")

    @property
    def cropping(self) -> Any:
        """Pairs of how much is cut off; one of one dimension is not in a tuple."""
        return self._cropping[0] if self.rank == 1 else self._cropping

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        key: list[slice] = [slice(None)] * self.first_axis
        dims = inputs.shape.as_list()
        for (before, after), length in zip(self._cropping, dims[self.first_axis :], strict=False):
            if length is not None and before + after >= length:
                raise value_error(
                    "Argument `cropping` must be less than the input shape",
                    expected=f"less than {length} in all",
                    received=f"cropping={self.cropping} of {inputs.name} {inputs.shape}",
                    made_at=inputs.op.source,
                )
            key.append(slice(before, -after if after else None))
        result: Tensor = inputs[tuple(key)]
        return result


class ZeroPadding(_Borders):
    """Pads the spatial dimensions with zeros.

    Args:
        padding: the number of zeros: an int, or for each dimension an int or a pair (before,
            after).
        data_format: 'channels_last' or 'channels_first'; that of the backend by default.
        kwargs: as for `Layer`.
    """

    def __init__(self, padding: Any = 1, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self._padding = _pairs(padding, self.rank, "padding")

    @property
    def padding(self) -> Any:
        """Pairs of numbers of zeros; one of one dimension is not in a tuple."""
        return self._padding[0] if self.rank == 1 else self._padding

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        around = [(0, 0)] * self.first_axis
        after = [(0, 0)] * (2 - self.first_axis)
        return filling.pad(inputs, [*around, *self._padding, *after])


class UpSampling(_Borders):
    """Repeats the elements along the spatial dimensions.

    Args:
        size: how many times: an int, or one per spatial dimension.
        data_format: 'channels_last' or 'channels_first'; that of the backend by default.
        kwargs: as for `Layer`.
    """

    def __init__(self, size: Any = 2, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self._size = as_window(size, self.rank, "size")

    @property
    def size(self) -> Any:
        """How often; of one dimension a number."""
        return self._size[0] if self.rank == 1 else self._size

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        outputs = inputs
        for axis, times in enumerate(self._size, self.first_axis):
            outputs = _repeated(outputs, axis, times)
        return outputs


def _repeated(x: Tensor, axis: int, times: int) -> Tensor:
    """Each slice several times, in sequence. The gradient of `tile` is a sum, that of
    `repeat` would add rows one by one.
    """
    if times == 1:
        return x
    dims = x.shape.as_list()
    multiples = [1] * (len(dims) + 1)
    multiples[axis + 1] = times
    wide = filling.tile(array.expand_dims(x, axis + 1), multiples)
    lengths: list[Any] = [
        each * (times if at == axis else 1) if each is not None else None
        for at, each in enumerate(dims)
    ]
    if lengths.count(None) <= 1 and math.prod(each for each in lengths if each is not None):
        return array.reshape(wide, [-1 if each is None else each for each in lengths])
    shape = array.shape(x)
    found = [
        shape[at] * (times if at == axis else 1) if each is None else each
        for at, each in enumerate(lengths)
    ]
    result = array.reshape(wide, joining.stack(found))
    result.set_shape(lengths)
    return result


class Cropping1D(Cropping):
    """Cuts off the first and last steps (`tf.keras.layers.Cropping1D`).

    Args:
        cropping: how many steps: an int for both ends, or a pair.
        kwargs: as for `Layer`.
    """

    rank = 1

    def __init__(self, cropping: Any = (1, 1), **kwargs: Any) -> None:
        super().__init__(cropping, **kwargs)


class Cropping2D(Cropping):
    """Cuts off the borders of images (`tf.keras.layers.Cropping2D`).

    Args:
        cropping: how much to cut off: an int, or for height and width each an int or a pair
            (before, after).
        data_format: 'channels_last' or 'channels_first'; that of the backend by default.
        kwargs: as for `Layer`.

    Raises:
        ValueError: nothing would be left.
    """

    def __init__(
        self, cropping: Any = ((0, 0), (0, 0)), data_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(cropping, data_format, **kwargs)


class Cropping3D(Cropping):
    """Cuts off the borders of volumes (`tf.keras.layers.Cropping3D`); arguments as for
    `Cropping2D`, with one more dimension.
    """

    rank = 3


class ZeroPadding1D(ZeroPadding):
    """Adds steps of zeros at both ends (`tf.keras.layers.ZeroPadding1D`).

    Args:
        padding: how many steps: an int for both ends, or a pair.
        kwargs: as for `Layer`.
    """

    rank = 1

    def __init__(self, padding: Any = 1, **kwargs: Any) -> None:
        super().__init__(padding, **kwargs)


class ZeroPadding2D(ZeroPadding):
    """Pads images with zeros (`tf.keras.layers.ZeroPadding2D`).

    Args:
        padding: the number of zeros: an int, or for height and width each an int or a pair
            (before, after).
        data_format: 'channels_last' or 'channels_first'; that of the backend by default.
        kwargs: as for `Layer`.
    """


class ZeroPadding3D(ZeroPadding):
    """Pads volumes with zeros (`tf.keras.layers.ZeroPadding3D`); arguments as for `ZeroPadding2D`,
    with one more dimension.
    """

    rank = 3


class UpSampling1D(UpSampling):
    """Repeats each step (`tf.keras.layers.UpSampling1D`).

    Args:
        size: how many times.
        kwargs: as for `Layer`.
    """

    rank = 1

    def __init__(self, size: int = 2, **kwargs: Any) -> None:
        super().__init__(size, **kwargs)


_INTERPOLATIONS = (
    "nearest",
    "bilinear",
    "bicubic",
    "area",
    "gaussian",
    "lanczos3",
    "lanczos5",
    "mitchellcubic",
)


class UpSampling2D(UpSampling):
    """Enlarges images (`tf.keras.layers.UpSampling2D`).

    Args:
        size: the factor: an int, or one for height and one for width.
        data_format: 'channels_last' or 'channels_first'; that of the backend by default.
        interpolation: 'nearest' (each pixel repeated), 'bilinear', 'bicubic', 'area', 'gaussian',
            'lanczos3', 'lanczos5', 'mitchellcubic'.
        kwargs: as for `Layer`.

    Raises:
        NotImplementedError: `interpolation` is none of these.
    """

    def __init__(
        self,
        size: Any = 2,
        data_format: str | None = None,
        interpolation: str = "nearest",
        **kwargs: Any,
    ) -> None:
        super().__init__(size, data_format, **kwargs)
        self.interpolation = str(interpolation).lower()
        if self.interpolation not in _INTERPOLATIONS:
            raise NotImplementedError(
                explain(
                    "Value not recognized for `interpolation`",
                    expected=", ".join(_INTERPOLATIONS),
                    received=repr(interpolation),
                )
            )

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        if self.interpolation == "nearest":
            return super().call(inputs)
        first = self.data_format == "channels_first"
        images = array.transpose(inputs, [0, 2, 3, 1]) if first else inputs
        known, shape = images.shape.as_list()[1:3], array.shape(images)
        lengths: list[Any] = [
            shape[at + 1] if each is None else each for at, each in enumerate(known)
        ]
        target = [each * times for each, times in zip(lengths, self._size, strict=True)]
        size: Any = joining.stack(target) if None in known else target
        resized = resize_images(images, size, self.interpolation, half_pixel_centers=True)
        resized = elementwise.cast(resized, inputs.dtype)
        return array.transpose(resized, [0, 3, 1, 2]) if first else resized


class UpSampling3D(UpSampling):
    """Repeats the elements of volumes (`tf.keras.layers.UpSampling3D`).

    Args:
        size: how many times: an int, or one for each of the three dimensions.
        data_format: 'channels_last' or 'channels_first'; that of the backend by default.
        kwargs: as for `Layer`.
    """

    rank = 3


__all__ = [
    "Cropping1D",
    "Cropping2D",
    "Cropping3D",
    "UpSampling1D",
    "UpSampling2D",
    "UpSampling3D",
    "ZeroPadding1D",
    "ZeroPadding2D",
    "ZeroPadding3D",
]
