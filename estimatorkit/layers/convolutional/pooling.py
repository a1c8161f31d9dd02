"""Max and average pooling, over windows or globally.

One class for windows and one for all of space; the public ones say the number of dimensions and
which of the two values it is. Windows of max pooling run the operation `MaxPool`, whose gradient
knows where each greatest value was.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer, as_data_format, as_window, layout
from estimatorkit.layers.engine.input_spec import InputSpec
from estimatorkit.ops.array import array
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import pooling

_FUNCTIONS: dict[tuple[str, int], Any] = {
    ("max", 1): pooling.max_pool1d,
    ("max", 2): pooling.max_pool,
    ("max", 3): pooling.max_pool3d,
    ("mean", 1): pooling.avg_pool1d,
    ("mean", 2): pooling.avg_pool,
    ("mean", 3): pooling.avg_pool3d,
}


class WindowPooling(ConfiguredLayer):
    """Pooling over windows.

    Args:
        pool_size: the size of the window: an int, or one per spatial dimension.
        strides: the strides of the window, likewise; `pool_size` by default.
        padding: 'valid' or 'same'.
        data_format: 'channels_last' or 'channels_first'; that of the backend by default.
        kwargs: as for `Layer`.
    """

    rank = 2
    value = "max"

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        steps = pool_size if strides is None else strides
        self.pool_size = as_window(pool_size, self.rank, "pool_size")
        self.strides = as_window(steps, self.rank, "strides")
        self.padding = str(padding).lower()
        if self.padding not in ("valid", "same"):
            raise value_error(
                f"{type(self).__name__}: the `padding` argument must be one of its values",
                expected="'valid' or 'same'",
                received=repr(padding),
            )
        self.data_format = as_data_format(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        result: Tensor = _FUNCTIONS[self.value, self.rank](
            inputs, self.pool_size, self.strides, self.padding.upper(), layout(self.data_format)
        )
        return result


class GlobalPooling(ConfiguredLayer):
    """Pooling over all spatial positions: `(batch, channels)`.

    Args:
        data_format: 'channels_last' or 'channels_first'; that of the backend by default.
        keepdims: whether to keep the spatial dimensions, with length 1.
        kwargs: as for `Layer`.
    """

    rank = 2
    value = "max"

    def __init__(
        self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.data_format = as_data_format(data_format)
        self.keepdims = keepdims
        self.input_spec = InputSpec(ndim=self.rank + 2)

    @property
    def axes(self) -> list[int]:
        """The spatial axes."""
        start = 2 if self.data_format == "channels_first" else 1
        return list(range(start, start + self.rank))

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        function: Any = reduce.reduce_max if self.value == "max" else reduce.reduce_mean
        result: Tensor = function(inputs, self.axes, self.keepdims)
        return result


class MaxPooling1D(WindowPooling):
    rank = 1


class MaxPooling2D(WindowPooling):
    rank = 2


class MaxPooling3D(WindowPooling):
    rank = 3


class AveragePooling1D(WindowPooling):
    rank = 1
    value = "mean"


class AveragePooling2D(WindowPooling):
    rank = 2
    value = "mean"


class AveragePooling3D(WindowPooling):
    rank = 3
    value = "mean"


class GlobalMaxPooling1D(GlobalPooling):
    rank = 1


class GlobalMaxPooling2D(GlobalPooling):
    rank = 2


class GlobalMaxPooling3D(GlobalPooling):
    rank = 3


class GlobalAveragePooling1D(GlobalPooling):
    rank = 1
    value = "mean"

    def __init__(
        self, data_format: str | None = "channels_last", keepdims: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(data_format, keepdims, **kwargs)
        self.supports_masking = True

    def call(self, inputs: Tensor, mask: Any = None) -> Tensor:
        """The outputs.

        Args:
            inputs: `(batch, steps, channels)`.
            mask: bool `(batch, steps)`, True for the steps to average; all by default.
        """
        if mask is None:
            return super().call(inputs)
        (steps,) = self.axes
        counts = array.expand_dims(elementwise.cast(mask, inputs.dtype), 3 - steps)
        total = reduce.reduce_sum(inputs * counts, steps, self.keepdims)
        result: Tensor = total / reduce.reduce_sum(counts, steps, self.keepdims)
        return result

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """None: the outputs have no steps."""
        return


class GlobalAveragePooling2D(GlobalPooling):
    rank = 2
    value = "mean"


class GlobalAveragePooling3D(GlobalPooling):
    rank = 3
    value = "mean"


for _kind in (
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
    GlobalMaxPooling3D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalAveragePooling3D,
):
    _what = "maximum" if _kind.value == "max" else "mean"
    _where = "each window" if issubclass(_kind, WindowPooling) else "all spatial positions"
    _base = (_kind.__mro__[1].__doc__ or "").split("\n", 1)[1]
    _kind.__doc__ = f"The {_what} of {_where} (`tf.keras.layers.{_kind.__name__}`).\n{_base}"

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalAveragePooling3D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GlobalMaxPooling3D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
]
